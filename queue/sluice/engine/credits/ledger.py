"""The ledger of one quota tree: integrates between boundaries, settles at them.

Whoever owns the quota tree tells the ledger what each account has, whenever it changes; `advance`
must be called with the time first. Times are epoch milliseconds; going back counts as standing
still. Opening a ledger from a checkpoint is in `restore`, looking at one in `queries`.
Source: docs/spec/credits.md 2. Used by the engine's `Credits`. Pure.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from sluice.api.errors import InvariantViolation
from sluice.api.records_credit import (
    AccountId,
    CreditTerms,
    FlavorResource,
    WeightInForce,
)
from sluice.engine.credits.accounts import FROZEN_MS_MAX, Account, Fund
from sluice.engine.credits.integrals import Flow, Pool
from sluice.engine.credits.policy import Weights, unit_of
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


@final
class Ledger:
    """Balances of one tree.

    Attributes:
        funds: Cohorts with accounts or own quota, by name.
        frozen: Accounts whose object is gone, settled a last time.
        period: Number of the period being integrated.
        start_ms: When it began.
        now_ms: How far the ledger has integrated.
        next_boundary_ms: When the next settlement is due.
        settled_ms: The last settlement, None before the first.
        terms: In force until the next boundary.
    """

    __slots__ = (
        "_all_due", "_covered", "_due", "_expiry", "_skipped_ms", "_terms_next", "_weights",
        "frozen", "funds", "next_boundary_ms", "now_ms", "period", "settled_ms", "start_ms",
        "terms",
    )  # fmt: skip

    def __init__(
        self,
        terms: CreditTerms,
        now_ms: int,
        covered: Iterable[str] = (),
        fixed_weights: Iterable[WeightInForce] | None = None,
    ) -> None:
        """Open a ledger that integrates from ``now_ms`` on.

        Args:
            terms: The policy's terms.
            now_ms: Epoch milliseconds.
            covered: Resources the tree has quota for.
            fixed_weights: Weights in force until `cover` is called, from a checkpoint.
        """
        self.terms = terms
        self.funds: dict[str, Fund] = {}
        self.frozen: dict[AccountId, Account] = {}
        self.period = 0
        self.now_ms = self.start_ms = now_ms
        self.settled_ms: int | None = None
        self.next_boundary_ms = self._boundary_after(now_ms)
        self._terms_next = terms
        self._covered = frozenset(covered) if fixed_weights is None else None
        self._weights = Weights(terms, covered, fixed_weights)
        self._due: dict[str, None] = {}
        self._all_due = False
        self._expiry: list[tuple[int, AccountId]] = []
        self._skipped_ms = 0

    def _boundary_after(self, at_ms: int) -> int:
        period_ms = self.terms.period_ms
        return (at_ms // period_ms + 1) * period_ms

    def weight_of(self, fr: FlavorResource) -> int:
        """Return the billing weight in force, in thousandths."""
        return self._weights.of(fr)

    def change_terms(self, terms: CreditTerms) -> None:
        """Take over changed terms from the next boundary on."""
        self._terms_next = terms

    def cover(self, resources: Iterable[str]) -> None:
        """Say what the tree has quota for; counts from the next boundary on."""
        self._covered = frozenset(resources)

    # Time -------------------------------------------------------------------------------------

    def advance(self, now_ms: int) -> tuple[Settlement, ...]:
        """Integrate up to a time and settle every boundary on the way.

        An earlier time counts as standing still.
        """
        if now_ms <= self.now_ms:
            return ()
        if now_ms - self.now_ms > GAP_MS_MAX:
            self.skip(now_ms - self.now_ms - GAP_MS_MAX)
        settlements: list[Settlement] = []
        while self.next_boundary_ms <= now_ms:
            settlements.append(self._settle(self.next_boundary_ms))
        self.now_ms = now_ms
        return tuple(settlements)

    def skip(self, span_ms: int) -> None:
        """Let time pass that is not integrated; what was integrated before it stays.

        Boundaries within it are left out; the next settlement records the time.
        """
        for fund in self.funds.values():
            for pool in fund.pools.values():
                pool.to(self.now_ms, self.period, self.start_ms)
                pool.since_ms += span_ms
            for account in fund.accounts.values():
                for flow in account.flows.values():
                    flow.to(self.now_ms, self.period, self.start_ms)
                    flow.since_ms += span_ms
        self.now_ms += span_ms
        # The period goes on after the gap as if it had not been: decay must not see it either.
        self.start_ms += span_ms
        self._skipped_ms += span_ms
        self.next_boundary_ms = self._boundary_after(self.now_ms)

    # Accounts ---------------------------------------------------------------------------------

    def join(self, identity: AccountId, weight: int) -> Account:
        """Open, reopen or update the account of an object; ``weight`` in thousandths."""
        fund = self._fund(identity.parent)
        account = fund.accounts.get(identity)
        if account is None:
            account = self.frozen.pop(identity, None)
            if account is None:
                account = Account(identity, fund.entry_balance(self.terms.initial), weight)
            account.frozen_before_ms, account.frozen_ms = account.frozen_ms, None
            account.joined_period = self.period
            fund.add(account)
            self._due[fund.name] = None
        account.is_leaving = False
        account.weight = weight
        return account

    def leave(self, identity: AccountId) -> None:
        """Close an account: it settles once more at the next boundary and is frozen then."""
        fund = self.funds.get(identity.parent)
        account = None if fund is None else fund.accounts.get(identity)
        if fund is None or account is None or account.is_leaving:
            return
        for fr in account.flows:
            self.hold(account, fr, 0, 0, 0)
        account.is_leaving = True
        self._due[fund.name] = None

    def hold(
        self, account: Account, fr: FlavorResource, usage: int, quota: int, guaranteed: int
    ) -> None:
        """Say what a live account has from now on, in the resource's unit (Q, G: 1.1)."""
        flow = account.flows.get(fr)
        if flow is None:
            if usage == quota == guaranteed == 0:
                return
            flow = account.flows[fr] = Flow(self.period, self.now_ms)
        flow.to(self.now_ms, self.period, self.start_ms)
        borrowed, idle = flow.borrowed, flow.idle
        flow.set(usage, quota, guaranteed)
        if flow.borrowed == borrowed and flow.idle == idle:
            return
        fund = self.funds[account.id.parent]
        pool = self._pool(fund, fr)
        pool.borrowed += flow.borrowed - borrowed
        pool.idle += flow.idle - idle
        if flow.borrowed:
            self._due[fund.name] = None

    def own_quota(self, cohort: str, fr: FlavorResource, amount: int) -> None:
        """Say how much quota a cohort holds itself, in the resource's unit."""
        fund = self.funds.get(cohort)
        if fund is None or fr not in fund.pools:
            if amount == 0:
                return
            fund = self._fund(cohort)
        pool = self._pool(fund, fr)
        if pool.own != amount:
            pool.set_own(amount)
            self._due[cohort] = None

    def freeze(self, account: Account) -> None:
        """Keep an account without an object, frozen since ``account.frozen_ms``."""
        assert account.frozen_ms is not None
        self.frozen[account.id] = account
        heapq.heappush(self._expiry, (account.frozen_ms, account.id))

    def _fund(self, name: str) -> Fund:
        fund = self.funds.get(name)
        if fund is None:
            fund = self.funds[name] = Fund(name)
        return fund

    def _pool(self, fund: Fund, fr: FlavorResource) -> Pool:
        pool = fund.pools.get(fr)
        if pool is None:
            pool = fund.pools[fr] = Pool(self.period, self.now_ms)
        pool.to(self.now_ms, self.period, self.start_ms)
        return pool

    # Settlement -------------------------------------------------------------------------------

    def _settle(self, at_ms: int) -> Settlement:
        elapsed_ms = at_ms - self.start_ms
        if self._all_due or self.terms.half_life_ms is not None:
            names = sorted(self.funds)
        else:
            names = sorted(self._due)
        self._due = {}
        done: list[tuple[str, Settled]] = []
        for name in names:
            settled = self._settle_fund(self.funds[name], at_ms, elapsed_ms)
            if settled is not None:
                done.append((name, settled))
        self.period += 1
        self.now_ms = self.start_ms = self.settled_ms = at_ms
        self._renew_terms()
        for name in names:
            fund = self.funds[name]
            if not fund.accounts and not any(pool.own for pool in fund.pools.values()):
                del self.funds[name]
            elif self._moves(fund):
                self._due[name] = None
        self.next_boundary_ms = self._boundary_after(at_ms)
        self._expire(at_ms)
        skipped_ms, self._skipped_ms = self._skipped_ms, 0
        return Settlement(at_ms=at_ms, cohorts=tuple(done), skipped_ms=skipped_ms)

    def _renew_terms(self) -> None:
        self._all_due = self.terms != self._terms_next
        self.terms = self._terms_next
        if self._covered is None:
            return
        weights = Weights(self.terms, self._covered)
        if not weights.is_same(self._weights):
            self._weights = weights
            self._all_due = True

    def _moves(self, fund: Fund) -> bool:
        """Tell whether a cohort's balances will change though nothing else happens."""
        return any(
            (pool.borrowed or pool.own) and self._weights.of(fr) for fr, pool in fund.pools.items()
        )

    def _expire(self, at_ms: int) -> None:
        while self._expiry and at_ms - self._expiry[0][0] > FROZEN_MS_MAX:
            frozen_ms, identity = heapq.heappop(self._expiry)
            account = self.frozen.get(identity)
            if account is not None and account.frozen_ms == frozen_ms:
                del self.frozen[identity]

    def _settle_fund(self, fund: Fund, at_ms: int, elapsed_ms: int) -> Settled | None:
        accounts = fund.in_order()
        if not accounts:
            return None
        traded: dict[FlavorResource, int] = {}
        inflow = 0
        for fr, pool in fund.pools.items():
            pool.to(at_ms, self.period, self.start_ms)
            weight, unit = self._weights.of(fr), unit_of(fr[1])
            if weight:
                traded[fr] = weight * pool.traded_ms // unit
                inflow += weight * pool.own_ms // unit
        rows = [self._row(account, at_ms) for account in accounts]
        settled = settle(rows, traded, inflow, self.terms, elapsed_ms)
        for account, row in zip(accounts, rows, strict=True):
            account.balance = row.balance
            account.spent += row.paid
            account.earned += row.earned
            account.inflow += row.inflow
            account.unpaid += row.unpaid
            account.clipped += row.clipped
            account.decayed += row.decayed
        fund.total += settled.change
        if sum(account.balance for account in accounts) != fund.total:
            raise InvariantViolation("balances differ from what joined, left and was settled")
        for account in [a for a in accounts if a.is_leaving]:
            fund.remove(account)
            account.is_leaving = False
            account.frozen_ms = at_ms
            account.flows = {}
            self.freeze(account)
        return settled

    def _row(self, account: Account, at_ms: int) -> Row:
        owed: dict[FlavorResource, int] = {}
        offered: dict[FlavorResource, int] = {}
        for fr, flow in account.flows.items():
            flow.to(at_ms, self.period, self.start_ms)
            weight, unit = self._weights.of(fr), unit_of(fr[1])
            if weight == 0:
                continue
            if flow.borrowed_ms:
                owed[fr] = weight * flow.borrowed_ms // unit
            if flow.idle_ms:
                offered[fr] = weight * flow.idle_ms // unit
        return Row(account.balance, account.weight, owed, offered)
