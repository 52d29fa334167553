"""A manager running against a control plane, and the queues and Jobs that tests give it.

Used by the integration tests of job lifecycle and of faults, on every control plane.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.crd_schemas import crds
from tests.support.waiting import Check, wait_for, wait_until_deleted

from sluice.api import names
from sluice.api.errors import AlreadyExists, NotFound
from sluice.api.selectors import compile_selector
from sluice.controllers.manager import Manager
from sluice.controllers.options import ElectionOptions, JobOptions, ManagerOptions
from sluice.engine.lifecycle_facts import LifecycleOptions
from sluice.kube import resources
from sluice.kube.access import ClusterAccess
from sluice.kube.client import Client, ClientOptions
from sluice.kube.lease import LeaseTimes
from sluice.kube.resources import Resource
from sluice.local.real import RUN_TIME_ANNOTATION

Json = dict[str, Any]
QUICK_LEASE = LeaseTimes(duration_s=4.0, renew_deadline_s=2.5, retry_period_s=0.5)
DEADLINE_S = 30.0
_installed: set[str] = set()


async def install_crds(client: Client) -> None:
    """Install our definitions without conversion webhooks, and wait until they are served."""
    if client.access.host in _installed:
        return
    for definition in crds().values():
        body = {**definition, "spec": {**definition["spec"], "conversion": {"strategy": "None"}}}
        try:
            await client.create(resources.CUSTOM_RESOURCE_DEFINITIONS, "", body)
        except AlreadyExists:
            continue
    async with asyncio.timeout(DEADLINE_S):
        for kind in resources.KUEUE_KINDS:
            await _until_served(client, kind)
    _installed.add(client.access.host)


async def _until_served(client: Client, resource: Resource) -> None:
    # Discovery can't be watched; the server answers 404 until the handler is there.
    while True:
        try:
            await client.list(resource, limit=1)
        except NotFound:
            await asyncio.sleep(0.05)
        else:
            return


def manager_options(
    lease_namespace: str,
    *,
    identity: str = "",
    lifecycle: LifecycleOptions | None = None,
    **jobs: Any,
) -> ManagerOptions:
    """Return options of a manager that handles no other namespace's unlabelled jobs."""
    return ManagerOptions(
        identity=identity or f"manager-{uuid.uuid4().hex[:8]}",
        election=ElectionOptions(namespace=lease_namespace, times=QUICK_LEASE),
        lifecycle=lifecycle or LifecycleOptions(),
        jobs=JobOptions(managed_namespaces=compile_selector({}), **jobs),
        sync_timeout_s=DEADLINE_S,
    )


@asynccontextmanager
async def running(client: Client, options: ManagerOptions) -> AsyncIterator[Manager]:
    """Run a manager until the block ends; wait until it is ready."""
    manager = Manager(client, options)
    task = asyncio.create_task(manager.run(), name=options.identity)
    try:
        ready = asyncio.create_task(manager.ready.wait(), name="ready")
        await asyncio.wait({task, ready}, timeout=DEADLINE_S, return_when="FIRST_COMPLETED")
        ready.cancel()
        assert manager.ready.is_set(), manager.unready_reasons()
        yield manager
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and task.exception() is not None:
            raise task.exception() or AssertionError


async def until(is_so: Any, what: str, deadline_s: float = DEADLINE_S) -> None:
    """Wait until a condition of this process holds (what an API server holds is watched)."""
    try:
        async with asyncio.timeout(deadline_s):
            while not is_so():  # noqa: ASYNC110  (many owners, no common event)
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within {deadline_s} s: {what}") from None


@dataclass(kw_only=True)
class World:
    """One namespace and the cluster-wide objects made for it, deleted at the end.

    Attributes:
        client: Administrator's client.
        namespace: The namespace.
        suffix: Ends every cluster-wide name.
    """

    client: Client
    namespace: str
    suffix: str = field(default_factory=lambda: uuid.uuid4().hex[:6])
    made: list[tuple[Resource, str]] = field(default_factory=list)

    async def cluster_wide(self, resource: Resource, name: str, body: Json) -> str:
        """Create a cluster-wide object; returns its full name."""
        full = f"{name}-{self.suffix}"
        await self.client.create(resource, "", {**resource.skeleton("", full), **body})
        self.made.append((resource, full))
        return full

    async def queues(
        self,
        *,
        cpu: str = "4",
        flavor: Json | None = None,
        local: str = "lq",
        **spec: Any,
    ) -> str:
        """Create a flavor, a ClusterQueue and a LocalQueue; returns the ClusterQueue's name."""
        flavor_name = await self.cluster_wide(
            resources.RESOURCE_FLAVORS, "flavor", {"spec": flavor or {}}
        )
        name = await self.cluster_queue(flavor_name, cpu=cpu, **spec)
        await self.local_queue(local, name)
        return name

    async def cluster_queue(self, flavor: str, *, cpu: str = "4", **spec: Any) -> str:
        """Create a ClusterQueue with a quota of cpu in one flavor."""
        quota = {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": cpu}]}
        groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
        body = {"spec": {"namespaceSelector": {}, "resourceGroups": groups, **spec}}
        return await self.cluster_wide(resources.CLUSTER_QUEUES, "cq", body)

    async def local_queue(self, name: str, cluster_queue: str, **spec: Any) -> None:
        """Create a LocalQueue."""
        body = resources.LOCAL_QUEUES.skeleton(self.namespace, name)
        body["spec"] = {"clusterQueue": cluster_queue, **spec}
        await self.client.create(resources.LOCAL_QUEUES, self.namespace, body)

    async def job(self, name: str, **fields: Any) -> Json:
        """Create a Job; see `job_body`."""
        body = job_body(name, **fields)
        return await self.client.create(resources.BATCH_JOBS, self.namespace, body)

    async def wait(self, resource: Resource, check: Check, name: str = "") -> Json:
        """Wait for an object of the namespace, or a cluster-wide one."""
        namespace = self.namespace if resource.namespaced else ""
        return await wait_for(
            self.client, resource, namespace, check, name=name, deadline_s=DEADLINE_S
        )

    async def wait_workload(self, job: str, check: Check) -> Json:
        """Wait for the Workload of a Job."""

        def is_wanted(workload: Json) -> bool:
            owners = workload["metadata"].get("ownerReferences") or [{}]
            return owners[0].get("name") == job and check(workload)

        return await self.wait(resources.WORKLOADS, is_wanted)

    async def patch(self, resource: Resource, name: str, body: Json) -> Json:
        """Merge a change into an object."""
        namespace = self.namespace if resource.namespaced else ""
        return await self.client.patch(resource, namespace, name, body)

    async def delete(self, resource: Resource, name: str) -> None:
        """Delete an object."""
        namespace = self.namespace if resource.namespaced else ""
        await self.client.delete(resource, namespace, name, propagation="Background")

    async def gone(self, resource: Resource, name: str) -> None:
        """Wait until an object is gone."""
        namespace = self.namespace if resource.namespaced else ""
        await wait_until_deleted(self.client, resource, namespace, name, deadline_s=DEADLINE_S)

    async def clean_up(self) -> None:
        """Delete the cluster-wide objects, whoever holds them back."""
        for resource, name in reversed(self.made):
            try:
                await self.client.delete(resource, "", name)
                await self.client.patch(resource, "", name, {"metadata": {"finalizers": None}})
            except NotFound:
                continue


def job_body(
    name: str,
    *,
    queue: str = "lq",
    cpu: str = "1",
    run_time: str = "",
    suspend: bool = True,
    labels: Json | None = None,
    pod: Json | None = None,
    **spec: Any,
) -> Json:
    """Return a Job of one container; without a run time its pods run until they are stopped."""
    body = resources.BATCH_JOBS.skeleton("", name)
    body["metadata"]["labels"] = {**({names.QUEUE_LABEL: queue} if queue else {}), **(labels or {})}
    annotations = {RUN_TIME_ANNOTATION: run_time} if run_time else {}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    body["spec"] = {
        "suspend": suspend,
        "backoffLimit": 0,
        **spec,
        "template": {
            "metadata": {"annotations": annotations},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
                "containers": [container],
                **(pod or {}),
            },
        },
    }
    return body


@asynccontextmanager
async def world(access: ClusterAccess, namespace: str) -> AsyncIterator[World]:
    """Lend a world with our definitions installed; take away what it made."""
    async with Client(access, options=ClientOptions(qps=0)) as client:
        await install_crds(client)
        lent = World(client=client, namespace=namespace)
        try:
            yield lent
        finally:
            await lent.clean_up()


def condition_message(obj: Json, kind: str) -> str:
    """Return the message of a condition, empty without one."""
    for condition in obj.get("status", {}).get("conditions", []):
        if condition["type"] == kind:
            return str(condition["message"])
    return ""
