"""The manager: caches on every replica, decisions on the leader, and how both start and end.

Start: informers fill their caches, then the process campaigns for the Lease and, leading, runs the
scheduler and the controllers. End: first the leader's work stops (what is decided and not written
is taken back), then the Lease is given up, then events are flushed, then the informers end. While a
Kueue holds its own Lease in this cluster nobody leads here: two deciders would admit twice.
Made by the composition root.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Final, Protocol

from sluice.api.errors import Invalid, KubeError
from sluice.clock import Clock, SystemClock
from sluice.controllers.caches import Caches
from sluice.controllers.credits import CreditController
from sluice.controllers.execute import Executor
from sluice.controllers.finalizers import FinalizerController
from sluice.controllers.jobs import JobController
from sluice.controllers.jobs_context import JobContext
from sluice.controllers.lookups import CachedLookups
from sluice.controllers.notes import Notes
from sluice.controllers.options import ManagerOptions
from sluice.controllers.pace import Pace
from sluice.controllers.priority import PriorityClassController
from sluice.controllers.queues import QueueController
from sluice.controllers.reconcile import Reconciler
from sluice.controllers.scheduler import Scheduler
from sluice.controllers.topology_feed import TopologyFeed
from sluice.controllers.topology_nodes import NodeController
from sluice.controllers.topology_ungating import UngatingController
from sluice.controllers.workloads import WorkloadController
from sluice.controllers.write import Writer
from sluice.engine.engine import Engine
from sluice.jobs.catalogue import all_integrations
from sluice.jobs.integration import select
from sluice.kube.backoff import Backoff
from sluice.kube.client import Client
from sluice.kube.events import EventRecorder
from sluice.kube.foreign import ForeignLeader
from sluice.kube.lease import Elector
from sluice.log import get_logger

log = get_logger(__name__)

FOREIGN_INTERVAL_S: Final = 5.0
_FLUSH_S: Final = 2.0
_PAGE_SIZE: Final = 500
_HOLDS_QUOTA: Final = "status.admission.clusterQueue!="
"""Field selector (docs/spec/api.md 1.0): Workloads that have an admission."""
_GC_THRESHOLDS: Final = (50_000, 50, 100)
"""Collections are rare then: reference counting frees nearly everything here."""


class _Controller(Protocol):
    """What the manager asks of a controller."""

    reconciler: Reconciler

    def attach(self) -> None:
        """Add handlers to the informers."""
        ...


class Manager:
    """Runs everything but webhooks and telemetry.

    Attributes:
        caches: Informers of every kind; readable at any time.
        scheduler: Owner of the engine.
        executor: Writes the engine's commands.
        reconcilers: The loops of all controllers, for metrics.
        notes: Recorder of events.
        ready: Set while there is no reason against being ready.
        lookups: What job admission asks, answered from the caches.
    """

    def __init__(
        self, client: Client, options: ManagerOptions, *, clock: Clock | None = None
    ) -> None:
        self._client = client
        self._options = options
        self._clock = clock or SystemClock()
        registry, lacking = select(all_integrations(), options.jobs.frameworks)
        if lacking:
            log.warning(
                "frameworks not available: their jobs are left alone",
                fields={"frameworks": list(lacking)},
            )
        self.caches = Caches(client, registry)
        self.scheduler = Scheduler(Engine(options.engine), self._clock)
        self.events = EventRecorder(client, instance=options.identity, clock=self._clock)
        self._pace = Pace(self._clock)
        self.notes = Notes(self.events, self._pace)
        self.lookups = CachedLookups(self.caches, client)
        self._writer = Writer(client, is_leading=lambda: self.is_leading)
        self._foreign = ForeignLeader(client, clock=self._clock)
        self._foreign_reason = "it is not known yet whether a Kueue runs in this cluster"
        self.ready = asyncio.Event()
        self._elector: Elector | None = None
        if options.election is not None:
            self._elector = Elector(
                client,
                namespace=options.election.namespace,
                name=options.election.name,
                identity=options.identity,
                times=options.election.times,
                clock=self._clock,
            )
        self._leads_alone = False
        self._was_synced = False
        self._topology: TopologyFeed | None = None
        self._ungating: UngatingController | None = None
        self.executor = Executor(
            self.caches,
            self._writer,
            self.notes,
            self.scheduler,
            self._pace,
            clock=self._clock,
            workers=options.workers.commands,
            tracks_pods=options.jobs.pods_ready,
        )
        self._build_controllers()

    def _build_controllers(self) -> None:
        options, workers = self._options, self._options.workers
        # The engine observes first, so that controllers asking it see what they were woken by.
        self.scheduler.attach(self.caches)
        self._workloads = WorkloadController(
            self.caches,
            self.scheduler.engine,
            self._writer,
            self.notes,
            self._pace,
            options=options.lifecycle,
            clock=self._clock,
            workers=workers.workloads,
        )
        self._queues = QueueController(
            self.caches,
            self.scheduler,
            self._writer,
            self._pace,
            clock=self._clock,
            workers=workers.queues,
            interval_s=options.status_interval_s,
            activity_changed=self._workloads.cluster_queue_changed,
        )
        self._finalizers = FinalizerController(
            self.caches, self.scheduler.engine, self._writer, workers=workers.queues
        )
        self._credits = CreditController(
            self.caches,
            self.scheduler,
            self._writer,
            clock=self._clock,
            workers=workers.queues,
        )
        self._classes = PriorityClassController(
            self.caches, self._writer, self.notes, workers=workers.priority_classes
        )
        self._jobs = [
            JobController(
                JobContext(
                    integration=integration,
                    caches=self.caches,
                    lookups=self.lookups,
                    writer=self._writer,
                    notes=self.notes,
                    options=options.jobs,
                    clock=self._clock,
                ),
                workers=workers.jobs,
            )
            for integration in self.caches.registry
        ]
        controllers: list[_Controller] = [
            self._workloads,
            self._queues,
            self._finalizers,
            self._credits,
            self._classes,
            *self._jobs,
            *self._topology_controllers(),
        ]
        for controller in controllers:
            controller.attach()
        self.reconcilers: tuple[Reconciler, ...] = tuple(c.reconciler for c in controllers)

    def _topology_controllers(self) -> list[_Controller]:
        """Make what topology-aware scheduling needs; nothing of it without its gate."""
        gates, workers = self._options.engine.gates, self._options.workers.topology
        if not gates.topology_aware:
            return []
        feed = self._topology = TopologyFeed(self.caches, self.scheduler)
        feed.attach()
        self._ungating = UngatingController(self.caches, feed, self._writer, workers=workers)
        if not gates.tas_failed_node_replacement:
            return [self._ungating]
        nodes = NodeController(
            self.caches,
            feed,
            self._writer,
            self.notes,
            gates=gates,
            clock=self._clock,
            workers=workers,
        )
        return [self._ungating, nodes]

    @property
    def is_leading(self) -> bool:
        """Whether this process decides right now."""
        return self._leads_alone or (self._elector is not None and self._elector.is_leading)

    @property
    def leader(self) -> str:
        """Identity of the leader as last seen; empty when unknown."""
        if self._elector is None:
            return self._options.identity if self._leads_alone else ""
        return self._elector.holder

    def unready_reasons(self) -> list[str]:
        """Return why this process is not ready, one sentence each; empty when it is.

        Nodes and pods count at the start only: when the first flavor with a topology comes later,
        the queues that use it wait, and reviews of the webhook go on.
        """
        informers = self.caches.always() if self._was_synced else self.caches.all()
        missing = [i.resource.full_name for i in informers if not i.synced.is_set()]
        reasons = []
        if missing:
            reasons.append(f"waiting for the first list of {', '.join(missing)}")
        if self._foreign_reason:
            reasons.append(self._foreign_reason)
        return reasons

    async def run(self) -> None:
        """Run until cancelled.

        Raises:
            TimeoutError: A cache was not filled in time; the message names its kind.
        """
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(informer.run(), name=f"informer-{informer.resource.plural}")
                for informer in self.caches.always()
            ]
            if self._topology is not None:
                background.append(group.create_task(self._topology.run(), name="topology-feed"))
            background.append(group.create_task(self.events.run(), name="events"))
            try:
                await self._wait_synced()
                await self._campaign()
            finally:
                await self.events.flush(_FLUSH_S)
                for task in background:
                    task.cancel()

    async def _wait_synced(self) -> None:
        deadline_s = self._clock.monotonic_s() + self._options.sync_timeout_s
        for informer in self.caches.all():
            left_s = max(0.1, deadline_s - self._clock.monotonic_s())
            await informer.wait_synced(left_s)
        if self._topology is not None:
            left_s = max(0.1, deadline_s - self._clock.monotonic_s())
            await self._topology.wait_settled(left_s)
        self._was_synced = True
        if self._options.tune_gc:
            gc.collect()
            gc.freeze()
            gc.set_threshold(*_GC_THRESHOLDS)
        log.info(
            "caches filled",
            fields={i.resource.plural: len(i.store) for i in self.caches.all()},
        )

    async def _campaign(self) -> None:
        """Lead whenever we may: the Lease is ours, and no Kueue runs here."""
        while True:
            await self._until_alone()
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._until_foreign(), name="foreign-leader")
                work = group.create_task(self._lead_once(), name="campaign")
                await asyncio.wait({watch, work}, return_when=asyncio.FIRST_COMPLETED)
                watch.cancel()
                work.cancel()

    async def _lead_once(self) -> None:
        if self._elector is not None:
            await self._elector.run(self._lead)
            return
        self._leads_alone = True
        try:
            await self._lead()
        finally:
            self._leads_alone = False

    async def _lead(self) -> None:
        self._credits.start()
        await self.catch_up()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.executor.run(), name="executor")
            for reconciler in self.reconcilers:
                group.create_task(reconciler.run(), name=reconciler.name)
            group.create_task(self._queues.run_changes(), name="queue-changes")
            group.create_task(self.scheduler.run(self.executor), name="scheduler")

    async def catch_up(self) -> None:
        """Take in every reservation that the leader before us has written; tried until it works.

        Our watch may be behind its last writes, and quota that we don't know to be taken would be
        given twice; the resourceVersion guards one Workload, not the sum of all. The same holds for
        pods that were sent to a domain.
        """
        backoff = Backoff(base_s=0.2, max_s=5.0)
        selector = _HOLDS_QUOTA
        while True:
            try:
                await self._read_reservations(selector)
                if self._ungating is not None:
                    await self._ungating.catch_up()
            except Invalid:
                selector = ""  # definitions older than ours don't know the field: read all
            except KubeError as error:
                fields = {"error": str(error)}
                log.warning("cannot read reservations; trying again", fields=fields)
                await asyncio.sleep(backoff.next_s())
            else:
                return

    async def _read_reservations(self, selector: str) -> None:
        workloads, token = self.caches.workloads, ""
        while True:
            page = await self._client.list(
                workloads.resource,
                field_selector=selector,
                limit=_PAGE_SIZE,
                continue_token=token,
            )
            for body in page.get("items") or ():
                body.setdefault("apiVersion", workloads.resource.api_version)
                body.setdefault("kind", workloads.resource.kind)
                workloads.observe_write(body)
            token = page["metadata"].get("continue") or ""
            if not token:
                return

    async def _until_alone(self) -> None:
        while True:
            if not await self._looks_foreign():
                return
            await asyncio.sleep(FOREIGN_INTERVAL_S)

    async def _until_foreign(self) -> None:
        while True:
            await asyncio.sleep(FOREIGN_INTERVAL_S)
            if await self._looks_foreign():
                return

    async def _looks_foreign(self) -> bool:
        """Ask whether a Kueue leads in this cluster; when that can't be told, keep what was so."""
        before = self._foreign_reason
        try:
            self._foreign_reason = await self._foreign.find() or ""
        except KubeError as error:
            log.warning("cannot look for a running Kueue", fields={"error": str(error)})
            if before:
                self._foreign_reason = f"cannot tell whether a Kueue runs in this cluster: {error}"
            return bool(before)
        if not self._foreign_reason:
            self.ready.set()
            return False
        self.ready.clear()
        if self._foreign_reason != before:
            log.error("another decider", fields={"reason": self._foreign_reason})
        return True
