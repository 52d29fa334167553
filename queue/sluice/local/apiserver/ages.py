"""Times and durations as tables show them: `5m3s`, `47h`, `2d3h`.

Tables are rendered by the server, so ages are its business too; the steps are kubectl's.
"""

from __future__ import annotations

from datetime import UTC, datetime

UNKNOWN = "<unknown>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400


def parse_time(text: object) -> float | None:
    """Return an RFC 3339 time as seconds since 1970, or None for what isn't one."""
    if not isinstance(text, str) or not text:
        return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def format_time(at_s: float) -> str:
    """Return seconds since 1970 as Kubernetes' `Time`: RFC 3339, whole seconds, UTC."""
    return datetime.fromtimestamp(int(at_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def human(seconds: float) -> str:
    """Return a duration in the two most telling units."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(whole, 0)
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two(whole // _MINUTE, "m", whole % _MINUTE, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole // _HOUR, "h", whole % _HOUR // _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole // _DAY, "d", whole % _DAY // _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole // _YEAR, "y", whole % _YEAR // _DAY, "d")
    return f"{whole // _YEAR}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def age(text: object, now_s: float) -> str:
    """Return how long ago a time was, as an AGE column shows it."""
    at_s = parse_time(text)
    return UNKNOWN if at_s is None else human(now_s - at_s)
