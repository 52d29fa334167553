"""A CreditPolicy whose accounts have given balances, for tests of what credits decide."""

from collections.abc import Mapping
from typing import Any

from tests.support.builders import T0_MS

from sluice.api.names import CohortName
from sluice.api.records_credit import (
    UNIT_HOUR,
    AccountId,
    AccountState,
    BillingWeight,
    CreditCheckpoint,
    CreditPolicy,
    CreditTerms,
    WeightInForce,
)

HARNESS_START_MS = T0_MS + 3_600_000
"""When the harness begins; a settlement boundary."""


def policy(
    cohort: str = "R",
    *,
    balances: Mapping[str, float] | None = None,
    cohorts: Mapping[str, str] | None = None,
    name: str = "credits",
    **terms: Any,
) -> CreditPolicy:
    """Return a policy with a checkpoint of the moment the harness begins.

    Args:
        cohort: Root of its tree, and parent of the accounts unless said otherwise.
        balances: Unit-hours by account; ``Cohort/x`` is the account of a cohort.
        cohorts: Parent of an account that is not right below the root.
        name: Name of the policy.
        **terms: Fields of `CreditTerms`; cpu weighs 1 unless ``weights`` are given.
    """
    weights = terms.pop("weights", {"cpu": 1000})
    listed = tuple(
        BillingWeight(resource=r.split("/", 1)[-1], flavor=f, weight=w)
        for r, w in weights.items()
        for f in ((r.split("/", 1)[0],) if "/" in r else (None,))
    )
    states = []
    for account, hours in (balances or {}).items():
        kind, _, plain = account.rpartition("/")
        parent = (cohorts or {}).get(account, cohort)
        identity = AccountId(plain, kind or "ClusterQueue", parent)
        states.append(AccountState(id=identity, balance=round(hours * UNIT_HOUR)))
    forced = tuple(
        WeightInForce(w.flavor or flavor, w.resource, w.weight)
        for w in listed
        for flavor in ("default", "spot", "tas")
    )
    checkpoint = CreditCheckpoint(
        settled_ms=HARNESS_START_MS, accounts=tuple(states), weights=forced
    )
    return CreditPolicy(
        name=name,
        cohort=CohortName(cohort),
        uid=f"uid-{name}",
        created_ms=T0_MS,
        terms=CreditTerms(weights=listed, **terms),
        checkpoint=checkpoint if balances is not None else None,
    )
