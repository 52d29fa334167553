"""Condition lists: types, reasons and the only functions that change them.

A condition list is the raw JSON list of ``metav1.Condition``. `set_condition` returns a new list
and moves ``lastTransitionTime`` only when the status changes. Source: docs/spec/api.md section 4.
Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from sluice.api import times

MESSAGE_LENGTH_MAX: Final = 32 * 1024
TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"


class ConditionType(StrEnum):
    """Condition types of Workloads and queues."""

    QUOTA_RESERVED = "QuotaReserved"
    ADMITTED = "Admitted"
    PODS_READY = "PodsReady"
    EVICTED = "Evicted"
    PREEMPTED = "Preempted"
    REQUEUED = "Requeued"
    FINISHED = "Finished"
    DEACTIVATION_TARGET = "DeactivationTarget"
    BLOCKED_ON_PREEMPTION_GATES = "BlockedOnPreemptionGates"
    WAITING_FOR_REPLACEMENT_PODS = "WaitingForReplacementPods"
    ACTIVE = "Active"


class PendingReason(StrEnum):
    """Why QuotaReserved is False."""

    WAITING_FOR_QUOTA = "WaitingForQuota"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    TOPOLOGY_PLACEMENT_FAILED = "TopologyPlacementFailed"
    WAITING_FOR_PREEMPTED_WORKLOADS = "WaitingForPreemptedWorkloads"
    WAITING_FOR_PODS_READY = "WaitingForPodsReady"
    MISCONFIGURED = "Misconfigured"
    SUSPENDED = "Suspended"
    PENDING_EVALUATION = "PendingEvaluation"
    ADMISSION_GATED = "AdmissionGated"
    ON_HOLD = "OnHold"
    DEACTIVATED = "Deactivated"
    # Reasons of the legacy scheme (gate UnadmittedWorkloadsObservability off).
    PENDING = "Pending"
    INADMISSIBLE = "Inadmissible"
    WAITING = "Waiting"


class EvictionReason(StrEnum):
    """Why Evicted is True; deactivations by the system append their cause."""

    PREEMPTED = "Preempted"
    PODS_READY_TIMEOUT = "PodsReadyTimeout"
    ADMISSION_CHECK = "AdmissionCheck"
    CLUSTER_QUEUE_STOPPED = "ClusterQueueStopped"
    LOCAL_QUEUE_STOPPED = "LocalQueueStopped"
    NODE_FAILURES = "NodeFailures"
    DEACTIVATED = "Deactivated"
    FLAVOR_MIGRATION = "FlavorMigration"


class PreemptionReason(StrEnum):
    """Why Preempted is True."""

    IN_CLUSTER_QUEUE = "InClusterQueue"
    IN_COHORT_RECLAMATION = "InCohortReclamation"
    IN_COHORT_FAIR_SHARING = "InCohortFairSharing"
    IN_COHORT_RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"


class FinishedReason(StrEnum):
    """Why Finished is True."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    OUT_OF_SYNC = "OutOfSync"
    OWNER_NOT_FOUND = "OwnerNotFound"
    FAILED_TO_START = "FailedToStart"
    WORKLOAD_SLICE_REPLACED = "WorkloadSliceReplaced"


Condition = dict[str, Any]


def find(conditions: Iterable[Mapping[str, Any]] | None, kind: str) -> Mapping[str, Any] | None:
    """Return the condition of a type, or None."""
    for condition in conditions or ():
        if condition.get("type") == kind:
            return condition
    return None


def status_of(conditions: Iterable[Mapping[str, Any]] | None, kind: str) -> str | None:
    """Return "True", "False" or "Unknown", or None when the condition is absent."""
    condition = find(conditions, kind)
    return None if condition is None else str(condition.get("status"))


def is_true(conditions: Iterable[Mapping[str, Any]] | None, kind: str) -> bool:
    """Tell whether the condition is there and True."""
    return status_of(conditions, kind) == TRUE


def is_false(conditions: Iterable[Mapping[str, Any]] | None, kind: str) -> bool:
    """Tell whether the condition is there and False."""
    return status_of(conditions, kind) == FALSE


def set_condition(
    conditions: Sequence[Mapping[str, Any]] | None,
    *,
    kind: str,
    status: str,
    reason: str,
    message: str,
    now_ms: int,
    generation: int | None = None,
) -> list[Condition]:
    """Return the list with one condition set.

    The transition time is kept when the status stays; messages are cut at 32 KiB.

    Args:
        conditions: The present list; not changed.
        kind: Condition type.
        status: "True", "False" or "Unknown".
        reason: CamelCase reason, not empty.
        message: For people.
        now_ms: Transition time when the status changes.
        generation: ``metadata.generation`` this was seen at; left out when None.
    """
    entry: Condition = {
        "type": str(kind),
        "status": status,
        "reason": str(reason),
        "message": _cut(message),
        "lastTransitionTime": times.from_ms(now_ms),
    }
    if generation is not None:
        entry["observedGeneration"] = generation
    result: list[Condition] = []
    found = False
    for condition in conditions or ():
        if condition.get("type") != kind:
            result.append(dict(condition))
            continue
        found = True
        if condition.get("status") == status and condition.get("lastTransitionTime"):
            entry["lastTransitionTime"] = condition["lastTransitionTime"]
        result.append(entry)
    if not found:
        result.append(entry)
    return result


def remove(conditions: Sequence[Mapping[str, Any]] | None, kind: str) -> list[Condition]:
    """Return the list without one condition."""
    return [dict(c) for c in conditions or () if c.get("type") != kind]


def same(
    left: Sequence[Mapping[str, Any]] | None, right: Sequence[Mapping[str, Any]] | None
) -> bool:
    """Tell whether two lists say the same, their order and transition times apart."""

    def essence(conditions: Sequence[Mapping[str, Any]] | None) -> list[tuple[object, ...]]:
        return sorted(
            (c.get("type"), c.get("status"), c.get("reason"), c.get("message"),
             c.get("observedGeneration") or 0)
            for c in conditions or ()
        )  # fmt: skip

    return essence(left) == essence(right)


def _cut(message: str) -> str:
    data = message.encode()
    if len(data) <= MESSAGE_LENGTH_MAX:
        return message
    return data[: MESSAGE_LENGTH_MAX - 4].decode(errors="ignore") + " ..."
