"""Runs the embedded control plane in a thread with an event loop of its own.

The tests' loops come and go with each test, while the control plane stays for the session; and a
test that blocks its loop (a synchronous kubectl) must not block the server.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path

from sluice.local.apiserver.compose import parts_without_webhooks
from sluice.local.apiserver.server import Server, ServerOptions

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0

Lifetime = Callable[[], AbstractAsyncContextManager[object]]


@asynccontextmanager
async def embedded(kubeconfig: Path) -> AsyncIterator[Server]:
    """Serve an embedded API server whose administrator's kubeconfig is written to a file."""
    async with Server(parts_without_webhooks(), ServerOptions(kubeconfig=kubeconfig)) as server:
        yield server


@contextmanager
def in_thread(lifetime: Lifetime) -> Iterator[None]:
    """Enter an asynchronous context in a thread of its own, and leave it at the end."""
    is_started = threading.Event()
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
    failures: list[BaseException] = []

    async def live() -> None:
        stop = asyncio.Event()
        async with lifetime():
            loops.append((asyncio.get_running_loop(), stop))
            is_started.set()
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(live())
        except BaseException as error:
            failures.append(error)
        finally:
            is_started.set()

    thread = threading.Thread(target=run, name="embedded-control-plane", daemon=True)
    thread.start()
    assert is_started.wait(START_TIMEOUT_S), "the embedded control plane does not start"
    try:
        if not loops:
            raise failures[0]
        yield
    finally:
        for loop, stop in loops:
            loop.call_soon_threadsafe(stop.set)
        thread.join(STOP_TIMEOUT_S)
    if failures:
        raise failures[0]
