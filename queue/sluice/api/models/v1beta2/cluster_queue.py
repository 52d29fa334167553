"""ClusterQueue in v1beta2 (docs/spec/api.md 1.1)."""

from typing import Annotated, Literal

from pydantic import Field

from sluice.api.models.base import Int32, Model, StopPolicy, SubdomainName
from sluice.api.models.meta import AtomicLabelSelector, Conditions, ObjectMeta
from sluice.api.models.quota import (
    BORROWING_NEEDS_COHORT,
    ClusterFlavorUsages,
    FairSharing,
    FairSharingStatus,
    ResourceGroups,
    WorkloadCounts,
)
from sluice.api.models.schema import SET_LIST, Extension, cel, default_of, map_list, object_rules

PREFERENCE_RULE = cel(
    "!has(self.preference) || (self.whenCanBorrow == 'TryNextFlavor'"
    " && self.whenCanPreempt == 'TryNextFlavor')",
    "preference may only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor",
)
PREEMPTION_RULE = cel(
    "self.reclaimWithinCohort != 'Never' || !has(self.borrowWithinCohort)"
    " || self.borrowWithinCohort.policy == 'Never'",
    "reclaimWithinCohort=Never and borrowWithinCohort.policy!=Never: nothing could be preempted"
    " while borrowing",
)


class FlavorFungibility(Model):
    """Whether to stop at a flavor that fits only with borrowing or preemption, or look further."""

    model_config = object_rules(PREFERENCE_RULE)

    when_can_borrow: Literal["MayStopSearch", "TryNextFlavor"] = "MayStopSearch"
    """What to do at a flavor in which the Workload fits by borrowing."""
    when_can_preempt: Literal["MayStopSearch", "TryNextFlavor"] = "TryNextFlavor"
    """What to do at a flavor in which the Workload fits after preempting others."""
    preference: Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"] | None = None
    """Which of the two is better when every flavor was tried; BorrowingOverPreemption when
    absent."""


class BorrowWithinCohort(Model):
    """Whether a Workload may preempt others and borrow at the same time."""

    policy: Literal["Never", "LowerPriority"] = "Never"
    """Whose Workloads may be preempted: nobody's, or those of lower priority."""
    max_priority_threshold: Int32 | None = None
    """The highest priority that may be preempted in this way."""


class Preemption(Model):
    """Which Workloads a pending Workload of this queue may preempt."""

    model_config = object_rules(PREEMPTION_RULE)

    reclaim_within_cohort: Literal["Never", "LowerPriority", "Any"] = "Never"
    """Whether Workloads of other queues that borrowed are preempted to take nominal quota back."""
    borrow_within_cohort: Annotated[BorrowWithinCohort, default_of({})] = Field(
        default_factory=BorrowWithinCohort
    )
    """Whether to preempt in other queues even when this Workload needs to borrow."""
    within_cluster_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] = "Never"
    """Whether Workloads of this queue are preempted."""


class AdmissionCheckStrategyRule(Model):
    """One check that Workloads must pass after they got quota."""

    name: Annotated[str, Field(min_length=1, max_length=316)]
    """The AdmissionCheck."""
    on_flavors: Annotated[list[SubdomainName], Field(max_length=64), SET_LIST] | None = None
    """The flavors for which the check is needed; empty means all flavors of the queue."""


class AdmissionChecksStrategy(Model):
    """The checks that Workloads of this queue must pass."""

    admission_checks: Annotated[
        list[AdmissionCheckStrategyRule], Field(min_length=1, max_length=64), map_list("name")
    ]
    """The checks, each for all or for some flavors."""


class AdmissionScope(Model):
    """Part in admission fair sharing."""

    admission_mode: Literal["UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing"]
    """Whether LocalQueues that used less over time come first."""


class ConcurrentAdmissionConstraints(Model):
    """Limits of moving to a better flavor."""

    last_acceptable_flavor_name: SubdomainName | None = None
    """The least preferred flavor in which a Workload may start."""


class ConcurrentAdmissionMigration(Model):
    """What happens when a better flavor becomes free."""

    mode: Annotated[
        Literal["TryPreferredFlavors", "RetainFirstAdmission"], Extension({"maxLength": 253})
    ]
    """Whether to move to a preferred flavor later, or to keep the first admission."""
    constraints: ConcurrentAdmissionConstraints | None = None
    """Limits of the move; only with TryPreferredFlavors."""


class ConcurrentAdmissionPolicy(Model):
    """How a Workload is tried in several flavors at once."""

    migration: ConcurrentAdmissionMigration
    """What happens when a better flavor becomes free."""


class ClusterQueueSpec(Model):
    """What the queue owns and how it shares."""

    model_config = object_rules(
        cel(
            "has(self.cohortName) || !has(self.resourceGroups) || self.resourceGroups.all(g,"
            " g.flavors.all(f, f.resources.all(r, !has(r.borrowingLimit))))",
            BORROWING_NEEDS_COHORT,
        )
    )

    resource_groups: ResourceGroups | None = None
    """Quotas, in groups of resources that are assigned together. A resource and a flavor may be in
    one group only."""
    cohort_name: SubdomainName | None = None
    """The Cohort whose members share unused quota with this queue. No Cohort object is needed for
    a flat group of queues. Absent means that the queue shares with nobody."""
    queueing_strategy: Literal["StrictFIFO", "BestEffortFIFO"] = "BestEffortFIFO"
    """Whether a Workload that does not fit blocks those behind it (StrictFIFO) or is passed over
    (BestEffortFIFO)."""
    namespace_selector: AtomicLabelSelector | None = None
    """The namespaces whose Workloads may use this queue. Absent selects none, an empty selector
    selects all."""
    flavor_fungibility: Annotated[FlavorFungibility, default_of({})] = Field(
        default_factory=FlavorFungibility
    )
    """When to be content with a flavor and when to try the next."""
    preemption: Annotated[Preemption, default_of({})] = Field(default_factory=Preemption)
    """Which Workloads may be preempted to make room."""
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    """Checks that a Workload must pass before it is admitted."""
    stop_policy: StopPolicy = "None"
    """None admits; Hold admits nothing new and lets admitted Workloads run; HoldAndDrain also
    evicts them."""
    fair_sharing: FairSharing | None = None
    """The weight of this queue inside its cohort."""
    admission_scope: AdmissionScope | None = None
    """Part in admission fair sharing."""
    concurrent_admission_policy: ConcurrentAdmissionPolicy | None = None
    """Concurrent tries in several flavors; needs the ConcurrentAdmission feature gate."""


class ClusterQueueStatus(WorkloadCounts):
    """What the queue holds at present."""

    conditions: Conditions | None = None
    """The state of the queue; type Active says whether it can admit."""
    flavors_reservation: ClusterFlavorUsages | None = None
    """Quota held by Workloads with reserved quota, by flavor."""
    flavors_usage: ClusterFlavorUsages | None = None
    """Quota held by admitted Workloads, by flavor."""
    fair_sharing: FairSharingStatus | None = None
    """The current share; only while fair sharing is configured."""


class ClusterQueue(Model):
    """A pool of quota for the whole cluster, used through LocalQueues."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"]
    kind: Literal["ClusterQueue"]
    metadata: ObjectMeta | None = None
    spec: ClusterQueueSpec | None = None
    """What the queue owns and how it shares."""
    status: ClusterQueueStatus | None = None
    """What the queue holds at present."""
