"""How fast writes that only inform may go, so that they leave the API server to those that decide.

Admissions, starts and ends of Workloads are never held up here. Reasons for waiting, counts in the
status of queues, and events are: while decisions flow each has a small rate, and when nothing is
decided they may go quickly. A write held up is tried again later and is often needless by then.
Shared by the executor, the controllers and the recorder of events.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Final

from sluice.clock import Clock
from sluice.kube.limits import TokenBucket

BUSY_DECISIONS: Final = 16
BUSY_WINDOW_S: Final = 1.0


class Informing(Enum):
    """Kinds of writes that inform: (a second while busy, a second while idle, burst)."""

    REASONS = (20.0, 200.0, 100)
    QUEUE_STATUS = (10.0, 60.0, 60)
    EVENTS = (10.0, 100.0, 300)


class Pace:
    """Decides whether a write that informs may go now."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._decisions: deque[float] = deque(maxlen=BUSY_DECISIONS)
        self._busy = {kind: self._bucket(kind.value[0], kind) for kind in Informing}
        self._idle = {kind: self._bucket(kind.value[1], kind) for kind in Informing}

    def _bucket(self, qps: float, kind: Informing) -> TokenBucket:
        return TokenBucket(qps=qps, burst=kind.value[2], clock=self._clock)

    def decided(self) -> None:
        """Note that a decision was written."""
        self._decisions.append(self._clock.monotonic_s())

    @property
    def is_busy(self) -> bool:
        """Tell whether decisions flow right now."""
        if len(self._decisions) < BUSY_DECISIONS:
            return False
        return self._clock.monotonic_s() - self._decisions[0] < BUSY_WINDOW_S

    def wait_s(self, kind: Informing) -> float:
        """Return 0 when a write may go now, else the seconds until asking again is worth it."""
        bucket = (self._busy if self.is_busy else self._idle)[kind]
        wait_s = bucket.reserve()
        if wait_s > 0:
            bucket.give_back()
        return wait_s
