"""Virtual time: what happens when, and in which order at one instant.

Sources, failures and reports put actions on the loop; the player runs them and lets the engine
decide in between. Used by everything in `sluice.simulator`.
"""

import heapq
from collections.abc import Callable
from enum import IntEnum


class Rank(IntEnum):
    """The order of actions at one instant."""

    END = 0
    """Running Workloads end or fail."""
    WITHDRAW = 1
    """Demand that was not served is taken back."""
    SETTLE = 2
    """Time is known to everyone: ledgers settle."""
    REPORT = 3
    """Rows of a report are closed."""
    ARRIVE = 4
    """New work comes; the engine's cycles follow."""


Action = Callable[[], None]


class EventLoop:
    """Actions by time, then rank, then the order in which they were put.

    Attributes:
        now_ms: Epoch milliseconds.
    """

    def __init__(self, start_ms: int) -> None:
        self.now_ms = start_ms
        self._heap: list[tuple[int, Rank, int, Action]] = []
        self._count = 0

    def at(self, at_ms: int, rank: Rank, action: Action) -> None:
        """Have an action run at a time; one in the past runs at once."""
        self._count += 1
        heapq.heappush(self._heap, (max(at_ms, self.now_ms), rank, self._count, action))

    def next_ms(self) -> int | None:
        """Return the time of the next action."""
        return self._heap[0][0] if self._heap else None

    def run_now(self, last: Rank = Rank.ARRIVE) -> bool:
        """Run all actions of the present instant up to a rank; tell whether there were any."""
        has_run = False
        while self._heap and self._heap[0][0] <= self.now_ms and self._heap[0][1] <= last:
            heapq.heappop(self._heap)[3]()
            has_run = True
        return has_run
