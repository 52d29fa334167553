"""The ledger of one quota tree: integrates between boundaries, settles at them.

Whoever owns the quota tree tells the ledger what each account borrows and leaves idle, whenever
it changes; `advance` must be called with the time first. Times are epoch milliseconds and never go
back.
Source: docs/spec/credits.md 2. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from sluice.engine.credits.accounts import (
    FROZEN_MS_MAX,
    Account,
    AccountId,
    AccountState,
    Fund,
    restore,
    state_of,
)
from sluice.engine.credits.integrals import Flow, Pool
from sluice.engine.credits.policy import FlavorResource, Terms, Weights, unit_of
from sluice.engine.credits.settle import Row, Settled, settle

GAP_MS_MAX: Final = 24 * 3_600_000
"""A longer silence is settled as its last 24 hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What one boundary did.

    Attributes:
        at_ms: The boundary.
        cohorts: Per cohort that settled anything, its sums.
        skipped_ms: Time of a gap that was left out, 0 normally.
    """

    at_ms: int
    cohorts: tuple[tuple[str, Settled], ...]
    skipped_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Everything that outlives a restart, right after a settlement."""

    settled_ms: int
    accounts: tuple[AccountState, ...]


@final
class Ledger:
    """Balances of one tree."""

    __slots__ = (
        "_covered", "_frozen", "_funds", "_next_ms", "_now_ms", "_period", "_start_ms", "_terms",
        "_terms_next", "_weights", "settled_ms",
    )  # fmt: skip

    def __init__(
        self,
        terms: Terms,
        now_ms: int,
        *,
        covered: Iterable[str] = (),
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Open a ledger.

        Args:
            terms: The policy's terms.
            now_ms: Integration starts here, or at the checkpoint's settlement.
            covered: Resources the tree has quota for.
            checkpoint: Where an earlier ledger of the same policy stopped.
        """
        self._terms = terms
        self._terms_next = terms
        self._covered = frozenset(covered)
        self._weights = Weights(terms, self._covered)
        self._funds: dict[str, Fund] = {}
        self._frozen: dict[AccountId, Account] = {}
        self._period = 0
        self.settled_ms: int | None = None
        start_ms = now_ms
        if checkpoint is not None:
            start_ms = checkpoint.settled_ms
            self.settled_ms = checkpoint.settled_ms
            for state in checkpoint.accounts:
                # Every account waits frozen until its object is seen again.
                account = restore(state, 1000)
                if account.frozen_ms is None:
                    account.frozen_ms = checkpoint.settled_ms
                self._frozen[account.id] = account
        self._now_ms = start_ms
        self._start_ms = start_ms
        self._next_ms = self._boundary_after(start_ms)

    def _boundary_after(self, at_ms: int) -> int:
        period_ms = self._terms.period_ms
        return (at_ms // period_ms + 1) * period_ms

    @property
    def now_ms(self) -> int:
        """Return how far the ledger has integrated."""
        return self._now_ms

    @property
    def next_boundary_ms(self) -> int:
        """Return when the next settlement is due."""
        return self._next_ms

    def weight_of(self, fr: FlavorResource) -> int:
        """Return the billing weight in force, in thousandths."""
        return self._weights.of(fr)

    def change_terms(self, terms: Terms) -> None:
        """Take over changed terms from the next boundary on."""
        self._terms_next = terms

    def cover(self, resources: Iterable[str]) -> None:
        """Say what the tree has quota for; counts from the next boundary on."""
        self._covered = frozenset(resources)
        if self._period == 0 and not any(f.accounts for f in self._funds.values()):
            self._weights = Weights(self._terms, self._covered)

    def advance(self, now_ms: int) -> tuple[Settlement, ...]:
        """Integrate up to a time and settle every boundary on the way.

        An earlier time counts as standing still.
        """
        if now_ms <= self._now_ms:
            return ()
        skipped_ms = max(0, now_ms - self._now_ms - GAP_MS_MAX)
        if skipped_ms:
            self._skip(skipped_ms)
        settlements: list[Settlement] = []
        while self._next_ms <= now_ms:
            settlements.append(self._settle(self._next_ms, skipped_ms))
            skipped_ms = 0
        self._now_ms = now_ms
        return tuple(settlements)

    def _skip(self, skipped_ms: int) -> None:
        """Leave out the first part of a long silence: what was integrated before it stays."""
        for fund in self._funds.values():
            for pool in fund.pools.values():
                pool.to(self._now_ms, self._period, self._start_ms)
                pool.since_ms += skipped_ms
            for account in fund.accounts.values():
                for flow in account.flows.values():
                    flow.to(self._now_ms, self._period, self._start_ms)
                    flow.since_ms += skipped_ms
        self._now_ms += skipped_ms
        self._next_ms = self._boundary_after(self._now_ms)

    # Accounts ---------------------------------------------------------------------------------

    def join(self, identity: AccountId, weight: int) -> None:
        """Open, reopen or update the account of an object; ``weight`` in thousandths."""
        fund = self._funds.setdefault(identity.parent, Fund())
        fund.is_touched = True
        account = fund.accounts.get(identity)
        if account is None:
            account = self._frozen.pop(identity, None)
            if account is not None:
                account.frozen_ms = None
            else:
                account = Account(identity, self._entry_balance(fund), weight)
            fund.accounts[identity] = account
        account.is_leaving = False
        account.weight = weight

    def _entry_balance(self, fund: Fund) -> int:
        live = [a.balance for a in fund.accounts.values() if not a.is_leaving]
        return sum(live) // len(live) if live else self._terms.initial

    def leave(self, identity: AccountId) -> None:
        """Close an account: it settles once more at the next boundary and is frozen then."""
        fund = self._funds.get(identity.parent)
        account = None if fund is None else fund.accounts.get(identity)
        if fund is None or account is None or account.is_leaving:
            return
        for fr in list(account.flows):
            self.flow(identity, fr, 0, 0)
        account.is_leaving = True
        account.left_ms = self._now_ms
        fund.is_touched = True

    def flow(self, identity: AccountId, fr: FlavorResource, borrowed: int, idle: int) -> None:
        """Say what an account borrows and leaves idle from now on, in accounting units."""
        fund = self._funds[identity.parent]
        account = fund.accounts[identity]
        entry = account.flows.get(fr)
        if entry is None:
            if borrowed == 0 and idle == 0:
                return
            entry = account.flows[fr] = Flow(self._period, self._now_ms)
        if entry.borrowed == borrowed and entry.idle == idle:
            return
        entry.to(self._now_ms, self._period, self._start_ms)
        pool = self._pool(fund, fr)
        pool.borrowed += borrowed - entry.borrowed
        pool.idle += idle - entry.idle
        entry.borrowed, entry.idle = borrowed, idle
        if pool.borrowed > 0 or borrowed > 0:
            fund.is_touched = True

    def own_quota(self, cohort: str, fr: FlavorResource, amount: int) -> None:
        """Say how much quota a cohort holds itself, in accounting units."""
        fund = self._funds.setdefault(cohort, Fund())
        self._pool(fund, fr).own = amount

    def _pool(self, fund: Fund, fr: FlavorResource) -> Pool:
        pool = fund.pools.get(fr)
        if pool is None:
            pool = fund.pools[fr] = Pool(self._period, self._now_ms)
        pool.to(self._now_ms, self._period, self._start_ms)
        return pool

    # Queries ----------------------------------------------------------------------------------

    def balance(self, identity: AccountId) -> int:
        """Return the balance of the last settlement."""
        return self._funds[identity.parent].accounts[identity].balance

    def projected(self, identity: AccountId, extra: dict[FlavorResource, int] | None = None) -> int:
        """Return what decisions compare (docs/spec/credits.md 3).

        Args:
            identity: A live account.
            extra: Borrowed amounts to count in place of the present ones, by flavor-resource.
        """
        account = self._funds[identity.parent].accounts[identity]
        result = account.balance
        for fr, flow in account.flows.items():
            weight = self._weights.of(fr)
            if weight == 0:
                continue
            flow.to(self._now_ms, self._period, self._start_ms)
            unit = unit_of(fr[1])
            borrowed = flow.borrowed if extra is None else extra.get(fr, flow.borrowed)
            result -= weight * flow.borrowed_ms // unit
            result -= weight * borrowed * self._terms.horizon_ms // unit
        if extra is not None:
            for fr, borrowed in extra.items():
                if fr not in account.flows:
                    charge = self._weights.of(fr) * borrowed * self._terms.horizon_ms
                    result -= charge // unit_of(fr[1])
        return result

    def accounts(self) -> tuple[Account, ...]:
        """Return live and frozen accounts, cohort by cohort."""
        live = [a for name in sorted(self._funds) for a in self._funds[name].in_order()]
        return (*live, *(self._frozen[identity] for identity in sorted(self._frozen)))

    def checkpoint(self) -> Checkpoint | None:
        """Return the state of the last settlement; None before the first.

        Only true right after `advance` settled a boundary, before anything joins or leaves.
        """
        if self.settled_ms is None:
            return None
        return Checkpoint(
            settled_ms=self.settled_ms, accounts=tuple(state_of(a) for a in self.accounts())
        )

    # Settlement -------------------------------------------------------------------------------

    def _settle(self, at_ms: int, skipped_ms: int) -> Settlement:
        elapsed_ms = at_ms - self._start_ms
        done: list[tuple[str, Settled]] = []
        for name in sorted(self._funds):
            fund = self._funds[name]
            if fund.is_touched or self._terms.half_life_ms is not None or self._has_inflow(fund):
                settled = self._settle_fund(fund, at_ms, elapsed_ms)
                if settled is not None:
                    done.append((name, settled))
        self._period += 1
        self._now_ms = self._start_ms = self.settled_ms = at_ms
        self._terms = self._terms_next
        self._weights = Weights(self._terms, self._covered)
        self._next_ms = self._boundary_after(at_ms)
        for identity, account in list(self._frozen.items()):
            if account.frozen_ms is not None and at_ms - account.frozen_ms > FROZEN_MS_MAX:
                del self._frozen[identity]
        return Settlement(at_ms=at_ms, cohorts=tuple(done), skipped_ms=skipped_ms)

    def _has_inflow(self, fund: Fund) -> bool:
        return any(pool.own or pool.own_ms for pool in fund.pools.values())

    def _settle_fund(self, fund: Fund, at_ms: int, elapsed_ms: int) -> Settled | None:
        traded: dict[FlavorResource, int] = {}
        inflow = 0
        for fr, pool in fund.pools.items():
            pool.to(at_ms, self._period, self._start_ms)
            weight, unit = self._weights.of(fr), unit_of(fr[1])
            if weight:
                traded[fr] = weight * pool.traded_ms // unit
                inflow += weight * pool.own_ms // unit
        accounts = fund.in_order()
        rows = [self._row(account, at_ms) for account in accounts]
        settled = settle(rows, traded, inflow, self._terms, elapsed_ms) if rows else None
        for account, row in zip(accounts, rows, strict=True):
            account.balance = row.balance
            account.spent += row.paid
            account.earned += row.earned
            account.inflow += row.inflow
            account.unpaid += row.unpaid
            account.clipped += row.clipped
            account.decayed += row.decayed
            if account.is_leaving:
                del fund.accounts[account.id]
                account.is_leaving = False
                account.frozen_ms = account.left_ms
                account.flows = {}
                self._frozen[account.id] = account
        fund.is_touched = any(pool.borrowed > 0 for pool in fund.pools.values())
        return settled

    def _row(self, account: Account, at_ms: int) -> Row:
        owed: dict[FlavorResource, int] = {}
        offered: dict[FlavorResource, int] = {}
        for fr, flow in account.flows.items():
            flow.to(at_ms, self._period, self._start_ms)
            weight, unit = self._weights.of(fr), unit_of(fr[1])
            if weight == 0:
                continue
            if flow.borrowed_ms:
                owed[fr] = weight * flow.borrowed_ms // unit
            if flow.idle_ms:
                offered[fr] = weight * flow.idle_ms // unit
        return Row(account.balance, account.weight, owed, offered, account.is_leaving)
