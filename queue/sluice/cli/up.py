"""``sluice up``: a control plane on this machine with Sluice in it, until interrupted."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer

from sluice.cli.flags import LogFormat, LogLevel, configure_logging
from sluice.cli.local_cluster import LocalCluster, LocalOptions, local_cluster
from sluice.cli.serving import first_error
from sluice.cli.settings import read_file
from sluice.local.real import SimulatedNode

app = typer.Typer(add_completion=False)

_GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


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
        int, typer.Option("--nodes", min=0, max=5000, help="Simulated nodes to begin with.")
    ] = 2,
    gpus: Annotated[int, typer.Option("--gpus", min=0, help="GPUs of each node.")] = 8,
    config: Annotated[
        str | None,
        typer.Option(
            "--config", metavar="FILE", help="Kueue's Configuration file; its addresses are used."
        ),
    ] = None,
    log_level: LogLevel = "warning",
    log_format: LogFormat = "text",
) -> None:
    """Run until interrupted."""
    configure_logging(log_level, log_format)
    options = LocalOptions(
        is_real=real,
        port=port,
        kubeconfig=kubeconfig,
        nodes=simulated_nodes(nodes, gpus),
        config=None if config is None else read_file(config),
    )
    try:
        asyncio.run(_run(options))
    except* Exception as group:
        raise first_error(group) from None


def simulated_nodes(count: int, gpus: int) -> tuple[SimulatedNode, ...]:
    """Return alike nodes; those with GPUs carry the label and taint that GPU nodes have."""
    return tuple(
        SimulatedNode(
            name=f"node-{i}",
            gpus=gpus,
            labels={"sluicegate.io/gpu": "a100"} if gpus else {},
            taints=(_GPU_TAINT,) if gpus else (),
        )
        for i in range(count)
    )


async def _run(options: LocalOptions) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    print("starting ...", flush=True)
    async with local_cluster(options) as cluster:
        print(_greeting(cluster), flush=True)
        await stop.wait()
        print("stopping ...", flush=True)


def _greeting(cluster: LocalCluster) -> str:
    return (
        f"API server   {cluster.server}\n"
        f"kubeconfig   {cluster.kubeconfig}\n"
        "\n"
        f"  export KUBECONFIG={cluster.kubeconfig}\n"
        "  kubectl get nodes\n"
        "  kubectl apply -k manifests/examples\n"
        "  sluice get queues\n"
        "\n"
        "Ctrl-C ends it; nothing is kept."
    )
