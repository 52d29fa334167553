"""How the demo looks while it runs: queues, Jobs and the latest changes at a terminal, else lines.

Every row is one line, cut where the terminal ends; the whole of a reason is in the summary.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich import box
from rich.console import Console, Group, JustifyMethod, OverflowMethod, RenderableType
from rich.padding import Padding
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from sluice.cli.demo_jobs import GPUS_PER_NODE, NODES, QUOTA
from sluice.cli.demo_stage import Happening, Row, View, used_gpus
from sluice.cli.progress import has_blocks

_WIDTH_MAX: Final = 140
_PLAIN_WIDTH: Final = 120
_LATEST_MAX: Final = 8
_TABLES_LINES: Final = 9
"""Lines around the rows: heading, two heads of tables, blank ones, and the last that stays free."""
_STYLES: Final = {
    "running": "green",
    "admitted": "green",
    "finished": "dim",
    "submitted": "dim",
    "waiting": "yellow",
    "evicted": "red",
    "refused": "red",
    "failed": "red",
}


def plain_width() -> int:
    """Return how long a plain line may be: a terminal's width, else a fixed one."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return _PLAIN_WIDTH


def cut(text: str, width: int) -> str:
    """Return a text of one line and at most ``width`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: max(width - 3, 0)].rstrip()}..."


def line(event: Happening, width: int) -> str:
    """Return one plain line for a change of state."""
    row = event.row
    text = f"{event.at_s:5.1f} s  {row.team}/{row.job}: {row.state}"
    room = max(width - len(text) - len("  ()"), 0)
    return f"{text}  ({cut(row.why, room)})" if row.why else text


class Board:
    """Draws the picture for one terminal.

    Args:
        console: What is known about the terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._own, self._borrowed, self._idle = tuple("█▓░" if has_blocks(console) else "#+.")
        self._overflow: OverflowMethod = "ellipsis" if has_blocks(console) else "crop"
        self._spinner = Spinner("dots" if has_blocks(console) else "line", style="green")

    def picture(self, view: View, *, is_done: bool) -> RenderableType:
        """Return queues, Jobs and as many of the latest changes as there is room for."""
        queues = sorted(view.queues, key=lambda queue: str(queue["metadata"]["name"]))
        rows = view.rows
        width = min(self._console.width, _WIDTH_MAX)
        room = self._console.height - len(queues) - len(rows) - _TABLES_LINES
        parts: list[RenderableType] = [
            self._heading(view.elapsed_s, is_done=is_done),
            self._queues(queues),
            self._jobs(rows, width),
        ]
        latest = view.happened[-max(0, min(room, _LATEST_MAX)) :] if room > 0 else []
        if latest and not is_done:
            parts.append(Text(""))
            parts += [self._latest(event) for event in latest]
        return Group(*parts)

    def _heading(self, elapsed_s: float, *, is_done: bool) -> RenderableType:
        text = Text.assemble(
            (f"{elapsed_s:5.1f} s", "bold"),
            f"  two teams share {NODES * GPUS_PER_NODE} GPUs:  ",
            (self._own, "green"),
            " own  ",
            (self._borrowed, "magenta"),
            " borrowed  ",
            (self._idle, "dim"),
            " idle",
            no_wrap=True,
            overflow="crop",
        )
        row = Table.grid(padding=(0, 1))
        row.add_row(Text(" ") if is_done else self._spinner, text)
        return row

    def _queues(self, queues: Sequence[Mapping[str, Any]]) -> RenderableType:
        table = _table()
        for name in ("QUEUE", "QUOTA", "USED", "", "PENDING", "ADMITTED"):
            justify: JustifyMethod = "left" if name in ("QUEUE", "") else "right"
            table.add_column(name, justify=justify, no_wrap=True, overflow="crop")
        for queue in queues:
            status, used = queue.get("status") or {}, used_gpus(queue)
            table.add_row(
                queue["metadata"]["name"],
                str(QUOTA),
                str(used),
                self._bar(used),
                str(status.get("pendingWorkloads", 0)),
                str(status.get("admittedWorkloads", 0)),
            )
        return Padding(table, (1, 0))

    def _bar(self, used: int) -> Text:
        bar = Text(self._own * min(used, QUOTA), style="green", no_wrap=True)
        bar.append(self._borrowed * max(0, used - QUOTA), style="magenta")
        bar.append(self._idle * max(0, QUOTA - used), style="dim")
        bar.append(" " * (2 * QUOTA - max(used, QUOTA)))
        return bar

    def _jobs(self, rows: Sequence[Row], width: int) -> RenderableType:
        table = _table()
        table.width = width
        # As wide as what will come, so that columns stay where they are.
        for name, width_min in (("JOB", 8), ("TEAM", 8), ("GPUS", 4), ("STATE", 9)):
            justify: JustifyMethod = "right" if name == "GPUS" else "left"
            table.add_column(name, justify=justify, no_wrap=True, min_width=width_min)
        table.add_column("WHY", no_wrap=True, overflow=self._overflow, ratio=1)
        for row in rows:
            state = Text(row.state, style=_STYLES.get(row.state, ""))
            why = Text(cut(row.why, _WIDTH_MAX), no_wrap=True, overflow=self._overflow)
            table.add_row(row.job, row.team, str(row.gpus or ""), state, why)
        return table

    def _latest(self, event: Happening) -> Text:
        row = event.row
        text = Text(f"{event.at_s:5.1f} s  ", style="dim", no_wrap=True, overflow=self._overflow)
        text.append(f"{row.team}/{row.job} ", style="default")
        text.append(row.state, style=_STYLES.get(row.state, ""))
        return text


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")


__all__ = ["Board", "cut", "line", "plain_width"]
