"""The API server goes away while Workloads wait, and a Kueue that runs in the same cluster."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.support.managers import World, manager_options, running, until, world
from tests.support.waiting import has_condition

from sluice.api import names, times
from sluice.clock import SystemClock
from sluice.controllers.manager import Manager
from sluice.kube.client import Client
from sluice.kube.resources import LEASES, WORKLOADS
from sluice.local.real import RealControlPlane

pytestmark = [pytest.mark.real, pytest.mark.slow]

ROOM = 2
WORKLOADS_COUNT = 8


@pytest_asyncio.fixture
async def here(real_apiserver: RealControlPlane, real_namespace: str) -> AsyncIterator[World]:
    async with world(real_apiserver.access(), real_namespace) as made:
        yield made


async def create_workload(here: World, name: str) -> None:
    body = WORKLOADS.skeleton(here.namespace, name)
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    pod = {"restartPolicy": "Never", "containers": [container]}
    body["spec"] = {
        "queueName": "lq",
        "podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}],
    }
    await here.client.create(WORKLOADS, here.namespace, body)


async def finish(here: World, name: str) -> None:
    raw = await here.client.get(WORKLOADS, here.namespace, name)
    finished = {
        "type": "Finished",
        "status": "True",
        "reason": "Succeeded",
        "message": "",
        "lastTransitionTime": times.from_ms(SystemClock().now_ms()),
    }
    patch = {"status": {"conditions": [*raw["status"]["conditions"], finished]}}
    await here.client.patch(WORKLOADS, here.namespace, name, patch, subresource="status")


def admitted(manager: Manager) -> list[str]:
    return [
        cached.record.name
        for _, cached in manager.caches.workloads.store.items()
        if cached.record.is_true("Admitted") and not cached.is_finished
    ]


@pytest.mark.parametrize("is_crash", [False, True], ids=["stopped", "crashed"])
async def test_the_api_server_restarts_while_workloads_wait(
    here: World, real_apiserver: RealControlPlane, is_crash: bool
) -> None:
    await here.queues(cpu=str(ROOM))
    async with running(here.client, manager_options(here.namespace)) as manager:
        for number in range(WORKLOADS_COUNT):
            await create_workload(here, f"w{number}")
        await until(lambda: len(admitted(manager)) == ROOM, "the queue is full")
        await real_apiserver.restart_api_server(is_crash=is_crash)
        done: set[str] = set()
        while len(done) < WORKLOADS_COUNT:
            # What was freed is used, never more than there is room for, until all are through.
            expected = min(ROOM, WORKLOADS_COUNT - len(done))

            def are_admitted(seen: frozenset[str] = frozenset(done), count: int = expected) -> bool:
                return len(set(admitted(manager)) - seen) == count

            await until(are_admitted, "admitted", 60)
            ended = set(admitted(manager)) - done
            for name in sorted(ended):
                await finish(here, name)
            done |= ended


async def test_nothing_is_decided_while_a_kueue_leads(here: World) -> None:
    await here.queues()
    await create_workload(here, "w")
    lease = LEASES.skeleton(here.namespace, names.KUEUE_LEASE)
    lease["spec"] = {
        "holderIdentity": "kueue-controller-manager",
        "leaseDurationSeconds": 2,
        "renewTime": times.micro_from_ms(SystemClock().now_ms()),
    }
    await here.client.create(LEASES, here.namespace, lease)
    options = manager_options(here.namespace)
    async with Client(here.client.access) as client:
        manager = Manager(client, options)
        task = asyncio.create_task(manager.run(), name="manager")
        try:
            await until(
                lambda: any("Kueue runs in this cluster" in r for r in manager.unready_reasons()),
                "it says that a Kueue runs",
            )
            assert not manager.is_leading
            assert not admitted(manager)
            await here.client.delete(LEASES, here.namespace, names.KUEUE_LEASE)
            await here.wait(WORKLOADS, has_condition("Admitted"), "w")
            assert manager.unready_reasons() == []
        finally:
            task.cancel()
            await asyncio.wait({task})
