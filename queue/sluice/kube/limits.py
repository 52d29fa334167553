"""Client-side request limits: a token bucket for each kind, as clientConnection sets them.

Kueue's client keeps one bucket a kind too, so ``qps`` bounds each kind's requests and not the sum.
Used by ``client``.
"""

from __future__ import annotations

import asyncio

from sluice.clock import Clock


class TokenBucket:
    """Lets ``burst`` requests through at once and ``qps`` a second after that.

    Waiters are served in the order they came: each reserves its token first and then sleeps.
    """

    def __init__(self, *, qps: float, burst: int, clock: Clock) -> None:
        """Start full.

        Args:
            qps: Tokens a second, above 0.
            burst: Tokens it holds at most, at least 1.
            clock: Where monotonic time comes from.
        """
        if qps <= 0 or burst < 1:
            raise ValueError(f"a bucket needs qps > 0 and burst >= 1, not {qps} and {burst}")
        self._qps = qps
        self._burst = float(burst)
        self._clock = clock
        self._tokens = float(burst)
        self._filled_at_s = clock.monotonic_s()

    def reserve(self) -> float:
        """Take a token, borrowed if need be, and return the seconds to wait before using it."""
        now_s = self._clock.monotonic_s()
        gained = (now_s - self._filled_at_s) * self._qps
        self._tokens = min(self._burst, self._tokens + gained) - 1.0
        self._filled_at_s = now_s
        return max(0.0, -self._tokens / self._qps)

    def give_back(self) -> None:
        """Return a token that was reserved and not used."""
        self._tokens = min(self._burst, self._tokens + 1.0)


class RequestLimits:
    """The buckets of one client."""

    def __init__(self, *, qps: float, burst: int, clock: Clock) -> None:
        """Take the settings of clientConnection; ``qps`` of 0 or less means no limit."""
        self._qps = qps
        self._burst = max(1, burst)
        self._clock = clock
        self._buckets: dict[str, TokenBucket] = {}

    async def acquire(self, kind: str) -> float:
        """Wait for the turn of a request to a kind; returns the seconds waited."""
        if self._qps <= 0:
            return 0.0
        bucket = self._buckets.get(kind)
        if bucket is None:
            bucket = TokenBucket(qps=self._qps, burst=self._burst, clock=self._clock)
            self._buckets[kind] = bucket
        wait_s = bucket.reserve()
        if wait_s > 0:
            try:
                await asyncio.sleep(wait_s)
            except asyncio.CancelledError:
                bucket.give_back()
                raise
        return wait_s
