"""Admission checks, preemption and partial admission, seen from the Job."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.support.controlplane import ControlPlane
from tests.support.managers import (
    World,
    condition_message,
    job_body,
    manager_options,
    running,
    world,
)
from tests.support.waiting import has_condition

from sluice.api import names, times
from sluice.clock import SystemClock
from sluice.kube.resources import (
    ADMISSION_CHECKS,
    BATCH_JOBS,
    CLUSTER_QUEUES,
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


def now() -> str:
    return times.from_ms(SystemClock().now_ms())


async def checked_queue(here: World) -> str:
    """Create a queue with one admission check that is active; return the check's name."""
    check = await here.cluster_wide(
        ADMISSION_CHECKS, "check", {"spec": {"controllerName": "example.com/budget"}}
    )
    queue = await here.queues(
        admissionChecksStrategy={"admissionChecks": [{"name": check}]},
    )
    await here.wait(
        CLUSTER_QUEUES, has_condition("Active", "False", "AdmissionCheckInactive"), queue
    )
    active = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "",
        "lastTransitionTime": now(),
    }
    await here.client.patch(
        ADMISSION_CHECKS, "", check, {"status": {"conditions": [active]}}, subresource="status"
    )
    await here.wait(CLUSTER_QUEUES, has_condition("Active"), queue)
    return check


async def say(here: World, workload: dict[str, Any], check: str, state: str, **more: Any) -> None:
    entry = {"name": check, "state": state, "message": "because", "lastTransitionTime": now()}
    await here.client.patch(
        WORKLOADS,
        here.namespace,
        workload["metadata"]["name"],
        {"status": {"admissionChecks": [{**entry, **more}]}},
        subresource="status",
    )


async def test_a_check_that_turns_ready_admits_with_its_updates(here: World) -> None:
    check = await checked_queue(here)
    await here.job("one", run_time="100ms")
    reserved = await here.wait_workload("one", has_condition("QuotaReserved"))
    assert [(c["name"], c["state"]) for c in reserved["status"]["admissionChecks"]] == [
        (check, "Pending")
    ]
    assert has_condition("Admitted", "False", "UnsatisfiedAdmissionChecks")(reserved)
    updates = [{"name": "main", "annotations": {"budget": "granted"}}]
    await say(here, reserved, check, "Ready", podSetUpdates=updates)
    started = await here.wait(BATCH_JOBS, lambda j: not j["spec"]["suspend"], "one")
    assert started["spec"]["template"]["metadata"]["annotations"]["budget"] == "granted"
    await here.wait(BATCH_JOBS, has_condition("Complete"), "one")


async def test_a_check_that_says_retry_evicts_and_comes_back(here: World) -> None:
    check = await checked_queue(here)
    await here.job("one")
    reserved = await here.wait_workload("one", has_condition("QuotaReserved"))
    await say(here, reserved, check, "Retry", requeueAfterSeconds=1)
    evicted = await here.wait_workload("one", has_condition("Evicted", reason="AdmissionCheck"))
    assert condition_message(evicted, "Evicted") == (
        f'Evicted due to AdmissionCheck in Retry state: "{check}" (because)'
    )
    back = await here.wait_workload(
        "one",
        lambda w: has_condition("QuotaReserved")(w) and has_condition("Evicted", "False")(w),
    )
    assert has_condition("Requeued", reason="BackoffFinished")(back)
    assert back["status"]["admissionChecks"][0]["retryCount"] == 1


async def test_a_check_that_rejects_deactivates(here: World) -> None:
    check = await checked_queue(here)
    await here.job("one")
    reserved = await here.wait_workload("one", has_condition("QuotaReserved"))
    await say(here, reserved, check, "Rejected")
    rejected = await here.wait_workload("one", has_condition("QuotaReserved", "False"))
    assert rejected["spec"]["active"] is False
    assert has_condition("Evicted", reason="DeactivatedDueToAdmissionCheck")(rejected)
    assert not has_condition("DeactivationTarget")(rejected)


async def test_the_more_important_takes_the_room_of_the_less(here: World) -> None:
    await here.queues(cpu="1", preemption={"withinClusterQueue": "LowerPriority"})
    high = await here.cluster_wide(WORKLOAD_PRIORITY_CLASSES, "high", {"value": 100})
    await here.job("low")
    await here.wait_workload("low", has_condition("PodsReady"))
    await here.job("high", run_time="300ms", labels={names.PRIORITY_CLASS_LABEL: high})
    victim = await here.wait_workload("low", has_condition("Preempted"))
    message = condition_message(victim, "Preempted")
    assert message.startswith("Preempted to accommodate a workload (UID: ")
    assert "due to prioritization in the ClusterQueue" in message
    await here.wait(BATCH_JOBS, lambda j: j["spec"]["suspend"], "low")
    await here.wait(BATCH_JOBS, has_condition("Complete"), "high")
    back = await here.wait_workload(
        "low", lambda w: has_condition("Admitted")(w) and has_condition("Evicted", "False")(w)
    )
    assert has_condition("Preempted", "False", "QuotaReserved")(back)
    await here.wait(BATCH_JOBS, lambda j: not j["spec"]["suspend"], "low")


async def test_partial_admission_runs_fewer_pods_and_gives_the_rest_back(here: World) -> None:
    queue = await here.queues(cpu="3")
    body = job_body("one", parallelism=5, completions=5)
    body["metadata"]["annotations"] = {names.MIN_PARALLELISM: "2"}
    await here.client.create(BATCH_JOBS, here.namespace, body)
    workload = await here.wait_workload("one", has_condition("Admitted"))
    assert workload["status"]["admission"]["podSetAssignments"][0]["count"] == 3
    started = await here.wait(BATCH_JOBS, lambda j: not j["spec"]["suspend"], "one")
    assert started["spec"]["parallelism"] == 3
    await here.patch(CLUSTER_QUEUES, queue, {"spec": {"stopPolicy": "HoldAndDrain"}})
    await here.wait(
        BATCH_JOBS, lambda j: j["spec"]["suspend"] and j["spec"]["parallelism"] == 5, "one"
    )
