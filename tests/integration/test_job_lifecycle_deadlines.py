"""Deadlines: pods that don't become ready, Jobs that run too long, what is deleted by itself."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.support.controlplane import ControlPlane
from tests.support.managers import World, manager_options, running, world
from tests.support.waiting import has_condition

from sluice.api import names
from sluice.engine.lifecycle_facts import LifecycleOptions, Requeuing
from sluice.kube.resources import BATCH_JOBS, WORKLOADS

pytestmark = pytest.mark.slow


@pytest_asyncio.fixture
async def here(control_plane: ControlPlane, namespace: str) -> AsyncIterator[World]:
    lifecycle = LifecycleOptions(
        pods_ready_timeout_ms=2_000,
        recovery_timeout_ms=2_000,
        requeuing=Requeuing(backoff_base_s=1, backoff_max_s=1, count_max=1),
        retain_finished_ms=1_000,
    )
    async with (
        world(control_plane.access, namespace) as made,
        running(made.client, manager_options(namespace, lifecycle=lifecycle)),
    ):
        yield made


async def test_pods_that_do_not_become_ready(here: World) -> None:
    """No node is that large: evicted, tried again after the back-off, then deactivated."""
    await here.queues(cpu="1000")
    await here.job("one", cpu="900")
    evicted = await here.wait_workload("one", has_condition("Evicted", reason="PodsReadyTimeout"))
    assert evicted["status"]["requeueState"]["count"] == 1
    await here.wait_workload("one", has_condition("Requeued", reason="BackoffFinished"))
    given_up = await here.wait_workload(
        "one", has_condition("Evicted", reason="DeactivatedDueToRequeuingLimitExceeded")
    )
    assert given_up["spec"]["active"] is False
    await here.wait(BATCH_JOBS, lambda j: j["spec"]["suspend"], "one")
    await here.wait_workload("one", has_condition("QuotaReserved", "False", "Deactivated"))


async def test_a_job_that_runs_too_long_is_stopped(here: World) -> None:
    await here.queues()
    await here.job("one", labels={names.MAX_EXEC_TIME_LABEL: "1"})
    workload = await here.wait_workload("one", has_condition("Admitted"))
    assert workload["spec"]["maximumExecutionTimeSeconds"] == 1
    await here.wait_workload(
        "one", has_condition("Evicted", reason="DeactivatedDueToMaximumExecutionTimeExceeded")
    )
    await here.wait(BATCH_JOBS, lambda j: j["spec"]["suspend"], "one")


async def test_finished_workloads_are_deleted_after_a_while(here: World) -> None:
    await here.queues()
    await here.job("one", run_time="100ms")
    workload = await here.wait_workload("one", has_condition("Finished"))
    await here.gone(WORKLOADS, workload["metadata"]["name"])
    job = await here.client.get(BATCH_JOBS, here.namespace, "one")
    assert has_condition("Complete")(job)
