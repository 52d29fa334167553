"""Decisions of the engine that the shell writes to the API server.

A command names the Workload by key and uid, so that it can't hit another object of the same name.
The engine assumes each command applied until `events.CommandFailed` says otherwise. What each
writes to the Workload's status is in docs/spec/api.md 4.2; the side effects of an eviction
(checks reset, gates closed, statistics) are the executor's. Made by the engine only.
"""

from dataclasses import dataclass

from sluice.api.conditions import EvictionReason, PendingReason, PreemptionReason
from sluice.api.names import CheckName, ClusterQueueName, PodSetName, ResourceName, WorkloadKey
from sluice.api.records import Admission


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveQuota:
    """Write status.admission and QuotaReserved=True; Admitted=True too when ``admitted``.

    QuotaReserved=True turns Evicted, Preempted and BlockedOnPreemptionGates to False
    (docs/spec/api.md 4.2).

    Attributes:
        resource_version: That of the Workload the decision was taken on, empty when unknown.
        checks: Admission checks required for the assigned flavors, in name order.
        admitted: All of them are Ready already (or there are none) and no topology is pending.
        message: Message of QuotaReserved.
        wait_ms: Time since the Workload was queued (creation, or the last eviction), at least 0.
    """

    workload: WorkloadKey
    uid: str
    resource_version: str
    cluster_queue: ClusterQueueName
    admission: Admission
    checks: tuple[CheckName, ...]
    admitted: bool
    message: str
    wait_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignTopology:
    """Write status.admission again with the topology found in a second pass; quota is unchanged.

    ``admitted`` as in `ReserveQuota`; ``clear_unhealthy_nodes``: empty status.unhealthyNodes.
    """

    workload: WorkloadKey
    uid: str
    resource_version: str
    cluster_queue: ClusterQueueName
    admission: Admission
    admitted: bool
    clear_unhealthy_nodes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict:
    """Write Evicted=True, and Preempted=True when ``preempted_reason`` is given.

    Quota stays booked until the Workload is seen without its reservation.

    Attributes:
        preemptor: The Workload that needs the room, None when nobody does.
        preemptor_uid: Its uid, empty without one.
        underlying_cause: For the eviction statistics, mostly empty.
    """

    workload: WorkloadKey
    uid: str
    resource_version: str
    cluster_queue: ClusterQueueName
    reason: EvictionReason
    message: str
    preempted_reason: PreemptionReason | None = None
    preemptor: WorkloadKey | None = None
    preemptor_uid: str = ""
    underlying_cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkPending:
    """Write QuotaReserved=False with a reason, and status.resourceRequests.

    Emitted only when reason or message differ from what the Workload says already.

    Attributes:
        message: One sentence (or several) that a user can act on.
        requests: Total requests per pod set after all transformations, in the resource's unit.
        blocked_on_gates: Also write BlockedOnPreemptionGates=True (reason PreemptionGated).
    """

    workload: WorkloadKey
    uid: str
    resource_version: str
    cluster_queue: ClusterQueueName
    reason: PendingReason
    message: str
    requests: tuple[tuple[PodSetName, tuple[tuple[ResourceName, int], ...]], ...] = ()
    blocked_on_gates: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishSlice:
    """Write Finished=True (WorkloadSliceReplaced): a newer slice of an elastic job took over."""

    workload: WorkloadKey
    uid: str
    resource_version: str
    replaced_by: WorkloadKey
    message: str


Command = ReserveQuota | AssignTopology | Evict | MarkPending | FinishSlice
