"""What ``sluice up`` runs, and what it says about it."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sluice.api.errors import ConfigError
from sluice.api.times import duration_ms
from sluice.cli import manifests
from sluice.cli.interrupts import say
from sluice.cli.local_cluster import LocalCluster, LocalOptions, local_cluster
from sluice.cli.local_settings import read_settings, replaced_fields
from sluice.cli.progress import Progress
from sluice.cli.settings import read_file
from sluice.local.real import SimulatedNode

_POOL = "sluicegate.io/pool"
_SPOT_TAINT = {"key": "sluicegate.io/spot", "value": "true", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """The command line.

    Attributes:
        is_real: etcd and Kubernetes' own programs.
        kubeconfig: Where to write the kubeconfig; None takes a temporary folder.
        port: Of the embedded API server.
        nodes: How many nodes.
        gpus: GPUs of each.
        run_time: How long a Job's Pod runs that does not say so itself; 0 for ever.
        config: Path of a Configuration file.
    """

    is_real: bool
    kubeconfig: Path | None
    port: int
    nodes: int
    gpus: int
    run_time: str
    config: str | None


async def serve(progress: Progress, options: UpOptions, is_serving: list[bool]) -> None:
    """Run until cancelled.

    Args:
        progress: Shown while it starts and stops.
        options: The command line.
        is_serving: Gets an item once everything runs.

    Raises:
        ConfigError: A flag, a file or this machine cannot be used.
    """
    settings = None
    if options.config is not None:
        settings = read_settings(options.config, read_file(options.config))
    cluster_options = LocalOptions(
        is_real=options.is_real,
        port=options.port,
        kubeconfig=options.kubeconfig,
        nodes=up_nodes(options.nodes, options.gpus),
        config=settings,
        run_s=run_seconds(options.run_time),
        report=progress,
    )
    async with local_cluster(cluster_options) as cluster:
        progress.stop()
        is_serving.append(True)
        say(greeting(cluster, options, () if settings is None else replaced_fields(settings)))
        await asyncio.Event().wait()


def run_seconds(text: str) -> float | None:
    """Return the seconds of ``--run-time``, None for ever.

    Raises:
        ConfigError: It is no duration.
    """
    try:
        found_ms = 0 if text == "0" else duration_ms(text)
    except ValueError as error:
        raise ConfigError(f"--run-time {text}: {error}; write 30s, 5m or 0") from error
    if found_ms < 0:
        raise ConfigError(f"--run-time {text}: must not be negative")
    return found_ms / 1000 if found_ms else None


def up_nodes(count: int, gpus: int) -> tuple[SimulatedNode, ...]:
    """Return the nodes that manifests/examples are made for: on demand, and every third spot."""
    return tuple(
        SimulatedNode(
            name=f"node-{i}",
            gpus=gpus,
            labels={_POOL: "spot" if i % 3 == 2 else "on-demand"},
            taints=(_SPOT_TAINT,) if i % 3 == 2 else (),
        )
        for i in range(count)
    )


def greeting(
    cluster: LocalCluster,
    options: UpOptions,
    replaced: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> str:
    """Return what a person needs to know to use the cluster.

    Args:
        cluster: What runs.
        options: The command line.
        replaced: Fields of the Configuration file that are not taken.
        environ: For PATH.
    """
    length = "for ever" if run_seconds(options.run_time) is None else options.run_time
    lines = [
        f"API server   {cluster.server}",
        f"kubeconfig   {cluster.kubeconfig}",
        f"nodes        {options.nodes} simulated, {options.gpus} GPUs each; a Job's Pod runs "
        f"{length}, or as its",
        "             annotation says: sluicegate.io/run-time: 5m",
    ]
    if options.config is not None:
        lines.append(f"config       {options.config}")
    lines += [f"             {field} in it is replaced" for field in replaced]
    lines.append("")
    if path := _path_to_add(environ):
        lines.append(f"  export PATH={path}:$PATH")
    examples = _shown(manifests.folder() / "examples")
    lines += [
        f"  export KUBECONFIG={cluster.kubeconfig}",
        "  kubectl get nodes",
        f"  kubectl apply -k {examples}",
        f"  kubectl create -f {examples}/jobs.yaml",
        "  sluice get queues -A",
        "",
        "Ctrl-C ends it; nothing is kept.",
    ]
    return "\n".join(lines)


def _path_to_add(environ: Mapping[str, str]) -> str:
    """Return the folder of kubectl and this program when a shell would not find them."""
    folder = Path(sys.executable).parent
    path = environ.get("PATH", "")
    programs = [name for name in ("kubectl", "sluice") if (folder / name).is_file()]
    return str(folder) if any(shutil.which(name, path=path) is None for name in programs) else ""


def _shown(path: Path) -> Path:
    """Return a path as short as it works from here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
