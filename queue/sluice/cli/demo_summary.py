"""What the demo says at its end: what became of each Job, reasons in full."""

from __future__ import annotations

import textwrap
from typing import Final

from sluice.cli.demo_board import plain_width
from sluice.cli.demo_jobs import JOBS, MISTAKE, DemoJob
from sluice.cli.demo_stage import Stage

_WIDTH_MAX: Final = 120
_INDENT: Final = " " * 4


def summary(stage: Stage) -> str:
    """Return the summary, wrapped to the terminal."""
    width = min(plain_width(), _WIDTH_MAX)
    lines = ["", f"All done after {stage.elapsed_s:.1f} s. What happened:"]
    for job in JOBS:
        if job.can_run:
            lines += _wrapped(_story(job, stage), width)
    waiting = {row.job: row.why for row in stage.rows() if row.state == "waiting"}
    for job in JOBS:
        if not job.can_run:
            text = f"{job.namespace}/{job.name} ({job.pods} GPUs) waits, and says why: "
            lines += _wrapped(text + waiting.get(job.name, "nothing"), width)
    refusal = stage.refusals.get(MISTAKE.name, "")
    lines += _wrapped(f"{MISTAKE.namespace}/{MISTAKE.name} was refused: {refusal}", width)
    return "\n".join(lines)


def _story(job: DemoJob, stage: Stage) -> str:
    submit_s, ran_s = stage.submit_s[job.name], stage.first_run_s[job.name]
    text = f"{job.namespace}/{job.name}: submitted at {submit_s:.1f} s, ran at {ran_s:.1f} s"
    if job.name in stage.evictions:
        text += f", gave its borrowed GPUs back at {stage.evict_s[job.name]:.1f} s, ran again"
    text += f", finished at {stage.end_s[job.name]:.1f} s"
    if job.name in stage.evictions:
        text += f" (evicted: {stage.evictions[job.name]})"
    return text


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent="  ",
        subsequent_indent=_INDENT,
        break_on_hyphens=False,
    )
