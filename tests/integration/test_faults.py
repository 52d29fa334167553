"""Bad input: what users get wrong is said in words that help, and heals once it is put right."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.support.controlplane import ControlPlane
from tests.support.managers import World, condition_message, manager_options, running, world
from tests.support.waiting import has_condition

from sluice.api import names
from sluice.kube.resources import (
    BATCH_JOBS,
    CLUSTER_QUEUES,
    EVENTS,
    RESOURCE_FLAVORS,
    WORKLOAD_PRIORITY_CLASSES,
    WORKLOADS,
)

pytestmark = pytest.mark.slow


@pytest_asyncio.fixture
async def here(control_plane: ControlPlane, namespace: str) -> AsyncIterator[World]:
    async with (
        world(control_plane.access, namespace) as made,
        running(made.client, manager_options(namespace)),
    ):
        yield made


async def test_a_queue_that_does_not_exist(here: World) -> None:
    await here.job("one", queue="missing", run_time="100ms")
    waiting = await here.wait_workload(
        "one", has_condition("QuotaReserved", "False", "Misconfigured")
    )
    assert condition_message(waiting, "QuotaReserved") == "LocalQueue missing doesn't exist"
    await here.queues(local="missing")
    await here.wait(BATCH_JOBS, has_condition("Complete"), "one")


async def test_a_cluster_queue_that_does_not_exist(here: World) -> None:
    await here.local_queue("lq", f"cq-{here.suffix}")
    await here.job("one", run_time="100ms")
    waiting = await here.wait_workload(
        "one", has_condition("QuotaReserved", "False", "Misconfigured")
    )
    expected = f"ClusterQueue cq-{here.suffix} doesn't exist"
    assert condition_message(waiting, "QuotaReserved") == expected
    await here.queues(local="other")
    await here.wait(BATCH_JOBS, has_condition("Complete"), "one")


async def test_a_flavor_that_does_not_exist(here: World) -> None:
    flavor = f"flavor-{here.suffix}"
    queue = await here.cluster_queue(flavor)
    await here.local_queue("lq", queue)
    inactive = await here.wait(
        CLUSTER_QUEUES, has_condition("Active", "False", "FlavorNotFound"), queue
    )
    expected = f"Can't admit new workloads: references missing ResourceFlavor(s): {flavor}."
    assert condition_message(inactive, "Active") == expected
    await here.job("one", run_time="100ms")
    waiting = await here.wait_workload("one", has_condition("QuotaReserved", "False", "Suspended"))
    assert condition_message(waiting, "QuotaReserved") == f"ClusterQueue {queue} is inactive"
    await here.cluster_wide(RESOURCE_FLAVORS, "flavor", {"spec": {}})
    await here.wait(BATCH_JOBS, has_condition("Complete"), "one")


async def test_a_request_larger_than_the_queue_can_ever_have(here: World) -> None:
    await here.queues(cpu="2")
    await here.job("one", cpu="3")
    waiting = await here.wait_workload(
        "one", has_condition("QuotaReserved", "False", "ExceedsMaxQuota")
    )
    message = condition_message(waiting, "QuotaReserved")
    assert "couldn't assign flavors to pod set main" in message
    assert "maximum capacity (2)" in message


async def test_a_priority_class_that_does_not_exist(here: World) -> None:
    await here.queues()
    name = f"urgent-{here.suffix}"
    await here.job("one", run_time="100ms", labels={names.PRIORITY_CLASS_LABEL: name})
    told = await here.wait(EVENTS, lambda e: e["reason"] == "WorkloadPriorityClassNotFound")
    assert told["note"] == f'WorkloadPriorityClass "{name}" not found'
    await here.cluster_wide(WORKLOAD_PRIORITY_CLASSES, "urgent", {"value": 1})
    await here.wait(BATCH_JOBS, has_condition("Complete"), "one")


async def test_a_namespace_that_the_queue_does_not_take(here: World) -> None:
    await here.queues(namespaceSelector={"matchLabels": {"team": "other"}})
    await here.job("one")
    waiting = await here.wait_workload(
        "one", has_condition("QuotaReserved", "False", "Misconfigured")
    )
    assert "amespace" in condition_message(waiting, "QuotaReserved")
    assert not [
        w
        for w in (await here.client.list(WORKLOADS, here.namespace))["items"]
        if has_condition("Admitted")(w)
    ]
