"""All stand-ins together: what `sluice up` starts beside the embedded API server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

from sluice.clock import Clock, SystemClock
from sluice.kube.client import Client
from sluice.kube.events import EventRecorder
from sluice.kube.informer import Informer
from sluice.kube.resources import (
    BATCH_JOBS,
    CUSTOM_RESOURCE_DEFINITIONS,
    NODES,
    PODS,
)
from sluice.local.standins.garbage import GarbageCollector
from sluice.local.standins.jobs import BY_CONTROLLER, JobOptions, Jobs, by_controller
from sluice.local.standins.kubelets import KubeletOptions, Kubelets
from sluice.local.standins.records import whole
from sluice.local.standins.scheduler import Scheduler

Json = dict[str, Any]

CONNECTIONS_MAX: Final = 400
"""What the client of the stand-ins should be allowed: one connection for each kind's watch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandInOptions:
    """How the stand-ins behave."""

    jobs: JobOptions = field(default_factory=JobOptions)
    kubelets: KubeletOptions = field(default_factory=KubeletOptions)


class StandIns:
    """Job controller, garbage collector, scheduler and kubelets.

    Args:
        client: Administrator's client with room for `CONNECTIONS_MAX` connections; stays open.
        options: How they behave.
        clock: Time of everything they write and wait for.
    """

    def __init__(
        self,
        client: Client,
        options: StandInOptions | None = None,
        clock: Clock | None = None,
    ) -> None:
        chosen, time = options or StandInOptions(), clock or SystemClock()
        self._jobs: Informer[Json] = Informer(client, BATCH_JOBS, whole, clock=time)
        self._pods: Informer[Json] = Informer(
            client, PODS, whole, indexes={BY_CONTROLLER: by_controller}, clock=time
        )
        self._nodes: Informer[Json] = Informer(client, NODES, whole, clock=time)
        self._definitions: Informer[Json] = Informer(
            client, CUSTOM_RESOURCE_DEFINITIONS, whole, clock=time
        )
        self._events = EventRecorder(client, instance="stand-ins", clock=time)
        self._job_controller = Jobs(client, self._jobs, self._pods, self._events, time, chosen.jobs)
        self._scheduler = Scheduler(client, self._pods, self._nodes, self._events, time)
        self._kubelets = Kubelets(client, self._pods, self._nodes, time, chosen.kubelets)
        self._garbage = GarbageCollector(client, self._definitions, time)

    async def wait_ready(self, timeout_s: float) -> None:
        """Wait until every cache is filled.

        Raises:
            TimeoutError: They were not in time.
        """
        async with asyncio.timeout(timeout_s):
            for informer in (self._jobs, self._pods, self._nodes, self._definitions):
                await informer.synced.wait()
            await self._garbage.synced.wait()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in (self._nodes, self._pods, self._jobs, self._definitions):
                name = f"standin-informer-{informer.resource.plural}"
                group.create_task(informer.run(), name=name)
            group.create_task(self._events.run(), name="standin-events")
            for informer in (self._nodes, self._pods, self._jobs):
                # A controller that starts on half a cache would create Pods twice.
                await informer.synced.wait()
            group.create_task(self._job_controller.run(), name="standin-jobs")
            group.create_task(self._scheduler.run(), name="standin-scheduler")
            group.create_task(self._kubelets.run_pods(), name="standin-kubelets")
            group.create_task(self._kubelets.run_nodes(), name="standin-nodes")
            group.create_task(self._garbage.run(), name="standin-garbage")
