"""Tables for a terminal or a pipe: aligned columns, as kubectl prints them. Used by ``get``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_GAP: Final = "   "
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return headers and rows as text, columns padded to their widest cell."""
    lines = [list(headers), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headers))]
    return "\n".join(
        _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def age(seconds: float) -> str:
    """Return a duration as kubectl shows ages: the largest unit, and the next while it matters."""
    left = max(0, int(seconds))
    for i, (unit, size) in enumerate(_UNITS):
        count, rest = divmod(left, size)
        if count == 0 and unit != "s":
            continue
        if count >= 10 or i == len(_UNITS) - 1:
            return f"{count}{unit}"
        smaller, smaller_size = _UNITS[i + 1]
        more = rest // smaller_size
        return f"{count}{unit}{more}{smaller}" if more else f"{count}{unit}"
    return "0s"
