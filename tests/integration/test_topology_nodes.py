"""Nodes fail under running Jobs: their pods get another place, or the Workload is evicted."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio
from tests.support.controlplane import ControlPlane, fresh_namespace
from tests.support.managers import Json, World, condition_message, manager_options, running, world
from tests.support.placed import (
    INDEX,
    RACK,
    assigned,
    host,
    lose,
    pods_of,
    racks,
    running_hosts,
    topology_job,
    topology_queue,
)
from tests.support.waiting import has_condition

from sluice.api import names
from sluice.controllers.options import ManagerOptions
from sluice.engine.options import EngineOptions, Gates
from sluice.kube import resources

pytestmark = pytest.mark.slow

IN_ONE_RACK = {names.REQUIRED_TOPOLOGY: RACK}
ANYWHERE = {names.UNCONSTRAINED_TOPOLOGY: "true"}
TAINT = {"key": "example.com/broken", "effect": "NoSchedule"}
EVICTED = has_condition("Evicted", reason="NodeFailures")


@pytest_asyncio.fixture
async def here(control_plane: ControlPlane, namespace: str) -> AsyncIterator[World]:
    async with world(control_plane.access, namespace) as made, racks(made):
        yield made


@pytest_asyncio.fixture
async def small(embedded_cluster: ControlPlane) -> AsyncIterator[World]:
    """The embedded control plane alone, for what is the manager's doing and not the plane's."""
    async for namespace in fresh_namespace(embedded_cluster.access):
        async with world(embedded_cluster.access, namespace) as made, racks(made):
            yield made


def patient(options: ManagerOptions) -> ManagerOptions:
    """Return options by which a Workload waits for a replacement as long as it takes."""
    return replace(options, engine=EngineOptions(gates=Gates(tas_fail_fast=False)))


async def drop(here: World, job: str, node: str) -> None:
    """Delete the pods of a Job on a node at once, as happens to pods of a node that is gone."""
    for pod in await pods_of(here, job):
        if pod["spec"].get("nodeName") == node:
            await here.client.delete(
                resources.PODS, here.namespace, pod["metadata"]["name"], grace_period_s=0
            )


def unhealthy(workload: Json) -> list[str]:
    return [node["name"] for node in workload["status"].get("unhealthyNodes") or ()]


async def test_a_node_that_is_gone_is_replaced(here: World, control_plane: ControlPlane) -> None:
    async with running(here.client, manager_options(here.namespace)):
        await topology_queue(here)
        await topology_job(here, "one", ANYWHERE, pods=2, cpu="2", completionMode="Indexed")
        before = await running_hosts(here, "one", 2)
        lost, kept = before["0"], before["1"]
        await lose(here, lost)
        replaced = await here.wait_workload(
            "one", lambda w: lost not in assigned(w) and not unhealthy(w)
        )
        assert has_condition("Admitted")(replaced)
        assert not has_condition("Evicted")(replaced)
        (found,) = set(assigned(replaced)) - {kept}
        if control_plane.name != "real":
            return
        # Once is enough: Kubernetes makes the next pod ten seconds after one was lost.
        await drop(here, "one", lost)
        await here.wait(
            resources.PODS,
            lambda pod: (
                pod["metadata"]["labels"][INDEX] == "0"
                and pod["spec"].get("nodeName") == found
                and has_condition("Ready")(pod)
            ),
        )
        assert await running_hosts(here, "one", 2) == {"0": found, "1": kept}


async def test_without_a_replacement_the_workload_is_evicted_and_runs_elsewhere(
    here: World,
) -> None:
    async with running(here.client, manager_options(here.namespace)):
        await topology_queue(here)
        await topology_job(here, "one", IN_ONE_RACK, pods=2, cpu="2")
        hosts = await running_hosts(here, "one", 2)
        assert set(hosts.values()) == {host(here, "a"), host(here, "b")}
        await lose(here, host(here, "b"))
        await here.wait_workload(
            "one", lambda w: has_condition("Requeued", reason="NodeFailures")(w)
        )
        again = await here.wait_workload("one", lambda w: host(here, "c") in assigned(w))
        assert set(assigned(again)) == {host(here, "c"), host(here, "d")}
        found = set((await running_hosts(here, "one", 2)).values())
        assert found == {host(here, "c"), host(here, "d")}


async def test_a_tainted_node_is_replaced_once_its_pods_are_gone(small: World) -> None:
    async with running(small.client, manager_options(small.namespace)):
        await topology_queue(small)
        await topology_job(small, "one", ANYWHERE, pods=2, cpu="2", completionMode="Indexed")
        before = await running_hosts(small, "one", 2)
        broken = before["0"]
        await small.patch(resources.NODES, broken, {"spec": {"taints": [TAINT]}})
        # The next Job is placed by a manager that has seen the taint: "one" was left alone.
        await topology_job(small, "two", ANYWHERE, pods=1, cpu="2")
        assert broken not in (await running_hosts(small, "two", 1)).values()
        still = await small.wait_workload("one", has_condition("Admitted"))
        assert broken in assigned(still)
        assert unhealthy(still) == []
        await drop(small, "one", broken)
        replaced = await small.wait_workload(
            "one", lambda w: broken not in assigned(w) and not unhealthy(w)
        )
        assert before["1"] in assigned(replaced)
        assert len(assigned(replaced)) == 2


async def test_pods_that_wait_for_a_failed_node_are_made_anew(here: World) -> None:
    async with running(here.client, manager_options(here.namespace)):
        await topology_queue(here)
        # Nobody binds its pods, so that they wait on the node that they were sent to.
        await topology_job(here, "one", ANYWHERE, pods=1, pod={"schedulerName": "nobody"})
        first = await here.wait(resources.PODS, is_sent)
        lost = first["spec"]["nodeSelector"][names.HOSTNAME_LABEL]
        await lose(here, lost)
        ended = await here.wait(
            resources.PODS, has_condition("TerminatedByKueue"), first["metadata"]["name"]
        )
        assert ended["status"]["phase"] == "Failed"
        await here.wait_workload("one", lambda w: lost not in assigned(w) and not unhealthy(w))


def is_sent(pod: Json) -> bool:
    return names.HOSTNAME_LABEL in (pod["spec"].get("nodeSelector") or {})


async def test_a_second_failed_node_evicts(small: World) -> None:
    async with running(small.client, patient(manager_options(small.namespace))):
        await topology_queue(small)
        await topology_job(small, "one", IN_ONE_RACK, pods=2, cpu="2")
        await running_hosts(small, "one", 2)
        first, second = host(small, "a"), host(small, "b")
        await lose(small, first)
        waiting = await small.wait_workload("one", lambda w: unhealthy(w) == [first])
        assert not has_condition("Evicted")(waiting)
        await lose(small, second)
        evicted = await small.wait_workload("one", EVICTED)
        message = condition_message(evicted, "Evicted")
        assert message.endswith(
            f"multiple TAS assigned node failures, including: {first}, {second}"
        )
        assert unhealthy(evicted) == []


async def test_a_node_that_is_healthy_again_is_no_longer_told_of(small: World) -> None:
    async with running(small.client, patient(manager_options(small.namespace))):
        await topology_queue(small)
        await topology_job(small, "one", IN_ONE_RACK, pods=2, cpu="2")
        await running_hosts(small, "one", 2)
        broken = host(small, "a")
        await small.patch(resources.NODES, broken, {"spec": {"taints": [TAINT]}})
        await drop(small, "one", broken)
        await small.wait_workload("one", lambda w: unhealthy(w) == [broken])
        await small.patch(resources.NODES, broken, {"spec": {"taints": None}})
        healthy = await small.wait_workload("one", lambda w: not unhealthy(w))
        assert set(assigned(healthy)) == {broken, host(small, "b")}
        assert not has_condition("Evicted")(healthy)
