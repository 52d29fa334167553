"""Exact integrals of what accounts borrow and leave idle, between two settlements.

Every change integrates what it ends, so the number of changes in between makes no difference. A
cohort that is skipped by a settlement starts anew lazily: integrals of an older period count as
zero. Each entry also keeps what it was right after the last settlement, copied at its first change,
so that a checkpoint can be taken at any later time. Source: docs/spec/credits.md 2 and 4. Pure.
"""

from typing import final

from sluice.api.amount import UNLIMITED
from sluice.api.records_credit import FlavorResource


@final
class Flow:
    """One flavor-resource of one account: what it has now, and the integrals of its rates.

    Attributes:
        borrowed: Usage beyond the quota now, in the resource's accounting unit; 0 where the quota
            is unlimited.
        idle: Lendable and unused quota now; 0 where the quota is unlimited.
        borrowed_ms: Integral of ``borrowed`` since the period began.
        idle_ms: Integral of ``idle``.
    """

    __slots__ = (
        "_before", "_before_period", "borrowed", "borrowed_ms", "guaranteed", "idle", "idle_ms",
        "period", "quota", "since_ms", "usage",
    )  # fmt: skip

    def __init__(self, period: int, now_ms: int) -> None:
        self.usage = self.quota = self.guaranteed = 0
        self.borrowed = self.idle = 0
        self.borrowed_ms = self.idle_ms = 0
        self.period = period
        self.since_ms = now_ms
        self._before = (0, 0, 0)
        self._before_period = period

    def to(self, now_ms: int, period: int, start_ms: int) -> None:
        """Integrate up to ``now_ms`` of the period that began at ``start_ms``."""
        if self.period != period:
            self.period = period
            self.borrowed_ms = self.idle_ms = 0
            self.since_ms = max(self.since_ms, start_ms)
        span_ms = now_ms - self.since_ms
        if span_ms > 0:
            self.borrowed_ms += self.borrowed * span_ms
            self.idle_ms += self.idle * span_ms
            self.since_ms = now_ms

    def set(self, usage: int, quota: int, guaranteed: int) -> None:
        """Change what the account has; `to` must have been called with the present time."""
        if self._before_period != self.period:
            self._before = (self.usage, self.quota, self.guaranteed)
            self._before_period = self.period
        self.usage, self.quota, self.guaranteed = usage, quota, guaranteed
        self.borrowed, self.idle = rates(usage, quota, guaranteed)

    def at_settlement(self, period: int) -> tuple[int, int, int]:
        """Return usage, quota and guaranteed as they were when a period began."""
        if self._before_period == period:
            return self._before
        return self.usage, self.quota, self.guaranteed


def rates(usage: int, quota: int, guaranteed: int) -> tuple[int, int]:
    """Return what is borrowed and what is lendable and idle; neither where quota is unlimited."""
    if quota >= UNLIMITED:
        return 0, 0
    borrowed = usage - quota
    kept = usage if usage > guaranteed else guaranteed
    idle = quota - kept
    return borrowed if borrowed > 0 else 0, idle if idle > 0 else 0


@final
class Pool:
    """One flavor-resource of one cohort: sums over its accounts and what they could trade.

    Attributes:
        borrowed: Sum of the accounts' ``borrowed`` now.
        idle: Sum of the accounts' ``idle`` now.
        own: Quota that the cohort holds itself.
        traded_ms: Integral of min(borrowed, idle).
        own_ms: Integral of ``own``.
    """

    __slots__ = (
        "_before", "_before_period", "borrowed", "idle", "own", "own_ms", "period", "since_ms",
        "traded_ms",
    )  # fmt: skip

    def __init__(self, period: int, now_ms: int) -> None:
        self.borrowed = 0
        self.idle = 0
        self.own = 0
        self.traded_ms = 0
        self.own_ms = 0
        self.period = period
        self.since_ms = now_ms
        self._before = 0
        self._before_period = period

    def to(self, now_ms: int, period: int, start_ms: int) -> None:
        """Integrate up to ``now_ms`` of the period that began at ``start_ms``."""
        if self.period != period:
            self.period = period
            self.traded_ms = self.own_ms = 0
            self.since_ms = max(self.since_ms, start_ms)
        span_ms = now_ms - self.since_ms
        if span_ms > 0:
            self.traded_ms += min(self.borrowed, self.idle) * span_ms
            self.own_ms += self.own * span_ms
            self.since_ms = now_ms

    def set_own(self, amount: int) -> None:
        """Change the cohort's own quota; `to` must have been called with the present time."""
        if self._before_period != self.period:
            self._before = self.own
            self._before_period = self.period
        self.own = amount

    def own_at_settlement(self, period: int) -> int:
        """Return the own quota as it was when a period began."""
        return self._before if self._before_period == period else self.own


FlowMap = dict[FlavorResource, Flow]
PoolMap = dict[FlavorResource, Pool]
