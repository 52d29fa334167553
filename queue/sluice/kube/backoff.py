"""Growing waits with jitter, for loops that try again. Used by ``kube`` and by controllers."""

from __future__ import annotations

from random import Random
from typing import Final

DICE: Final = Random()
"""Randomness of jitter and names, of its own: whoever seeds the global generator gets no say."""


class Backoff:
    """Doubles from ``base_s`` to ``max_s``; each wait is spread by a fifth either way."""

    def __init__(self, *, base_s: float, max_s: float) -> None:
        if not 0 < base_s <= max_s:
            raise ValueError(f"a back-off needs 0 < base_s <= max_s, not {base_s} and {max_s}")
        self._base_s = base_s
        self._max_s = max_s
        self._next_s = base_s

    def next_s(self) -> float:
        """Return the seconds to wait now, and wait longer next time."""
        wait_s = self._next_s
        self._next_s = min(self._next_s * 2, self._max_s)
        return wait_s * DICE.uniform(0.8, 1.2)

    def reset(self) -> None:
        """Start small again: something worked."""
        self._next_s = self._base_s
