"""Parts of Workload that both versions share (docs/spec/api.md 1.4)."""

from typing import Annotated

from pydantic import Field, JsonValue

from sluice.api.models.base import (
    Count,
    Int32,
    LabelName,
    Model,
    PositiveInt32,
    Quantity,
    SubdomainName,
    Timestamp,
)
from sluice.api.models.meta import TemplateMeta, Tolerations
from sluice.api.models.schema import POD_TEMPLATE, map_list


class PodTemplate(Model):
    """What each pod looks like.

    The CRD has core's PodTemplateSpec here; this model keeps the pod spec as plain JSON, so that
    the API layer needs no Kubernetes client.
    """

    metadata: TemplateMeta | None = None
    """Labels and annotations of the pods; other metadata is dropped."""
    spec: dict[str, JsonValue] | None = None
    """The pod spec."""


PodTemplateSpec = Annotated[PodTemplate, POD_TEMPLATE]


class RequeueState(Model):
    """When an evicted Workload may queue again."""

    count: Count | None = None
    """How many times it was queued again."""
    requeue_at: Timestamp | None = None
    """Not before this time."""


class ReclaimablePod(Model):
    """Pods of one PodSet that need no quota any more."""

    name: LabelName
    """The PodSet."""
    count: Count
    """How many of its pods are done."""


class PodSetRequest(Model):
    """What one PodSet asks for, as the scheduler counts it."""

    name: LabelName
    """The PodSet."""
    resources: dict[str, Quantity] | None = None
    """Total by resource, after the configured transformations."""


class SchedulingStatsEviction(Model):
    """How often the Workload was evicted for one cause."""

    reason: Annotated[str, Field(max_length=316)]
    """The reason of the Evicted condition."""
    underlying_cause: Annotated[str, Field(max_length=316)]
    """What lies behind the reason; may be empty."""
    count: Count
    """How many times."""


class UnhealthyNode(Model):
    """A node that failed while the Workload had pods on it."""

    name: str
    """The node."""


class PodSetUpdate(Model):
    """Changes to the pods of one PodSet that an admission check asks for."""

    name: LabelName
    """The PodSet."""
    labels: dict[str, str] | None = None
    """Labels to add."""
    annotations: dict[str, str] | None = None
    """Annotations to add."""
    node_selector: dict[str, str] | None = None
    """Node selector entries to add."""
    tolerations: Tolerations | None = None
    """Tolerations to add."""


class PodSetAssignmentBase(Model):
    """What one PodSet got; versions add the name, the topology and the delayed request."""

    flavors: dict[str, SubdomainName] | None = None
    """The flavor by resource."""
    resource_usage: dict[str, Quantity] | None = None
    """The quota taken, by resource, for all pods of the PodSet together."""
    count: Count | None = None
    """How many pods are admitted; fewer than asked for with partial admission."""


class WorkloadStatusBase(Model):
    """Status fields that are the same in both versions."""

    requeue_state: RequeueState | None = None
    """When an evicted Workload may queue again."""
    reclaimable_pods: (
        Annotated[list[ReclaimablePod], Field(max_length=18), map_list("name")] | None
    ) = None
    """Pods that need no quota any more."""
    resource_requests: (
        Annotated[list[PodSetRequest], Field(max_length=18), map_list("name")] | None
    ) = None
    """What each PodSet asks for; only while no quota is held."""


class TopologyRequestBase(Model):
    """Bounds that topology requests of both versions share."""

    unconstrained: bool | None = None
    """Pods may be anywhere; their places are still recorded."""
    pod_set_slice_size: PositiveInt32 | None = None
    """How many pods form a slice that must be together in podSetSliceRequiredTopology."""


class WorkloadSpecBase(Model):
    """Spec fields that are the same in both versions."""

    queue_name: SubdomainName | None = None
    """The LocalQueue. Can't change while quota is held."""
    priority: Int32 | None = None
    """Higher goes first; absent counts as zero."""
    active: bool = True
    """Whether the Workload may be admitted; false also evicts it."""
    maximum_execution_time_seconds: PositiveInt32 | None = None
    """How long the Workload may be admitted in all; after that it is deactivated."""
