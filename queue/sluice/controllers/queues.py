"""Keeps the status of ClusterQueues, LocalQueues and Cohorts what the engine says it is.

A status is written when it differs, at most once a second for each object, and all together at a
bounded rate: counts of busy queues change with every admission, and each write takes room from
admissions. A change of a queue's activity also wakes the Workloads behind it.
Source: docs/spec/api.md 1.1 to 1.3 and 4.8.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from sluice.api.errors import NotFound
from sluice.api.names import ClusterQueueName, CohortName, LocalQueueKey
from sluice.api.records import Kind
from sluice.clock import Clock
from sluice.controllers import queue_status
from sluice.controllers.caches import Caches, Json
from sluice.controllers.pace import Informing, Pace
from sluice.controllers.reconcile import DONE, After, Reconciler, Result
from sluice.controllers.scheduler import Scheduler
from sluice.controllers.write import Writer
from sluice.engine.engine import Engine
from sluice.jobs.difference import same
from sluice.kube.informer import Handlers, Informer

CHANGES_INTERVAL_S: Final = 0.2
_HELD_UP_S: Final = 0.5
_IDLE_S: Final = 30.0


class QueueController:
    """Reconciles the status of queues and cohorts; keys are ``Kind:key``."""

    def __init__(
        self,
        caches: Caches,
        scheduler: Scheduler,
        writer: Writer,
        pace: Pace,
        *,
        clock: Clock,
        workers: int,
        interval_s: float,
        activity_changed: Callable[[str], None],
    ) -> None:
        """Make a controller.

        Args:
            caches: Where queues are read.
            scheduler: Owns the engine and says when it may have changed.
            writer: How queues are written.
            pace: How fast statuses may go.
            clock: Time.
            workers: Queues written at once.
            interval_s: Least seconds between two writes of one object.
            activity_changed: Called with a ClusterQueue whose activity changed.
        """
        self._caches = caches
        self._engine: Engine = scheduler.engine
        self._changed = scheduler.changed
        self._writer = writer
        self._clock = clock
        self._interval_s = interval_s
        self._activity_changed = activity_changed
        self._version = 0
        self._active: dict[str, bool] = {}
        self._written_s: dict[str, float] = {}
        self._pace = pace
        self._informers: dict[Kind, Informer[Any]] = {
            Kind.CLUSTER_QUEUE: caches.cluster_queues,
            Kind.LOCAL_QUEUE: caches.local_queues,
            Kind.COHORT: caches.cohorts,
        }
        self.reconciler = Reconciler(
            "queue-status", self._reconcile, workers=workers, all_keys=self._all_keys
        )

    def _all_keys(self) -> list[str]:
        return [
            f"{kind}:{key}"
            for kind, informer in self._informers.items()
            for key in informer.store.all_keys()
        ]

    def attach(self) -> None:
        """Look at a queue when it changes, so that a status someone else wrote is put right."""
        for kind, informer in self._informers.items():
            self._attach(kind, informer)

    def _attach(self, kind: Kind, informer: Informer[Any]) -> None:
        def deleted(key: str, _: object) -> None:
            self._written_s.pop(f"{kind}:{key}", None)
            self._active.pop(key, None)

        informer.add_handlers(
            Handlers(
                added=lambda key, _: self.reconciler.add(f"{kind}:{key}"),
                updated=lambda key, _, __: self.reconciler.add(f"{kind}:{key}"),
                deleted=deleted,
            )
        )

    async def run_changes(self) -> None:
        """Look at whatever the engine says has changed, until cancelled; only while leading."""
        self._version = 0
        while True:
            try:
                async with asyncio.timeout(_IDLE_S):  # wait_for loses cancellations in 3.11
                    await self._changed.wait()
            except TimeoutError:
                continue
            self._changed.clear()
            self._version, changed = self._engine.changes_since(self._version)
            for reference in changed:
                if reference.kind is Kind.CLUSTER_QUEUE:
                    self._follow_activity(reference.key)
                self.reconciler.add(f"{reference.kind}:{reference.key}")
            await asyncio.sleep(CHANGES_INTERVAL_S)

    def _follow_activity(self, name: str) -> None:
        status = self._engine.cluster_queue_status(ClusterQueueName(name))
        is_active = status is not None and status.is_active
        if self._active.get(name) is not is_active:
            self._active[name] = is_active
            self._activity_changed(name)

    async def _reconcile(self, key: str) -> Result:
        now_s = self._clock.monotonic_s()
        wait_s = self._written_s.get(key, -self._interval_s) + self._interval_s - now_s
        if wait_s > 0:
            return After(wait_s)
        kind_text, _, name = key.partition(":")
        kind = Kind(kind_text)
        informer = self._informers.get(kind)
        raw = None if informer is None else informer.store.raw(name)
        if informer is None or raw is None:
            return DONE
        desired = self._desired(kind, name, raw)
        if desired is None or same(desired, raw.get("status") or {}):
            return DONE
        wait_s = self._pace.wait_s(Informing.QUEUE_STATUS)
        if wait_s > 0:
            return After(max(wait_s, _HELD_UP_S))
        self._written_s[key] = now_s
        try:
            await self._writer.status(informer, raw, desired)
        except NotFound:
            return DONE
        return DONE

    def _desired(self, kind: Kind, name: str, raw: Json) -> Json | None:
        present = raw.get("status") or {}
        now_ms, seen = self._clock.now_ms(), raw["metadata"].get("generation", 0)
        if kind is Kind.CLUSTER_QUEUE:
            queue = self._engine.cluster_queue_status(ClusterQueueName(name))
            if queue is None:
                return None
            return queue_status.cluster_queue(present, queue, now_ms=now_ms, seen=seen)
        if kind is Kind.LOCAL_QUEUE:
            local = self._engine.local_queue_status(LocalQueueKey(name))
            if local is None:
                return None
            return queue_status.local_queue(present, local, now_ms=now_ms, seen=seen)
        cohort = self._engine.cohort_status(CohortName(name))
        return None if cohort is None else queue_status.cohort(present, cohort)
