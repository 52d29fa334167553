"""Leader election: one leader at a time, whatever the API server does."""

import asyncio
import re
from typing import Any

import pytest
from tests.unit.kube.wire_server import Fault, WireServer

from sluice.api.errors import InvariantViolation
from sluice.api.times import micro_from_ms
from sluice.clock import SystemClock
from sluice.kube.client import Client
from sluice.kube.foreign import ForeignLeader
from sluice.kube.lease import Elector, LeaseTimes

PATH = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/manager"
TIMES = LeaseTimes(duration_s=1.0, renew_deadline_s=0.6, retry_period_s=0.1)
DEADLINE_S = 10.0


class Work:
    """A leader's work that notes when it started and stopped."""

    def __init__(self, name: str, story: list[str]) -> None:
        self.name = name
        self.story = story
        self.started = asyncio.Event()

    async def __call__(self) -> None:
        self.story.append(f"{self.name} starts")
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.story.append(f"{self.name} stops")


def elector(client: Client, name: str) -> Elector:
    return Elector(client, namespace="ns", name="manager", identity=name, times=TIMES)


async def soon(task: "asyncio.Task[Any]") -> Any:
    return await asyncio.wait_for(task, DEADLINE_S)


async def test_the_lease_is_created_renewed_and_released(
    client: Client, server: WireServer
) -> None:
    story: list[str] = []
    work, candidate = Work("a", story), elector(client, "a")
    task = asyncio.create_task(candidate.run(work))
    await asyncio.wait_for(work.started.wait(), DEADLINE_S)
    assert candidate.is_leading
    created = server.objects[PATH]["spec"]
    assert created["holderIdentity"] == "a"
    assert created["leaseTransitions"] == 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", created["renewTime"])
    await server.until(lambda: server.count("PUT") >= 2)
    assert server.objects[PATH]["spec"]["acquireTime"] == created["acquireTime"]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(task)
    assert story == ["a starts", "a stops"]
    assert server.objects[PATH]["spec"]["holderIdentity"] == ""
    assert not candidate.is_leading


@pytest.mark.slow
async def test_a_hanging_renewal_never_lets_two_lead(client: Client, server: WireServer) -> None:
    story: list[str] = []
    first, second = Work("a", story), Work("b", story)
    leader = asyncio.create_task(elector(client, "a").run(first))
    await asyncio.wait_for(first.started.wait(), DEADLINE_S)
    server.faults.append(Fault("PUT", PATH, hang=True, times=9))
    await asyncio.wait_for(server.hanging.wait(), DEADLINE_S)
    standby = asyncio.create_task(elector(client, "b").run(second))
    assert await soon(leader) is False
    server.faults.clear()
    await asyncio.wait_for(second.started.wait(), DEADLINE_S)
    assert story == ["a starts", "a stops", "b starts"]
    assert server.objects[PATH]["spec"]["leaseTransitions"] == 1
    standby.cancel()
    await asyncio.wait([standby], timeout=DEADLINE_S)


async def test_a_lease_that_another_took_ends_the_work(client: Client, server: WireServer) -> None:
    story: list[str] = []
    work = Work("a", story)
    task = asyncio.create_task(elector(client, "a").run(work))
    await asyncio.wait_for(work.started.wait(), DEADLINE_S)
    taken = {**server.objects[PATH]["spec"], "holderIdentity": "b", "leaseDurationSeconds": 60}
    server.put(PATH, {**server.objects[PATH], "spec": taken})
    assert await soon(task) is False
    assert story[-1] == "a stops"
    assert server.objects[PATH]["spec"]["holderIdentity"] == "b", "not ours to release"


async def test_a_failure_that_passes_costs_no_leadership(
    client: Client, server: WireServer
) -> None:
    story: list[str] = []
    work = Work("a", story)
    task = asyncio.create_task(elector(client, "a").run(work))
    await asyncio.wait_for(work.started.wait(), DEADLINE_S)
    before = server.count("PUT")
    server.faults.append(Fault("PUT", PATH, status=500, times=2))
    await server.until(lambda: server.count("PUT") >= before + 4)
    assert story == ["a starts"]
    task.cancel()
    await asyncio.wait([task], timeout=DEADLINE_S)


async def test_work_that_ends_gives_the_lease_back(client: Client, server: WireServer) -> None:
    async def work() -> None:
        return

    assert await soon(asyncio.create_task(elector(client, "a").run(work))) is True
    assert server.objects[PATH]["spec"]["holderIdentity"] == ""


async def test_a_failure_of_the_work_is_raised_after_release(
    client: Client, server: WireServer
) -> None:
    async def work() -> None:
        raise InvariantViolation("broken")

    with pytest.raises(InvariantViolation, match="broken"):
        await soon(asyncio.create_task(elector(client, "a").run(work)))
    assert server.objects[PATH]["spec"]["holderIdentity"] == ""


@pytest.mark.slow
async def test_work_that_will_not_stop_is_a_fault(client: Client, server: WireServer) -> None:
    stubborn = asyncio.Event()

    async def work() -> None:
        while not stubborn.is_set():
            try:
                await stubborn.wait()
            except asyncio.CancelledError:
                continue

    task = asyncio.create_task(elector(client, "a").run(work))
    await server.until(lambda: PATH in server.objects)
    server.faults.append(Fault("PUT", PATH, hang=True, times=9))
    with pytest.raises(InvariantViolation, match="did not stop"):
        await soon(task)
    stubborn.set()


async def test_a_lease_is_released_though_a_renewal_was_cut_short(
    client: Client, server: WireServer
) -> None:
    work, candidate = Work("a", []), elector(client, "a")
    task = asyncio.create_task(candidate.run(work))
    await asyncio.wait_for(work.started.wait(), DEADLINE_S)
    server.put(PATH, server.objects[PATH])  # as that renewal would have: another version
    task.cancel()
    await asyncio.wait([task], timeout=DEADLINE_S)
    assert server.objects[PATH]["spec"]["holderIdentity"] == ""


def test_durations_must_be_in_order() -> None:
    with pytest.raises(ValueError, match="leaseDuration > renewDeadline"):
        LeaseTimes(duration_s=10, renew_deadline_s=10, retry_period_s=2)


KUEUE = "/apis/coordination.k8s.io/v1/leases/c1f6bfd2.kueue.x-k8s.io"


def lease(renewed_ago_s: float, holder: str = "kueue-1") -> dict[str, Any]:
    renewed_ms = SystemClock().now_ms() - round(renewed_ago_s * 1000)
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "renewTime": micro_from_ms(renewed_ms),
    }
    return {"metadata": {"namespace": "kueue-system", "uid": "u"}, "spec": spec}


@pytest.mark.parametrize(
    ("renewed_ago_s", "holder", "is_fresh"),
    [
        pytest.param(1, "kueue-1", True, id="renewed just now"),
        pytest.param(60, "kueue-1", False, id="a holder that died"),
        pytest.param(-3600, "kueue-1", False, id="a dead holder whose clock was ahead"),
        pytest.param(1, "", False, id="released"),
    ],
)
async def test_a_fresh_lease_of_kueue_is_found(
    client: Client, server: WireServer, renewed_ago_s: float, holder: str, is_fresh: bool
) -> None:
    server.put(KUEUE, lease(renewed_ago_s, holder))
    found = await ForeignLeader(client).find()
    assert (found is not None) is is_fresh
    if found is not None:
        assert "kueue-1 holds Lease kueue-system/c1f6bfd2.kueue.x-k8s.io" in found


async def test_a_lease_that_changes_is_fresh_whatever_its_clock_says(
    client: Client, server: WireServer
) -> None:
    foreign = ForeignLeader(client)
    server.put(KUEUE, lease(3600))
    assert await foreign.find() is None
    server.put(KUEUE, lease(3598))
    assert await foreign.find() is not None
