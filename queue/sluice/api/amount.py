"""Integer amounts of quota, with the unlimited value and saturation of docs/spec/algorithm.md 0.2.

An amount is a plain ``int`` in the resource's unit (milliCPU, bytes, count). `UNLIMITED` is larger
than any 64-bit number, so that comparing and subtracting bounded amounts needs no special case on
the hot path; only quota arithmetic, done when a tree is built, goes through `add` and `sub`.
Pure; anyone may import it.
"""

from typing import Final

from sluice.api import quantity
from sluice.api.quantity import MAX_INT64, MIN_INT64

UNLIMITED: Final[int] = 1 << 100
"""Quota without a bound; Kueue stores it as the largest 64-bit integer."""
_CPU_CORES_MAX: Final[int] = MAX_INT64 // 1000


def clamp(value: int) -> int:
    """Return the value within 64 bits."""
    if value > MAX_INT64:
        return MAX_INT64
    return MIN_INT64 if value < MIN_INT64 else value


def add(left: int, right: int) -> int:
    """Return the sum; unlimited absorbs, bounded sums that reach 2**63 - 1 are unlimited."""
    total = left + right
    if left >= UNLIMITED or right >= UNLIMITED or total >= MAX_INT64:
        return UNLIMITED
    return MIN_INT64 if total < MIN_INT64 else total


def sub(left: int, right: int) -> int:
    """Return the difference; unlimited minus anything bounded stays unlimited."""
    if left >= UNLIMITED:
        return 0 if right >= UNLIMITED else UNLIMITED
    if right >= UNLIMITED:
        return MIN_INT64
    return clamp(left - right)


def scale(value: int, count: int) -> int:
    """Return a request times a pod count, saturating."""
    return clamp(value * count)


def divide(value: int, count: int) -> int:
    """Return value / count cut toward zero; the value itself when count is 0."""
    if count == 0:
        return value
    return value // count if value >= 0 else -(-value // count)


def from_quota(resource: str, text: object) -> int:
    """Return a quota quantity as an amount.

    Args:
        resource: Resource name; decides the unit.
        text: Kubernetes quantity.

    Raises:
        ValueError: The text is not a quantity.
    """
    number = quantity.parse(text)
    if resource == quantity.CPU:
        if number >= _CPU_CORES_MAX:
            return UNLIMITED
    elif number >= MAX_INT64:
        return UNLIMITED
    return clamp(quantity.canonical(resource, text))


def bounded(value: int) -> int:
    """Return the 64-bit form Kueue stores and reports: unlimited as 2**63 - 1."""
    return clamp(value)
