"""The topology controllers against a server that holds Nodes and Pods, with faults on the way.

Workloads, flavors and topologies are put into the caches as their watches would. `Line` is a client
whose watches may be silent and whose answers may get lost, so that a test decides what the
controllers know.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sluice.api import names, topology_assignment
from sluice.api.errors import Transient
from sluice.api.topology_assignment import Domain
from sluice.clock import SystemClock
from sluice.controllers.caches import Caches
from sluice.controllers.scheduler import Scheduler
from sluice.controllers.topology_feed import TopologyFeed
from sluice.controllers.write import Writer
from sluice.engine.engine import Engine
from sluice.engine.options import EngineOptions
from sluice.jobs.catalogue import all_integrations
from sluice.jobs.integration import select
from sluice.kube.client import Client
from sluice.kube.config import load
from sluice.kube.informer import Informer
from sluice.kube.resources import PODS, Resource
from sluice.kube.watch import WatchEvent
from sluice.local.apiserver.compose import parts_without_webhooks
from sluice.local.apiserver.server import Server, ServerOptions

Json = dict[str, Any]
NAMESPACE = "default"


class Line(Client):
    """A client on a bad line.

    Attributes:
        is_silent: Watches of pods bring nothing.
        lists_pods: Lists of pods wait for it.
        answers_to_lose: Patches that get through and whose answers do not.
        patched: Names of patched objects.
    """

    is_silent = False
    answers_to_lose = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lists_pods = asyncio.Event()
        self.lists_pods.set()
        self.patched: list[str] = []

    async def list(self, resource: Resource, *args: Any, **kwargs: Any) -> Json:
        """List, once it may."""
        if resource == PODS:
            await self.lists_pods.wait()
        return await super().list(resource, *args, **kwargs)

    async def patch(
        self, resource: Resource, namespace: str, name: str, body: object, **kwargs: Any
    ) -> Json:
        """Patch, and perhaps lose the answer."""
        answer = await super().patch(resource, namespace, name, body, **kwargs)
        self.patched.append(name)
        if self.answers_to_lose:
            self.answers_to_lose -= 1
            raise Transient("the answer was lost")
        return answer

    async def watch(
        self, resource: Resource, *args: Any, **kwargs: Any
    ) -> AsyncGenerator[WatchEvent, None]:
        """Watch, unless the line is silent."""
        if resource == PODS and self.is_silent:
            await asyncio.Event().wait()
        async for event in super().watch(resource, *args, **kwargs):
            yield event


class Place:
    """Caches, an engine and the feed between them, on one server.

    Attributes:
        leads: Whether writes are let through.
        asked: How often that was asked.
    """

    def __init__(self, client: Line) -> None:
        registry, _ = select(all_integrations(), ["batch/job"])
        self.client = client
        self.caches = Caches(client, registry)
        self.engine = Engine(EngineOptions())
        scheduler = Scheduler(self.engine, SystemClock())
        scheduler.attach(self.caches)
        self.feed = TopologyFeed(self.caches, scheduler)
        self.feed.attach()
        self.leads = True
        self.asked = 0
        self.writer = Writer(client, is_leading=self._may_write)
        self._version = 1_000_000
        for informer in self.caches.always():
            informer.synced.set()

    def _may_write(self) -> bool:
        self.asked += 1
        return self.leads

    def put(self, informer: Informer[Any], name: str, body: Json, namespace: str = "") -> None:
        """Put an object into a cache, as its watch would."""
        self._version += 1
        metadata = {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": str(self._version),
            "creationTimestamp": "2024-01-01T00:00:00Z",
            **({"namespace": namespace} if namespace else {}),
        }
        resource = informer.resource
        head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        informer.observe_write({**head, **body})

    def flavor(self, *, topology: str | None = "t") -> None:
        """Put the flavor ``f`` with or without a topology."""
        spec = {"nodeLabels": {"pool": "p"}, **({"topologyName": topology} if topology else {})}
        self.put(self.caches.flavors, "f", {"spec": spec})

    def workload(self, hosts: Mapping[str, int], *, name: str = "wl", **status: Any) -> None:
        """Put a Workload that is admitted with so many pods on each host."""
        domains = [Domain((host,), count) for host, count in hosts.items()]
        count = sum(hosts.values())
        assignment = {
            "name": "main",
            "flavors": {"cpu": "f"},
            "resourceUsage": {"cpu": str(count)},
            "count": count,
            "topologyAssignment": topology_assignment.encode((names.HOSTNAME_LABEL,), domains),
        }
        conditions = [
            {"type": kind, "status": "True", "reason": kind, "message": ""}
            | {"lastTransitionTime": "2024-01-01T00:00:00Z"}
            for kind in ("QuotaReserved", "Admitted", *status.pop("conditions", ()))
        ]
        admission = {"clusterQueue": "cq", "podSetAssignments": [assignment]}
        template = {"spec": {"containers": []}}
        body = {
            "spec": {"podSets": [{"name": "main", "count": count, "template": template}]},
            "status": {"conditions": conditions, "admission": admission, **status},
        }
        self.put(self.caches.workloads, name, body, NAMESPACE)

    async def pod(self, name: str, *, workload: str = "wl") -> Json:
        """Create a gated pod of a Workload."""
        body = PODS.skeleton(NAMESPACE, name)
        body["metadata"]["labels"] = {names.POD_SET_LABEL: "main"}
        body["metadata"]["annotations"] = {names.WORKLOAD_ANNOTATION: workload}
        body["spec"] = {
            "schedulingGates": [{"name": "example.com/other"}, {"name": names.TOPOLOGY_GATE}],
            "containers": [{"name": "c", "image": "none"}],
        }
        return await self.client.create(PODS, NAMESPACE, body)

    async def hosts(self) -> dict[str, str]:
        """Return where the pods are sent by what the server says; those still gated are left out.

        Raises:
            AssertionError: A pod lost another gate.
        """
        found = {}
        for pod in (await self.client.list(PODS, NAMESPACE))["items"]:
            gates = [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]
            assert "example.com/other" in gates
            if names.TOPOLOGY_GATE not in gates:
                selector = pod["spec"]["nodeSelector"]
                found[pod["metadata"]["name"]] = selector[names.HOSTNAME_LABEL]
        return found


@asynccontextmanager
async def place(folder: Path) -> AsyncIterator[Place]:
    """Serve, and run the feed."""
    kubeconfig = folder / "kubeconfig"
    async with Server(parts_without_webhooks(), ServerOptions(kubeconfig=kubeconfig)):
        access = await load(kubeconfig=str(kubeconfig), environ={})
        async with Line(access) as client, asyncio.TaskGroup() as group:
            made = Place(client)
            feed = group.create_task(made.feed.run(), name="feed")
            yield made
            feed.cancel()
