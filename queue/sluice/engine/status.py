"""What the engine answers about queues, cohorts and Workloads.

Values of the read-only queries of `sluice.engine.engine.Engine`; the controllers turn them into
status fields with `sluice.api.wire` (docs/spec/api.md 1.1 to 1.3, 4.8). Pure data.
"""

from dataclasses import dataclass
from enum import StrEnum

from sluice.api.names import ClusterQueueName, FlavorName, LocalQueueKey, ResourceName, WorkloadKey
from sluice.api.records import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRef:
    """Names an observed object; ``key`` as in `events.Gone`."""

    kind: Kind
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUsage:
    """Usage of one flavor-resource in the resource's unit; ``borrowed`` is 0 without a cohort."""

    name: ResourceName
    total: int
    borrowed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorUsage:
    """Usage of one flavor, resources in name order."""

    name: FlavorName
    resources: tuple[ResourceUsage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterQueueStatus:
    """status of a ClusterQueue.

    Attributes:
        is_active: Status of its Active condition.
        reason: Reason of that condition.
        message: Its message.
        reservation: Usage of Workloads that hold quota.
        usage: Usage of admitted ones.
        weighted_share: None when fair sharing is off.
    """

    name: ClusterQueueName
    pending: int
    reserving: int
    admitted: int
    reservation: tuple[FlavorUsage, ...]
    usage: tuple[FlavorUsage, ...]
    is_active: bool
    reason: str
    message: str
    weighted_share: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalQueueStatus:
    """status of a LocalQueue.

    Attributes:
        pending: 0 while the queue is stopped.
        consumed: Consumed resources of admission fair sharing as (resource, quantity text) in name
            order; None when that is off or the ClusterQueue is inactive.
        consumed_updated_ms: When it was computed.
    """

    key: LocalQueueKey
    pending: int
    reserving: int
    admitted: int
    reservation: tuple[FlavorUsage, ...]
    usage: tuple[FlavorUsage, ...]
    is_active: bool
    reason: str
    message: str
    consumed: tuple[tuple[ResourceName, str], ...] | None = None
    consumed_updated_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortStatus:
    """status of an explicit Cohort; the share is None when fair sharing is off."""

    name: str
    weighted_share: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingEntry:
    """One pending Workload of a ClusterQueue.

    Attributes:
        position: From 0, in queue order over all its pending Workloads.
        local_position: The same within its LocalQueue.
        inadmissible: Parked: it waits for something to change; otherwise it is in the heap.
    """

    workload: WorkloadKey
    local_queue: LocalQueueKey
    priority: int
    position: int
    local_position: int
    inadmissible: bool


class Place(StrEnum):
    """Where the engine has a Workload."""

    ACTIVE = "active"
    INADMISSIBLE = "inadmissible"
    RESERVED = "reserved"
    OUTSIDE = "outside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a Workload is where it is, from the decision itself.

    Attributes:
        cluster_queue: None when its LocalQueue or ClusterQueue is unknown.
        position: In its ClusterQueue's order; None unless pending.
        reason: Wire reason of the last decision (a `PendingReason`, "QuotaReserved", "Admitted" or
            an eviction reason); empty before any.
        message: The sentence that goes with it.
        details: One line per pod set and flavor looked at in the last attempt.
        decided_at_ms: When; None before any decision.
    """

    workload: WorkloadKey
    place: Place
    cluster_queue: ClusterQueueName | None
    position: int | None
    reason: str
    message: str
    details: tuple[str, ...] = ()
    decided_at_ms: int | None = None
