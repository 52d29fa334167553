"""The canonical form in which an API server stores quantities. Called by `omitting`.

The amount stays what it is and so does the kind of suffix; the largest suffix is used that leaves
an integer before it (Kubernetes API reference, Quantity).
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from sluice.api import quantity

_BINARY: Final = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")
_DECIMAL: Final = (
    (18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k"), (0, ""), (-3, "m"), (-6, "u"),
    (-9, "n"),
)  # fmt: skip
_FINEST: Final = -9
_EXPONENT = re.compile(r"[eE][+-]?\d+$")
_BINARY_MIN: Final = 1024
"""Below this an amount with a binary suffix is written as a plain number."""


def canonical_text(value: Any, *, finest: int = _FINEST) -> Any:
    """Return a quantity in canonical form; what is none is returned as it is, to be refused.

    Args:
        value: A quantity.
        finest: Power of ten to which it is rounded up; -3 in lists of resources.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    text = value if isinstance(value, str) else repr(value)
    return _canonical(text, finest) if quantity.is_quantity(text) else value


@lru_cache(maxsize=4096)
def _canonical(text: str, finest: int) -> str:
    number = quantity.parse(text)
    if number == 0:
        return "0"
    if text.endswith("i") and abs(number) >= _BINARY_MIN:
        whole = quantity.round_away(number)
        for power, suffix in zip(range(60, 0, -10), _BINARY, strict=True):
            if whole % (1 << power) == 0:
                return f"{whole >> power}{suffix}"
        return str(whole)
    steps = quantity.round_away(number * Fraction(10) ** -finest)
    is_exponent = _EXPONENT.search(text) is not None
    for power, suffix in _DECIMAL:
        scaled = steps * Fraction(10) ** (finest - power)
        if scaled.denominator == 1:
            shown = f"e{power}" if is_exponent and power else suffix
            return f"{scaled.numerator}{'' if is_exponent and not power else shown}"
    return text
