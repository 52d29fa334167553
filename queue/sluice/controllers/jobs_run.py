"""A job's run: started with what admission adds, stopped when evicted, its progress reported.

Source: docs/spec/api.md 2.3.8 (points 11 to 16), 2.3.9 and 4.4. Quota of an evicted job is released
only when the job says that its pods no longer run.
"""

from __future__ import annotations

from typing import Final

from sluice.api import conditions
from sluice.api.conditions import ConditionType, FinishedReason
from sluice.api.errors import InvariantViolation
from sluice.controllers.caches import Json
from sluice.controllers.jobs_context import JobContext
from sluice.controllers.jobs_workload import WorkloadKeeper
from sluice.engine import lifecycle_status as transitions
from sluice.jobs import podset
from sluice.jobs import workload as workloads

_STOP_WRITES_MAX: Final = 5


class JobRunner:
    """Starts and stops the jobs of one kind."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._integration = context.integration
        self._jobs = context.caches.jobs_of(context.integration)
        self._workloads = context.caches.workloads
        self._keeper = WorkloadKeeper(context)

    async def start(self, job: Json, workload: Json) -> None:
        """Unsuspend a job with what its admission adds; what can't be added ends the Workload.

        Raises:
            FlavorMissing: A flavor of the admission does not exist; tried again.
        """
        options = self._context.options
        try:
            infos = podset.infos_of(
                workload,
                self._context.caches.flavors.store.raw,
                queue_labels=options.queue_labels,
                topology=options.topology,
            )
            change = self._integration.start(job, infos)
        except podset.PodSetConflict as error:
            reason = FinishedReason.FAILED_TO_START
            await self._keeper.set_finished(workload, str(reason), str(error))
            return
        await self._context.writer.subresource(self._jobs, job, change.desired, change.subresource)
        queue = workload["status"]["admission"].get("clusterQueue", "")
        self._context.note(job, "Started", f"Admitted by clusterQueue {queue}")

    async def stop(self, job: Json, workload: Json | None) -> Json:
        """Write towards a job that is suspended with its own templates back; return it as stored.

        Its integration may have to wait for pods to end before it is called suspended.
        """
        pod_sets = workloads.restored_pod_sets(workload)
        for _ in range(_STOP_WRITES_MAX):
            change = self._integration.stop(job, pod_sets)
            if change is None:
                return job
            job = await self._context.writer.subresource(
                self._jobs, job, change.desired, change.subresource
            )
        kind, name = self._integration.kind.kind, job["metadata"]["name"]
        raise InvariantViolation(
            f"stopping {kind} {name} does not come to an end after {_STOP_WRITES_MAX} writes"
        )

    async def stop_for(self, job: Json, workload: Json, message: str) -> Json:
        """Stop a job and, once it is suspended, say why; return it as stored."""
        was_suspended = self._integration.is_suspended(job)
        job = await self.stop(job, workload)
        if not was_suspended and self._integration.is_suspended(job):
            self._context.note(job, "Stopped", message)
        return job

    async def evicted(self, job: Json, workload: Json) -> None:
        """Stop an evicted job and, once its pods are gone, release the quota."""
        status = workload.get("status") or {}
        evicted = conditions.find(status.get("conditions"), ConditionType.EVICTED) or {}
        job = await self.stop_for(job, workload, str(evicted.get("message", "")))
        if self._integration.is_active(job) or not workloads.is_reserved(workload):
            return
        at = self._context.moment(workload)
        new = transitions.release(status, at)
        if conditions.find(new.get("conditions"), ConditionType.PODS_READY) is not None:
            new = transitions.pods_ready(new, at, ready=False)
        await self._context.writer.status(self._workloads, workload, new)

    async def report(self, job: Json, workload: Json) -> Json:
        """Write what the job says of its pods: those no longer needed, and whether all are ready.

        Both go into one write, and only for a Workload that holds quota: before that there are no
        pods to speak of.
        """
        status = workload.get("status") or {}
        if not workloads.is_reserved(workload):
            return workload
        new = status
        options = self._context.options
        if options.reclaimable_pods:
            new = _with_reclaimable(new, dict(self._integration.reclaimable_pods(job)))
        if options.pods_ready and workloads.is_admitted(workload):
            ready = not self._integration.is_suspended(job) and self._integration.pods_ready(job)
            at = self._context.moment(workload)
            changed = transitions.pods_ready(new, at, ready=ready)
            if not conditions.same(new.get("conditions"), changed.get("conditions")):
                new = changed
        if new is status:
            return workload
        return await self._context.writer.status(self._workloads, workload, new)


def _with_reclaimable(status: Json, reported: dict[str, int]) -> Json:
    """Return a status with the counts reported; while quota is held they only grow."""
    present = {entry["name"]: entry["count"] for entry in status.get("reclaimablePods") or ()}
    merged = {
        name: max(present.get(name, 0), reported.get(name, 0)) for name in {**present, **reported}
    }
    if merged == present:
        return status
    entries = [{"name": name, "count": count} for name, count in sorted(merged.items())]
    return {**status, "reclaimablePods": entries}
