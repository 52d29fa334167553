"""What the webhook tells about itself: a protocol that the composition root may implement.

The application calls it; metrics are its first use (docs/spec/api.md section 5 leaves the names of
webhook metrics to the controller runtime).
"""

from __future__ import annotations

from typing import Protocol


class Observer(Protocol):
    """Hears of every request. Must be quick and must not raise."""

    def started(self, path: str) -> None:
        """Note that a request has come in.

        Args:
            path: Path of the route; a bounded set.
        """
        ...

    def finished(self, path: str, code: int, allowed: bool | None, duration_s: float) -> None:
        """Note that a request has been answered.

        Args:
            path: Path of the route.
            code: HTTP status of the answer.
            allowed: What was decided; None for conversions and failed requests.
            duration_s: Seconds from the first byte of the request to the answer.
        """
        ...


class NoObserver:
    """Hears nothing."""

    def started(self, path: str) -> None:
        """Do nothing."""

    def finished(self, path: str, code: int, allowed: bool | None, duration_s: float) -> None:
        """Do nothing."""
