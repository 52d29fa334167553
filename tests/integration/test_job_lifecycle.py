"""A Job from queue to end: admitted, started with its flavor's settings, finished, quota free.

Real Jobs on every control plane; the manager runs in this process.
"""

from collections.abc import AsyncIterator

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

from sluice.api import names
from sluice.kube.resources import (
    BATCH_JOBS,
    CLUSTER_QUEUES,
    EVENTS,
    LOCAL_QUEUES,
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


async def test_from_queue_to_end(here: World) -> None:
    flavor = {
        "nodeLabels": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
    }
    queue = await here.queues(flavor=flavor)
    await here.job("one", run_time="300ms", parallelism=2, completions=2)
    workload = await here.wait_workload("one", has_condition("Admitted"))
    assert workload["status"]["admission"]["clusterQueue"] == queue
    usage = workload["status"]["admission"]["podSetAssignments"][0]
    assert (usage["count"], usage["resourceUsage"]) == (2, {"cpu": "2"})

    started = await here.wait(BATCH_JOBS, lambda j: not j["spec"]["suspend"], "one")
    template = started["spec"]["template"]
    assert template["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert template["spec"]["tolerations"] == [{"key": "spot", "operator": "Exists"}]
    assert template["metadata"]["labels"][names.POD_SET_LABEL] == "main"
    assert template["metadata"]["labels"][names.LOCAL_QUEUE_LABEL] == "lq"

    await here.wait(BATCH_JOBS, has_condition("Complete"), "one")
    done = await here.wait_workload("one", has_condition("Finished", reason="Succeeded"))
    assert has_condition("PodsReady")(done) or done["status"]["conditions"]
    await here.wait(
        WORKLOADS, lambda w: not w["metadata"].get("finalizers"), done["metadata"]["name"]
    )
    await here.wait(
        CLUSTER_QUEUES,
        lambda q: (
            q.get("status", {}).get("reservingWorkloads") == 0
            and q["status"]["flavorsReservation"][0]["resources"][0]["total"] == "0"
        ),
        queue,
    )


async def test_one_waits_and_says_why_then_runs(here: World) -> None:
    queue = await here.queues(cpu="1")
    await here.job("first")
    await here.wait_workload("first", has_condition("Admitted"))
    await here.job("second", run_time="100ms")
    waiting = await here.wait_workload(
        "second", has_condition("QuotaReserved", "False", "WaitingForQuota")
    )
    message = condition_message(waiting, "QuotaReserved")
    assert "insufficient unused quota for cpu in flavor" in message
    assert "1 more needed" in message
    name = waiting["metadata"]["name"]

    def is_told(event: dict[str, object]) -> bool:
        regarding = event["regarding"]
        return (
            isinstance(regarding, dict)
            and regarding.get("name") == name
            and event["reason"] == "WaitingForQuota"
        )

    await here.wait(EVENTS, is_told)

    def counts(pending: int, reserving: int) -> object:
        return lambda q: (
            (q.get("status", {}).get("pendingWorkloads"), q["status"].get("reservingWorkloads"))
            == (pending, reserving)
            if "status" in q
            else False
        )

    await here.wait(CLUSTER_QUEUES, counts(1, 1), queue)  # type: ignore[arg-type]
    await here.wait(LOCAL_QUEUES, counts(1, 1), "lq")  # type: ignore[arg-type]
    await here.delete(BATCH_JOBS, "first")
    await here.wait(BATCH_JOBS, has_condition("Complete"), "second")


async def test_deactivation_suspends_and_reactivation_runs_again(here: World) -> None:
    queue = await here.queues(flavor={"nodeLabels": {"kubernetes.io/os": "linux"}})
    created = await here.job("one")
    workload = await here.wait_workload("one", has_condition("PodsReady"))
    name = workload["metadata"]["name"]
    await here.patch(WORKLOADS, name, {"spec": {"active": False}})
    job = await here.wait(BATCH_JOBS, lambda j: j["spec"]["suspend"], "one")
    released = await here.wait_workload("one", has_condition("QuotaReserved", "False"))
    assert has_condition("Evicted", reason="Deactivated")(released)
    assert has_condition("Requeued", "False", "Deactivated")(released)
    assert "admission" not in released["status"]
    job = await here.wait(
        BATCH_JOBS,
        lambda j: (
            names.STOPPING not in j["metadata"].get("annotations", {})
            and not j["status"].get("active")
        ),
        "one",
    )
    original = created["spec"]["template"]["spec"]
    assert job["spec"]["template"]["spec"].get("nodeSelector") == original.get("nodeSelector")
    assert names.POD_SET_LABEL not in job["spec"]["template"]["metadata"]["labels"]
    await here.wait(
        CLUSTER_QUEUES, lambda q: q.get("status", {}).get("reservingWorkloads") == 0, queue
    )
    await here.patch(WORKLOADS, name, {"spec": {"active": True}})
    await here.wait_workload("one", has_condition("Admitted"))
    await here.wait(BATCH_JOBS, lambda j: not j["spec"]["suspend"], "one")


async def test_draining_a_queue_and_resuming_it(here: World) -> None:
    queue = await here.queues()
    await here.job("one")
    await here.wait_workload("one", has_condition("PodsReady"))
    await here.patch(CLUSTER_QUEUES, queue, {"spec": {"stopPolicy": "HoldAndDrain"}})
    drained = await here.wait_workload("one", has_condition("Requeued", "False"))
    assert has_condition("Evicted", reason="ClusterQueueStopped")(drained)
    await here.wait(BATCH_JOBS, lambda j: j["spec"]["suspend"], "one")
    stopped = await here.wait(CLUSTER_QUEUES, has_condition("Active", "False", "Stopped"), queue)
    assert condition_message(stopped, "Active") == "Can't admit new workloads: is stopped."
    await here.wait_workload("one", has_condition("QuotaReserved", "False", "Suspended"))
    await here.patch(CLUSTER_QUEUES, queue, {"spec": {"stopPolicy": "None"}})
    await here.wait_workload("one", has_condition("Admitted"))


async def test_a_held_local_queue_keeps_what_runs_and_takes_nothing_new(here: World) -> None:
    await here.queues()
    await here.job("runs")
    await here.wait_workload("runs", has_condition("Admitted"))
    await here.patch(LOCAL_QUEUES, "lq", {"spec": {"stopPolicy": "Hold"}})
    await here.wait(LOCAL_QUEUES, has_condition("Active", "False", "Stopped"), "lq")
    await here.job("waits")
    waiting = await here.wait_workload(
        "waits", has_condition("QuotaReserved", "False", "Suspended")
    )
    assert condition_message(waiting, "QuotaReserved") == "LocalQueue lq is inactive"
    running_one = await here.client.get(BATCH_JOBS, here.namespace, "runs")
    assert running_one["spec"]["suspend"] is False
    await here.patch(LOCAL_QUEUES, "lq", {"spec": {"stopPolicy": "None"}})
    await here.wait_workload("waits", has_condition("Admitted"))


async def test_a_finished_job_with_a_ttl_leaves_nothing(here: World) -> None:
    await here.queues()
    await here.job("one", run_time="100ms", ttlSecondsAfterFinished=1)
    # On a busy machine the second may be over before the end of the Job was reported.
    workload = await here.wait_workload("one", has_condition("Admitted"))
    await here.gone(BATCH_JOBS, "one")
    await here.gone(WORKLOADS, workload["metadata"]["name"])


async def test_unlabelled_jobs_are_left_alone(here: World) -> None:
    await here.queues()
    await here.client.create(
        BATCH_JOBS,
        here.namespace,
        job_body("free", queue="", suspend=False, run_time="100ms"),
    )
    await here.wait(BATCH_JOBS, has_condition("Complete"), "free")
    assert (await here.client.list(WORKLOADS, here.namespace))["items"] == []
