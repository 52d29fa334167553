"""Ungating over a bad line: no domain gets more pods than it was assigned."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.support.managers import until
from tests.support.topology_server import NAMESPACE, Place, place

from sluice.controllers.topology_ungating import UngatingController
from sluice.kube.resources import PODS

pytestmark = pytest.mark.slow


@pytest_asyncio.fixture
async def here(tmp_path: Path) -> AsyncIterator[Place]:
    async with place(tmp_path) as made:
        yield made


def controller_of(here: Place) -> UngatingController:
    made = UngatingController(here.caches, here.feed, here.writer, workers=1)
    made.attach()
    return made


@asynccontextmanager
async def running(controller: UngatingController) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(controller.reconciler.run(), name="ungating")
        yield
        task.cancel()


async def opened(here: Place) -> None:
    here.flavor()
    async with asyncio.timeout(10):
        await here.feed.settled.wait()
    assert here.feed.is_open


async def test_an_answer_that_is_lost_does_not_fill_a_domain_twice(here: Place) -> None:
    here.client.is_silent = True
    await here.pod("b")
    await opened(here)
    here.client.answers_to_lose = 1
    here.workload({"n1": 1, "n2": 1})
    async with running(controller_of(here)):
        await until(lambda: here.client.patched == ["b"], "b is ungated")
        # To the cache b is still gated, and a comes before it.
        here.caches.pods.observe_write(await here.pod("a"))
        await until(lambda: here.client.patched == ["b", "a"], "a is ungated")
    assert await here.hosts() == {"b": "n1", "a": "n2"}


async def test_a_new_leader_reads_what_the_one_before_it_has_done(here: Place) -> None:
    here.client.is_silent = True
    await here.pod("a")
    await here.pod("b")
    await opened(here)
    selector = {"kubernetes.io/hostname": "n1"}
    gates = [{"name": "example.com/other"}]
    by_the_other: dict[str, Any] = {"spec": {"schedulingGates": gates, "nodeSelector": selector}}
    await here.client.patch(PODS, NAMESPACE, "b", by_the_other)
    here.workload({"n1": 1, "n2": 1})
    controller = controller_of(here)
    await controller.catch_up()
    async with running(controller):
        await until(lambda: here.client.patched == ["b", "a"], "a is ungated")
    assert await here.hosts() == {"b": "n1", "a": "n2"}


async def test_a_pod_that_changed_meanwhile_is_read_again(here: Place) -> None:
    here.client.is_silent = True
    await here.pod("a")
    await opened(here)
    await here.client.patch(PODS, NAMESPACE, "a", {"metadata": {"labels": {"x": "y"}}})
    here.workload({"n1": 1})
    controller = controller_of(here)
    async with running(controller):
        await until(lambda: here.client.patched == ["a", "a"], "a is ungated")
    assert controller.reconciler.failures_count == 1
    assert await here.hosts() == {"a": "n1"}


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"conditions": ["Evicted"]}, id="evicted"),
        pytest.param({"conditions": ["Finished"]}, id="finished"),
        pytest.param({"unhealthyNodes": [{"name": "n1"}]}, id="its node has failed"),
    ],
)
async def test_pods_that_must_not_run_stay_gated(here: Place, status: dict[str, Any]) -> None:
    await here.pod("a")
    await here.pod("z", workload="next")
    await opened(here)
    here.workload({"n1": 1}, **status)
    here.workload({"n2": 1}, name="next")
    async with running(controller_of(here)):  # one worker looks at one after the other
        await until(lambda: bool(here.client.patched), "z is ungated")
    assert await here.hosts() == {"z": "n2"}


async def test_who_does_not_lead_patches_nothing(here: Place) -> None:
    await here.pod("a")
    await opened(here)
    here.leads = False
    here.workload({"n1": 1})
    async with running(controller_of(here)):
        await until(lambda: here.asked > 0, "it was asked whether it may")
    assert here.client.patched == []
    assert await here.hosts() == {}


async def test_many_pods_are_ungated_in_rounds(here: Place) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(300):
            group.create_task(here.pod(f"p{number:03}"), name=f"make-{number}")
    await opened(here)
    here.workload({"n1": 100, "n2": 200})
    async with running(controller_of(here)):
        await until(lambda: len(here.client.patched) == 300, "all are ungated")
    found = await here.hosts()
    assert sorted(found.values()) == ["n1"] * 100 + ["n2"] * 200
