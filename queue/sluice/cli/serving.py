"""Runs a replica until a signal ends it. Used by ``run``, ``manager`` and ``webhook``."""

from __future__ import annotations

import asyncio
import os
import signal
from importlib.util import find_spec
from typing import Any

import typer

from sluice.api.errors import ConfigError
from sluice.cli.flags import ServeFlags
from sluice.cli.replica import Replica, ReplicaOptions
from sluice.cli.settings import prepare
from sluice.log import get_logger

log = get_logger(__name__)


def serve(flags: ServeFlags, *, runs_manager: bool, runs_webhook: bool) -> None:
    """Run a replica; returns when a signal has stopped it.

    Raises:
        ConfigError: Settings, files or the cluster cannot be used.
        typer.Exit: A part failed; the log has why.
    """
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(flags, runs_manager=runs_manager, runs_webhook=runs_webhook))
    except ExceptionGroup as group:
        error = first_error(group)
        if isinstance(error, ConfigError):
            raise error from None
        log.error("failed", fields={"error": f"{type(error).__name__}: {error}"})
        raise typer.Exit(1) from group


async def _serve(flags: ServeFlags, *, runs_manager: bool, runs_webhook: bool) -> None:
    start = await prepare(flags)
    if flags.cert_dir and start.settings.configuration.internal_cert_management.enable:
        log.warning(
            "--cert-dir has no effect while certificates are kept in a Secret",
            fields={"fix": "internalCertManagement.enable: false in the configuration file"},
        )
    options = ReplicaOptions(
        settings=start.settings,
        identity=start.identity,
        runs_manager=runs_manager,
        runs_webhook=runs_webhook,
        is_in_pod=start.is_in_pod,
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, stop)
    await Replica(start.access, options).run(stop)


def _on_signal(stop: asyncio.Event) -> None:
    if stop.is_set():
        log.warning("second signal: ending at once")
        os._exit(1)
    stop.set()


def _loop_factory() -> Any:
    """Return uvloop's factory where the optional package is installed, else None."""
    if find_spec("uvloop") is None:
        return None
    import uvloop

    return uvloop.new_event_loop


def first_error(group: BaseExceptionGroup[Any]) -> BaseException:
    """Return the first single exception of nested groups."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
