"""Managers that die, hang or meet: nothing is lost and nothing is admitted twice."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.support.controlplane import ControlPlane
from tests.support.managers import (
    QUICK_LEASE,
    World,
    job_body,
    manager_options,
    running,
    until,
    world,
)
from tests.support.waiting import has_condition, wait_for

from sluice.api import times
from sluice.api.names import ClusterQueueName
from sluice.clock import SystemClock
from sluice.controllers.manager import Manager
from sluice.kube.client import Client
from sluice.kube.resources import (
    BATCH_JOBS,
    CLUSTER_QUEUES,
    LEASES,
    LOCAL_QUEUES,
    NAMESPACES,
    WORKLOADS,
)

pytestmark = pytest.mark.slow

JOBS = 12
ROOM = 4


@pytest_asyncio.fixture
async def here(control_plane: ControlPlane, namespace: str) -> AsyncIterator[World]:
    async with world(control_plane.access, namespace) as made:
        yield made


async def submit(here: World, count: int, **fields: Any) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(here.job(f"job-{number}", **fields))


async def all_complete(here: World, names: Iterable[str]) -> None:
    for name in names:
        await here.wait(BATCH_JOBS, has_condition("Complete"), name)


async def most_admitted(here: World, stop: asyncio.Event) -> int:
    """Return how many Workloads held quota at once, at most, as a watch shows it."""
    listed = await here.client.list(WORKLOADS, here.namespace)
    holding: set[str] = set()
    most = 0
    events = here.client.watch(
        WORKLOADS, here.namespace, resource_version=listed["metadata"]["resourceVersion"]
    )
    async for event in events:
        if event.kind == "BOOKMARK":
            continue
        name = event.body["metadata"]["name"]
        holds = has_condition("QuotaReserved")(event.body) and not has_condition("Finished")(
            event.body
        )
        if holds and event.kind != "DELETED":
            holding.add(name)
        else:
            holding.discard(name)
        most = max(most, len(holding))
        if stop.is_set():
            break
    return most


async def test_two_managers_admit_once(here: World, control_plane: ControlPlane) -> None:
    await here.queues(cpu=str(ROOM))
    options = manager_options(here.namespace)
    stop = asyncio.Event()
    watch = asyncio.create_task(most_admitted(here, stop), name="watch")
    async with (
        Client(control_plane.access) as other_client,
        running(here.client, options) as first,
        running(other_client, replace(options, identity="second")) as second,
    ):
        await until(lambda: first.is_leading or second.is_leading, "one leads")
        await submit(here, JOBS, run_time="100ms")
        await all_complete(here, [f"job-{n}" for n in range(JOBS)])
        assert not (first.is_leading and second.is_leading)
        stop.set()
        await here.job("last", run_time="50ms")
        assert await asyncio.wait_for(watch, 30) <= ROOM
        # What the standby has observed is what the leader decided on.
        await until(lambda: _reserving(first) == _reserving(second), "both know the same")


def _reserving(manager: Manager) -> list[int]:
    engine = manager.scheduler.engine
    statuses = [
        engine.cluster_queue_status(queue.name)
        for _, queue in manager.caches.cluster_queues.store.items()
    ]
    return [status.reserving for status in statuses if status is not None]


async def test_a_standby_takes_over(here: World, control_plane: ControlPlane) -> None:
    await here.queues(cpu=str(ROOM))
    options = manager_options(here.namespace)
    async with (
        Client(control_plane.access) as other_client,
        running(other_client, replace(options, identity="second")) as second,
    ):
        await until(lambda: second.is_leading, "the second leads")
        async with running(here.client, options) as first:
            await submit(here, ROOM + 1)
            await here.wait_workload(f"job-{ROOM - 1}", lambda _: True)
            assert not first.is_leading
            lease = await here.client.get(LEASES, here.namespace, options.election.name)  # type: ignore[union-attr]
            now = times.micro_from_ms(SystemClock().now_ms())
            taken = {**lease["spec"], "holderIdentity": "somebody", "renewTime": now}
            # Without a version: the holder may renew between reading and writing.
            name = lease["metadata"]["name"]
            await here.client.patch(LEASES, here.namespace, name, {"spec": taken})
            await until(lambda: not second.is_leading, "the second stops")
            await until(lambda: first.is_leading or second.is_leading, "one leads again")
            await here.job("later")
            await here.wait_workload("later", has_condition("QuotaReserved", "False"))


async def test_a_new_leader_knows_what_its_watch_has_not_brought_yet(here: World) -> None:
    """The old leader reserves quota right before it ends; nothing is given twice."""
    queue = ClusterQueueName(await here.queues(stopPolicy="Hold"))
    await here.job("one")
    late = Manager(here.client, manager_options(here.namespace))
    engine = late.scheduler.engine
    watches = [asyncio.create_task(i.run(), name=i.resource.plural) for i in late.caches.all()]
    async with running(here.client, manager_options(here.namespace)):
        for informer in late.caches.all():
            await informer.wait_synced(30)
        workload = await here.wait_workload("one", has_condition("QuotaReserved", "False"))
        key = f"{here.namespace}/{workload['metadata']['name']}"
        await until(lambda: key in late.caches.workloads.store, "the Workload is seen")
        for watch in watches:
            watch.cancel()
        await asyncio.wait(watches)
        await here.patch(CLUSTER_QUEUES, queue, {"spec": {"stopPolicy": "None"}})
        await here.wait_workload("one", has_condition("Admitted"))
    before = engine.cluster_queue_status(queue)
    await late.catch_up()
    after = engine.cluster_queue_status(queue)
    assert before is not None
    assert after is not None
    assert (before.reserving, after.reserving) == (0, 1)


@asynccontextmanager
async def manager_process(
    control_plane: ControlPlane, here: World, folder: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run ``sluice manager`` in a process that can be killed."""
    config = folder / "config.yaml"
    config.write_text(
        f"""apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: {here.namespace}
health: {{healthProbeBindAddress: "0"}}
metrics: {{bindAddress: "0"}}
leaderElection:
  leaderElect: true
  leaseDuration: {QUICK_LEASE.duration_s:g}s
  renewDeadline: {QUICK_LEASE.renew_deadline_s:g}s
  retryPeriod: {QUICK_LEASE.retry_period_s:g}s
managedJobsNamespaceSelector:
  matchLabels: {{kubernetes.io/metadata.name: {here.namespace}-jobs}}
"""
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "sluice.cli.main",
        "manager",
        "--kubeconfig",
        str(control_plane.kubeconfig),
        "--config",
        str(config),
        env={"PYTHONPATH": "queue:webhook", "PATH": "/usr/bin:/bin"},
        cwd=Path(__file__).parents[2],
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
            await asyncio.wait_for(process.wait(), 10)


async def test_killed_between_creating_the_workload_and_admitting_it(
    here: World, control_plane: ControlPlane, tmp_path: Path
) -> None:
    await here.queues(cpu=str(ROOM))
    jobs = f"{here.namespace}-jobs"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": jobs}}
    await here.client.create(NAMESPACES, "", namespace)
    local = LOCAL_QUEUES.skeleton(jobs, "lq")
    local["spec"] = {"clusterQueue": f"cq-{here.suffix}"}
    await here.client.create(LOCAL_QUEUES, jobs, local)
    try:
        async with manager_process(control_plane, here, tmp_path) as process:
            await wait_for(here.client, LEASES, here.namespace, lambda _: True, deadline_s=30)
            bodies = [job_body(f"job-{n}", run_time="100ms") for n in range(JOBS)]
            async with asyncio.TaskGroup() as group:
                for body in bodies:
                    group.create_task(here.client.create(BATCH_JOBS, jobs, body))
            await wait_for(here.client, WORKLOADS, jobs, lambda _: True, deadline_s=30)
            process.send_signal(signal.SIGKILL)
            await process.wait()
        async with manager_process(control_plane, here, tmp_path):
            for body in bodies:
                name = body["metadata"]["name"]
                await wait_for(
                    here.client, BATCH_JOBS, jobs, has_condition("Complete"), name=name,
                    deadline_s=60,
                )  # fmt: skip
        found = (await here.client.list(WORKLOADS, jobs))["items"]
        assert len(found) == JOBS, "one Workload for each Job"
        assert all(has_condition("Finished", reason="Succeeded")(w) for w in found)
    finally:
        await here.client.delete(NAMESPACES, "", jobs)
