"""Any job kind: makes its Workload, starts it when admitted, stops it when evicted, finishes it.

One controller for each kind; what the kind means is in its integration (``sluice.jobs``). The
order of the steps is that of docs/spec/api.md 2.3.8. Each reconcile reads the caches, takes the
first step that applies and is called again by the echo of its own write; a crash between two writes
is harmless, because the next reconcile sees the same state.
"""

from __future__ import annotations

from typing import Final

from sluice.api import names
from sluice.api.errors import Invalid, NotFound
from sluice.api.records import Namespace
from sluice.api.validate.node import Node
from sluice.controllers.caches import BY_OWNER, CachedWorkload, Json, owner_key
from sluice.controllers.jobs_context import JobContext
from sluice.controllers.jobs_run import JobRunner
from sluice.controllers.jobs_workload import PrebuiltMissing, WorkloadKeeper
from sluice.controllers.reconcile import DONE, Reconciler, Result
from sluice.jobs import workload as workloads
from sluice.jobs.admission.ancestors import managed_ancestor
from sluice.jobs.admission.context import Context, Refused
from sluice.jobs.integration import queue_name
from sluice.jobs.podset import FlavorMissing
from sluice.kube.informer import Handlers

_TOLD: Final[dict[type[Exception], str]] = {
    PrebuiltMissing: "ErrWorkloadCompose",
    FlavorMissing: "FailedToStart",
    Invalid: "FailedUpdate",
}
"""Events on a job for what keeps it from going on."""
_NOT_ADMITTED: Final = "Not admitted by cluster queue"
_WORKLOAD_DELETED: Final = "Workload is deleted"
_CHILD_SUSPENDED: Final = "Kueue managed child job suspended"


class JobController:
    """Reconciles the jobs of one kind by key."""

    def __init__(self, context: JobContext, *, workers: int) -> None:
        self._context = context
        self._integration = context.integration
        self._jobs = context.caches.jobs_of(context.integration)
        self._workloads = context.caches.workloads
        self._keeper = WorkloadKeeper(context)
        self._runner = JobRunner(context)
        kind = context.integration.kind
        self._owner_prefix = owner_key(kind.group, kind.kind, "", "").rstrip("/")
        self.reconciler = Reconciler(
            f"job-{kind.framework}",
            self._reconcile,
            workers=workers,
            all_keys=self._all_keys,
        )

    def _all_keys(self) -> tuple[str, ...]:
        """Return every job, and the jobs that are gone and left a Workload."""
        owners = (cached.owner for _, cached in self._workloads.store.items())
        left = {
            owner.removeprefix(self._owner_prefix)
            for owner in owners
            if owner.startswith(self._owner_prefix)
        }
        return tuple(dict.fromkeys([*self._jobs.store.all_keys(), *sorted(left)]))

    def attach(self) -> None:
        """Look at jobs when they or their Workloads change."""
        self._jobs.add_handlers(
            Handlers(
                added=lambda key, _: self.reconciler.add(key),
                updated=lambda key, _, __: self.reconciler.add(key),
                deleted=lambda key, _: self.reconciler.add(key),
            )
        )
        self._workloads.add_handlers(
            Handlers(
                added=lambda _, cached: self._workload_changed(cached),
                updated=lambda _, __, cached: self._workload_changed(cached),
                deleted=lambda _, cached: self._workload_changed(cached),
            )
        )

        self._context.caches.namespaces.add_handlers(Handlers(updated=self._namespace_changed))

    def _namespace_changed(self, name: str, old: Namespace, new: Namespace) -> None:
        """Look at every job of a namespace whose labels may now say that it is managed."""
        if old.labels == new.labels:
            return
        for key in self._jobs.store.all_keys():
            if names.split_key(key)[0] == name:
                self.reconciler.add(key)

    def _workload_changed(self, cached: CachedWorkload) -> None:
        if not cached.owner:
            return
        if cached.owner.startswith(self._owner_prefix):
            self.reconciler.add(cached.owner.removeprefix(self._owner_prefix))
        for child in self._jobs.store.keys_by(BY_OWNER, cached.owner):
            self.reconciler.add(child)

    async def _reconcile(self, key: str) -> Result:
        await self._clean_up(key)
        job = self._jobs.store.raw(key)
        if job is None or not self._is_ours(job):
            return DONE
        try:
            return await self._handle(key, job)
        except (PrebuiltMissing, FlavorMissing, Invalid) as error:
            # It is tried again; until it works the user must be able to see why it does not.
            self._context.note(job, _TOLD[type(error)], str(error), warning=True)
            raise

    async def _handle(self, key: str, job: Json) -> Result:
        cached = self._jobs.store.get(key)
        if cached is not None and cached.owner and await self._follows_ancestor(job):
            return DONE
        if not queue_name(job) and not self._context.options.manages_unqueued:
            return DONE
        workload = await self._keeper.find(job)
        if workload is None:
            return await self._without_workload(job)
        return await self._with_workload(job, workload)

    def _is_ours(self, job: Json) -> bool:
        """Tell whether this job is for us to handle (docs/spec/api.md 2.3.8, points 1 and 2)."""
        if "deletionTimestamp" in job["metadata"]:
            return False
        labels = self._context.caches.namespace_labels(job["metadata"]["namespace"])
        if not self._context.options.managed_namespaces.matches(labels):
            return False
        manager = self._integration.managed_by(job)
        ours = ("", self._integration.kind.manager, names.MULTIKUEUE_CONTROLLER)
        return manager in ours

    async def _clean_up(self, key: str) -> None:
        """Let Workloads go whose job is gone, is being deleted, or is another by now."""
        job = self._jobs.store.raw(key)
        kept = None
        if job is not None and "deletionTimestamp" not in job["metadata"]:
            kept = job["metadata"]["uid"]
        store = self._workloads.store
        for workload_key in store.keys_by(BY_OWNER, f"{self._owner_prefix}{key}"):
            cached = store.get(workload_key)
            if cached is None or (kept is not None and kept in cached.owner_uids):
                continue
            raw = store.raw(workload_key)
            if raw is None or (job is None and await self._is_late(raw, key, cached)):
                continue
            await self._keeper.drop_finalizer(raw)
            if job is None and "deletionTimestamp" not in raw["metadata"]:
                # The garbage collector would come to it; but quota should not wait for that, and
                # a collector learns of new kinds only every half minute.
                await self._keeper.delete_quietly(raw)

    async def _is_late(self, raw: Json, key: str, cached: CachedWorkload) -> bool:
        """Tell whether the owner lives and only our cache has not seen it yet."""
        if "deletionTimestamp" in raw["metadata"]:
            return False
        try:
            job = await self._context.writer.fresh(self._jobs, *names.split_key(key))
        except NotFound:
            return False
        return (
            job["metadata"]["uid"] in cached.owner_uids
            and "deletionTimestamp" not in job["metadata"]
        )

    async def _follows_ancestor(self, job: Json) -> bool:
        """Keep the child of a queued job suspended until that is admitted; True if it is one."""
        context = Context(
            namespace=job["metadata"]["namespace"],
            options=self._context.options.admission,
            lookups=self._context.lookups,
        )
        try:
            ancestor = await managed_ancestor(Node(job), context)
        except Refused as error:
            self._context.note(job, "JobNestingTooDeep", str(error), warning=True)
            return True
        if ancestor is None:
            return False
        raw = self._keeper.owned_by(ancestor["metadata"]["uid"])
        runs = raw is not None and workloads.is_admitted(raw) and not workloads.is_finished(raw)
        if runs or self._integration.is_suspended(job) or self._integration.finished(job):
            return True
        await self._runner.stop(job, None)
        self._context.note(job, "Suspended", _CHILD_SUSPENDED)
        return True

    async def _without_workload(self, job: Json) -> Result:
        if self._integration.finished(job) is not None:
            return DONE
        if not self._integration.is_suspended(job):
            job = await self._runner.stop(job, None)
            self._context.note(job, "Stopped", "missing workload")
        await self._keeper.create(job)
        return DONE

    async def _with_workload(self, job: Json, workload: Json) -> Result:
        runner, integration = self._runner, self._integration
        if workloads.is_finished(workload):
            await self._keeper.let_go(job, workload)
            return DONE
        if "deletionTimestamp" in workload["metadata"]:
            job = await runner.stop_for(job, workload, _WORKLOAD_DELETED)
            if not integration.is_active(job):
                await self._keeper.drop_finalizer(workload)
            return DONE
        finish = integration.finished(job)
        if finish is not None:
            await self._keeper.finish(job, workload, finish)
            return DONE
        suspended = integration.is_suspended(job)
        if workloads.is_evicted(workload) and (workloads.is_reserved(workload) or not suspended):
            await runner.evicted(job, workload)
            return DONE
        workload = await runner.report(job, workload)
        if workloads.is_admitted(workload):
            if integration.is_stopping(job):
                # Admitted while it was being stopped for having no quota: a half stopped job can't
                # be started, and nobody else completes the stop.
                job = await runner.stop(job, workload)
                suspended = integration.is_suspended(job)
            if suspended:
                await runner.start(job, workload)
        elif suspended:
            await self._keeper.sync(job, workload)
        else:
            await runner.stop_for(job, workload, _NOT_ADMITTED)
        return DONE
