"""What a command is waiting for: a spinner with seconds at a terminal, a line a step elsewhere.

Used by ``demo`` and ``up``, which begin to show something before their imports are done.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from sluice.cli.interrupts import say


class _Seconds(ProgressColumn):
    """Elapsed time in seconds, one decimal."""

    def render(self, task: Task) -> Text:
        """Return the text."""
        return Text(f"{task.elapsed or 0.0:.1f} s", style="dim")


class Progress:
    """Shows one step at a time, from a call until `stop`; and stops when its context is left.

    Args:
        is_plain: Lines instead of a spinner.
        console: Where to show the spinner; standard output by default.
    """

    def __init__(self, *, is_plain: bool, console: Console | None = None) -> None:
        self._is_plain = is_plain
        self._console = console or Console()
        self._bar: Bar | None = None
        self._last = ""

    def __enter__(self) -> Self:
        """Show nothing yet."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the spinner away; lines stay."""
        self.stop()

    def __call__(self, step: str, detail: str = "") -> None:
        """Show a step; ``detail`` tells how far it is, and only a spinner shows it."""
        if not self._is_plain:
            self._spin(f"{step} ({detail})" if detail else step)
        elif step != self._last:
            say(f"{step} ...")
        self._last = step

    def _spin(self, text: str) -> None:
        if self._bar is None:
            spinner = SpinnerColumn("dots" if has_blocks(self._console) else "line")
            one_line = Column(no_wrap=True, overflow="ellipsis")
            text_column = TextColumn("{task.description}", markup=False, table_column=one_line)
            columns = (spinner, text_column, _Seconds())
            self._bar = Bar(*columns, console=self._console, transient=True)
            self._bar.add_task(text)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], description=text)

    def stop(self) -> None:
        """Take the spinner away until the next step."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def has_blocks(console: Console) -> bool:
    """Tell whether a terminal shows more than ASCII."""
    return console.encoding.lower().startswith("utf")
