"""The loop around a reconciler: start, failure, and looking again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from sluice.api.errors import Conflict, InvariantViolation
from sluice.controllers.reconcile import DONE, After, Reconciler, Result
from sluice.controllers.write import NotLeading

DEADLINE_S = 5.0
Look = Callable[[str], Awaitable[Result]]


@asynccontextmanager
async def running(
    reconcile: Look, keys: tuple[str, ...] = (), workers: int = 2
) -> AsyncIterator[Reconciler]:
    reconciler = Reconciler("test", reconcile, workers=workers, all_keys=lambda: keys)
    task = asyncio.create_task(reconciler.run(), name="loop")
    try:
        await asyncio.sleep(0)
        yield reconciler
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_starting_looks_at_everything() -> None:
    seen: list[str] = []
    done = asyncio.Event()

    async def look(key: str) -> Result:
        seen.append(key)
        if len(seen) == 2:
            done.set()
        return DONE

    async with running(look, ("a", "b")):
        await asyncio.wait_for(done.wait(), DEADLINE_S)
    assert sorted(seen) == ["a", "b"]


async def test_keys_added_while_it_does_not_run_are_not_kept() -> None:
    async def look(key: str) -> Result:
        raise AssertionError(key)

    reconciler = Reconciler("test", look, workers=1, all_keys=tuple)
    reconciler.add("a")
    assert reconciler.waiting_count == 0


@pytest.mark.parametrize("error", [Conflict("stale"), ValueError("odd"), TimeoutError()])
async def test_a_failed_key_is_looked_at_again(error: Exception) -> None:
    seen: list[str] = []
    done = asyncio.Event()

    async def look(key: str) -> Result:
        seen.append(key)
        if len(seen) < 3:
            raise error
        done.set()
        return DONE

    async with running(look, ("a",)) as reconciler:
        await asyncio.wait_for(done.wait(), DEADLINE_S)
        assert reconciler.failures_count == 2


async def test_after_looks_again() -> None:
    count = 0
    done = asyncio.Event()

    async def look(key: str) -> Result:
        nonlocal count
        count += 1
        if count == 2:
            done.set()
            return DONE
        return After(0.01)

    async with running(look, ("a",)):
        await asyncio.wait_for(done.wait(), DEADLINE_S)


async def test_a_deposed_leader_does_not_try_again() -> None:
    seen = asyncio.Event()

    async def look(key: str) -> Result:
        seen.set()
        raise NotLeading("not any more")

    async with running(look, ("a",)) as reconciler:
        await asyncio.wait_for(seen.wait(), DEADLINE_S)
        await asyncio.sleep(0)
        assert reconciler.failures_count == 0


async def test_our_own_bug_ends_the_loop() -> None:
    async def look(key: str) -> Result:
        raise InvariantViolation("must not be")

    reconciler = Reconciler("test", look, workers=1, all_keys=lambda: ("a",))
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(reconciler.run(), DEADLINE_S)
    assert caught.group_contains(InvariantViolation)
