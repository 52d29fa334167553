"""``sluice stop``: hold a queue and evict what it runs, or deactivate a Workload."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice.cli import stopping, target

app = typer.Typer(add_completion=False)


@app.command()
def stop(
    kind: Annotated[str, typer.Argument(metavar="clusterqueue|localqueue|workload")],
    name: Annotated[str, typer.Argument(metavar="NAME")],
    kubeconfig: target.Kubeconfig = None,
    context: target.Context = None,
    namespace: target.Namespace = "",
    keep_already_running: Annotated[
        bool, typer.Option("--keep-already-running", help="Only hold back what has not started.")
    ] = False,
) -> None:
    """Stop a queue or a Workload: nothing new starts, and what runs is evicted."""
    resource = target.kind_of(kind)
    patch = stopping.stop_patch(resource, keeps_running=keep_already_running)
    stopping.apply(
        resource, name, patch, kubeconfig=kubeconfig, context=context, namespace=namespace
    )
    print(f"{resource.kind.lower()}.{resource.group}/{name} stopped")
