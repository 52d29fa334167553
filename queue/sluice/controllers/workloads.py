"""Keeps each Workload's life in order: writes what the rules of `sluice.engine.lifecycle` ask for.

The reconciler gathers the facts around a Workload, asks the rules, and writes: at most one status,
then ``spec.active``, finalizer or deletion. It looks again when something around the Workload
changes (its queues, their activity) and when a deadline of the rules comes.
Source: docs/spec/api.md 4.
"""

from __future__ import annotations

from typing import Any, Final

from sluice.api import names
from sluice.api.conditions import ConditionType, PendingReason
from sluice.api.errors import NotFound
from sluice.api.records import ClusterQueue, LocalQueue, Workload
from sluice.clock import Clock
from sluice.controllers.caches import BY_CLUSTER_QUEUE, BY_QUEUE, CachedWorkload, Caches, Json
from sluice.controllers.notes import WORKLOAD_CONTROLLER, Notes, job_controller
from sluice.controllers.pace import Informing, Pace
from sluice.controllers.reconcile import DONE, After, Reconciler, Result
from sluice.controllers.write import Writer, without_finalizer
from sluice.engine.engine import Engine
from sluice.engine.lifecycle import next_step
from sluice.engine.lifecycle_facts import Facts, LifecycleOptions, Note, Step
from sluice.engine.lifecycle_reason import parked_reason
from sluice.kube.informer import Handlers

_LOOK_AGAIN_S_MAX: Final = 3600.0
_LOOK_AGAIN_S_MIN: Final = 0.05
_PARKED_S_MIN: Final = 1.0
"""Most Workloads that are parked unexamined for less than this are never seen waiting."""
_PARKED_AGAIN_S: Final = 5.0
_RETENTION_OVER: Final = Note(
    reason="Deleted", message="Deleted job: deactivation retention period expired"
)


class WorkloadController:
    """Reconciles Workloads by key."""

    def __init__(
        self,
        caches: Caches,
        engine: Engine,
        writer: Writer,
        notes: Notes,
        pace: Pace,
        *,
        options: LifecycleOptions,
        clock: Clock,
        workers: int,
    ) -> None:
        self._caches = caches
        self._engine = engine
        self._writer = writer
        self._notes = notes
        self._pace = pace
        self._options = options
        self._clock = clock
        self.reconciler = Reconciler(
            "workload",
            self._reconcile,
            workers=workers,
            all_keys=caches.workloads.store.all_keys,
        )

    def attach(self) -> None:
        """Look at Workloads when they, their queues or the queues' settings change."""
        add = self.reconciler.add
        self._caches.workloads.add_handlers(
            Handlers(added=lambda key, _: add(key), updated=lambda key, _, __: add(key))
        )
        self._caches.local_queues.add_handlers(
            Handlers(
                added=lambda _, queue: self.local_queue_changed(queue),
                updated=self._local_queue_updated,
                deleted=lambda _, queue: self.local_queue_changed(queue),
            )
        )
        self._caches.cluster_queues.add_handlers(
            Handlers(
                added=lambda _, queue: self.cluster_queue_changed(queue.name),
                updated=self._cluster_queue_updated,
                deleted=lambda _, queue: self.cluster_queue_changed(queue.name),
            )
        )

    def _local_queue_updated(self, _: str, old: LocalQueue, new: LocalQueue) -> None:
        # A status write changes neither: without this test each would wake every Workload.
        before = (old.stop_policy, old.is_terminating, old.cluster_queue)
        if before != (new.stop_policy, new.is_terminating, new.cluster_queue):
            self.local_queue_changed(new)

    def _cluster_queue_updated(self, _: str, old: ClusterQueue, new: ClusterQueue) -> None:
        if (old.generation, old.is_terminating) != (new.generation, new.is_terminating):
            self.cluster_queue_changed(new.name)

    def local_queue_changed(self, queue: LocalQueue) -> None:
        """Look at every unfinished Workload of a LocalQueue."""
        self._add_all(self._caches.workloads.store.keys_by(BY_QUEUE, queue.key))

    def cluster_queue_changed(self, name: str) -> None:
        """Look at every unfinished Workload that waits for or holds quota of a ClusterQueue."""
        self._add_all(self._caches.workloads.store.keys_by(BY_CLUSTER_QUEUE, name))
        for queue in self._caches.local_queues.store.records_by(BY_CLUSTER_QUEUE, name):
            self.local_queue_changed(queue)

    def _add_all(self, keys: tuple[str, ...]) -> None:
        for key in keys:
            cached = self._caches.workloads.store.get(key)
            if cached is not None and not cached.is_finished:
                self.reconciler.add(key)

    async def _reconcile(self, key: str) -> Result:
        cached = self._caches.workloads.store.get(key)
        if cached is None or self._is_settled(cached):
            return DONE
        raw = self._caches.workloads.store.raw(key)
        if raw is None:
            return DONE
        parked, wait_s = self._parked(cached)
        facts = self._facts(cached.record, parked)
        step = next_step(raw, facts, self._options, self._clock.now_ms())
        await self._carry_out(raw, cached, step)
        if step.look_again_ms is not None:
            due_s = (step.look_again_ms - self._clock.now_ms()) / 1000
            wait_s = min(due_s, _LOOK_AGAIN_S_MAX if wait_s is None else wait_s)
        return DONE if wait_s is None else After(max(_LOOK_AGAIN_S_MIN, wait_s))

    def _is_settled(self, cached: CachedWorkload) -> bool:
        """Tell whether the rules have nothing to say of a finished Workload, without reading it."""
        if not cached.is_finished or self._options.retain_finished_ms is not None:
            return False
        return bool(cached.owner_uids) or not (
            cached.record.job_uid or cached.record.is_terminating
        )

    def _parked(self, cached: CachedWorkload) -> tuple[tuple[str, str] | None, float | None]:
        """Return what to write of a Workload that waits unexamined, or the seconds to ask again."""
        record = cached.record
        present = record.conditions.get(ConditionType.QUOTA_RESERVED)
        if present is not None and present.reason != PendingReason.PENDING_EVALUATION:
            return None, None
        if cached.is_finished or not record.active:
            return None, None
        since_ms = record.created_ms if present is None else present.at_ms
        age_s = (self._clock.now_ms() - since_ms) / 1000
        if age_s < _PARKED_S_MIN:
            return None, _PARKED_S_MIN
        # Asked ever less often: what waits in its heap for hours is not looked at each second.
        again_s = min(max(_PARKED_AGAIN_S, age_s / 2), _LOOK_AGAIN_S_MAX)
        if self._pace.wait_s(Informing.REASONS) > 0:
            return None, again_s
        parked = parked_reason(self._engine, record.key)
        return (None, again_s) if parked is None else (parked, None)

    def _facts(self, workload: Workload, parked: tuple[str, str] | None) -> Facts:
        name = self._caches.cluster_queue_name(workload)
        is_active = True
        if name and not workload.is_true(ConditionType.ADMITTED):
            # The engine observes in the same turn as the cache, so it knows what is cached.
            status = self._engine.cluster_queue_status(names.ClusterQueueName(name))
            is_active = status is not None and status.is_active
        return Facts(
            local_queue_name=workload.queue,
            local_queue=self._caches.local_queues.store.get(workload.queue_key),
            cluster_queue_name=name,
            cluster_queue=self._caches.cluster_queues.store.get(name) if name else None,
            cluster_queue_active=is_active,
            parked=parked,
        )

    async def _carry_out(self, raw: Json, cached: CachedWorkload, step: Step) -> None:
        workloads = self._caches.workloads
        if step.status is not None:
            raw = await self._writer.status(workloads, raw, step.status)
        for note in step.notes:
            self._notes.record(raw, WORKLOAD_CONTROLLER, note)
        if step.active is not None:
            spec = {**raw["spec"], "active": step.active}
            raw = await self._writer.update(workloads, raw, {**raw, "spec": spec})
        if step.drop_finalizer:
            raw = await self._writer.update(
                workloads, raw, without_finalizer(raw, names.IN_USE_FINALIZER)
            )
        if step.delete:
            await self._delete(raw)
        elif step.delete_owner:
            await self._delete_owner(raw, cached)

    async def _delete(self, raw: Json) -> None:
        workloads = self._caches.workloads
        raw = await self._writer.update(
            workloads, raw, without_finalizer(raw, names.IN_USE_FINALIZER)
        )
        if "deletionTimestamp" not in raw["metadata"]:
            await self._ignore_missing(raw, workloads)

    async def _delete_owner(self, raw: Json, cached: CachedWorkload) -> None:
        found = self._caches.registry.owner_of(raw)
        if found is None:
            await self._delete(raw)
            return
        integration, reference = found
        namespace = cached.record.namespace
        informer = self._caches.jobs_of(integration)
        job = informer.store.raw(names.key(namespace, reference["name"]))
        if job is None or job["metadata"]["uid"] != reference["uid"]:
            return
        await self._ignore_missing(job, informer)
        self._notes.record(job, job_controller(integration.kind.framework), _RETENTION_OVER)

    async def _ignore_missing(self, raw: Json, informer: Any) -> None:
        try:
            await self._writer.delete(informer, raw, propagation="Background")
        except NotFound:
            return
