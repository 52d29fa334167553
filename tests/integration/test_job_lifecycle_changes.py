"""What users do to Jobs, Workloads and queues in between: delete, edit, unsuspend by hand."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.support.controlplane import ControlPlane
from tests.support.managers import World, condition_message, manager_options, running, world
from tests.support.waiting import has_condition, wait_until_deleted

from sluice.api import names
from sluice.kube.resources import (
    BATCH_JOBS,
    CLUSTER_QUEUES,
    NAMESPACES,
    RESOURCE_FLAVORS,
    WORKLOAD_PRIORITY_CLASSES,
    WORKLOADS,
)

pytestmark = pytest.mark.slow


@pytest_asyncio.fixture
async def here(control_plane: ControlPlane, namespace: str) -> AsyncIterator[World]:
    async with (
        world(control_plane.access, namespace) as made,
        running(made.client, manager_options("default")),
    ):
        yield made


async def test_deleting_a_queued_job_takes_its_workload_along(here: World) -> None:
    await here.queues(cpu="0")
    await here.job("one")
    workload = await here.wait_workload("one", has_condition("QuotaReserved", "False"))
    await here.delete(BATCH_JOBS, "one")
    await here.gone(WORKLOADS, workload["metadata"]["name"])


async def test_deleting_a_running_job_frees_its_quota(here: World) -> None:
    await here.queues(cpu="1")
    await here.job("one")
    workload = await here.wait_workload("one", has_condition("PodsReady"))
    await here.job("two")
    await here.delete(BATCH_JOBS, "one")
    await here.gone(WORKLOADS, workload["metadata"]["name"])
    await here.wait_workload("two", has_condition("Admitted"))


async def test_deleting_the_workload_of_a_running_job_queues_it_again(here: World) -> None:
    await here.queues()
    await here.job("one")
    old = await here.wait_workload("one", has_condition("PodsReady"))
    await here.delete(WORKLOADS, old["metadata"]["name"])
    new = await here.wait_workload("one", lambda w: w["metadata"]["uid"] != old["metadata"]["uid"])
    assert new["metadata"]["name"] == old["metadata"]["name"], "the name depends on the Job alone"
    await here.wait_workload(
        "one",
        lambda w: w["metadata"]["uid"] == new["metadata"]["uid"] and has_condition("PodsReady")(w),
    )


async def test_a_queue_in_use_waits_for_what_runs_in_it(here: World) -> None:
    queue = await here.queues()
    await here.job("one", run_time="1s")
    await here.wait_workload("one", has_condition("Admitted"))
    await here.delete(CLUSTER_QUEUES, queue)
    going = await here.wait(CLUSTER_QUEUES, has_condition("Active", "False", "Terminating"), queue)
    expected = "Can't admit new workloads; clusterQueue is terminating"
    assert condition_message(going, "Active") == expected
    await here.job("late")
    await here.gone(CLUSTER_QUEUES, queue)
    await here.wait(BATCH_JOBS, has_condition("Complete"), "one")
    late = await here.wait_workload(
        "late", has_condition("QuotaReserved", "False", "Misconfigured")
    )
    assert condition_message(late, "QuotaReserved") == f"ClusterQueue {queue} doesn't exist"


async def test_a_flavor_in_use_waits_for_its_queues(here: World) -> None:
    queue = await here.queues()
    flavor = f"flavor-{here.suffix}"
    await here.wait(
        RESOURCE_FLAVORS,
        lambda f: names.IN_USE_FINALIZER in f["metadata"].get("finalizers", []),
        flavor,
    )
    await here.delete(RESOURCE_FLAVORS, flavor)
    held = await here.client.get(RESOURCE_FLAVORS, "", flavor)
    assert held["metadata"]["deletionTimestamp"]
    await here.delete(CLUSTER_QUEUES, queue)
    await here.gone(CLUSTER_QUEUES, queue)
    await here.gone(RESOURCE_FLAVORS, flavor)


async def test_deleting_the_namespace_leaves_nothing(here: World) -> None:
    queue = await here.queues()
    there = World(client=here.client, namespace=f"{here.namespace}-2", suffix=here.suffix)
    body = NAMESPACES.skeleton("", there.namespace)
    await here.client.create(NAMESPACES, "", body)
    await there.local_queue("lq", queue)
    await there.job("runs")
    await there.job("waits", cpu="50")
    await there.wait_workload("runs", has_condition("PodsReady"))
    await there.wait_workload("waits", has_condition("QuotaReserved", "False"))
    await here.client.delete(NAMESPACES, "", there.namespace)
    await wait_until_deleted(here.client, NAMESPACES, "", there.namespace, deadline_s=60)
    await here.wait(
        CLUSTER_QUEUES, lambda q: q.get("status", {}).get("reservingWorkloads") == 0, queue
    )


async def test_a_job_unsuspended_by_hand_is_suspended_again(here: World) -> None:
    await here.queues(cpu="0")
    await here.job("one")
    await here.wait_workload("one", has_condition("QuotaReserved", "False"))
    await here.patch(BATCH_JOBS, "one", {"spec": {"suspend": False}})
    await here.wait(
        BATCH_JOBS,
        lambda j: (
            j["spec"]["suspend"]
            and names.STOPPING not in j["metadata"].get("annotations", {})
            and j["metadata"]["generation"] > 2
        ),
        "one",
    )


async def test_a_job_admitted_while_it_is_being_stopped_starts_again(here: World) -> None:
    """As when the conditions of its Workload are deleted by hand."""
    await here.queues(flavor={"nodeLabels": {}, "tolerations": [{"operator": "Exists"}]})
    await here.job("one")
    old = await here.wait_workload("one", has_condition("PodsReady"))
    started = await here.wait(BATCH_JOBS, lambda j: "startTime" in j.get("status", {}), "one")
    name = old["metadata"]["name"]
    nothing = {"status": {"conditions": []}}
    await here.client.patch(WORKLOADS, here.namespace, name, nothing, subresource="status")
    await here.wait_workload("one", has_condition("Admitted"))
    await here.wait(
        BATCH_JOBS,
        lambda j: (
            not j["spec"]["suspend"]
            and names.STOPPING not in j["metadata"].get("annotations", {})
            and j["metadata"]["generation"] > started["metadata"]["generation"] + 1
        ),
        "one",
    )
    await here.wait_workload("one", has_condition("PodsReady"))


async def test_a_job_created_running_is_suspended_and_queued(here: World) -> None:
    """As when it was created while the webhook was away."""
    await here.queues(cpu="0")
    await here.job("one", suspend=False)
    await here.wait(BATCH_JOBS, lambda j: j["spec"]["suspend"], "one")
    await here.wait_workload("one", has_condition("QuotaReserved", "False"))
    queue = f"cq-{here.suffix}"
    groups = (await here.client.get(CLUSTER_QUEUES, "", queue))["spec"]["resourceGroups"]
    groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = "4"
    await here.patch(CLUSTER_QUEUES, queue, {"spec": {"resourceGroups": groups}})
    await here.wait_workload("one", has_condition("PodsReady"))


async def test_a_suspended_job_takes_its_workload_along_when_edited(here: World) -> None:
    await here.queues(cpu="2")
    await here.local_queue("other", f"cq-{here.suffix}")
    await here.job("one", parallelism=3, cpu="1")
    await here.wait_workload("one", has_condition("QuotaReserved", "False"))
    await here.patch(BATCH_JOBS, "one", {"metadata": {"labels": {names.QUEUE_LABEL: "other"}}})
    await here.wait_workload("one", lambda w: w["spec"]["queueName"] == "other")
    await here.patch(BATCH_JOBS, "one", {"spec": {"parallelism": 2}})
    workload = await here.wait_workload("one", has_condition("Admitted"))
    assert workload["spec"]["podSets"][0]["count"] == 2


async def test_priority_classes_are_followed(here: World) -> None:
    await here.queues(cpu="1")
    high = await here.cluster_wide(WORKLOAD_PRIORITY_CLASSES, "high", {"value": 100})
    await here.job("runs")
    await here.wait_workload("runs", has_condition("Admitted"))
    await here.job("low")
    await here.job("high", labels={names.PRIORITY_CLASS_LABEL: high})
    workload = await here.wait_workload("high", has_condition("QuotaReserved", "False"))
    assert workload["spec"]["priority"] == 100
    assert workload["spec"]["priorityClassRef"]["name"] == high
    await here.patch(WORKLOAD_PRIORITY_CLASSES, high, {"value": 50})
    await here.wait_workload("high", lambda w: w["spec"]["priority"] == 50)
    await here.delete(BATCH_JOBS, "runs")
    await here.wait_workload("high", has_condition("Admitted"))
    low = await here.wait_workload("low", lambda _: True)
    assert not has_condition("Admitted")(low)
