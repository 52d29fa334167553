"""A job's Workload: found, made, kept in step with the job, finished and let go.

Exactly one Workload describes a job. Making it twice is harmless, because its name depends on the
job alone. Source: docs/spec/api.md 2.3.8 (points 5, 6, 9, 10, 15) and 2.3.10.
"""

from __future__ import annotations

from typing import Final

from sluice.api import names
from sluice.api.conditions import FinishedReason
from sluice.api.errors import AlreadyExists, Conflict, NotFound, SluiceError
from sluice.controllers.caches import BY_OWNER_UID, Json
from sluice.controllers.jobs_context import JobContext
from sluice.controllers.write import without_finalizer
from sluice.engine import lifecycle_status as transitions
from sluice.jobs import priority as priorities
from sluice.jobs import workload as workloads
from sluice.jobs.integration import Finish, PodSet, labels_of, prebuilt_workload_name
from sluice.jobs.priority import Priority, PriorityClasses, PriorityClassMissing

_OUT_OF_SYNC: Final = "The prebuilt workload is out of sync with its user job"


class PrebuiltMissing(SluiceError):
    """The Workload that a job wants to adopt is not there (yet), or is another job's."""


class WorkloadKeeper:
    """Keeps the Workloads of one job kind."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._workloads = context.caches.workloads
        self._integration = context.integration
        self._classes = PriorityClasses(
            workload_class=self._workload_class,
            pod_class=self._pod_class,
            default_class=self._default_class,
        )

    def _workload_class(self, name: str) -> int | None:
        cached = self._context.caches.workload_classes.store.get(name)
        return None if cached is None else cached.value

    def _pod_class(self, name: str) -> int | None:
        cached = self._context.caches.pod_classes.store.get(name)
        return None if cached is None else cached.value

    def _default_class(self) -> tuple[str, int] | None:
        classes = [c for _, c in self._context.caches.pod_classes.store.items() if c.is_default]
        found = min(classes, key=lambda c: (c.value, c.name), default=None)
        return None if found is None else (found.name, found.value)

    def _pod_sets(self, job: Json) -> tuple[PodSet, ...]:
        return workloads.pod_sets_of(self._integration, job, self._context.options.workload)

    def owned_by(self, uid: str) -> Json | None:
        """Return the Workload that an owner has, by its uid, or None; the first if several."""
        for key in self._workloads.store.keys_by(BY_OWNER_UID, uid):
            return self._workloads.store.raw(key)
        return None

    async def find(self, job: Json) -> Json | None:
        """Return the one Workload of a job, or None; extra ones are deleted.

        Raises:
            PrebuiltMissing: The job wants to adopt a Workload that it can't have now.
        """
        prebuilt = prebuilt_workload_name(job)
        if prebuilt:
            return await self._adopt(job, prebuilt)
        uid = job["metadata"]["uid"]
        found = [
            raw
            for key in self._workloads.store.keys_by(BY_OWNER_UID, uid)
            if (raw := self._workloads.store.raw(key)) is not None
        ]
        if not found:
            return None
        suspended = self._integration.is_suspended(job)
        pod_sets = self._pod_sets(job)
        expected = workloads.name_of(self._integration, job, self._context.options.workload)

        def rank(raw: Json) -> tuple[bool, bool, str]:
            matches = workloads.matches(raw, pod_sets, suspended=suspended)
            name = raw["metadata"]["name"]
            return (not matches, name != expected, name)

        found.sort(key=rank)
        for extra in found[1:]:
            await self._delete(job, extra)
        return await self._checked(job, found[0], pod_sets, suspended)

    async def _checked(
        self, job: Json, workload: Json, pod_sets: tuple[PodSet, ...], suspended: bool
    ) -> Json:
        """Delete a Workload that no longer describes its job; return it as it then is."""
        if workloads.is_finished(workload) or "deletionTimestamp" in workload["metadata"]:
            return workload
        if self._integration.finished(job) is not None:
            return workload
        if workloads.matches(workload, pod_sets, suspended=suspended):
            return workload
        if suspended and not workloads.is_reserved(workload):
            return workload  # it follows its job in `sync`
        if not suspended and not workloads.is_reserved(workload):
            return workload  # the job is stopped first, and gets its template back from here
        await self._delete(job, workload)
        namespace, name = workload["metadata"]["namespace"], workload["metadata"]["name"]
        return await self._context.writer.fresh(self._workloads, namespace, name)

    async def _delete(self, job: Json, workload: Json) -> None:
        if "deletionTimestamp" not in workload["metadata"]:
            await self.delete_quietly(workload)
            key = _key(workload)
            self._context.note(job, "DeletedWorkload", f"Deleted not matching Workload: {key}")

    async def delete_quietly(self, workload: Json) -> None:
        """Delete a Workload, unless it is gone or another by now."""
        try:
            await self._context.writer.delete(self._workloads, workload)
        except (NotFound, Conflict):
            return

    async def _adopt(self, job: Json, name: str) -> Json:
        namespace = job["metadata"]["namespace"]
        workload = self._workloads.store.raw(names.key(namespace, name))
        if workload is None:
            raise PrebuiltMissing(
                f"prebuilt Workload {namespace}/{name} does not exist; create it, or take the "
                f"{names.PREBUILT_WORKLOAD} label off"
            )
        if not workloads.is_owned_by(workload, job):
            references = workload["metadata"].get("ownerReferences") or []
            if any(reference.get("controller") for reference in references):
                raise PrebuiltMissing(
                    f"prebuilt Workload {namespace}/{name} belongs to another owner"
                )
            reference = workloads.owner_reference(self._integration, job)
            metadata = {**workload["metadata"], "ownerReferences": [*references, reference]}
            desired = {**workload, "metadata": metadata}
            workload = await self._context.writer.update(self._workloads, workload, desired)
        suspended = self._integration.is_suspended(job)
        in_sync = workloads.matches(workload, self._pod_sets(job), suspended=suspended)
        if not in_sync and not workloads.is_finished(workload):
            reason = FinishedReason.OUT_OF_SYNC
            workload = await self.set_finished(workload, str(reason), _OUT_OF_SYNC)
        return workload

    async def create(self, job: Json) -> None:
        """Create the Workload of a suspended job.

        Raises:
            PriorityClassMissing: The job names a class that does not exist.
        """
        pod_sets = self._pod_sets(job)
        workload = workloads.construct(
            self._integration,
            job,
            pod_sets=pod_sets,
            priority=self._priority(job, pod_sets),
            options=self._context.options.workload,
        )
        namespace, name = workload["metadata"]["namespace"], workload["metadata"]["name"]
        try:
            await self._context.writer.create(self._workloads, namespace, workload)
        except AlreadyExists:
            # Made by us before a crash, or by the leader before us: the cache learns of it now.
            present = await self._context.writer.fresh(self._workloads, namespace, name)
            if not workloads.is_owned_by(present, job):
                raise
            return
        self._context.note(job, "CreatedWorkload", f"Created Workload: {namespace}/{name}")

    def _priority(self, job: Json, pod_sets: tuple[PodSet, ...]) -> Priority:
        try:
            return priorities.resolve(self._integration, job, pod_sets, self._classes)
        except PriorityClassMissing as error:
            self._context.note(job, f"{error.kind}NotFound", str(error), warning=True)
            raise

    async def sync(self, job: Json, workload: Json) -> Json:
        """Bring a Workload that is not admitted up to its suspended job."""
        pod_sets = self._pod_sets(job)
        has_class = names.PRIORITY_CLASS_LABEL in labels_of(job)
        desired = workloads.synced(
            workload,
            job,
            pod_sets=pod_sets,
            priority=self._priority(job, pod_sets) if has_class else None,
        )
        if desired is workload:
            return workload
        answer = await self._context.writer.update(self._workloads, workload, desired)
        self._context.note(job, "UpdatedWorkload", f"Updated Workload: {_key(workload)}")
        return answer

    async def set_finished(self, workload: Json, reason: str, message: str) -> Json:
        """Write Finished=True."""
        status = transitions.finish(
            workload.get("status") or {},
            self._context.moment(workload),
            reason=reason,
            message=message,
        )
        return await self._context.writer.status(self._workloads, workload, status)

    async def finish(self, job: Json, workload: Json, finish: Finish) -> None:
        """Finish the Workload of a job that has ended, which frees its quota."""
        reason = FinishedReason.SUCCEEDED if finish.success else FinishedReason.FAILED
        workload = await self.set_finished(workload, str(reason), finish.message)
        await self.let_go(job, workload)

    async def let_go(self, job: Json, workload: Json) -> None:
        """Take the finalizer off a finished Workload, so that deleting it never waits for us."""
        if names.IN_USE_FINALIZER in (workload["metadata"].get("finalizers") or ()):
            await self.drop_finalizer(workload)
            message = f"Workload '{_key(workload)}' is declared finished"
            self._context.note(job, "FinishedWorkload", message)

    async def drop_finalizer(self, workload: Json) -> None:
        """Take our finalizer off a Workload."""
        desired = without_finalizer(workload, names.IN_USE_FINALIZER)
        await self._context.writer.update(self._workloads, workload, desired)


def _key(workload: Json) -> str:
    return names.key(workload["metadata"]["namespace"], workload["metadata"]["name"])
