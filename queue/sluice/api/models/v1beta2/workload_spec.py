"""The spec of Workload in v1beta2 (docs/spec/api.md 1.4)."""

from typing import Annotated, Literal

from pydantic import Field

from sluice.api.models.base import (
    SUBDOMAIN_PATTERN,
    Count,
    LabelName,
    Model,
    PositiveInt32,
)
from sluice.api.models.schema import ATOMIC_LIST, cel, map_list, object_rules
from sluice.api.models.workload_parts import (
    PodTemplateSpec,
    TopologyRequestBase,
    WorkloadSpecBase,
)
from sluice.api.models.workload_rules import MIN_COUNT

_LevelName = Annotated[str, Field(max_length=63)]
_PodLabel = Annotated[str, Field(max_length=317)]


class SliceTopologyConstraint(Model):
    """Pods that must be together in one domain of a level."""

    topology: Annotated[str, Field(min_length=1, max_length=63)]
    """The level."""
    size: PositiveInt32
    """How many pods must be together."""


class PodSetTopologyRequest(TopologyRequestBase):
    """How near to each other the pods of a PodSet must be."""

    required: _LevelName | None = None
    """All pods must be in one domain of this level."""
    preferred: _LevelName | None = None
    """All pods should be in one domain of this level, or else of as few as possible."""
    pod_index_label: _PodLabel | None = None
    """The pod label that holds the index of a pod."""
    sub_group_index_label: _PodLabel | None = None
    """The pod label that holds the index of the replicated job that a pod belongs to."""
    sub_group_count: Count | None = None
    """How many replicated jobs there are."""
    pod_set_group_name: Annotated[str, Field(max_length=256)] | None = None
    """PodSets with the same group name get the same flavor and domain."""
    pod_set_slice_required_topology: _LevelName | None = None
    """Each slice of podSetSliceSize pods must be in one domain of this level."""
    podset_slice_required_topology_constraints: (
        Annotated[list[SliceTopologyConstraint], Field(max_length=3), ATOMIC_LIST] | None
    ) = None
    """Slices at several levels, widest first."""


class PodSet(Model):
    """Pods of the same shape."""

    model_config = object_rules(MIN_COUNT)

    name: LabelName = "main"
    """The name of the PodSet."""
    template: PodTemplateSpec
    """What each pod looks like. Only what the scheduler needs is looked at."""
    count: Count = 1
    """How many pods there are."""
    min_count: PositiveInt32 | None = None
    """How many pods are enough to start, with partial admission. For one PodSet only."""
    topology_request: PodSetTopologyRequest | None = None
    """How near to each other the pods must be."""


class PriorityClassRef(Model):
    """The class that the priority came from."""

    model_config = object_rules(
        cel(
            "self.group != 'scheduling.k8s.io' || self.kind == 'PriorityClass'",
            "kind must be PriorityClass when group is scheduling.k8s.io",
        ),
        cel(
            "self.group != 'kueue.x-k8s.io' || self.kind == 'WorkloadPriorityClass'",
            "kind must be WorkloadPriorityClass when group is kueue.x-k8s.io",
        ),
    )

    group: Literal["kueue.x-k8s.io", "scheduling.k8s.io"]
    """The API group of the class."""
    kind: Literal["WorkloadPriorityClass", "PriorityClass"]
    """The kind of the class."""
    name: Annotated[str, Field(min_length=1, max_length=253, pattern=SUBDOMAIN_PATTERN)]
    """The name of the class."""


class PreemptionGate(Model):
    """Something that must be open before the Workload may preempt others."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """The name of the gate."""


class WorkloadSpec(WorkloadSpecBase):
    """What is asked for."""

    model_config = object_rules(
        cel(
            "!has(self.priorityClassRef) || has(self.priority)",
            "priority should not be nil when priorityClassRef is set",
        )
    )

    pod_sets: (
        Annotated[list[PodSet], Field(min_length=1, max_length=18), map_list("name")] | None
    ) = None
    """The pods, in sets of the same shape. Can't change while quota is held."""
    priority_class_ref: PriorityClassRef | None = None
    """The class that the priority came from. While quota is held only the name of a
    WorkloadPriorityClass can change."""
    preemption_gates: (
        Annotated[list[PreemptionGate], Field(max_length=8), map_list("name")] | None
    ) = None
    """Gates that must all be open before the Workload may preempt others."""
