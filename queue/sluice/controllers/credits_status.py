"""The status of a CreditPolicy as JSON, and its settlements as log fields.

Pure. Source: docs/spec/credits.md 4. Used by `credits` and the simulator's crash tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice.api import conditions, times
from sluice.api.conditions import ConditionType
from sluice.api.records_credit import UNIT_HOUR
from sluice.api.wire_credit import encode_checkpoint
from sluice.engine.credits import queries
from sluice.engine.credits.ledger import Settlement
from sluice.engine.credits.service import Credits, Resumption
from sluice.engine.credits.settle import Settled

SETTLED: Final = "Settled"
_LEDGER_FIELDS: Final = ("settledAt", "accounts", "cohorts", "weights")

Json = Mapping[str, Any]


def status_of(
    ledgers: Credits, name: str, present: Json, *, now_ms: int, seen: int
) -> dict[str, Any] | None:
    """Return the status that a policy should have; None while the engine can't tell.

    Args:
        ledgers: The engine's ledgers.
        name: The policy.
        present: The status it has; of an inert policy the ledger in it stays as it is.
        now_ms: Epoch milliseconds, for a condition that changes.
        seen: ``metadata.generation``.
    """
    state = ledgers.state(name)
    if state is None or not ledgers.is_started:
        return None
    book = ledgers.book(name)
    result = dict(present)
    saved = None if book is None or not state.is_active else queries.checkpoint(book.ledger)
    if saved is not None:
        result = {k: v for k, v in result.items() if k not in _LEDGER_FIELDS}
        result.update(encode_checkpoint(saved))
    listed = conditions.set_condition(
        present.get("conditions"),
        kind=ConditionType.ACTIVE,
        status=conditions.TRUE if state.is_active else conditions.FALSE,
        reason=state.reason,
        message=state.message,
        now_ms=now_ms,
        generation=seen,
    )
    settled_at = result.get("settledAt")
    reason, message = _settled(ledgers.resumption(name), settled_at)
    result["conditions"] = conditions.set_condition(
        listed,
        kind=SETTLED,
        status=conditions.TRUE if settled_at else conditions.FALSE,
        reason=reason,
        message=message,
        now_ms=now_ms,
        generation=seen,
    )
    return result


def _settled(resumed: Resumption | None, settled_at: str | None) -> tuple[str, str]:
    if settled_at is None:
        return "Pending", "The first settlement is due at the end of this settlementPeriod"
    if resumed is None:
        return "Settled", "Balances are those of settledAt"
    since, at = times.from_ms(resumed.settled_ms), times.from_ms(resumed.at_ms)
    return "Resumed", (
        f"The ledger went on at {at} from the balances of {since}; changes in between that no "
        f"object shows with a time count from {at}"
    )


def moved_unit_hours(settlement: Settlement) -> float:
    """Return the largest amount that a settlement moved within a cohort, in unit-hours."""
    return max((s.moved for _, s in settlement.cohorts), default=0) / UNIT_HOUR


def log_fields(policy: str, settlement: Settlement) -> dict[str, Any]:
    """Return a settlement as the fields of one log line; amounts are in unit-hours."""
    fields: dict[str, Any] = {
        "policy": policy,
        "settled_at": times.from_ms(settlement.at_ms),
        "cohorts": {name: _sums(settled) for name, settled in settlement.cohorts},
    }
    if settlement.skipped_ms:
        fields["skipped_s"] = settlement.skipped_ms / 1000
    return fields


def _sums(settled: Settled) -> dict[str, float]:
    sums = {
        "paid": settled.paid,
        "paid_out": settled.paid_out,
        "inflow": settled.inflow,
        "unpaid": settled.unpaid,
        "unassigned": settled.unassigned,
        "decayed": settled.decayed,
        "clipped": settled.clipped,
    }
    return {name: round(amount / UNIT_HOUR, 6) for name, amount in sums.items() if amount}
