"""Racks of nodes, a queue whose flavor has a topology, and Jobs that ask for places in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.managers import Json, World, job_body
from tests.support.waiting import has_condition

from sluice.api import names
from sluice.api.errors import NotFound
from sluice.kube import resources
from sluice.local.real import SimulatedNode

BLOCK, RACK, POOL = "example.com/block", "example.com/rack", "example.com/pool"
INDEX = "batch.kubernetes.io/job-completion-index"
RACKS = {"r1": ("a", "b"), "r2": ("c", "d")}
"""Nodes of 2 cpu by rack; both racks are in one block."""


def host(here: World, name: str) -> str:
    """Return the full name of a node."""
    return f"{name}-{here.suffix}"


@asynccontextmanager
async def racks(here: World) -> AsyncIterator[None]:
    """Lend four nodes of a pool of their own, two in each rack."""
    made = [
        SimulatedNode(
            name=host(here, name), cpu="2", labels={POOL: here.suffix, BLOCK: "b1", RACK: rack}
        )
        for rack, members in RACKS.items()
        for name in members
    ]
    for node in made:
        await here.client.create(resources.NODES, "", node.to_object())
    try:
        for node in made:
            await here.wait(resources.NODES, has_condition("Ready"), node.name)
        yield
    finally:
        for node in made:
            await lose(here, node.name)


async def lose(here: World, node: str) -> None:
    """Delete a node, if it is still there."""
    try:
        await here.client.delete(resources.NODES, "", node)
    except NotFound:
        return


async def topology_flavor(here: World) -> str:
    """Create a topology over the racks and a flavor with it; returns the flavor's name."""
    levels = [{"nodeLabel": level} for level in (BLOCK, RACK, names.HOSTNAME_LABEL)]
    topology = await here.cluster_wide(
        resources.TOPOLOGIES, "topology", {"spec": {"levels": levels}}
    )
    spec = {"nodeLabels": {POOL: here.suffix}, "topologyName": topology}
    return await here.cluster_wide(resources.RESOURCE_FLAVORS, "tas", {"spec": spec})


async def topology_queue(here: World) -> str:
    """Create a queue on the racks with more quota than they have room; returns its name."""
    queue = await here.cluster_queue(await topology_flavor(here), cpu="100")
    await here.local_queue("lq", queue)
    return queue


async def topology_job(
    here: World, name: str, request: Json | None = None, *, pods: int, **fields: Any
) -> Json:
    """Create a Job of so many pods at once; request is the template's annotations."""
    counts = {"parallelism": pods, "completions": pods, "backoffLimit": 6}
    body = job_body(name, **{**counts, **fields})
    body["spec"]["template"]["metadata"]["annotations"].update(request or {})
    return await here.client.create(resources.BATCH_JOBS, here.namespace, body)


async def pods_of(here: World, job: str) -> list[Json]:
    """Return the pods of a Job that have not ended and are not being deleted."""
    listed = await here.client.list(
        resources.PODS, here.namespace, label_selector=f"batch.kubernetes.io/job-name={job}"
    )
    return [
        pod
        for pod in listed["items"]
        if pod["status"].get("phase") in ("Pending", "Running")
        and "deletionTimestamp" not in pod["metadata"]
    ]


async def running_hosts(here: World, job: str, pods: int) -> dict[str, str]:
    """Wait until so many pods of a Job are ready; return their hosts by index, else by name."""
    await here.wait(
        resources.BATCH_JOBS, lambda found: found["status"].get("ready", 0) == pods, job
    )
    found = await pods_of(here, job)
    for pod in found:
        assert "schedulingGates" not in pod["spec"]
        assert pod["spec"]["nodeName"] == pod["spec"]["nodeSelector"][names.HOSTNAME_LABEL]
    return {
        pod["metadata"]["labels"].get(INDEX, pod["metadata"]["name"]): pod["spec"]["nodeName"]
        for pod in found
    }


def assigned(workload: Json) -> dict[str, int]:
    """Return pods by host of the first pod set of a Workload."""
    admission = (workload.get("status") or {}).get("admission") or {}
    (assignment,) = admission.get("podSetAssignments") or ({},)
    topology = assignment.get("topologyAssignment") or {"slices": []}
    found: dict[str, int] = {}
    for piece in topology["slices"]:
        values, counts = piece["valuesPerLevel"][-1], piece["podCounts"]
        for number in range(piece["domainCount"]):
            if "universal" in values:
                value = values["universal"]
            else:
                one = values["individual"]
                root = one["roots"][number]
                value = f"{one.get('prefix', '')}{root}{one.get('suffix', '')}"
            found[value] = counts.get("universal") or counts["individual"][number]
    return found
