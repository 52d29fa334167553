"""The status of queues and cohorts as JSON, from what the engine answers.

Pure. Source: docs/spec/api.md 1.1 (status and formulas), 1.2, 1.3 and 4.8. Used by `queues`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sluice.api import conditions, quantity, times
from sluice.api.conditions import ConditionType
from sluice.engine.status import (
    ClusterQueueStatus,
    CohortStatus,
    FlavorUsage,
    LocalQueueStatus,
    ResourceUsage,
)
from sluice.jobs.difference import Json


def cluster_queue(present: Json, status: ClusterQueueStatus, *, now_ms: int, seen: int) -> Json:
    """Return the status of a ClusterQueue.

    Args:
        present: The status it has; conditions of other types stay.
        status: What the engine says.
        now_ms: Epoch milliseconds, for a condition that changes.
        seen: ``metadata.generation``.
    """
    result = _common(present, status, now_ms=now_ms, seen=seen)
    result["flavorsReservation"] = _flavors(status.reservation, borrowed=True)
    result["flavorsUsage"] = _flavors(status.usage, borrowed=True)
    result.pop("fairSharing", None)
    if status.weighted_share is not None:
        result["fairSharing"] = {"weightedShare": status.weighted_share}
    return result


def local_queue(present: Json, status: LocalQueueStatus, *, now_ms: int, seen: int) -> Json:
    """Return the status of a LocalQueue; arguments as in `cluster_queue`."""
    result = _common(present, status, now_ms=now_ms, seen=seen)
    result["flavorsReservation"] = _flavors(status.reservation, borrowed=False)
    result["flavorsUsage"] = _flavors(status.usage, borrowed=False)
    if status.consumed is None:
        return result
    usage: Json = {"consumedResources": dict(status.consumed)}
    if status.consumed_updated_ms is not None:
        usage["lastUpdate"] = times.from_ms(status.consumed_updated_ms)
        result["fairSharing"] = {"weightedShare": 0, "admissionFairSharingStatus": usage}
    return result


def cohort(present: Json, status: CohortStatus) -> Json:
    """Return the status of a Cohort."""
    result = {key: value for key, value in present.items() if key != "fairSharing"}
    if status.weighted_share is not None:
        result["fairSharing"] = {"weightedShare": status.weighted_share}
    return result


def _common(
    present: Json, status: ClusterQueueStatus | LocalQueueStatus, *, now_ms: int, seen: int
) -> Json:
    active = conditions.set_condition(
        present.get("conditions"),
        kind=ConditionType.ACTIVE,
        status=conditions.TRUE if status.is_active else conditions.FALSE,
        reason=status.reason,
        message=status.message,
        now_ms=now_ms,
        generation=seen,
    )
    return {
        **present,
        "conditions": active,
        "pendingWorkloads": status.pending,
        "reservingWorkloads": status.reserving,
        "admittedWorkloads": status.admitted,
    }


def _flavors(usage: Iterable[FlavorUsage], *, borrowed: bool) -> list[Json]:
    return [
        {"name": flavor.name, "resources": [_resource(r, borrowed) for r in flavor.resources]}
        for flavor in usage
    ]


def _resource(usage: ResourceUsage, borrowed: bool) -> Json:
    result: dict[str, Any] = {
        "name": usage.name,
        "total": quantity.to_text(usage.name, usage.total),
    }
    if borrowed:
        result["borrowed"] = quantity.to_text(usage.name, usage.borrowed)
    return result
