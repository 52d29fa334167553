"""Records of a Workload: its pod sets, status and admission.

The engine observes them and puts an `Admission` into its commands; `wire.encode_admission` writes
that back as JSON. Source: docs/spec/api.md 1.4. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sluice.api.names import (
    CheckName,
    ClusterQueueName,
    FlavorName,
    LocalQueueKey,
    PodSetName,
    ResourceName,
    WorkloadKey,
)
from sluice.api.records_pod import PodTemplate, Toleration


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceConstraint:
    """One layer of a multi-layer topology request: slices of ``size`` pods within one domain."""

    topology: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyRequest:
    """podSets[].topologyRequest.

    Attributes:
        slices: Slice layers, broadest first: the list form, or the older pair of fields as one.
        has_slice_fields: Any slice field is set, which makes the request an explicit one.
    """

    required: str | None = None
    preferred: str | None = None
    unconstrained: bool | None = None
    group: str | None = None
    slices: tuple[SliceConstraint, ...] = ()
    has_slice_fields: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """Pods of one shape in a Workload."""

    name: PodSetName
    count: int
    template: PodTemplate
    min_count: int | None = None
    topology: TopologyRequest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyDomain:
    """Some pods in one domain; values are those of the assignment's levels."""

    values: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyAssignment:
    """Where the pods of a pod set go, in the order of their ranks."""

    levels: tuple[str, ...]
    domains: tuple[TopologyDomain, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetAssignment:
    """What one pod set got.

    Attributes:
        flavors: Flavor by resource, resources in name order.
        usage: Total amount by resource in the resource's unit, resources in name order.
        count: Pods admitted; None when the stored object leaves it out.
        delayed_topology: "Pending" or "Ready" when topology is placed in a second pass.
    """

    name: PodSetName
    flavors: tuple[tuple[ResourceName, FlavorName], ...] = ()
    usage: tuple[tuple[ResourceName, int], ...] = ()
    count: int | None = None
    topology: TopologyAssignment | None = None
    delayed_topology: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """status.admission."""

    cluster_queue: ClusterQueueName
    pod_sets: tuple[PodSetAssignment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetUpdate:
    """What a Ready check asks to change in the pods of one pod set."""

    name: PodSetName
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckStatus:
    """status.admissionChecks[]; state is Pending, Ready, Retry or Rejected."""

    name: CheckName
    state: str
    updates: tuple[PodSetUpdate, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition of a Workload."""

    status: str
    reason: str = ""
    message: str = ""
    at_ms: int = 0

    @property
    def is_true(self) -> bool:
        """Tell whether the status is True."""
        return self.status == "True"


_NO_CONDITIONS: Mapping[str, Condition] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A unit of admission, spec and status.

    Attributes:
        created_ms: metadata.creationTimestamp.
        is_terminating: metadata.deletionTimestamp is set.
        conditions: By type (see `sluice.api.conditions.ConditionType`).
        priority_boost: Value of the priority-boost annotation, 0 when absent or not a number.
        gated_by: Value of the admission-gated-by annotation.
        replaces: Key of the slice that this slice replaces (elastic jobs).
        allowed_flavors: Flavors a concurrent-admission variant is restricted to; empty: none is.
        variant_of: Key of the parent Workload of a concurrent-admission variant.
        is_variant_parent: It has variants and is itself never queued.
        job_uid: Value of the job-uid label.
        is_owned_by_pod: Its only owner is a plain Pod.
        reclaimable: Pods by pod set that need quota no longer.
        requeue_at_ms: status.requeueState.requeueAt.
        closed_gates: Names of preemption gates that are not open.
        unhealthy_nodes: Names of nodes to replace, first recorded first.
        cluster_name: The worker cluster that won it (MultiKueue).
    """

    namespace: str
    name: str
    uid: str
    queue: str
    pod_sets: tuple[PodSet, ...]
    resource_version: str = ""
    generation: int = 0
    created_ms: int = 0
    priority: int = 0
    priority_boost: int = 0
    active: bool = True
    is_terminating: bool = False
    gated_by: str = ""
    replaces: WorkloadKey | None = None
    is_elastic: bool = False
    allowed_flavors: tuple[FlavorName, ...] = ()
    variant_of: WorkloadKey | None = None
    is_variant_parent: bool = False
    job_uid: str = ""
    is_owned_by_pod: bool = False
    conditions: Mapping[str, Condition] = field(default_factory=lambda: _NO_CONDITIONS)
    admission: Admission | None = None
    checks: tuple[CheckStatus, ...] = ()
    reclaimable: tuple[tuple[PodSetName, int], ...] = ()
    requeue_at_ms: int | None = None
    closed_gates: tuple[str, ...] = ()
    unhealthy_nodes: tuple[str, ...] = ()
    cluster_name: str = ""

    @property
    def key(self) -> WorkloadKey:
        """Return ``namespace/name``."""
        return WorkloadKey(f"{self.namespace}/{self.name}")

    @property
    def queue_key(self) -> LocalQueueKey:
        """Return the key of the LocalQueue it was submitted to."""
        return LocalQueueKey(f"{self.namespace}/{self.queue}")

    def is_true(self, kind: str) -> bool:
        """Tell whether a condition is there and True."""
        condition = self.conditions.get(kind)
        return condition is not None and condition.status == "True"

    def is_false(self, kind: str) -> bool:
        """Tell whether a condition is there and False."""
        condition = self.conditions.get(kind)
        return condition is not None and condition.status == "False"
