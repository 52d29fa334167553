"""What the demo sees of its cluster: caches of Jobs, Workloads and queues, and what happened.

Reads raw objects as the API server gives them. Used by ``demo_scenario`` and what shows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sluice.api import conditions, names
from sluice.api.conditions import ConditionType as Type
from sluice.cli.demo_jobs import GPU, DemoJob
from sluice.clock import Clock
from sluice.kube.client import Client
from sluice.kube.informer import Handlers, Informer
from sluice.kube.resources import BATCH_JOBS, CLUSTER_QUEUES, WORKLOADS, Resource

Json = dict[str, Any]

NEW: Final = "submitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One Job as shown; ``why`` is the sentence a user would act on."""

    job: str
    team: str
    gpus: int
    state: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """A Job came into another state, seconds after the scenario began."""

    at_s: float
    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What there is to see at one moment.

    Attributes:
        elapsed_s: Seconds since the scenario began.
        queues: The ClusterQueues, raw.
        rows: The Jobs in order of submission.
        happened: Every change of state so far.
    """

    elapsed_s: float
    queues: Sequence[Json]
    rows: Sequence[Row]
    happened: Sequence[Happening]


class Stage:
    """The scenario's view of the cluster.

    Attributes:
        changed: Set when something may look different.
        happened: Every change of state, in order.
        evictions: Why a Job was evicted, by name.
        refusals: What kubectl said of a Job that was not accepted, by name.
        submit_s: When each Job was sent, seconds after the beginning.
        first_run_s: When its Pods first ran.
        evict_s: When it was first evicted.
        end_s: When it was finished.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._clock = clock
        self._begin_s = clock.monotonic_s()
        self.changed = asyncio.Event()
        self.jobs = self._informer(client, BATCH_JOBS)
        self.workloads = self._informer(client, WORKLOADS)
        self.queues = self._informer(client, CLUSTER_QUEUES)
        self.happened: list[Happening] = []
        self.evictions: dict[str, str] = {}
        self.refusals: dict[str, str] = {}
        self.submit_s: dict[str, float] = {}
        self.first_run_s: dict[str, float] = {}
        self.evict_s: dict[str, float] = {}
        self.end_s: dict[str, float] = {}
        self._refused: list[DemoJob] = []
        self._last: dict[str, tuple[str, str]] = {}

    @property
    def elapsed_s(self) -> float:
        """Return the seconds since the scenario began."""
        return self._clock.monotonic_s() - self._begin_s

    def begin(self) -> None:
        """Start counting."""
        self._begin_s = self._clock.monotonic_s()

    def submitted(self, job: DemoJob) -> None:
        """Note that a Job is being sent."""
        self.submit_s[job.name] = self.elapsed_s

    def refused(self, job: DemoJob, why: str) -> None:
        """Note that a Job was not accepted."""
        self.refusals[job.name] = why
        self._refused.append(job)
        self.changed.set()

    def _informer(self, client: Client, resource: Resource) -> Informer[Json]:
        informer: Informer[Json] = Informer(client, resource, lambda obj: obj)

        def wake(key: str, *objects: Json) -> None:
            self.changed.set()

        informer.add_handlers(Handlers(added=wake, updated=wake, deleted=wake))
        return informer

    def informers(self) -> tuple[Informer[Json], ...]:
        """Return the caches to run."""
        return (self.jobs, self.workloads, self.queues)

    def rows(self) -> list[Row]:
        """Return the Jobs as they are now, in order of submission; note what happened to each."""
        owned = {
            reference["uid"]: workload
            for _, workload in self.workloads.store.items()
            for reference in workload["metadata"].get("ownerReferences") or ()
        }
        shown = [_row(job, owned) for _, job in self.jobs.store.items()]
        shown += [_refusal(job, self.refusals[job.name]) for job in self._refused]
        shown.sort(key=lambda row: (self.submit_s.get(row.job, 0.0), row.job))
        for row in shown:
            self._note(row)
        return shown

    def view(self) -> View:
        """Return what there is to see now."""
        rows = self.rows()
        return View(
            elapsed_s=self.elapsed_s,
            queues=[queue for _, queue in self.queues.store.items()],
            rows=rows,
            happened=tuple(self.happened),
        )

    def is_idle(self) -> bool:
        """Tell whether every queue has got all its quota back."""
        return not any(used_gpus(queue) for _, queue in self.queues.store.items())

    def _note(self, row: Row) -> None:
        now_s = self.elapsed_s
        if row.state == "evicted":
            self.evictions[row.job] = row.why
            self.evict_s.setdefault(row.job, now_s)
        if row.state in ("running", "finished"):
            self.first_run_s.setdefault(row.job, now_s)
        if row.state in ("finished", "failed"):
            self.end_s.setdefault(row.job, now_s)
        seen = (row.state, row.why if row.state in ("waiting", "evicted") else "")
        if self._last.get(row.job) != seen:
            self._last[row.job] = seen
            self.happened.append(Happening(at_s=now_s, row=row))


def state_of(job: Mapping[str, Any], workload: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return (state, why) of a Job and its Workload."""
    status = job.get("status") or {}
    held = status.get("conditions")
    if conditions.is_true(held, "Complete"):
        return "finished", ""
    if conditions.is_true(held, "Failed"):
        failed = conditions.find(held, "Failed") or {}
        return "failed", str(failed.get("message", ""))
    active, ended = status.get("active") or 0, status.get("succeeded") or 0
    if names.QUEUE_LABEL not in (job["metadata"].get("labels") or {}):
        is_running = not job["spec"].get("suspend") and active
        return ("running", "no queue: as if Sluice did not exist") if is_running else (NEW, "")
    if workload is None:
        return NEW, ""
    found = (workload.get("status") or {}).get("conditions")
    evicted = conditions.find(found, Type.EVICTED)
    if evicted is not None and evicted.get("status") == conditions.TRUE:
        return "evicted", str(evicted.get("message", ""))
    if conditions.is_true(found, Type.ADMITTED):
        if active or ended:
            return "running", f"{active} pods" if active else "pods have ended"
        return "admitted", "pods are starting"
    reserved = conditions.find(found, Type.QUOTA_RESERVED)
    if reserved is not None:
        return "waiting", f"{reserved.get('reason')}: {reserved.get('message')}"
    return NEW, ""


def _gpus(job: Mapping[str, Any]) -> int:
    container = job["spec"]["template"]["spec"]["containers"][0]
    each = int(((container.get("resources") or {}).get("requests") or {}).get(GPU, 0))
    return each * int(job["spec"].get("parallelism") or 1)


def _row(job: Mapping[str, Any], workloads: Mapping[str, Json]) -> Row:
    state, why = state_of(job, workloads.get(job["metadata"]["uid"]))
    metadata = job["metadata"]
    return Row(
        job=metadata["name"], team=metadata["namespace"], gpus=_gpus(job), state=state, why=why
    )


def _refusal(job: DemoJob, why: str) -> Row:
    # What the webhook says, without what kubectl puts before it.
    _, _, reason = why.partition("denied the request: ")
    return Row(job=job.name, team=job.namespace, gpus=job.pods, state="refused", why=reason or why)


def used_gpus(queue: Mapping[str, Any]) -> int:
    """Return the GPUs that a ClusterQueue's status says are reserved."""
    return sum(
        int(resource["total"])
        for flavor in (queue.get("status") or {}).get("flavorsReservation") or ()
        for resource in flavor["resources"]
        if resource["name"] == GPU
    )
