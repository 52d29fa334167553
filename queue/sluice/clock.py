"""The only clock: everything above the engine that needs the time is handed one."""

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time."""

    def now_ms(self) -> int:
        """Return wall-clock milliseconds since the epoch; may step backwards or forwards."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds that never go back; only differences mean something."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now_ms(self) -> int:
        """Return wall-clock milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Return the system's monotonic seconds."""
        return time.monotonic()


class ManualClock:
    """A clock that moves only when told to: for simulations and tests."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0

    def now_ms(self) -> int:
        """Return the time it was set to, in epoch milliseconds."""
        return self._now_ms

    def monotonic_s(self) -> float:
        """Return the seconds advanced so far."""
        return self._monotonic_ms / 1000

    def advance(self, duration_ms: int) -> None:
        """Move both readings forward by ``duration_ms`` (at least 0)."""
        if duration_ms < 0:
            raise ValueError("a monotonic clock cannot go back; use step() for the wall clock")
        self._now_ms += duration_ms
        self._monotonic_ms += duration_ms

    def step(self, duration_ms: int) -> None:
        """Move the wall clock alone, backwards too, as an operator or NTP does."""
        self._now_ms += duration_ms
