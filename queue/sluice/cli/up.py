"""``sluice up``: a control plane on this machine with Sluice in it, until interrupted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from sluice.cli.flags import LogFormat, LogLevel, configure_logging
from sluice.cli.interrupts import ending_quietly, run_interruptible, say
from sluice.cli.progress import Progress

app = typer.Typer(add_completion=False)


@app.command(help="Start a control plane on this machine with Sluice in it; end it with Ctrl-C.")
def up(
    real: Annotated[
        bool, typer.Option("--real", help="etcd and Kubernetes' own programs, not the embedded.")
    ] = False,
    kubeconfig: Annotated[
        Path | None,
        typer.Option("--kubeconfig", metavar="FILE", help="Where to write the kubeconfig."),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Of the embedded API server; 0: free.")
    ] = 0,
    nodes: Annotated[
        int,
        typer.Option(
            "--nodes", min=0, max=5000, help="Simulated nodes to begin with; every third is spot."
        ),
    ] = 3,
    gpus: Annotated[int, typer.Option("--gpus", min=0, help="GPUs of each node.")] = 8,
    run_time: Annotated[
        str,
        typer.Option(
            "--run-time",
            metavar="DURATION",
            help="How long a Job's Pod runs without the annotation sluicegate.io/run-time; "
            "0: for ever.",
        ),
    ] = "30s",
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Kueue's Configuration file; its addresses, certificates and leader election are "
            "replaced.",
        ),
    ] = None,
    log_level: LogLevel = "warning",
    log_format: LogFormat = "text",
) -> None:
    """Run until interrupted."""
    configure_logging(log_level, log_format)
    flags: dict[str, Any] = {
        "is_real": real,
        "kubeconfig": kubeconfig,
        "port": port,
        "nodes": nodes,
        "gpus": gpus,
        "run_time": run_time,
        "config": config,
    }
    with ending_quietly():
        _up(flags)


def _up(flags: dict[str, Any]) -> None:
    with Progress(is_plain=not sys.stdout.isatty()) as progress:
        progress("starting")
        # These take most of a second.
        from sluice.cli.serving import first_error
        from sluice.cli.up_cluster import UpOptions, serve

        is_serving: list[bool] = []
        try:
            _run(serve(progress, UpOptions(**flags), is_serving), first_error)
        except KeyboardInterrupt:
            # The way to end it, once it runs.
            if not is_serving:
                raise
    say("stopped; nothing is left behind")


def _run(
    work: Coroutine[Any, Any, None], first_error: Callable[[BaseExceptionGroup[Any]], BaseException]
) -> None:
    try:
        run_interruptible(work)
    except* Exception as group:
        raise first_error(group) from None
