"""Work queues of keys: each key waits once, runs once at a time, and backs off on its own.

Level-based: a key says "look at this object", never what happened to it. Used by controllers.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from sluice.api.errors import InvariantViolation
from sluice.kube.backoff import DICE

K = TypeVar("K", bound=Hashable)

KEYS_MAX: Final = 1_000_000
"""More keys than a cluster can hold objects: reaching it means that keys are made up, a fault."""


class WorkQueue(Generic[K]):
    """Keys to look at. One owner adds, any number of workers call ``get`` and then ``done``.

    A key added while it waits is not queued twice; added while it is worked on, it is queued again
    when the worker is done.
    """

    def __init__(
        self, *, backoff_s: float = 0.02, backoff_s_max: float = 30.0, keys_max: int = KEYS_MAX
    ) -> None:
        """Make an empty queue.

        Args:
            backoff_s: Seconds before the first retry of a failed key; doubled each time.
            backoff_s_max: Most seconds between retries of a key.
            keys_max: Bound on waiting keys.
        """
        self._backoff_s = backoff_s
        self._backoff_s_max = backoff_s_max
        self._ready: asyncio.Queue[K] = asyncio.Queue(maxsize=keys_max)
        self._dirty: set[K] = set()
        self._working: set[K] = set()
        self._due_s: dict[K, float] = {}
        self._delayed: list[tuple[float, int, K]] = []
        self._sequence = 0
        self._timer: asyncio.TimerHandle | None = None
        self._failures: dict[K, int] = {}

    def __len__(self) -> int:
        """Return how many keys are ready for a worker."""
        return self._ready.qsize()

    @property
    def delayed_count(self) -> int:
        """Return how many keys wait for a time to come."""
        return len(self._due_s)

    def add(self, key: K) -> None:
        """Queue a key now; a delay it had is dropped.

        Raises:
            InvariantViolation: The bound is reached.
        """
        self._due_s.pop(key, None)
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._working:
            self._push(key)

    def add_after(self, key: K, wait_s: float) -> None:
        """Queue a key after some seconds; of several delays of one key the earliest counts."""
        if wait_s <= 0:
            self.add(key)
            return
        if key in self._dirty and key not in self._working:
            return  # it is looked at before that anyway
        due_s = asyncio.get_running_loop().time() + wait_s
        known_s = self._due_s.get(key)
        if known_s is not None and known_s <= due_s:
            return
        self._due_s[key] = due_s
        self._sequence += 1
        heapq.heappush(self._delayed, (due_s, self._sequence, key))
        self._arm()

    def add_failed(self, key: K) -> float:
        """Queue a key again after its own back-off; returns the seconds."""
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        wait_s = min(self._backoff_s * float(2 ** min(count, 30)), self._backoff_s_max)
        wait_s *= DICE.uniform(0.8, 1.2)
        self.add_after(key, wait_s)
        return wait_s

    def forget(self, key: K) -> None:
        """Start the key's back-off anew: it succeeded."""
        self._failures.pop(key, None)

    def failure_count(self, key: K) -> int:
        """Return how often a key failed in a row."""
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """Wait for a key and return it; the worker must call ``done`` with it."""
        key = await self._ready.get()
        self._dirty.discard(key)
        self._working.add(key)
        return key

    def done(self, key: K) -> None:
        """Finish work on a key; it runs again if it was added meanwhile."""
        self._working.discard(key)
        if key in self._dirty:
            self._push(key)

    def close(self) -> None:
        """Drop every delay, so that no timer outlives the queue."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._delayed.clear()
        self._due_s.clear()

    def _push(self, key: K) -> None:
        try:
            self._ready.put_nowait(key)
        except asyncio.QueueFull as error:
            raise InvariantViolation(
                f"work queue holds {self._ready.maxsize} keys; cannot add {key!r}"
            ) from error

    def _arm(self) -> None:
        """Set the timer to the earliest delay."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._delayed and self._due_s.get(self._delayed[0][2]) != self._delayed[0][0]:
            heapq.heappop(self._delayed)  # superseded by an earlier delay or by add()
        if self._delayed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(self._delayed[0][0], self._release)

    def _release(self) -> None:
        self._timer = None
        now_s = asyncio.get_running_loop().time()
        while self._delayed and self._delayed[0][0] <= now_s:
            due_s, _, key = heapq.heappop(self._delayed)
            if self._due_s.get(key) == due_s:
                self.add(key)
        self._arm()
