"""``sluice demo``: the main job from queue to end, live, on a control plane of its own.

Here is only what shows that something begins; the rest is imported behind that, see
``demo_scenario``.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sluice.cli.flags import LogFormat, LogLevel, configure_logging
from sluice.cli.interrupts import ending_quietly, run_interruptible, say
from sluice.cli.progress import Progress

app = typer.Typer(add_completion=False)


@app.command(help="Two teams share GPUs on a control plane of its own; about half a minute.")
def demo(
    real: Annotated[
        bool, typer.Option("--real", help="On etcd and Kubernetes' own programs.")
    ] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a live table.")] = False,
    log_level: LogLevel = "error",
    log_format: LogFormat = "text",
) -> None:
    """Run the scenario once."""
    configure_logging(log_level, log_format)
    with ending_quietly():
        _demo(is_real=real, is_plain=plain or not sys.stdout.isatty())


def _demo(*, is_real: bool, is_plain: bool) -> None:
    try:
        with Progress(is_plain=is_plain) as progress:
            progress("starting")
            # These take most of a second.
            from sluice.cli.demo_scenario import play
            from sluice.cli.serving import first_error

            try:
                run_interruptible(play(progress, is_real=is_real, is_plain=is_plain))
            except* Exception as group:
                raise first_error(group) from None
    except KeyboardInterrupt:
        say("interrupted; everything is stopped and removed")
        raise
