"""Tells a person who waits for a build how far it is.

On a terminal the count is one line that is rewritten; elsewhere (a log of a CI job) it is a plain
line from time to time.
"""

from __future__ import annotations

import shutil
from typing import TextIO

from sluice.clock import Clock

_PLAIN_INTERVAL_S = 15.0
_TERMINAL_INTERVAL_S = 0.1


class Progress:
    """Writes lines and counts to a stream.

    Args:
        stream: Usually standard error.
        clock: Its monotonic reading spaces the updates.
    """

    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._is_terminal = stream.isatty()
        self._started_s = clock.monotonic_s()
        self._shown_s = self._started_s
        self._is_line_open = False

    def line(self, text: str) -> None:
        """Write one line, with the seconds since the start."""
        self.end_count()
        elapsed_s = self._clock.monotonic_s() - self._started_s
        print(f"[{elapsed_s:4.0f} s] {text}", file=self._stream, flush=True)

    def count(self, done: int, total: int, current: str) -> None:
        """Show that ``done`` of ``total`` steps are made; most calls write nothing."""
        now_s = self._clock.monotonic_s()
        interval_s = _TERMINAL_INTERVAL_S if self._is_terminal else _PLAIN_INTERVAL_S
        if now_s - self._shown_s < interval_s:
            return
        self._shown_s = now_s
        text = f"[{now_s - self._started_s:4.0f} s] {done}/{total} {current}"
        if self._is_terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\x1b[K{text[:width]}", end="", file=self._stream, flush=True)
            self._is_line_open = True
        else:
            print(text, file=self._stream, flush=True)

    def end_count(self) -> None:
        """Clear the line that `count` rewrites."""
        if self._is_line_open:
            print("\r\x1b[K", end="", file=self._stream, flush=True)
            self._is_line_open = False
