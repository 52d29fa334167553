"""The stand-ins on a fresh embedded API server with two nodes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest_asyncio
from tests.support.waiting import wait_for

from sluice.kube import config
from sluice.kube.client import Client, ClientOptions
from sluice.kube.resources import BATCH_JOBS, NODES, PODS
from sluice.local.apiserver.compose import parts_without_webhooks
from sluice.local.apiserver.server import Server, ServerOptions
from sluice.local.real import SimulatedNode
from sluice.local.standins import CONNECTIONS_MAX, JobOptions, StandInOptions, StandIns

NAMESPACE = "default"
Json = dict[str, Any]
OPTIONS = StandInOptions(jobs=JobOptions(backoff_s=0.05))


@asynccontextmanager
async def standing_in(client: Client, options: StandInOptions = OPTIONS) -> AsyncIterator[StandIns]:
    """Run the stand-ins beside a test."""
    stand_ins = StandIns(client, options)
    task = asyncio.create_task(stand_ins.run(), name="stand-ins")
    try:
        await stand_ins.wait_ready(20)
        yield stand_ins
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Cluster:
    """A client and the few calls that the tests make again and again."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def create_job(self, name: str = "j", **spec: Any) -> Json:
        return await self.client.create(BATCH_JOBS, NAMESPACE, job(name, **spec))

    async def job(self, is_wanted: Callable[[Json], bool], name: str = "j") -> Json:
        return await wait_for(
            self.client, BATCH_JOBS, NAMESPACE, is_wanted, name=name, deadline_s=15
        )

    async def pod(self, is_wanted: Callable[[Json], bool]) -> Json:
        return await wait_for(self.client, PODS, NAMESPACE, is_wanted, deadline_s=15)

    async def pods(self) -> list[Json]:
        found: list[Json] = (await self.client.list(PODS, NAMESPACE))["items"]
        return found

    async def no_pods(self) -> None:
        """Wait until no Pod is left."""
        async with asyncio.timeout(15):
            while True:
                listed = await self.client.list(PODS, NAMESPACE)
                if not listed["items"]:
                    return
                version = listed["metadata"]["resourceVersion"]
                async for event in self.client.watch(PODS, NAMESPACE, resource_version=version):
                    if event.kind == "DELETED":
                        break


@pytest_asyncio.fixture
async def bare(tmp_path: Path) -> AsyncIterator[Cluster]:
    """A server with two nodes and nobody who acts."""
    path = tmp_path / "kubeconfig"
    async with Server(parts_without_webhooks(), ServerOptions(kubeconfig=path)):
        access = await config.load(environ={}, kubeconfig=str(path))
        async with Client(access, options=ClientOptions(connections_max=CONNECTIONS_MAX)) as client:
            for number in range(2):
                node = SimulatedNode(name=f"node-{number}", cpu="4", memory="8Gi", gpus=2, pods=10)
                await client.create(NODES, "", node.to_object())
            yield Cluster(client)


@pytest_asyncio.fixture
async def cluster(bare: Cluster) -> AsyncIterator[Cluster]:
    """The same with the stand-ins."""
    async with standing_in(bare.client):
        yield bare


def template(*, run: str | None = "0.05s", outcome: str = "", **spec: Any) -> Json:
    """Return a pod template; `run` None lets its pods run for ever."""
    annotations = {"sluicegate.io/run-time": run} if run is not None else {}
    if outcome:
        annotations["sluicegate.io/outcome"] = outcome
    container: Json = {"name": "c", "image": "i"}
    if "resources" in spec:
        container["resources"] = spec.pop("resources")
    return {
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def job(name: str = "j", **spec: Any) -> Json:
    """Return a Job."""
    spec.setdefault("template", template())
    return {
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
    }  # fmt: skip


Step = Callable[[], Awaitable[None]]
