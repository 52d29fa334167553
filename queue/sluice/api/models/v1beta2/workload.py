"""Workload in v1beta2: its status and the whole (docs/spec/api.md 1.4)."""

from typing import Annotated, Literal

from pydantic import Field

from sluice.api.models.base import Count, Int32, LabelName, Model, SubdomainName, Timestamp
from sluice.api.models.meta import Conditions, ObjectMeta
from sluice.api.models.schema import ATOMIC_LIST, Extension, map_list, object_rules
from sluice.api.models.v1beta2.topology_assignment import TopologyAssignment
from sluice.api.models.v1beta2.workload_spec import WorkloadSpec
from sluice.api.models.workload_parts import (
    PodSetAssignmentBase,
    PodSetUpdate,
    SchedulingStatsEviction,
    UnhealthyNode,
    WorkloadStatusBase,
)
from sluice.api.models.workload_rules import (
    ASSIGNMENTS_MATCH,
    CLUSTER_NAME,
    CLUSTER_NAME_OR_NOMINATED,
    MAXIMUM_EXECUTION_TIME,
    QUEUE_NAME,
    REF_GROUP,
    REF_KIND,
    REF_NAME,
    REF_PRESENCE,
)

_ClusterName = Annotated[str, Field(max_length=256)]
_GateName = Annotated[str, Field(min_length=1, max_length=63)]


class PodSetAssignment(PodSetAssignmentBase):
    """What one PodSet got."""

    name: LabelName = "main"
    """The PodSet."""
    topology_assignment: TopologyAssignment | None = None
    """Where its pods go; for flavors with a topology."""
    delayed_topology_request: (
        Annotated[Literal["Pending", "Ready"], Extension({"maxLength": 7})] | None
    ) = None
    """Whether the place is still to be found (Pending) or was found after quota was reserved
    (Ready)."""


class Admission(Model):
    """The quota that the Workload holds."""

    cluster_queue: SubdomainName | None = None
    """The ClusterQueue that gave the quota."""
    pod_set_assignments: (
        Annotated[list[PodSetAssignment], Field(max_length=18), map_list("name")] | None
    ) = None
    """What each PodSet got."""


class AdmissionCheckState(Model):
    """The state of one admission check for this Workload."""

    name: Annotated[str, Field(min_length=1, max_length=316)]
    """The AdmissionCheck."""
    state: Literal["Pending", "Ready", "Retry", "Rejected"]
    """Ready lets the Workload pass; Retry evicts it and tries again; Rejected deactivates it."""
    last_transition_time: Timestamp
    """When the state last changed."""
    message: Annotated[str, Field(max_length=32768)]
    """Why the state is what it is, for people."""
    requeue_after_seconds: Count | None = None
    """How long to wait before the next try, in seconds."""
    retry_count: Count | None = None
    """How many times the check was tried again."""
    pod_set_updates: Annotated[list[PodSetUpdate], Field(max_length=18), ATOMIC_LIST] | None = None
    """Changes to the pods that the check asks for."""


class SchedulingStats(Model):
    """What happened to the Workload so far."""

    evictions: (
        Annotated[
            list[SchedulingStatsEviction],
            Field(max_length=256),
            map_list("reason", "underlyingCause"),
        ]
        | None
    ) = None
    """Evictions by cause."""


class BoundedUnhealthyNode(UnhealthyNode):
    """A node that failed while the Workload had pods on it."""

    name: Annotated[str, Field(max_length=63)]
    """The node."""


class PreemptionGateState(Model):
    """The state of one preemption gate."""

    name: _GateName
    """The gate, as in the spec."""
    position: Literal["Closed", "Open"]
    """Closed keeps the Workload from preempting others."""
    last_transition_time: Timestamp
    """When the position last changed."""


class WorkloadStatus(WorkloadStatusBase):
    """What the Workload got and what happened to it."""

    model_config = object_rules(CLUSTER_NAME, CLUSTER_NAME_OR_NOMINATED)

    conditions: Conditions | None = None
    """The state of the Workload: QuotaReserved, Admitted, PodsReady, Evicted, Finished and
    others."""
    admission: Admission | None = None
    """The quota that the Workload holds; absent while it waits."""
    admission_checks: (
        Annotated[list[AdmissionCheckState], Field(max_length=8), map_list("name")] | None
    ) = None
    """The checks that the Workload must pass."""
    accumulated_past_execution_time_seconds: Int32 | None = None
    """How long the Workload was admitted before the present admission, in seconds."""
    scheduling_stats: SchedulingStats | None = None
    """What happened to the Workload so far."""
    nominated_cluster_names: (
        Annotated[list[_ClusterName], Field(max_length=20), ATOMIC_LIST] | None
    ) = None
    """Clusters that the Workload was offered to."""
    cluster_name: _ClusterName | None = None
    """The cluster that took the Workload."""
    unhealthy_nodes: (
        Annotated[list[BoundedUnhealthyNode], Field(max_length=8), map_list("name")] | None
    ) = None
    """Failed nodes whose pods wait for another place."""
    preemption_gates: (
        Annotated[list[PreemptionGateState], Field(max_length=8), map_list("name")] | None
    ) = None
    """The states of the gates in the spec."""


class Workload(Model):
    """A unit of admission: pods that start together or not at all."""

    model_config = object_rules(
        ASSIGNMENTS_MATCH,
        REF_PRESENCE,
        REF_GROUP,
        REF_KIND,
        REF_NAME,
        QUEUE_NAME,
        MAXIMUM_EXECUTION_TIME,
    )

    api_version: Literal["kueue.x-k8s.io/v1beta2"]
    kind: Literal["Workload"]
    metadata: ObjectMeta | None = None
    spec: WorkloadSpec | None = None
    """What is asked for."""
    status: WorkloadStatus | None = None
    """What the Workload got and what happened to it."""
