"""A control plane on this machine with Sluice in it, for people and for trying queues in CI.

``up`` leaves one running, ``demo`` plays a scenario on one. Everything ends with the process.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice.api import names
from sluice.api.configuration import Settings
from sluice.api.errors import ConfigError
from sluice.cli.local_install import Report, install, silent
from sluice.cli.local_settings import HOST, SERVICE, local_settings
from sluice.cli.replica import Replica, ReplicaOptions
from sluice.kube.access import ClusterAccess
from sluice.kube.client import Client
from sluice.kube.config import load
from sluice.kube.resources import NODES
from sluice.kube.sender import ClientOptions
from sluice.local import kubeconfigs
from sluice.local.apiserver import compose
from sluice.local.apiserver.compose import Services
from sluice.local.apiserver.server import Server, ServerOptions
from sluice.local.real import (
    CLUSTER_PROGRAMS,
    PlaneOptions,
    ProgramsMissing,
    RealControlPlane,
    SimulatedNode,
    find,
)
from sluice.local.real.ports import ReservedPort
from sluice.local.standins import CONNECTIONS_MAX, KubeletOptions, StandInOptions, StandIns

READY_S_MAX: Final = 60.0
_POLL_S: Final = 0.05
_WATCH_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOptions:
    """What kind of cluster is wanted.

    Attributes:
        is_real: etcd, kube-apiserver and the rest instead of the embedded API server.
        port: Of the embedded API server; 0 takes a free one.
        kubeconfig: Where the administrator's kubeconfig goes; None makes a temporary folder.
        nodes: Simulated nodes to begin with.
        config: A Configuration file; its addresses are replaced. None for defaults.
        run_s: Seconds that a Pod that is not to be restarted runs when it has no annotation for it;
            None lets it run for ever.
        report: Told what is being done.
    """

    is_real: bool = False
    port: int = 0
    kubeconfig: Path | None = None
    nodes: Sequence[SimulatedNode] = ()
    config: Settings | None = None
    run_s: float | None = None
    report: Report = silent


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCluster:
    """A running cluster.

    Attributes:
        kubeconfig: The administrator's.
        access: The same for `Client`.
        server: URL of the API server.
        replica: Sluice.
    """

    kubeconfig: Path
    access: ClusterAccess
    server: str
    replica: Replica


@asynccontextmanager
async def local_cluster(options: LocalOptions) -> AsyncIterator[LocalCluster]:
    """Start a cluster, lend it out, stop it and remove what it left.

    When a part of it ends by itself, whoever borrowed it is cancelled and the part's error raised,
    in a group.

    Raises:
        ConfigError: Something that is needed is missing or cannot be used; the message says what.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-")))
        parts = await stack.enter_async_context(asyncio.TaskGroup())
        services = Services()
        if options.is_real:
            access, kubeconfig, server = await _start_real(stack, parts, options, folder)
        else:
            access, kubeconfig, server = await _start_embedded(
                stack, parts, options, folder, services
            )
        reserved = ReservedPort()
        stack.callback(reserved.release)
        port = reserved.number
        async with Client(access) as client:
            await install(client, options.report, host_port=port if options.is_real else None)
            for i, node in enumerate(options.nodes, start=1):
                options.report("adding nodes", f"{i} of {len(options.nodes)}")
                await client.create(NODES, "", node.to_object())
        reserved.release()
        services.lead(names.SYSTEM_NAMESPACE, SERVICE, HOST, port)
        settings = local_settings(options.config, port)
        replica = Replica(
            access, ReplicaOptions(settings=settings, identity="local", owns_process=False)
        )
        options.report("starting the webhook and the manager")
        await _run_beside(stack, parts, replica)
        yield LocalCluster(kubeconfig=kubeconfig, access=access, server=server, replica=replica)
        options.report("stopping")


async def _start_embedded(
    stack: AsyncExitStack,
    parts: asyncio.TaskGroup,
    options: LocalOptions,
    folder: Path,
    services: Services,
) -> tuple[ClusterAccess, Path, str]:
    options.report("starting an embedded control plane")
    server = Server(compose.parts(services), ServerOptions(port=options.port))
    try:
        await stack.enter_async_context(server)
    except OSError as error:
        raise ConfigError(f"--port {options.port}: {error.strerror or error}") from error
    kubeconfig = options.kubeconfig or folder / "kubeconfig"
    content = server.credentials.kubeconfig(server.url)
    stack.enter_context(kubeconfigs.lent(kubeconfig, content))
    access = await load(kubeconfig=str(kubeconfig), environ={})
    client = await stack.enter_async_context(
        Client(access, options=ClientOptions(connections_max=CONNECTIONS_MAX))
    )
    stand_ins = StandIns(client, StandInOptions(kubelets=KubeletOptions(run_s=options.run_s)))
    task = parts.create_task(stand_ins.run(), name="stand-ins")
    stack.push_async_callback(_end, task)
    await stand_ins.wait_ready(READY_S_MAX)
    return access, kubeconfig, server.url


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


async def _start_real(
    stack: AsyncExitStack, parts: asyncio.TaskGroup, options: LocalOptions, folder: Path
) -> tuple[ClusterAccess, Path, str]:
    options.report("starting etcd and Kubernetes' own programs")
    if options.port:
        raise ConfigError("--port is for the embedded API server; leave it out with --real")
    try:
        programs = find(os.environ, CLUSTER_PROGRAMS)
    except ProgramsMissing as missing:
        raise ConfigError(str(missing)) from missing
    plane = RealControlPlane(
        programs, PlaneOptions(runs_pods=True, parent=folder, run_s=options.run_s)
    )
    await stack.enter_async_context(plane)
    task = parts.create_task(_watch(plane), name="control plane")
    stack.push_async_callback(_end, task)
    kubeconfig = plane.kubeconfig
    if options.kubeconfig is not None:
        kubeconfig = options.kubeconfig
        stack.enter_context(kubeconfigs.lent(kubeconfig, plane.kubeconfig.read_bytes()))
    return plane.access(), kubeconfig, plane.server


async def _watch(plane: RealControlPlane) -> None:
    """Raise StartFailed when a program of the control plane ends by itself."""
    while True:
        plane.check()
        await asyncio.sleep(_WATCH_S)


async def _run_beside(stack: AsyncExitStack, parts: asyncio.TaskGroup, replica: Replica) -> None:
    """Run Sluice in the background until the stack closes; return when it is ready."""
    stop = asyncio.Event()
    task = parts.create_task(_run(replica, stop), name="sluice")

    async def end() -> None:
        stop.set()
        await asyncio.wait([task])

    stack.push_async_callback(end)
    try:
        async with asyncio.timeout(READY_S_MAX):
            await replica.serving.wait()
            await _until_ready(replica)
    except TimeoutError:
        reasons = "; ".join(replica.unready_reasons())
        raise ConfigError(f"Sluice is not ready after {READY_S_MAX:.0f} s: {reasons}") from None


async def _until_ready(replica: Replica) -> None:
    while True:
        if not replica.unready_reasons():
            return
        await asyncio.sleep(_POLL_S)


async def _run(replica: Replica, stop: asyncio.Event) -> None:
    await replica.run(stop)
    if not stop.is_set():
        raise ConfigError("Sluice ended by itself")
