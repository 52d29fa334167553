"""Slotted records of the objects that the engine decides on.

Each record holds what a decision needs of one API object and nothing else; `sluice.api.wire` makes
them from raw JSON, tests make them through `tests.support.builders`. They are values: an update of
an object is a new record. Records of Workloads are in `records_workload`, those of pods and nodes
in `records_pod`, those of fair-share credits in `records_credit`; all names can be imported from
here. Source: docs/spec/api.md section 1. Pure.
"""

from dataclasses import dataclass
from enum import StrEnum

from sluice.api.names import (
    CheckName,
    ClusterQueueName,
    CohortName,
    FlavorName,
    LocalQueueKey,
    ResourceName,
)
from sluice.api.records_credit import CreditPolicy
from sluice.api.records_pod import (
    Container,
    LabelSelector,
    Node,
    NodeSelectorTerm,
    Pod,
    PodTemplate,
    PreferredTerm,
    Requirement,
    Taint,
    Toleration,
)
from sluice.api.records_workload import (
    Admission,
    CheckStatus,
    Condition,
    PodSet,
    PodSetAssignment,
    PodSetUpdate,
    SliceConstraint,
    TopologyAssignment,
    TopologyDomain,
    TopologyRequest,
    Workload,
)


class Kind(StrEnum):
    """Kinds of objects the engine observes."""

    CLUSTER_QUEUE = "ClusterQueue"
    LOCAL_QUEUE = "LocalQueue"
    COHORT = "Cohort"
    RESOURCE_FLAVOR = "ResourceFlavor"
    ADMISSION_CHECK = "AdmissionCheck"
    TOPOLOGY = "Topology"
    NODE = "Node"
    POD = "Pod"
    NAMESPACE = "Namespace"
    LIMIT_RANGE = "LimitRange"
    RUNTIME_CLASS = "RuntimeClass"
    WORKLOAD = "Workload"
    CREDIT_POLICY = "CreditPolicy"


class QueueingStrategy(StrEnum):
    """What a failed head does to the queue behind it."""

    STRICT_FIFO = "StrictFIFO"
    BEST_EFFORT_FIFO = "BestEffortFIFO"


class StopPolicy(StrEnum):
    """Whether a queue takes and keeps Workloads."""

    NONE = "None"
    HOLD = "Hold"
    HOLD_AND_DRAIN = "HoldAndDrain"


class PreemptionPolicy(StrEnum):
    """Whom a Workload may preempt (docs/spec/algorithm.md 4.2)."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    LOWER_OR_NEWER_EQUAL_PRIORITY = "LowerOrNewerEqualPriority"
    ANY = "Any"


class FungibilityPolicy(StrEnum):
    """Whether the flavor search goes on past a flavor that would do."""

    MAY_STOP_SEARCH = "MayStopSearch"
    TRY_NEXT_FLAVOR = "TryNextFlavor"


class FungibilityPreference(StrEnum):
    """Which of two imperfect flavors is better (docs/spec/algorithm.md 3.3.6)."""

    BORROWING_OVER_PREEMPTION = "BorrowingOverPreemption"
    PREEMPTION_OVER_BORROWING = "PreemptionOverBorrowing"


class AdmissionMode(StrEnum):
    """How LocalQueues of one ClusterQueue are ordered."""

    USAGE_BASED = "UsageBasedAdmissionFairSharing"
    NONE = "NoAdmissionFairSharing"


class MigrationMode(StrEnum):
    """What happens to other variants once one is admitted."""

    TRY_PREFERRED_FLAVORS = "TryPreferredFlavors"
    RETAIN_FIRST_ADMISSION = "RetainFirstAdmission"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceQuota:
    """Quota of one flavor-resource, in the resource's unit; may be `amount.UNLIMITED`."""

    name: ResourceName
    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorQuotas:
    """Quotas of one flavor within a resource group."""

    name: FlavorName
    resources: tuple[ResourceQuota, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroup:
    """Resources that get their flavor together, and the flavors in order of preference."""

    covered_resources: tuple[ResourceName, ...]
    flavors: tuple[FlavorQuotas, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionRules:
    """spec.preemption of a ClusterQueue; ``borrow_within_cohort`` None means Never."""

    within_cluster_queue: PreemptionPolicy = PreemptionPolicy.NEVER
    reclaim_within_cohort: PreemptionPolicy = PreemptionPolicy.NEVER
    borrow_within_cohort: PreemptionPolicy = PreemptionPolicy.NEVER
    borrow_priority_threshold_max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRule:
    """One admission check of a ClusterQueue; no flavors means every flavor."""

    name: CheckName
    on_flavors: tuple[FlavorName, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrentAdmissionPolicy:
    """spec.concurrentAdmissionPolicy of a ClusterQueue."""

    mode: MigrationMode = MigrationMode.TRY_PREFERRED_FLAVORS
    last_acceptable_flavor: FlavorName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterQueue:
    """A quota pool.

    Attributes:
        namespace_selector: None selects no namespace, an empty selector all.
        fair_weight: spec.fairSharing.weight, 1 when unset.
        is_terminating: metadata.deletionTimestamp is set.
    """

    name: ClusterQueueName
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    resource_groups: tuple[ResourceGroup, ...] = ()
    cohort: CohortName | None = None
    strategy: QueueingStrategy = QueueingStrategy.BEST_EFFORT_FIFO
    namespace_selector: LabelSelector | None = None
    when_can_borrow: FungibilityPolicy = FungibilityPolicy.MAY_STOP_SEARCH
    when_can_preempt: FungibilityPolicy = FungibilityPolicy.TRY_NEXT_FLAVOR
    preference: FungibilityPreference = FungibilityPreference.BORROWING_OVER_PREEMPTION
    preemption: PreemptionRules = PreemptionRules()
    checks: tuple[CheckRule, ...] = ()
    stop_policy: StopPolicy = StopPolicy.NONE
    fair_weight: float = 1.0
    admission_mode: AdmissionMode = AdmissionMode.NONE
    concurrent_admission: ConcurrentAdmissionPolicy | None = None
    is_terminating: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalQueue:
    """A namespace's door to a ClusterQueue.

    Attributes:
        fair_weight: spec.fairSharing.weight, 1 when unset.
        consumed: status: consumed resources of admission fair sharing, (resource, quantity text).
        consumed_updated_ms: status: when ``consumed`` was computed; None when never.
    """

    namespace: str
    name: str
    cluster_queue: ClusterQueueName
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    stop_policy: StopPolicy = StopPolicy.NONE
    fair_weight: float = 1.0
    consumed: tuple[tuple[ResourceName, str], ...] = ()
    consumed_updated_ms: int | None = None
    is_terminating: bool = False

    @property
    def key(self) -> LocalQueueKey:
        """Return ``namespace/name``."""
        return LocalQueueKey(f"{self.namespace}/{self.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """A tree of quota pools; may have quota of its own."""

    name: CohortName
    uid: str = ""
    resource_version: str = ""
    parent: CohortName | None = None
    resource_groups: tuple[ResourceGroup, ...] = ()
    fair_weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFlavor:
    """A kind of node that quota is given for."""

    name: FlavorName
    uid: str = ""
    resource_version: str = ""
    node_labels: tuple[tuple[str, str], ...] = ()
    node_taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionCheck:
    """A gate between quota reservation and admission."""

    name: CheckName
    controller: str
    resource_version: str = ""
    is_active: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Node label keys, broadest first."""

    name: str
    levels: tuple[str, ...]
    resource_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """A namespace and its labels."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()
    resource_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRangeItem:
    """One item of a LimitRange; amounts are (resource, quantity text)."""

    type: str
    max: tuple[tuple[ResourceName, str], ...] = ()
    min: tuple[tuple[ResourceName, str], ...] = ()
    default: tuple[tuple[ResourceName, str], ...] = ()
    default_request: tuple[tuple[ResourceName, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRange:
    """Bounds and defaults of container and pod resources in a namespace."""

    namespace: str
    name: str
    items: tuple[LimitRangeItem, ...] = ()
    resource_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeClass:
    """A runtime class and its fixed pod overhead, (resource, quantity text)."""

    name: str
    overhead: tuple[tuple[ResourceName, str], ...] = ()
    resource_version: str = ""


Record = (
    ClusterQueue
    | LocalQueue
    | Cohort
    | ResourceFlavor
    | AdmissionCheck
    | Topology
    | Node
    | Pod
    | Namespace
    | LimitRange
    | RuntimeClass
    | Workload
    | CreditPolicy
)
"""Every record that can be observed."""

__all__ = [
    "Admission",
    "AdmissionCheck",
    "AdmissionMode",
    "CheckRule",
    "CheckStatus",
    "ClusterQueue",
    "Cohort",
    "ConcurrentAdmissionPolicy",
    "Condition",
    "Container",
    "CreditPolicy",
    "FlavorQuotas",
    "FungibilityPolicy",
    "FungibilityPreference",
    "Kind",
    "LabelSelector",
    "LimitRange",
    "LimitRangeItem",
    "LocalQueue",
    "MigrationMode",
    "Namespace",
    "Node",
    "NodeSelectorTerm",
    "Pod",
    "PodSet",
    "PodSetAssignment",
    "PodSetUpdate",
    "PodTemplate",
    "PreemptionPolicy",
    "PreemptionRules",
    "PreferredTerm",
    "QueueingStrategy",
    "Record",
    "Requirement",
    "ResourceFlavor",
    "ResourceGroup",
    "ResourceQuota",
    "RuntimeClass",
    "SliceConstraint",
    "StopPolicy",
    "Taint",
    "Toleration",
    "Topology",
    "TopologyAssignment",
    "TopologyDomain",
    "TopologyRequest",
    "Workload",
]
