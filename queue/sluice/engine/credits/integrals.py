"""Exact integrals of what accounts borrow and leave idle, between two settlements.

Every change integrates what it ends, so the number of changes in between makes no difference. A
cohort that is skipped by a settlement starts anew lazily: entries of an older period count as zero.
Source: docs/spec/credits.md 2. Pure.
"""

from typing import final

from sluice.engine.credits.policy import FlavorResource


@final
class Flow:
    """One flavor-resource of one account: present rates and their integrals.

    Attributes:
        borrowed: Usage beyond the quota now, in the resource's accounting unit.
        idle: Lendable and unused quota now.
        borrowed_ms: Integral of ``borrowed`` since the period began.
        idle_ms: Integral of ``idle``.
    """

    __slots__ = ("borrowed", "borrowed_ms", "idle", "idle_ms", "period", "since_ms")

    def __init__(self, period: int, now_ms: int) -> None:
        self.borrowed = 0
        self.idle = 0
        self.borrowed_ms = 0
        self.idle_ms = 0
        self.period = period
        self.since_ms = now_ms

    def to(self, now_ms: int, period: int, start_ms: int) -> None:
        """Integrate up to ``now_ms`` of the period that began at ``start_ms``."""
        if self.period != period:
            self.period = period
            self.borrowed_ms = self.idle_ms = 0
            self.since_ms = max(self.since_ms, start_ms)
        span = now_ms - self.since_ms
        if span > 0:
            self.borrowed_ms += self.borrowed * span
            self.idle_ms += self.idle * span
            self.since_ms = now_ms


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

    __slots__ = ("borrowed", "idle", "own", "own_ms", "period", "since_ms", "traded_ms")

    def __init__(self, period: int, now_ms: int) -> None:
        self.borrowed = 0
        self.idle = 0
        self.own = 0
        self.traded_ms = 0
        self.own_ms = 0
        self.period = period
        self.since_ms = now_ms

    def to(self, now_ms: int, period: int, start_ms: int) -> None:
        """Integrate up to ``now_ms`` of the period that began at ``start_ms``."""
        if self.period != period:
            self.period = period
            self.traded_ms = self.own_ms = 0
            self.since_ms = max(self.since_ms, start_ms)
        span = now_ms - self.since_ms
        if span > 0:
            self.traded_ms += min(self.borrowed, self.idle) * span
            self.own_ms += self.own * span
            self.since_ms = now_ms


FlowMap = dict[FlavorResource, Flow]
PoolMap = dict[FlavorResource, Pool]
