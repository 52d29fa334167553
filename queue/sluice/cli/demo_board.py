"""What the demo shows: a table of queues and Jobs at a terminal, plain lines elsewhere.

Reads raw objects out of informers' caches; draws when told to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from sluice.api import conditions, names
from sluice.api.conditions import ConditionType as Type
from sluice.cli.demo_jobs import GPU

Json = Mapping[str, Any]

QUOTA: Final = 8
_NEW: Final = "submitted"
_STYLES: Final = {
    "running": "green",
    "finished": "dim",
    "waiting": "yellow",
    "evicted": "red",
    "admitted": "green",
    "failed": "red",
    "submitted": "dim",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One Job as shown; ``why`` is the sentence a user would act on."""

    job: str
    queue: str
    gpus: int
    state: str
    why: str


def state_of(job: Json, workload: Json | None) -> tuple[str, str]:
    """Return (state, why) of a Job and its Workload."""
    held = (job.get("status") or {}).get("conditions")
    if conditions.is_true(held, "Complete"):
        return "finished", ""
    if conditions.is_true(held, "Failed"):
        failed = conditions.find(held, "Failed") or {}
        return "failed", str(failed.get("message", ""))
    status = job.get("status") or {}
    active, ended = status.get("active") or 0, status.get("succeeded") or 0
    if names.QUEUE_LABEL not in (job["metadata"].get("labels") or {}):
        is_running = not job["spec"].get("suspend") and active
        return ("running", "no queue: as if Sluice did not exist") if is_running else (_NEW, "")
    if workload is None:
        return _NEW, ""
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
    return _NEW, ""


def _gpus(obj: Json) -> int:
    spec = obj["spec"]["template"]["spec"]["containers"][0]
    each = int(((spec.get("resources") or {}).get("requests") or {}).get(GPU, 0))
    return each * int(obj["spec"].get("parallelism") or 1)


def rows(jobs: Iterable[Json], workloads: Mapping[str, Json]) -> list[Row]:
    """Return the rows of the Jobs, in order of creation; ``workloads`` by the Job's UID."""
    shown = []
    for job in sorted(
        jobs, key=lambda j: (j["metadata"]["creationTimestamp"], j["metadata"]["name"])
    ):
        state, why = state_of(job, workloads.get(job["metadata"]["uid"]))
        shown.append(
            Row(
                job=job["metadata"]["name"],
                queue=job["metadata"]["namespace"],
                gpus=_gpus(job),
                state=state,
                why=why,
            )
        )
    return shown


def used_gpus(queue: Json) -> int:
    """Return the GPUs that a ClusterQueue's status says are reserved."""
    return sum(
        int(resource["total"])
        for flavor in (queue.get("status") or {}).get("flavorsReservation") or ()
        for resource in flavor["resources"]
        if resource["name"] == GPU
    )


def _bar(used: int) -> Text:
    bar = Text("█" * min(used, QUOTA), style="green")
    bar.append("█" * max(0, used - QUOTA), style="magenta")
    bar.append("░" * max(0, QUOTA - used), style="dim")
    return bar


def board(elapsed_s: float, queues: Iterable[Json], shown: Iterable[Row]) -> Group:
    """Return the picture for a terminal."""
    top = Table(title=f"ClusterQueues of cohort gpus, 16 GPUs, {elapsed_s:4.1f} s", expand=False)
    for name in ("QUEUE", "QUOTA", "USED", "", "PENDING", "ADMITTED"):
        top.add_column(name, justify="right" if name not in ("QUEUE", "") else "left")
    for queue in sorted(queues, key=lambda q: str(q["metadata"]["name"])):
        status, used = queue.get("status") or {}, used_gpus(queue)
        top.add_row(
            queue["metadata"]["name"],
            str(QUOTA),
            str(used),
            _bar(used),
            str(status.get("pendingWorkloads", 0)),
            str(status.get("admittedWorkloads", 0)),
        )
    table = Table(title="Jobs", expand=False)
    for name in ("JOB", "TEAM", "GPUS", "STATE", "WHY"):
        table.add_column(name, justify="right" if name == "GPUS" else "left", no_wrap=name != "WHY")
    for row in shown:
        state = Text(row.state, style=_STYLES.get(row.state, ""))
        table.add_row(row.job, row.queue, str(row.gpus or ""), state, row.why[:200])
    return Group(top, table)


def line(elapsed_s: float, row: Row) -> str:
    """Return one plain line for a Job whose state changed."""
    why = f"  ({row.why})" if row.why else ""
    return f"{elapsed_s:5.1f} s  {row.queue}/{row.job}: {row.state}{why}"
