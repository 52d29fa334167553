"""CreditPolicy: raw JSON to its record, and a ledger's checkpoint to status JSON and back.

Big integers are strings in the status, zero entries are left out. Source: docs/spec/credits.md 4.
Used by `sluice.api.wire`, the engine (sizes) and whoever writes the status. Pure.
"""

import json
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

from sluice.api import amount, quantity, times
from sluice.api.names import CohortName
from sluice.api.records_credit import (
    UNIT_HOUR,
    AccountId,
    AccountState,
    BillingWeight,
    CreditCheckpoint,
    CreditPolicy,
    CreditTerms,
    Holding,
    OwnQuota,
    WeightInForce,
)

ACCOUNTS_MAX: Final = 2000
"""Accounts that a status can hold, frozen ones included."""
STATUS_BYTES_MAX: Final = 1 << 20
"""Size of a status as JSON."""

_TOTALS: Final = ("earned", "spent", "inflow", "unpaid", "clipped", "decayed")
_ACCOUNT_BYTES: Final = 420
"""An account without names and holdings: keys, and eight numbers of up to 30 digits."""
_HOLDING_BYTES: Final = 130
"""A holding without names: keys, and three numbers of up to 20 digits."""
_DEFAULT_WEIGHT: Final = 1000

JsonObject = Mapping[str, Any]


def thousandths(value: Fraction) -> int:
    """Return a number in thousandths, half rounded up."""
    return (value * 2000 + 1).__floor__() // 2


def ledger_units(unit_hours: object) -> int:
    """Return a quantity of unit-hours in ledger units, half rounded up.

    Raises:
        ValueError: It is not a quantity.
    """
    return (quantity.parse(unit_hours) * UNIT_HOUR * 2 + 1).__floor__() // 2


def unit_hours(ledger_amount: int) -> float:
    """Return an amount of ledger units in unit-hours, for people."""
    return ledger_amount / UNIT_HOUR


def terms(spec: JsonObject) -> CreditTerms:
    """Return the terms of a policy's spec.

    Raises:
        ValueError: A quantity or duration has a form that the schema would refuse.
    """
    floor, ceiling = spec.get("minBalance"), spec.get("maxBalance")
    half_life = spec.get("halfLife")
    return CreditTerms(
        weights=tuple(
            BillingWeight(
                resource=entry["resource"],
                flavor=entry.get("flavor") or None,
                weight=thousandths(quantity.parse(entry["weight"])),
            )
            for entry in spec.get("billingWeights") or ()
        ),
        period_ms=times.duration_ms(spec.get("settlementPeriod") or "60s"),
        horizon_ms=times.duration_ms(spec.get("horizon") or "1h"),
        initial=ledger_units(spec.get("initialBalance") or 0),
        floor=None if floor is None else ledger_units(floor),
        ceiling=None if ceiling is None else ledger_units(ceiling),
        half_life_ms=None if half_life is None else times.duration_ms(half_life),
    )


def credit_policy(raw: JsonObject) -> CreditPolicy:
    """Return the record of a CreditPolicy."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    created = meta.get("creationTimestamp")
    conditions = status.get("conditions") or ()
    return CreditPolicy(
        name=meta["name"],
        cohort=CohortName(spec.get("cohortName") or ""),
        terms=terms(spec),
        uid=meta.get("uid") or "",
        resource_version=meta.get("resourceVersion") or "",
        generation=meta.get("generation") or 0,
        created_ms=times.to_ms(created) if created else 0,
        checkpoint=decode_checkpoint(status),
        was_active=not any(
            c.get("type") == "Active" and c.get("status") == "False" for c in conditions
        ),
    )


def encode_checkpoint(checkpoint: CreditCheckpoint) -> dict[str, Any]:
    """Return a checkpoint as the fields of a status."""
    cohorts: dict[str, list[dict[str, str]]] = {}
    for own in checkpoint.own:
        cohorts.setdefault(own.cohort, []).append(
            {"flavor": own.flavor, "resource": own.resource, "quota": str(own.amount)}
        )
    result: dict[str, Any] = {
        "settledAt": _time(checkpoint.settled_ms),
        "accounts": [_account(state) for state in checkpoint.accounts],
    }
    if cohorts:
        result["cohorts"] = [{"name": n, "resources": r} for n, r in sorted(cohorts.items())]
    if checkpoint.weights:
        result["weights"] = [
            {"flavor": w.flavor, "resource": w.resource, "weight": _weight_text(w.weight)}
            for w in checkpoint.weights
        ]
    return result


def _time(at_ms: int) -> str:
    return times.from_ms(at_ms) if at_ms % 1000 == 0 else times.micro_from_ms(at_ms)


def _weight_text(weight: int) -> str:
    return str(weight // 1000) if weight % 1000 == 0 else f"{weight}m"


def _account(state: AccountState) -> dict[str, Any]:
    result: dict[str, Any] = {
        "parent": state.id.parent,
        "kind": state.id.kind,
        "name": state.id.name,
        "balance": str(state.balance),
    }
    if state.weight != _DEFAULT_WEIGHT:
        result["weight"] = _weight_text(state.weight)
    for field in _TOTALS:
        value: int = getattr(state, field)
        if value:
            result[field] = str(value)
    if state.frozen_ms is not None:
        result["frozenSince"] = _time(state.frozen_ms)
    if state.holdings:
        result["resources"] = [_holding(held) for held in state.holdings]
    return result


def _holding(held: Holding) -> dict[str, str]:
    result = {"flavor": held.flavor, "resource": held.resource}
    for field, value in (
        ("usage", held.usage), ("quota", held.quota), ("guaranteed", held.guaranteed)
    ):  # fmt: skip
        if value:
            result[field] = str(amount.bounded(value))
    return result


def decode_checkpoint(status: JsonObject) -> CreditCheckpoint | None:
    """Return the checkpoint that a status holds, None before the first settlement.

    Raises:
        ValueError: A number or time has a form that the schema would refuse.
    """
    settled = status.get("settledAt")
    if not settled:
        return None
    return CreditCheckpoint(
        settled_ms=times.to_ms(settled),
        accounts=tuple(_state(entry) for entry in status.get("accounts") or ()),
        own=tuple(
            OwnQuota(cohort["name"], r["flavor"], r["resource"], _quota(r.get("quota")))
            for cohort in status.get("cohorts") or ()
            for r in cohort.get("resources") or ()
        ),
        weights=tuple(
            WeightInForce(
                w["flavor"], w["resource"], thousandths(quantity.parse(w.get("weight") or 0))
            )
            for w in status.get("weights") or ()
        ),
    )


def _state(entry: JsonObject) -> AccountState:
    frozen = entry.get("frozenSince")
    weight = entry.get("weight")
    return AccountState(
        id=AccountId(entry["name"], entry["kind"], entry["parent"]),
        balance=int(entry["balance"]),
        weight=_DEFAULT_WEIGHT if weight is None else thousandths(quantity.parse(weight)),
        frozen_ms=times.to_ms(frozen) if frozen else None,
        holdings=_holdings(entry.get("resources") or ()),
        **{field: int(entry.get(field) or 0) for field in _TOTALS},
    )


def _holdings(entries: Iterable[JsonObject]) -> tuple[Holding, ...]:
    return tuple(
        Holding(
            r["flavor"],
            r["resource"],
            int(r.get("usage") or 0),
            _quota(r.get("quota")),
            _quota(r.get("guaranteed")),
        )
        for r in entries
    )


def _quota(text: object) -> int:
    value = int(str(text or 0))
    return amount.UNLIMITED if value >= quantity.MAX_INT64 else value


def encoded_size(checkpoint: CreditCheckpoint) -> int:
    """Return how many bytes a checkpoint takes as compact JSON in UTF-8."""
    text = json.dumps(encode_checkpoint(checkpoint), separators=(",", ":"), ensure_ascii=False)
    return len(text.encode())


def size_bound(accounts_count: int, holdings_count: int, names_bytes: int) -> int:
    """Return at least as many bytes as a status takes, without encoding it.

    Args:
        accounts_count: Accounts, frozen ones included.
        holdings_count: Billed flavor-resources per account.
        names_bytes: Names of all accounts and parents, and of the flavor-resources per account.
    """
    per_account = _ACCOUNT_BYTES + holdings_count * _HOLDING_BYTES
    return 1024 + accounts_count * per_account + names_bytes
