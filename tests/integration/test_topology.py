"""Pods of queued Jobs run where the topology says, on every control plane."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.support.controlplane import ControlPlane
from tests.support.managers import World, condition_message, manager_options, running, until, world
from tests.support.placed import (
    INDEX,
    RACK,
    assigned,
    host,
    pods_of,
    racks,
    running_hosts,
    topology_flavor,
    topology_job,
    topology_queue,
)
from tests.support.topology_server import Line
from tests.support.waiting import has_condition

from sluice.api import names
from sluice.api.conditions import PendingReason
from sluice.controllers.manager import Manager
from sluice.kube import resources

pytestmark = pytest.mark.slow

IN_ONE_RACK = {names.REQUIRED_TOPOLOGY: RACK}
WAITS = has_condition("QuotaReserved", "False", PendingReason.TOPOLOGY_PLACEMENT_FAILED)


@pytest_asyncio.fixture
async def here(control_plane: ControlPlane, namespace: str) -> AsyncIterator[World]:
    async with world(control_plane.access, namespace) as made, racks(made):
        yield made


async def test_one_rack_by_rank_then_the_next_and_a_restart_changes_nothing(here: World) -> None:
    async with running(here.client, manager_options(here.namespace)):
        await topology_queue(here)
        await topology_job(here, "one", IN_ONE_RACK, pods=4, completionMode="Indexed")
        found = await running_hosts(here, "one", 4)
        first, second = host(here, "a"), host(here, "b")
        assert found == {"0": first, "1": first, "2": second, "3": second}
    async with running(here.client, manager_options(here.namespace)):
        await topology_job(here, "two", IN_ONE_RACK, pods=3)
        hosts = await running_hosts(here, "two", 3)
        assert set(hosts.values()) == {host(here, "c"), host(here, "d")}
        await topology_job(here, "three", IN_ONE_RACK, pods=2)
        waiting = await here.wait_workload("three", WAITS)
        assert "allows to fit only 1 out of 2 pod(s)" in condition_message(waiting, "QuotaReserved")


async def test_what_others_use_is_left_to_them(here: World) -> None:
    stranger = resources.PODS.skeleton(here.namespace, "stranger")
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    stranger["spec"] = {
        "containers": [container],
        "nodeName": host(here, "a"),
        "terminationGracePeriodSeconds": 1,
    }
    await here.client.create(resources.PODS, here.namespace, stranger)
    async with running(here.client, manager_options(here.namespace)):
        await topology_queue(here)
        await topology_job(here, "one", IN_ONE_RACK, pods=4)
        assert Counter((await running_hosts(here, "one", 4)).values()) == {
            host(here, "c"): 2,
            host(here, "d"): 2,
        }
        await topology_job(here, "two", IN_ONE_RACK, pods=4)
        await here.wait_workload("two", WAITS)
        await here.delete(resources.PODS, "stranger")
        assert set((await running_hosts(here, "two", 4)).values()) == {
            host(here, "a"),
            host(here, "b"),
        }


async def test_a_job_that_asks_for_nothing_is_placed_all_the_same(here: World) -> None:
    async with running(here.client, manager_options(here.namespace)) as manager:
        await topology_queue(here)
        await topology_job(here, "free", pods=3)
        await topology_job(here, "any", {names.UNCONSTRAINED_TOPOLOGY: "true"}, pods=3)
        for job in ("free", "any"):
            workload = await here.wait_workload(job, has_condition("Admitted"))
            hosts = Counter((await running_hosts(here, job, 3)).values())
            assert hosts == assigned(workload)
            for pod in await pods_of(here, job):
                assert pod["metadata"]["annotations"][names.UNCONSTRAINED_TOPOLOGY] == "true"
        # Eight cpus less six: had the pods been charged besides their Workloads, none were left.
        await topology_job(here, "rest", pods=2)
        await running_hosts(here, "rest", 2)
        manager.scheduler.engine.verify()


async def test_successors_take_the_place_of_pods_that_have_ended(here: World) -> None:
    async with running(here.client, manager_options(here.namespace)):
        await topology_queue(here)
        await topology_job(
            here,
            "many",
            IN_ONE_RACK,
            pods=6,
            parallelism=2,
            cpu="2",
            run_time="200ms",
            completionMode="Indexed",
        )
        await here.wait(resources.BATCH_JOBS, has_condition("Complete"), "many")
        listed = await here.client.list(resources.PODS, here.namespace)
        places = {
            pod["metadata"]["labels"][INDEX]: pod["spec"]["nodeName"] for pod in listed["items"]
        }
        assert set(places) == {str(index) for index in range(6)}
        assert set(places.values()) == {host(here, "a"), host(here, "b")}


async def test_nobody_leads_before_nodes_and_pods_are_listed(
    here: World, control_plane: ControlPlane
) -> None:
    await topology_queue(here)
    async with Line(control_plane.access) as line:
        line.lists_pods.clear()
        manager = Manager(line, manager_options(here.namespace))
        task = asyncio.create_task(manager.run(), name="manager")
        missing = "waiting for the first list of pods"
        try:
            await until(lambda: missing in manager.unready_reasons(), "only pods are missing")
            assert not manager.is_leading
            line.lists_pods.set()
            await until(lambda: manager.is_leading, "it leads")
            assert manager.unready_reasons() == []
        finally:
            task.cancel()
            await asyncio.wait({task})


async def test_nodes_and_pods_are_watched_only_while_a_flavor_has_a_topology(here: World) -> None:
    async with running(here.client, manager_options(here.namespace)) as manager:
        caches = manager.caches
        assert not caches.uses_topology
        assert not caches.pods.synced.is_set()
        flavor = await topology_flavor(here)
        await until(lambda: len(caches.nodes.store) >= 4, "nodes are known")
        await until(caches.pods.synced.is_set, "pods are listed")
        assert manager.unready_reasons() == []
        await here.client.delete(resources.RESOURCE_FLAVORS, "", flavor)
        await until(lambda: not caches.nodes.synced.is_set(), "nodes are forgotten")
        assert (len(caches.nodes.store), len(caches.pods.store)) == (0, 0)
        manager.scheduler.engine.verify()
