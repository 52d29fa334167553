"""Runs the embedded control plane in a thread with an event loop of its own.

The tests' loops come and go with each test, while the control plane stays for the session; and a
test that blocks its loop (a synchronous kubectl) must not block the server.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path

from tests.support.waiting import has_condition, wait_for

from sluice.kube.client import Client, ClientOptions
from sluice.kube.config import load
from sluice.kube.resources import NODES
from sluice.local.apiserver.compose import Services, parts
from sluice.local.apiserver.server import Server, ServerOptions
from sluice.local.real import SimulatedNode
from sluice.local.standins import CONNECTIONS_MAX, StandIns

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0

Lifetime = Callable[[], AbstractAsyncContextManager[object]]


@asynccontextmanager
async def embedded(
    kubeconfig: Path, services: Services, nodes: Sequence[SimulatedNode]
) -> AsyncIterator[None]:
    """Serve an embedded API server with stand-ins for controllers, scheduler and kubelets.

    Args:
        kubeconfig: File that the administrator's kubeconfig is written to.
        services: Where webhook calls for a Service go.
        nodes: Nodes to begin with.
    """
    async with (
        Server(parts(services), ServerOptions(kubeconfig=kubeconfig)),
        Client(
            await load(kubeconfig=str(kubeconfig), environ={}),
            options=ClientOptions(qps=0, connections_max=CONNECTIONS_MAX),
        ) as client,
        stand_ins(client),
    ):
        for node in nodes:
            await client.create(NODES, "", node.to_object())
        async with asyncio.timeout(START_TIMEOUT_S):
            for node in nodes:
                await wait_for(client, NODES, "", has_condition("Ready"), name=node.name)
        yield


@asynccontextmanager
async def stand_ins(client: Client) -> AsyncIterator[None]:
    """Run the stand-ins as long as the context lasts; their failure ends it."""
    workers = StandIns(client)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(workers.run(), name="stand-ins")
        await workers.wait_ready(START_TIMEOUT_S)
        yield
        task.cancel()


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
