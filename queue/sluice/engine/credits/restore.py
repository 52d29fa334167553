"""Opening a ledger from a checkpoint, and changes that objects still show since then.

The checkpoint says what every account had at its settlement; changes of usage with a known time are
replayed on that picture of the tree, then the caller brings the ledger to the present state: all
other changes count from then. Source: docs/spec/credits.md 4. Used by the engine's `Credits`. Pure.
"""

from collections.abc import Iterable
from typing import NamedTuple

from sluice.api.records_credit import AccountId, CreditCheckpoint, CreditTerms, FlavorResource
from sluice.engine.credits.accounts import Account, restore
from sluice.engine.credits.ledger import GAP_MS_MAX, Ledger, Settlement

QUEUE_KIND = "ClusterQueue"
COHORT_KIND = "Cohort"


class UsageChange(NamedTuple):
    """Usage of a ClusterQueue changed by ``amount`` at a time that an object shows."""

    at_ms: int
    queue: str
    flavor: str
    resource: str
    amount: int


def open_ledger(terms: CreditTerms, checkpoint: CreditCheckpoint) -> Ledger:
    """Return a ledger in the state of a checkpoint, at the time of its settlement."""
    ledger = Ledger(terms, checkpoint.settled_ms, fixed_weights=checkpoint.weights)
    ledger.settled_ms = checkpoint.settled_ms
    for state in checkpoint.accounts:
        account = restore(state)
        if state.frozen_ms is not None:
            ledger.freeze(account)
            continue
        ledger.frozen[state.id] = account
        ledger.join(state.id, state.weight)
        account.joined_period = -1
        for held in state.holdings:
            fr = (held.flavor, held.resource)
            ledger.hold(account, fr, held.usage, held.quota, held.guaranteed)
    for entry in checkpoint.own:
        ledger.own_quota(entry.cohort, (entry.flavor, entry.resource), entry.amount)
    # What was just entered is what it was at the settlement: the period after it begins here.
    ledger.period += 1
    return ledger


def replay(ledger: Ledger, changes: Iterable[UsageChange], until_ms: int) -> list[Settlement]:
    """Bring a restored ledger up to the present, with the changes that objects show.

    Args:
        ledger: As `open_ledger` returns it.
        changes: In any order; those before the settlement or after ``until_ms`` are left out.
        until_ms: The present.
    """
    opened_ms = ledger.now_ms
    if until_ms - opened_ms > GAP_MS_MAX:
        ledger.skip(until_ms - opened_ms - GAP_MS_MAX)
    picture = _Picture(ledger)
    done: list[Settlement] = []
    # At one instant reservations come first: one that was made and given up at once leaves nothing.
    for change in sorted(changes, key=lambda c: (c.at_ms, c.amount < 0, c)):
        if opened_ms <= change.at_ms <= until_ms:
            done.extend(ledger.advance(change.at_ms))
            picture.apply(change)
    done.extend(ledger.advance(until_ms))
    return done


class _Picture:
    """The tree as the checkpoint shows it: which account is above which."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._above: dict[AccountId, Account] = {}
        self._queues: dict[str, Account] = {}
        cohorts: dict[str, Account] = {}
        accounts = [a for fund in ledger.funds.values() for a in fund.accounts.values()]
        for account in accounts:
            if account.id.kind == QUEUE_KIND:
                self._queues[account.id.name] = account
            else:
                cohorts[account.id.name] = account
        for account in accounts:
            parent = cohorts.get(account.id.parent)
            if parent is not None:
                self._above[account.id] = parent

    def apply(self, change: UsageChange) -> None:
        """Book or release usage and pass on what exceeds the guaranteed part (1.4)."""
        fr: FlavorResource = (change.flavor, change.resource)
        account = self._queues.get(change.queue)
        amount = change.amount
        while account is not None and amount:
            flow = account.flows.get(fr)
            usage, quota, guaranteed = (
                (0, 0, 0) if flow is None else (flow.usage, flow.quota, flow.guaranteed)
            )
            before = max(0, usage - guaranteed)
            usage = max(0, usage + amount)
            self._ledger.hold(account, fr, usage, quota, guaranteed)
            amount = max(0, usage - guaranteed) - before
            account = self._above.get(account.id)
