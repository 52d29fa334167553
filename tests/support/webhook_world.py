"""A control plane of its own with our webhook registered and served as in a cluster.

The API server calls the Service ``sluice-webhook`` by its name and trusts the CA that the
certificate keeper has written; what the webhook looks up is read live.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tests.support.crd_schemas import crds
from tests.support.embedded import embedded, in_thread
from tests.support.kubectl import Kubectl, find_kubectl

from sluice.api import names
from sluice.api.errors import Conflict, Invalid, KubeError, NotFound
from sluice.clock import SystemClock
from sluice.controllers.certificates import CertificateKeeper, CertificateOptions
from sluice.controllers.rotation import RotationRules
from sluice.controllers.webhookconfigs import SelectorKeeper, informers
from sluice.jobs.admission.context import Options, OwnerReference
from sluice.kube import resources
from sluice.kube.client import Client
from sluice.kube.config import load
from sluice.kube.pki import KeyPair
from sluice.local.apiserver.compose import Services
from sluice.local.real import API_SERVER_PROGRAMS, PlaneOptions, RealControlPlane, find
from sluice_webhook.app import Application
from sluice_webhook.routes import routes
from sluice_webhook.server import ServerOptions, WebhookServer
from sluice_webhook.tls import CertificatePair, LiveTls

Json = dict[str, Any]
HOST = "127.0.0.1"
SERVICE = "sluice-webhook"
NAMESPACE = names.SYSTEM_NAMESPACE
DEADLINE_S = 30.0
OPTIONS = CertificateOptions()
RULES = RotationRules(hosts=OPTIONS.hosts, settle_ms=300, retire_ms=300)
"""Exchanges that a test can wait for."""
_BASE = Path(__file__).parents[2] / "manifests" / "base"


class LiveLookups:
    """Answers from the API server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def _found(self, resource: resources.Resource, namespace: str, name: str) -> Json | None:
        try:
            return await self._client.get(resource, namespace, name)
        except NotFound:
            return None

    async def local_queue_exists(self, namespace: str, name: str) -> bool:
        return await self._found(resources.LOCAL_QUEUES, namespace, name) is not None

    async def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        found = await self._client.get(resources.NAMESPACES, "", namespace)
        labels: Mapping[str, str] = found["metadata"]["labels"]
        return labels

    async def priority_class_exists(self, name: str) -> bool:
        return await self._found(resources.WORKLOAD_PRIORITY_CLASSES, "", name) is not None

    async def check_controllers(self, namespace: str, local_queue: str) -> frozenset[str]:
        return frozenset()

    async def owner(self, namespace: str, reference: OwnerReference) -> Mapping[str, Any] | None:
        return await self._found(resources.BATCH_JOBS, namespace, reference.name)


@dataclass
class Calls:
    """Counts the requests that reach the webhook, by path."""

    by_path: dict[str, int] = field(default_factory=dict)

    def started(self, path: str) -> None:
        self.by_path[path] = self.by_path.get(path, 0) + 1

    def finished(self, path: str, code: int, allowed: bool | None, duration_s: float) -> None:
        pass


@dataclass(kw_only=True)
class WebhookWorld:
    """A control plane, the webhook, and what keeps its certificates."""

    client: Client
    kubectl: Kubectl
    calls: Calls
    tls: LiveTls
    application: Application
    server: WebhookServer
    keeper: CertificateKeeper
    served: list[KeyPair]

    async def restart_webhook(self, port: int) -> None:
        """Serve again on the port the configurations name."""
        self.server = WebhookServer(
            self.application, self.tls, ServerOptions(host=HOST, port=port, finish_s=2.0)
        )
        await self.server.start()


@asynccontextmanager
async def webhook_world(kind: str, folder: Path) -> AsyncIterator[WebhookWorld]:
    """Start everything, lend it out, stop it.

    Args:
        kind: ``embedded`` or ``real``.
        folder: For kubeconfig and kubectl's cache.
    """
    async with AsyncExitStack() as stack:
        services = Services()
        kubeconfig = folder / "kubeconfig"
        if kind == "real":
            plane = RealControlPlane(find(os.environ, API_SERVER_PROGRAMS), PlaneOptions())
            await plane.start()
            stack.push_async_callback(plane.stop)
            kubeconfig = plane.kubeconfig
        else:
            stack.enter_context(in_thread(lambda: embedded(kubeconfig, services, ())))
        access = await load(kubeconfig=str(kubeconfig), environ={})
        client = await stack.enter_async_context(Client(access))
        kubectl = Kubectl(program=find_kubectl(), kubeconfig=kubeconfig, home=folder)
        yield await _serve(stack, client, kubectl, services, kind)


async def _serve(
    stack: AsyncExitStack, client: Client, kubectl: Kubectl, services: Services, kind: str
) -> WebhookWorld:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    await client.create(resources.NAMESPACES, "", namespace)
    served: list[KeyPair] = []
    live: list[LiveTls] = []

    def serve(pair: KeyPair) -> None:
        served.append(pair)
        live[0].swap(as_pair(pair))

    configurations = informers(client)
    keeper = CertificateKeeper(
        client, SystemClock(), configurations, options=OPTIONS, serve=serve, rules=RULES
    )
    tls = LiveTls(as_pair(await keeper.load()))
    live.append(tls)
    calls = Calls()
    application = Application(routes(Options(), LiveLookups(client)), observer=calls)
    server = WebhookServer(application, tls, ServerOptions(host=HOST, port=0, finish_s=2.0))
    await server.start()
    world = WebhookWorld(
        client=client,
        kubectl=kubectl,
        calls=calls,
        tls=tls,
        application=application,
        server=server,
        keeper=keeper,
        served=served,
    )
    stack.push_async_callback(lambda: world.server.stop())
    services.lead(NAMESPACE, SERVICE, HOST, server.port)
    await install(client, server.port, has_service=kind == "real")
    selectors = SelectorKeeper(client, configurations, managed={}, manages_unqueued=False)
    runs = [*(i.run() for i in configurations), keeper.run(), selectors.run()]
    for number, run in enumerate(runs):
        task = asyncio.create_task(run, name=f"webhook world {number}")
        stack.push_async_callback(stop, task)
    async with asyncio.timeout(DEADLINE_S):
        await keeper.published.wait()
        await selectors.kept.wait()
        await until_called(client)
    return world


def as_pair(pair: KeyPair) -> CertificatePair:
    return CertificatePair(certificate_pem=pair.certificate_pem, key_pem=pair.key_pem)


async def stop(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()


def at_port(value: Any, port: int) -> Any:
    """Return manifests whose calls to a Service use another port."""
    if isinstance(value, list):
        return [at_port(item, port) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {key: at_port(item, port) for key, item in value.items()}
    if "path" in changed.get("service", {}):
        changed["service"]["port"] = port
    return changed


def webhook_configurations(port: int) -> list[Json]:
    """Return our two webhook configurations."""
    return [
        at_port(yaml.safe_load((_BASE / f"webhook-{name}.yaml").read_text()), port)
        for name in ("mutating", "validating")
    ]


async def install(client: Client, port: int, *, has_service: bool) -> None:
    """Install CRDs and webhook configurations, and for a real API server the Service."""
    if has_service:
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE, "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }
        await client.create(resources.SERVICES, NAMESPACE, service)
    for definition in crds().values():
        await client.create(resources.CUSTOM_RESOURCE_DEFINITIONS, "", at_port(definition, port))
    async with asyncio.timeout(DEADLINE_S):
        for kind in resources.KUEUE_KINDS:
            await until_served(client, kind)
    kinds = (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS)
    for resource, body in zip(kinds, webhook_configurations(port), strict=True):
        await client.create(resource, "", body)


async def until_served(client: Client, kind: resources.Resource) -> None:
    # Discovery cannot be watched; the server answers 404 until the handler is there.
    while True:
        try:
            await client.list(kind, limit=1, resource_version="0")
        except NotFound:
            await asyncio.sleep(0.05)
        else:
            return


async def until_called(client: Client) -> None:
    """Wait until the API server calls the webhook and trusts it: it hears of changes by a watch."""
    bad = {
        **resources.CLUSTER_QUEUES.skeleton("", "probe"),
        "spec": {"fairSharing": {"weight": "-1"}},
    }
    while True:
        text = await refusal(client, resources.CLUSTER_QUEUES, "", bad)
        if "denied the request" in text:
            return
        await asyncio.sleep(0.05)


async def refusal(client: Client, resource: resources.Resource, namespace: str, body: Json) -> str:
    """Return why an object is not taken, empty when it would be; nothing is stored."""
    try:
        await client.create(resource, namespace, body, dry_run=True, retry=False)
    except (Invalid, Conflict):
        raise
    except KubeError as error:
        return str(error)
    return ""
