"""Stand-in for Kubernetes' Job controller: makes the Pods of unsuspended Jobs and keeps status.

Simpler than the real one where nobody here can tell: Pods carry no tracking finalizer (a Pod that
vanishes is counted from its last state), and pod failure policies, success policies and back-off
limits per index are not followed (docs/embedded.md). Jobs that name another `managedBy` are left
alone.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

from sluice.api.errors import Conflict, Invalid, KubeError, NotFound
from sluice.api.names import split_key
from sluice.clock import Clock
from sluice.kube.client import Client
from sluice.kube.events import EventDraft, EventRecorder, reference
from sluice.kube.informer import Handlers, Informer
from sluice.kube.resources import BATCH_JOBS, PODS
from sluice.local.standins import jobpods, jobstatus, records
from sluice.local.standins.jobpods import PodCounts
from sluice.local.standins.jobstatus import Notice, Tally
from sluice.local.standins.worker import Worker

Json = dict[str, Any]

BY_CONTROLLER: Final = "controller"
"""Index of the Pod informer: by the uid of the controlling owner."""
CONTROLLER_NAME: Final = "kubernetes.io/job-controller"
_COMPONENT: Final = "job-controller"
_CREATED_TOGETHER: Final = 20
"""Pods created before the next look, so that one wide Job does not hold up the others."""
_BACKOFF_DOUBLINGS_MAX: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """How failed Pods are replaced.

    Attributes:
        backoff_s: Seconds from a failure to the replacement, doubled with each further one.
        backoff_s_max: Upper bound of that.
    """

    backoff_s: float = 10.0
    backoff_s_max: float = 600.0


@dataclass(slots=True)
class _Ended:
    """What is remembered of one Job's Pods that have ended, by uid.

    `base_*` are counted in the status by a controller before us; their Pods are gone.
    """

    base_succeeded: int = 0
    base_failed: int = 0
    indexes: set[int] = field(default_factory=set)
    succeeded: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    released: set[str] = field(default_factory=set)
    failed_at_s: float = 0.0


class Jobs:
    """Runs Jobs until cancelled.

    Args:
        client: For Pods and statuses.
        jobs: All Jobs.
        pods: All Pods, indexed `BY_CONTROLLER`.
        events: Where to tell what happened.
        clock: Wall time of statuses, monotonic time of back-offs.
        options: How failed Pods are replaced.
    """

    def __init__(
        self,
        client: Client,
        jobs: Informer[Json],
        pods: Informer[Json],
        events: EventRecorder,
        clock: Clock,
        options: JobOptions,
    ) -> None:
        self._client = client
        self._jobs = jobs
        self._pods = pods
        self._events = events
        self._clock = clock
        self._options = options
        self._ended: dict[str, _Ended] = {}
        self._keys: dict[str, str] = {}
        self._worker = Worker("job", self._reconcile)
        jobs.add_handlers(
            Handlers(
                added=self._see_job,
                updated=lambda key, old, new: self._see_job(key, new),
                deleted=self._lose_job,
            )
        )
        pods.add_handlers(
            Handlers(
                added=lambda key, pod: self._see_pod(pod),
                updated=lambda key, old, new: self._see_pod(new),
                deleted=lambda key, pod: self._lose_pod(pod),
            )
        )

    async def run(self) -> None:
        """Work until cancelled."""
        await self._worker.run()

    def _see_job(self, key: str, job: Json) -> None:
        self._keys[job["metadata"]["uid"]] = key
        self._worker.queue.add(key)

    def _lose_job(self, key: str, job: Json) -> None:
        uid = job["metadata"]["uid"]
        self._keys.pop(uid, None)
        self._ended.pop(uid, None)
        self._worker.queue.add(key)

    def _see_pod(self, pod: Json) -> None:
        key = self._keys.get(records.controller_uid(pod))
        if key is not None:
            self._worker.queue.add(key)

    def _lose_pod(self, pod: Json) -> None:
        """Count a Pod that vanished; one that nobody let finish has failed."""
        ended = self._ended.get(records.controller_uid(pod))
        if ended is not None:
            self._count_ended(ended, pod, is_gone=True)
        self._see_pod(pod)

    def _count_ended(self, ended: _Ended, pod: Json, *, is_gone: bool = False) -> None:
        uid, phase = pod["metadata"]["uid"], records.phase(pod)
        if uid in ended.succeeded or uid in ended.failed:
            return
        index = jobpods.index_of(pod)
        if phase == "Succeeded":
            ended.succeeded.add(uid)
            if index is not None:
                ended.indexes.add(index)
        elif uid not in ended.released and (phase == "Failed" or is_gone):
            ended.failed.add(uid)
            ended.failed_at_s = self._clock.monotonic_s()

    def _tally(self, job: Json, pods: tuple[Json, ...]) -> Tally:
        """Return how this Job's Pods ended; the first look takes over what the status says."""
        uid, status = job["metadata"]["uid"], job.get("status") or {}
        ended = self._ended.get(uid)
        is_first = ended is None
        if ended is None:
            ended = self._ended[uid] = _Ended()
            ended.indexes = jobpods.read_indexes(status.get("completedIndexes", ""))
        for pod in pods:
            self._count_ended(ended, pod)
        if is_first:
            ended.base_succeeded = max(0, int(status.get("succeeded", 0)) - len(ended.succeeded))
            ended.base_failed = max(0, int(status.get("failed", 0)) - len(ended.failed))
        succeeded = ended.base_succeeded + len(ended.succeeded)
        if jobpods.is_indexed(job):
            limit = int(job["spec"].get("completions") or 0)
            ended.indexes = {index for index in ended.indexes if index < limit}
            succeeded = len(ended.indexes)
        return Tally(
            succeeded=succeeded,
            failed=ended.base_failed + len(ended.failed),
            completed_indexes=frozenset(ended.indexes),
        )

    async def _reconcile(self, key: str) -> float | None:
        job = self._jobs.store.get(key)
        if job is None or job["spec"].get("managedBy", CONTROLLER_NAME) != CONTROLLER_NAME:
            return None
        if jobstatus.is_finished(job):
            return await self._expire(key, job)
        if records.is_deleting(job):
            return None
        uid = job["metadata"]["uid"]
        pods = self._pods.store.records_by(BY_CONTROLLER, uid)
        tally = self._tally(job, pods)
        counts = jobpods.count(pods)
        now_ms = self._clock.now_ms()
        end = jobstatus.outcome(job, counts, tally, now_ms)
        wait_s: float | None = None
        if end is not None or job["spec"].get("suspend"):
            await self._release(job, list(counts.active))
        else:
            wait_s = await self._manage(job, counts, tally)
        counts = jobpods.count(self._pods.store.records_by(BY_CONTROLLER, uid))
        status, notices = jobstatus.next_status(job, counts, tally, end, now_ms)
        if status != (job.get("status") or {}):
            await self._write(key, job, status, notices)
        if end is not None:
            return None
        left_s = jobstatus.deadline_left_s({**job, "status": status}, now_ms)
        waits = [seconds for seconds in (wait_s, left_s) if seconds is not None]
        return min(waits, default=None)

    async def _write(self, key: str, job: Json, status: Json, notices: list[Notice]) -> None:
        namespace, name = split_key(key)
        body = {**job, "status": status}
        try:
            stored = await self._client.replace(
                BATCH_JOBS, namespace, name, body, subresource="status"
            )
        except NotFound:
            return
        self._jobs.observe_write(stored)
        for notice in notices:
            self._record(job, notice)

    async def _expire(self, key: str, job: Json) -> float | None:
        """Delete a finished Job whose time to live is over."""
        uid = job["metadata"]["uid"]
        leftover = jobpods.count(self._pods.store.records_by(BY_CONTROLLER, uid)).active
        if leftover and not records.is_deleting(job):
            await self._release(job, list(leftover))
        ttl_s, at_ms = job["spec"].get("ttlSecondsAfterFinished"), jobstatus.finished_at_ms(job)
        if ttl_s is None or at_ms is None or records.is_deleting(job):
            return None
        left_s = ttl_s - (self._clock.now_ms() - at_ms) / 1000
        if left_s > 0:
            return float(left_s)
        namespace, name = split_key(key)
        try:
            await self._client.delete(
                BATCH_JOBS, namespace, name, uid=uid, propagation="Foreground"
            )
        except (NotFound, Conflict):
            return None
        return None

    async def _manage(self, job: Json, counts: PodCounts, tally: Tally) -> float | None:
        """Create or delete Pods so that as many as wanted are active; return a back-off."""
        active = len(counts.active)
        if job["spec"].get("podReplacementPolicy") == "Failed":
            active += len(counts.terminating)
        wanted = jobpods.wanted_active(job, tally.succeeded, active)
        if active > wanted:
            await self._release(job, jobpods.surplus(counts.active, wanted))
            return None
        missing = wanted - active
        if not missing:
            return None
        wait_s = self._backoff_left_s(job)
        if wait_s > 0:
            return wait_s
        batch = min(missing, _CREATED_TOGETHER)
        indexes: list[int | None] = [None] * batch
        if jobpods.is_indexed(job):
            taken = set(tally.completed_indexes)
            for pod in (*counts.active, *counts.terminating):
                index = jobpods.index_of(pod)
                if index is not None:
                    taken.add(index)
            indexes = list(jobpods.free_indexes(job, taken, batch))
        await self._create(job, indexes)
        return 0.0 if missing > batch else None

    def _backoff_left_s(self, job: Json) -> float:
        """Return the seconds until a failed Pod may be replaced."""
        ended = self._ended[job["metadata"]["uid"]]
        if not ended.failed:
            return 0.0
        doublings = min(len(ended.failed) - 1, _BACKOFF_DOUBLINGS_MAX)
        backoff_s = min(self._options.backoff_s * 2.0**doublings, self._options.backoff_s_max)
        return ended.failed_at_s + backoff_s - self._clock.monotonic_s()

    async def _create(self, job: Json, indexes: list[int | None]) -> None:
        namespace = job["metadata"]["namespace"]
        outcomes = await asyncio.gather(
            *(
                self._client.create(PODS, namespace, jobpods.new_pod(job, index), retry=False)
                for index in indexes
            ),
            return_exceptions=True,
        )
        failure: BaseException | None = None
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                failure = failure or outcome
                continue
            self._pods.observe_write(outcome)
            note = f"Created pod: {outcome['metadata']['name']}"
            self._record(job, Notice(reason="SuccessfulCreate", note=note))
        if isinstance(failure, KubeError):
            note = f"Error creating: {failure}"
            self._record(job, Notice(reason="FailedCreate", note=note, warning=True))
        if failure is not None:
            raise failure

    async def _release(self, job: Json, pods: list[Json]) -> None:
        """Delete Pods that are not wanted any more; their end is not held against the Job."""
        ended = self._ended.setdefault(job["metadata"]["uid"], _Ended())
        for pod in pods:
            metadata = pod["metadata"]
            ended.released.add(metadata["uid"])
            try:
                left = await self._client.delete(
                    PODS, metadata["namespace"], metadata["name"], uid=metadata["uid"]
                )
            except (NotFound, Conflict, Invalid):
                continue
            if left.get("kind") == "Pod" and records.is_deleting(left):
                self._pods.observe_write(left)
            note = f"Deleted pod: {metadata['name']}"
            self._record(job, Notice(reason="SuccessfulDelete", note=note))

    def _record(self, job: Json, notice: Notice) -> None:
        self._events.record(
            EventDraft(
                regarding=reference({"apiVersion": "batch/v1", "kind": "Job", **job}),
                reason=notice.reason,
                note=notice.note,
                warning=notice.warning,
                controller=_COMPONENT,
            )
        )


def by_controller(pod: Json) -> tuple[str, ...]:
    """Return the value of the index `BY_CONTROLLER`."""
    uid = records.controller_uid(pod)
    return (uid,) if uid else ()


__all__ = ["BY_CONTROLLER", "CONTROLLER_NAME", "JobOptions", "Jobs", "by_controller"]
