"""Workload in v1beta1: what differs from v1beta2 (docs/spec/api.md 1.11)."""

from typing import Annotated, Literal

from pydantic import Field

from sluice.api.models.base import (
    Count,
    Int32,
    LabelName,
    Model,
    PositiveInt32,
    SubdomainName,
    Timestamp,
)
from sluice.api.models.meta import TOLERATION_RULES, ObjectMeta, Toleration, UnboundedConditions
from sluice.api.models.schema import ATOMIC_LIST, REQUIRED, cel, map_list, object_rules
from sluice.api.models.workload_parts import (
    PodSetAssignmentBase,
    PodSetUpdate,
    PodTemplateSpec,
    SchedulingStatsEviction,
    TopologyRequestBase,
    UnhealthyNode,
    WorkloadSpecBase,
    WorkloadStatusBase,
)
from sluice.api.models.workload_rules import (
    ASSIGNMENTS_MATCH,
    CLASS_NAME,
    CLASS_SOURCE,
    CLUSTER_NAME,
    CLUSTER_NAME_OR_NOMINATED,
    MAXIMUM_EXECUTION_TIME,
    MIN_COUNT,
    QUEUE_NAME,
)


class PodSetTopologyRequest(TopologyRequestBase):
    """How near to each other the pods of a PodSet must be."""

    required: str | None = None
    """All pods must be in one domain of this level."""
    preferred: str | None = None
    """All pods should be in one domain of this level, or else of as few as possible."""
    pod_index_label: str | None = None
    """The pod label that holds the index of a pod."""
    sub_group_index_label: str | None = None
    """The pod label that holds the index of the replicated job that a pod belongs to."""
    sub_group_count: Int32 | None = None
    """How many replicated jobs there are."""
    pod_set_group_name: str | None = None
    """PodSets with the same group name get the same flavor and domain."""
    pod_set_slice_required_topology: str | None = None
    """Each slice of podSetSliceSize pods must be in one domain of this level."""


class PodSet(Model):
    """Pods of the same shape."""

    model_config = object_rules(MIN_COUNT)

    name: LabelName = "main"
    """The name of the PodSet."""
    template: PodTemplateSpec
    """What each pod looks like. Only what the scheduler needs is looked at."""
    count: Annotated[Count, REQUIRED] = 1
    """How many pods there are."""
    min_count: PositiveInt32 | None = None
    """How many pods are enough to start, with partial admission. For one PodSet only."""
    topology_request: PodSetTopologyRequest | None = None
    """How near to each other the pods must be."""


class WorkloadSpec(WorkloadSpecBase):
    """What is asked for."""

    model_config = object_rules(
        cel(
            "!has(self.priorityClassName) || has(self.priority)",
            "priority should not be nil when priorityClassName is set",
        )
    )

    pod_sets: Annotated[list[PodSet], Field(min_length=1, max_length=18), map_list("name")]
    """The pods, in sets of the same shape. Can't change while quota is held."""
    priority_class_name: SubdomainName | None = None
    """The class that the priority came from. v1beta2 has it in priorityClassRef."""
    priority_class_source: Literal[
        "kueue.x-k8s.io/workloadpriorityclass", "scheduling.k8s.io/priorityclass", ""
    ] = ""
    """Which kind of class priorityClassName names; empty without a class."""


class TopologyDomainAssignment(Model):
    """One domain that got pods."""

    values: Annotated[list[str], Field(min_length=1, max_length=16), ATOMIC_LIST]
    """The name of the domain: a label value for each level."""
    count: PositiveInt32
    """How many pods are in the domain."""


class TopologyAssignment(Model):
    """The domains that got pods, such as racks or nodes."""

    levels: Annotated[list[str], Field(min_length=1, max_length=16), ATOMIC_LIST]
    """The node labels that name a domain, widest first. Upper levels may be left out."""
    domains: list[TopologyDomainAssignment]
    """The domains in order. v1beta2 has them compressed in slices."""


class PodSetAssignment(PodSetAssignmentBase):
    """What one PodSet got."""

    name: Annotated[LabelName, REQUIRED] = "main"
    """The PodSet."""
    topology_assignment: TopologyAssignment | None = None
    """Where its pods go; for flavors with a topology."""
    delayed_topology_request: str | None = None
    """Whether the place is still to be found (Pending) or was found after quota was reserved
    (Ready)."""


class Admission(Model):
    """The quota that the Workload holds."""

    cluster_queue: SubdomainName
    """The ClusterQueue that gave the quota."""
    pod_set_assignments: Annotated[list[PodSetAssignment], Field(max_length=18), map_list("name")]
    """What each PodSet got."""


class PlainPodSetUpdate(PodSetUpdate):
    """Changes to the pods of one PodSet that an admission check asks for."""

    tolerations: Annotated[list[Toleration], Field(max_length=8), TOLERATION_RULES] | None = None
    """Tolerations to add."""


class AdmissionCheckState(Model):
    """The state of one admission check for this Workload."""

    name: Annotated[str, Field(max_length=316)]
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
    pod_set_updates: (
        Annotated[list[PlainPodSetUpdate], Field(max_length=18), ATOMIC_LIST] | None
    ) = None
    """Changes to the pods that the check asks for."""


class SchedulingStats(Model):
    """What happened to the Workload so far."""

    evictions: (
        Annotated[list[SchedulingStatsEviction], map_list("reason", "underlyingCause")] | None
    ) = None
    """Evictions by cause."""


class WorkloadStatus(WorkloadStatusBase):
    """What the Workload got and what happened to it."""

    model_config = object_rules(CLUSTER_NAME, CLUSTER_NAME_OR_NOMINATED)

    conditions: UnboundedConditions | None = None
    """The state of the Workload: QuotaReserved, Admitted, PodsReady, Evicted, Finished and
    others."""
    admission: Admission | None = None
    """The quota that the Workload holds; absent while it waits."""
    admission_checks: (
        Annotated[list[AdmissionCheckState], Field(max_length=8), map_list("name")] | None
    ) = None
    """The checks that the Workload must pass."""
    accumulated_past_execution_time_seconds: Int32 | None = Field(
        default=None, alias="accumulatedPastExexcutionTimeSeconds"
    )
    """How long the Workload was admitted before the present admission, in seconds. The name on the
    wire is misspelled; v1beta2 spells it right."""
    scheduling_stats: SchedulingStats | None = None
    """What happened to the Workload so far."""
    nominated_cluster_names: Annotated[list[str], Field(max_length=20), ATOMIC_LIST] | None = None
    """Clusters that the Workload was offered to."""
    cluster_name: str | None = None
    """The cluster that took the Workload."""
    unhealthy_nodes: list[UnhealthyNode] | None = None
    """Failed nodes whose pods wait for another place."""


class Workload(Model):
    """A unit of admission: pods that start together or not at all."""

    model_config = object_rules(
        ASSIGNMENTS_MATCH, CLASS_SOURCE, CLASS_NAME, QUEUE_NAME, MAXIMUM_EXECUTION_TIME
    )

    api_version: Literal["kueue.x-k8s.io/v1beta1"]
    kind: Literal["Workload"]
    metadata: ObjectMeta | None = None
    spec: WorkloadSpec | None = None
    """What is asked for."""
    status: WorkloadStatus | None = None
    """What the Workload got and what happened to it."""
