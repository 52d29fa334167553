"""Work queues: once waiting, once working, delays and back-off by key."""

import asyncio

import pytest

from sluice.api.errors import InvariantViolation
from sluice.kube.workqueue import WorkQueue


async def take(queue: WorkQueue[str]) -> str:
    return await asyncio.wait_for(queue.get(), 2)


async def test_a_key_waits_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in ("a", "b", "a"):
        queue.add(key)
    assert len(queue) == 2
    assert [await take(queue), await take(queue)] == ["a", "b"]


async def test_a_key_added_while_worked_on_runs_again_after() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await take(queue)
    queue.add("a")
    assert len(queue) == 0, "two workers would have the same key"
    queue.done("a")
    assert await take(queue) == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_the_earliest_of_several_delays_counts() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("late", 60)
    queue.add_after("a", 60)
    queue.add_after("a", 0.02)
    queue.add_after("a", 30)
    assert await take(queue) == "a"
    queue.done("a")
    assert queue.delayed_count == 1
    queue.close()


async def test_adding_now_drops_the_delay() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 0.01)
    queue.add("a")
    assert await take(queue) == "a"
    queue.done("a")
    await asyncio.sleep(0.05)
    assert len(queue) == 0


async def test_back_off_doubles_by_key_up_to_its_bound_and_is_forgotten() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff_s=1, backoff_s_max=4)
    waits = [queue.add_failed("a") for _ in range(4)]
    for wait_s, expected_s in zip(waits, (1, 2, 4, 4), strict=True):
        assert 0.8 * expected_s <= wait_s <= 1.2 * expected_s
    assert queue.add_failed("b") <= 1.2
    queue.forget("a")
    assert queue.failure_count("a") == 0
    queue.close()


async def test_a_failed_key_comes_back() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff_s=0.01)
    queue.add("a")
    await take(queue)
    queue.add_failed("a")
    queue.done("a")
    assert await take(queue) == "a"


async def test_the_bound_is_a_fault() -> None:
    queue: WorkQueue[str] = WorkQueue(keys_max=1)
    queue.add("a")
    with pytest.raises(InvariantViolation, match="holds 1 keys"):
        queue.add("b")
