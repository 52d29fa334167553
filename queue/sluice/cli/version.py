"""``sluice version``: this program's version and, where one answers, the API server's."""

from __future__ import annotations

import asyncio
import os
from importlib.util import find_spec
from typing import Annotated

import typer

from sluice import __version__
from sluice.api.errors import ConfigError

app = typer.Typer(add_completion=False)


@app.command()
def version(
    kubeconfig: Annotated[
        str | None, typer.Option(help="Kubeconfig of the cluster to ask.", metavar="FILE")
    ] = None,
    client: Annotated[bool, typer.Option("--client", help="Only this program's version.")] = False,
) -> None:
    """Show the version of this program and of the API server."""
    build = " (compiled engine)" if is_engine_compiled() else ""
    print(f"sluice {__version__}{build}")
    if client:
        return
    try:
        print(f"Kubernetes {asyncio.run(_server_version(kubeconfig))}")
    except ConfigError as error:
        if kubeconfig:
            raise
        print(f"Kubernetes unknown: {error}")


def is_engine_compiled() -> bool:
    """Tell whether decisions are taken by compiled code (SLUICE_MYPYC=1 when it was built)."""
    spec = find_spec("sluice.engine.cycle")
    return spec is not None and spec.origin is not None and not spec.origin.endswith(".py")


async def _server_version(kubeconfig: str | None) -> str:
    from sluice.kube.client import Client
    from sluice.kube.config import load, require_reachable

    access = await load(kubeconfig=kubeconfig, environ=os.environ)
    async with Client(access) as client:
        return await require_reachable(client)
