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
from typing import Any, Final

from sluice.api import names
from sluice.api.configuration import Settings, parse
from sluice.api.errors import AlreadyExists, ConfigError
from sluice.cli import manifests
from sluice.cli.replica import Replica, ReplicaOptions
from sluice.kube.access import ClusterAccess
from sluice.kube.client import Client
from sluice.kube.config import load
from sluice.kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NODES,
    SERVICES,
    VALIDATING_WEBHOOKS,
)
from sluice.kube.sender import ClientOptions
from sluice.local.apiserver.compose import Services, parts
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
_HOST: Final = "127.0.0.1"
_SERVICE: Final = "sluice-webhook"
_CONFIGURATION: Final = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: {namespace}
webhook: {{host: {host}, port: {port}}}
metrics: {{bindAddress: "{host}:{metrics}"}}
health: {{healthProbeBindAddress: "{host}:{health}"}}
leaderElection: {{leaderElect: false}}
internalCertManagement:
  enable: true
  webhookServiceName: {service}
  webhookSecretName: sluice-webhook-server-cert
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOptions:
    """What kind of cluster is wanted.

    Attributes:
        is_real: etcd, kube-apiserver and the rest instead of the embedded API server.
        port: Of the embedded API server; 0 takes a free one.
        kubeconfig: Where the administrator's kubeconfig goes; None makes a temporary folder.
        nodes: Simulated nodes to begin with.
        config: Text of a Configuration file whose addresses are left as they are; None for ours.
        run_s: Seconds that a Pod without the run-time annotation runs; None lets it run for ever.
    """

    is_real: bool = False
    port: int = 0
    kubeconfig: Path | None = None
    nodes: Sequence[SimulatedNode] = ()
    config: str | None = None
    run_s: float | None = None


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

    Raises:
        ConfigError: Something that is needed is missing or cannot be used; the message says what.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-")))
        services = Services()
        if options.is_real:
            access, kubeconfig, server = await _start_real(stack, options, folder)
        else:
            access, kubeconfig, server = await _start_embedded(stack, options, folder, services)
        reserved = ReservedPort()
        port = reserved.number
        async with Client(access) as client:
            await _install(client, port, leads_by_name=options.is_real)
            await _add_nodes(client, options)
        reserved.release()
        services.lead(names.SYSTEM_NAMESPACE, _SERVICE, _HOST, port)
        settings = _settings(options, port)
        replica = Replica(
            access, ReplicaOptions(settings=settings, identity="local", owns_process=False)
        )
        await _run_beside(stack, replica)
        yield LocalCluster(kubeconfig=kubeconfig, access=access, server=server, replica=replica)


async def _start_embedded(
    stack: AsyncExitStack, options: LocalOptions, folder: Path, services: Services
) -> tuple[ClusterAccess, Path, str]:
    kubeconfig = options.kubeconfig or folder / "kubeconfig"
    server = Server(parts(services), ServerOptions(port=options.port, kubeconfig=kubeconfig))
    try:
        await stack.enter_async_context(server)
    except OSError as error:
        raise ConfigError(f"--port {options.port}: {error.strerror or error}") from error
    access = await load(kubeconfig=str(kubeconfig), environ={})
    client = await stack.enter_async_context(
        Client(access, options=ClientOptions(connections_max=CONNECTIONS_MAX))
    )
    chosen = StandInOptions(kubelets=KubeletOptions(run_s=options.run_s))
    stand_ins = StandIns(client, chosen)
    task = asyncio.create_task(stand_ins.run(), name="stand-ins")
    stack.push_async_callback(_end, task)
    await stand_ins.wait_ready(READY_S_MAX)
    return access, kubeconfig, server.url


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _start_real(
    stack: AsyncExitStack, options: LocalOptions, folder: Path
) -> tuple[ClusterAccess, Path, str]:
    try:
        programs = find(os.environ, CLUSTER_PROGRAMS)
    except ProgramsMissing as missing:
        raise ConfigError(str(missing)) from missing
    plane = RealControlPlane(programs, PlaneOptions(runs_pods=True, parent=folder))
    await stack.enter_async_context(plane)
    kubeconfig = plane.kubeconfig
    if options.kubeconfig is not None:
        kubeconfig = options.kubeconfig
        kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_bytes(plane.kubeconfig.read_bytes())
    return plane.access(), kubeconfig, plane.server


async def _install(client: Client, port: int, *, leads_by_name: bool) -> None:
    """Make what the manifests make: namespace, CRDs, webhook configurations and their Service.

    Args:
        client: The administrator's.
        port: Where the webhook will listen.
        leads_by_name: Nothing routes to Services here, so the Service is a name for this machine.
    """
    namespace = {"metadata": {"name": names.SYSTEM_NAMESPACE}}
    await client.create(NAMESPACES, "", {"apiVersion": "v1", "kind": "Namespace"} | namespace)
    if leads_by_name:
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": _SERVICE, "namespace": names.SYSTEM_NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }
        await client.create(SERVICES, names.SYSTEM_NAMESPACE, service)
    kinds: dict[str, Any] = {
        "CustomResourceDefinition": CUSTOM_RESOURCE_DEFINITIONS,
        "MutatingWebhookConfiguration": MUTATING_WEBHOOKS,
        "ValidatingWebhookConfiguration": VALIDATING_WEBHOOKS,
    }
    found = await asyncio.to_thread(
        lambda: [*manifests.crds(), *manifests.webhook_configurations()]
    )
    for obj in found:
        try:
            await client.create(kinds[obj["kind"]], "", manifests.at_port(obj, port))
        except AlreadyExists:
            continue


async def _add_nodes(client: Client, options: LocalOptions) -> None:
    for node in options.nodes:
        await client.create(NODES, "", node.to_object())


def _settings(options: LocalOptions, port: int) -> Settings:
    text = options.config or _CONFIGURATION.format(
        namespace=names.SYSTEM_NAMESPACE,
        host=_HOST,
        port=port,
        metrics=0,
        health=0,
        service=_SERVICE,
    )
    return parse(text, default_namespace=names.SYSTEM_NAMESPACE, gates={})


async def _run_beside(stack: AsyncExitStack, replica: Replica) -> None:
    """Run Sluice in the background until the stack closes; return when it is ready."""
    stop = asyncio.Event()
    task = asyncio.create_task(replica.run(stop), name="sluice")

    async def end() -> None:
        stop.set()
        await asyncio.gather(task, return_exceptions=True)

    stack.push_async_callback(end)
    try:
        async with asyncio.timeout(READY_S_MAX):
            while replica.unready_reasons():
                if task.done():
                    await task
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        reasons = "; ".join(replica.unready_reasons())
        raise ConfigError(f"Sluice is not ready after {READY_S_MAX:.0f} s: {reasons}") from None
