"""RFC 3339 times as integer milliseconds since the epoch, and Go durations. Pure."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DURATION_UNITS_MS: Final = {
    "ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0
}  # fmt: skip
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


@lru_cache(maxsize=65536)
def to_ms(text: str) -> int:
    """Return the epoch milliseconds of an RFC 3339 time; finer digits are cut off.

    Raises:
        ValueError: The text is not such a time.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time {text!r} has no zone; write it like 2026-01-01T12:00:00Z")
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def from_ms(at_ms: int) -> str:
    """Return a time in whole seconds, as Kubernetes writes ``metav1.Time``."""
    moment = _EPOCH + timedelta(seconds=at_ms // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_from_ms(at_ms: int) -> str:
    """Return a time with six decimals, as Kubernetes writes ``metav1.MicroTime``."""
    moment = _EPOCH + timedelta(milliseconds=at_ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def duration_ms(text: str) -> int:
    """Return the milliseconds of a Go duration such as ``1h30m``, ``500ms`` or ``0``.

    Raises:
        ValueError: The text is not such a duration.
    """
    sign = -1 if text.startswith("-") else 1
    rest = text.lstrip("+-") if text[:1] in "+-" else text
    if rest == "0":
        return 0
    total, end = 0.0, 0
    for part in _DURATION_PART.finditer(rest):
        if part.start() != end:
            break
        total += float(part.group(1)) * _DURATION_UNITS_MS[part.group(2)]
        end = part.end()
    if not rest or end != len(rest):
        raise ValueError(f"duration {text!r} is not of the form 1h30m, 45s or 500ms")
    return sign * round(total)
