"""The load of `throughput`: Workloads created as fast as possible, each finished after a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sluice.clock import SystemClock
from sluice.engine import lifecycle_status as transitions
from sluice.engine.lifecycle_status import Moment
from sluice.kube import resources
from sluice.kube.client import Client
from sluice.kube.informer import Handlers, Informer

Json = dict[str, Any]
NAMESPACE = "default"
QUEUES = 30
RUN_TIME_S = 0.2
CREATORS = 16
FINISHERS = 32
TIMEOUT_S = 300.0


def workload(number: int) -> Json:
    """Return a Workload of one pod with 1 cpu."""
    body = resources.WORKLOADS.skeleton(NAMESPACE, f"w{number}")
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    pod = {"restartPolicy": "Never", "containers": [container]}
    body["spec"] = {
        "queueName": f"q{number % QUEUES}",
        "podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}],
    }
    return body


@dataclass(kw_only=True)
class Load:
    """Creates Workloads, and finishes each a while after it is admitted."""

    client: Client
    count: int
    created: int = 0
    created_s: float = 0.0
    finished_s: list[float] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)
    _due: asyncio.Queue[tuple[str, Json]] = field(default_factory=asyncio.Queue)
    _seen: set[str] = field(default_factory=set)
    _done: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> float:
        """Create and finish all; return the seconds from the first creation to the last end."""
        informer: Informer[Json] = Informer(
            self.client, resources.WORKLOADS, lambda raw: raw, namespace=NAMESPACE
        )
        informer.add_handlers(
            Handlers(
                added=lambda key, raw: self._look(key, raw),
                updated=lambda key, _, raw: self._look(key, raw),
            )
        )
        watch = asyncio.create_task(informer.run(), name="watch")
        await informer.wait_synced(30)
        self._started_s = time.perf_counter()
        finishers = [asyncio.create_task(self._finish(), name=f"f{n}") for n in range(FINISHERS)]
        numbers = iter(range(self.count))
        async with asyncio.TaskGroup() as group:
            for creator in range(CREATORS):
                group.create_task(self._create(numbers), name=f"creator-{creator}")
        self.created_s = time.perf_counter() - self._started_s
        await asyncio.wait_for(self._done.wait(), TIMEOUT_S)
        for task in [watch, *finishers]:
            task.cancel()
        return self.finished_s[-1]

    async def _create(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            await self.client.create(resources.WORKLOADS, NAMESPACE, workload(number))
            self.created += 1

    def _look(self, key: str, raw: Json) -> None:
        conditions = raw.get("status", {}).get("conditions", [])
        if key in self._seen or not any(
            c["type"] == "Admitted" and c["status"] == "True" for c in conditions
        ):
            return
        self._seen.add(key)
        loop = asyncio.get_running_loop()
        loop.call_later(RUN_TIME_S, self._due.put_nowait, (key, raw))

    async def _finish(self) -> None:
        while True:
            _, raw = await self._due.get()
            at = Moment(now_ms=SystemClock().now_ms(), generation=1)
            status = transitions.finish(raw["status"], at, reason="Succeeded", message="done")
            metadata = raw["metadata"]
            patch = {
                "metadata": {"resourceVersion": metadata["resourceVersion"]},
                "status": {"conditions": status["conditions"]},
            }
            await self.client.patch(
                resources.WORKLOADS, NAMESPACE, metadata["name"], patch, subresource="status"
            )
            self.finished_s.append(time.perf_counter() - self._started_s)
            if len(self.finished_s) == self.count:
                self._done.set()

    def progress(self) -> str:
        """Return one line about now."""
        return (
            f"created {self.created}, admitted {len(self._seen)}, finished {len(self.finished_s)}"
        )
