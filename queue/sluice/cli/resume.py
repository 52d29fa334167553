"""``sluice resume``: undo ``sluice stop``."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice.cli import stopping, target

app = typer.Typer(add_completion=False)


@app.command()
def resume(
    kind: Annotated[str, typer.Argument(metavar="clusterqueue|localqueue|workload")],
    name: Annotated[str, typer.Argument(metavar="NAME")],
    kubeconfig: target.Kubeconfig = None,
    context: target.Context = None,
    namespace: target.Namespace = "",
) -> None:
    """Resume a stopped queue or Workload."""
    resource = target.kind_of(kind)
    stopping.apply(
        resource,
        name,
        stopping.resume_patch(resource),
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
    )
    print(f"{resource.kind.lower()}.{resource.group}/{name} resumed")
