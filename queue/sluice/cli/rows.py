"""From API objects to table rows: queues and Workloads as people ask about them. Pure.

Used by ``get`` and by the live table of the demo.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sluice.api import conditions, names
from sluice.api.conditions import ConditionType
from sluice.api.quantity import canonical, to_text
from sluice.api.times import to_ms
from sluice.cli.tables import age

Json = Mapping[str, Any]

LOCAL_QUEUE_HEADERS: Final = ("NAME", "CLUSTERQUEUE", "PENDING", "ADMITTED", "STATUS")
CLUSTER_QUEUE_HEADERS: Final = ("NAME", "COHORT", "PENDING", "ADMITTED", "STATUS", "USAGE")
WORKLOAD_HEADERS: Final = (
    "NAME",
    "JOB TYPE",
    "JOB NAME",
    "LOCALQUEUE",
    "CLUSTERQUEUE",
    "STATUS",
    "POSITION IN QUEUE",
    "EXEC TIME",
    "AGE",
)


def local_queue_row(queue: Json) -> list[str]:
    """Return the cells of a LocalQueue."""
    status = queue.get("status") or {}
    return [
        queue["metadata"]["name"],
        queue["spec"]["clusterQueue"],
        str(status.get("pendingWorkloads") or 0),
        str(status.get("admittedWorkloads") or 0),
        queue_status(queue),
    ]


def cluster_queue_row(queue: Json) -> list[str]:
    """Return the cells of a ClusterQueue."""
    status = queue.get("status") or {}
    return [
        queue["metadata"]["name"],
        queue["spec"].get("cohortName") or "",
        str(status.get("pendingWorkloads") or 0),
        str(status.get("admittedWorkloads") or 0),
        queue_status(queue),
        usage(queue),
    ]


def queue_status(queue: Json) -> str:
    """Return ``Active``, or why a queue is not; how it is stopped comes first."""
    policy = queue["spec"].get("stopPolicy") or "None"
    if policy != "None":
        return f"Stopped ({policy})"
    active = conditions.find((queue.get("status") or {}).get("conditions"), ConditionType.ACTIVE)
    if active is None:
        return "Unknown"
    return "Active" if active["status"] == "True" else f"Inactive ({active.get('reason', '')})"


def queue_message(queue: Json) -> str:
    """Return the message of a queue's Active condition, empty without one."""
    active = conditions.find((queue.get("status") or {}).get("conditions"), ConditionType.ACTIVE)
    return "" if active is None else str(active.get("message") or "")


def usage(queue: Json) -> str:
    """Return what a ClusterQueue uses of its nominal quota, summed over flavors, by resource."""
    nominal: dict[str, int] = {}
    for group in queue["spec"].get("resourceGroups") or ():
        for flavor in group["flavors"]:
            for resource in flavor["resources"]:
                name = resource["name"]
                nominal[name] = nominal.get(name, 0) + canonical(name, resource["nominalQuota"])
    used = dict.fromkeys(nominal, 0)
    for flavor in (queue.get("status") or {}).get("flavorsUsage") or ():
        for resource in flavor["resources"]:
            name = resource["name"]
            used[name] = used.get(name, 0) + canonical(name, resource.get("total") or "0")
    return ", ".join(
        f"{name} {to_text(name, used[name])}/{to_text(name, nominal.get(name, 0))}" for name in used
    )


def workload_row(workload: Json, *, now_ms: int, position: int | None) -> list[str]:
    """Return the cells of a Workload.

    Args:
        workload: The object.
        now_ms: The time, for ages.
        position: Its place in its ClusterQueue from 0; None when unknown or not pending.
    """
    metadata, spec = workload["metadata"], workload.get("spec") or {}
    status = workload.get("status") or {}
    owner = _controller(metadata)
    admission = status.get("admission") or {}
    return [
        metadata["name"],
        _job_type(owner),
        owner.get("name", ""),
        spec.get("queueName") or "",
        admission.get("clusterQueue") or "",
        workload_status(workload),
        "" if position is None else str(position),
        _execution(status, now_ms),
        age((now_ms - to_ms(metadata["creationTimestamp"])) / 1000),
    ]


def workload_status(workload: Json) -> str:
    """Return where a Workload is in its life, with the reason that a user can act on."""
    found = (workload.get("status") or {}).get("conditions")
    if finished := _true(found, ConditionType.FINISHED):
        return f"Finished ({finished.get('reason', '')})"
    if (workload.get("spec") or {}).get("active") is False:
        return "Deactivated"
    if conditions.is_true(found, ConditionType.ADMITTED):
        evicted = _true(found, ConditionType.EVICTED)
        return f"Evicting ({evicted.get('reason', '')})" if evicted else "Admitted"
    if conditions.is_true(found, ConditionType.QUOTA_RESERVED):
        return "QuotaReserved"
    reserved = conditions.find(found, ConditionType.QUOTA_RESERVED)
    return "Pending" if reserved is None else f"Pending ({reserved.get('reason', '')})"


def workload_message(workload: Json) -> str:
    """Return the sentence that goes with `workload_status`."""
    found = (workload.get("status") or {}).get("conditions")
    for kind in (ConditionType.FINISHED, ConditionType.ADMITTED):
        if condition := _true(found, kind):
            return str(condition.get("message") or "")
    reserved = conditions.find(found, ConditionType.QUOTA_RESERVED)
    return "" if reserved is None else str(reserved.get("message") or "")


def positions(workloads: Iterable[Json], cluster_queue_of: Mapping[str, str]) -> dict[str, int]:
    """Return the place of each pending Workload in its ClusterQueue, by key, from 0.

    Priority first, then age: what the queue's order is without admission fair sharing.

    Args:
        workloads: All Workloads of the cluster.
        cluster_queue_of: ClusterQueue by key of the LocalQueue.
    """
    waiting: dict[str, list[tuple[int, int, str, str]]] = {}
    for workload in workloads:
        key = key_of(workload)
        status = workload.get("status") or {}
        found = status.get("conditions")
        spec = workload.get("spec") or {}
        queue = cluster_queue_of.get(
            names.key(workload["metadata"]["namespace"], spec.get("queueName") or "")
        )
        is_pending = (
            queue is not None
            and spec.get("active") is not False
            and not conditions.is_true(found, ConditionType.QUOTA_RESERVED)
            and not conditions.is_true(found, ConditionType.FINISHED)
        )
        if is_pending and queue is not None:
            order = (-(spec.get("priority") or 0), _queued_ms(workload), _uid(workload), key)
            waiting.setdefault(queue, []).append(order)
    return {
        order[-1]: place
        for orders in waiting.values()
        for place, order in enumerate(sorted(orders))
    }


def key_of(body: Json) -> str:
    """Return ``namespace/name`` of an object."""
    return names.key(body["metadata"].get("namespace", ""), body["metadata"]["name"])


def _uid(workload: Json) -> str:
    return str(workload["metadata"].get("uid", ""))


def _queued_ms(workload: Json) -> int:
    evicted = _true((workload.get("status") or {}).get("conditions"), ConditionType.EVICTED)
    if evicted and evicted.get("reason") == "PodsReadyTimeout":
        return to_ms(evicted["lastTransitionTime"])
    return to_ms(workload["metadata"]["creationTimestamp"])


def _true(found: Sequence[Json] | None, kind: ConditionType) -> Json | None:
    condition = conditions.find(found, kind)
    return condition if condition is not None and condition.get("status") == "True" else None


def _controller(metadata: Json) -> Json:
    owners = metadata.get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), {})


def _job_type(owner: Json) -> str:
    if not owner:
        return ""
    group, _, _ = owner.get("apiVersion", "").rpartition("/")
    kind = owner.get("kind", "").lower()
    return f"{kind}.{group}" if group else kind


def _execution(status: Json, now_ms: int) -> str:
    """Return how long it ran in all: earlier admissions, and the present or last one."""
    total_s = float(status.get("accumulatedPastExecutionTimeSeconds") or 0)
    admitted = _true(status.get("conditions"), ConditionType.ADMITTED)
    if admitted is not None:
        finished = _true(status.get("conditions"), ConditionType.FINISHED)
        end_ms = now_ms if finished is None else to_ms(finished["lastTransitionTime"])
        total_s += (end_ms - to_ms(admitted["lastTransitionTime"])) / 1000
    return age(total_s) if total_s > 0 else ""
