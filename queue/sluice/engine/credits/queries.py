"""Looking at a ledger: projected balances for decisions, checkpoints for restarts.

Source: docs/spec/credits.md 3 and 4. Used by the engine's `Credits`. Pure.
"""

from collections.abc import Mapping

from sluice.api.records_credit import (
    AccountState,
    CreditCheckpoint,
    FlavorResource,
    Holding,
    OwnQuota,
    WeightInForce,
)
from sluice.engine.credits.accounts import Account, state_of
from sluice.engine.credits.ledger import Ledger
from sluice.engine.credits.policy import unit_of


def owed(ledger: Ledger, account: Account) -> int:
    """Return what a live account owes since the last boundary, not yet settled."""
    total = 0
    for fr, flow in account.flows.items():
        weight = ledger.weight_of(fr)
        if weight:
            flow.to(ledger.now_ms, ledger.period, ledger.start_ms)
            total += weight * flow.borrowed_ms // unit_of(fr[1])
    return total


def projected(
    ledger: Ledger, account: Account, borrowed: Mapping[FlavorResource, int] | None = None
) -> int:
    """Return what decisions compare: the balance less what is owed and soon will be.

    Args:
        ledger: The account's ledger.
        account: A live account.
        borrowed: What it borrows now of all that is billed; None takes what the ledger knows.
    """
    result = account.balance - owed(ledger, account)
    now = borrowed
    if now is None:
        now = {fr: flow.borrowed for fr, flow in account.flows.items()}
    horizon_ms = ledger.terms.horizon_ms
    for fr, amount in now.items():
        if amount:
            result -= ledger.weight_of(fr) * amount * horizon_ms // unit_of(fr[1])
    return result


def checkpoint(ledger: Ledger) -> CreditCheckpoint | None:
    """Return the state right after the last settlement, before later changes of that instant.

    None before the first settlement. May be called at any later time: entries that changed since
    remember what they were.
    """
    if ledger.settled_ms is None:
        return None
    period = ledger.period
    states: list[AccountState] = []
    own: list[OwnQuota] = []
    weights: dict[FlavorResource, int] = {}
    frozen = list(ledger.frozen.values())
    for name in sorted(ledger.funds):
        fund = ledger.funds[name]
        for fr in sorted(fund.pools):
            weights[fr] = ledger.weight_of(fr)
            amount = fund.pools[fr].own_at_settlement(period)
            if amount:
                own.append(OwnQuota(name, fr[0], fr[1], amount))
        for account in fund.in_order():
            if account.joined_period != period:
                states.append(state_of(account, None, _holdings(ledger, account)))
            elif account.frozen_before_ms is not None:
                frozen.append(account)
    for account in sorted(frozen, key=lambda a: a.id):
        since_ms = account.frozen_ms if account.frozen_ms is not None else account.frozen_before_ms
        states.append(state_of(account, since_ms, ()))
    return CreditCheckpoint(
        settled_ms=ledger.settled_ms,
        accounts=tuple(states),
        own=tuple(own),
        weights=tuple(WeightInForce(*fr, weights[fr]) for fr in sorted(weights) if weights[fr]),
    )


def _holdings(ledger: Ledger, account: Account) -> tuple[Holding, ...]:
    result = []
    for fr in sorted(account.flows):
        if ledger.weight_of(fr) == 0:
            continue
        usage, quota, guaranteed = account.flows[fr].at_settlement(ledger.period)
        if usage or quota or guaranteed:
            result.append(Holding(*fr, usage, quota, guaranteed))
    return tuple(result)
