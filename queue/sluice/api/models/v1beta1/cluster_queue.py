"""ClusterQueue in v1beta1: what differs from v1beta2 (docs/spec/api.md 1.11)."""

from typing import Annotated, Literal

from pydantic import Field

from sluice.api.models.base import Model, StopPolicy, SubdomainName, Timestamp
from sluice.api.models.meta import AtomicLabelSelector, ObjectMeta, UnboundedConditions
from sluice.api.models.quota import (
    BORROWING_NEEDS_COHORT,
    ClusterFlavorUsages,
    FairSharing,
    FairSharingStatusWithHistory,
    ResourceGroupsV1Beta1,
    WorkloadCounts,
)
from sluice.api.models.schema import ATOMIC_LIST, cel, default_of, object_rules
from sluice.api.models.v1beta2.cluster_queue import PREFERENCE_RULE, Preemption


class FlavorFungibility(Model):
    """Whether to stop at a flavor that fits only with borrowing or preemption, or look further."""

    model_config = object_rules(PREFERENCE_RULE)

    when_can_borrow: Literal["MayStopSearch", "TryNextFlavor", "Borrow"] = "MayStopSearch"
    """What to do at a flavor in which the Workload fits by borrowing. Borrow is the old name of
    MayStopSearch."""
    when_can_preempt: Literal["MayStopSearch", "TryNextFlavor", "Preempt"] = "TryNextFlavor"
    """What to do at a flavor in which the Workload fits after preempting others. Preempt is the
    old name of MayStopSearch."""
    preference: Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"] | None = None
    """Which of the two is better when every flavor was tried; BorrowingOverPreemption when
    absent."""


class AdmissionCheckStrategyRule(Model):
    """One check that Workloads must pass after they got quota."""

    name: Annotated[str, Field(max_length=316)]
    """The AdmissionCheck."""
    on_flavors: list[SubdomainName] | None = None
    """The flavors for which the check is needed; empty means all flavors of the queue."""


class AdmissionChecksStrategy(Model):
    """The checks that Workloads of this queue must pass."""

    admission_checks: list[AdmissionCheckStrategyRule] | None = None
    """The checks, each for all or for some flavors."""


class AdmissionScope(Model):
    """Part in admission fair sharing."""

    admission_mode: str
    """UsageBasedAdmissionFairSharing puts LocalQueues that used less over time first;
    NoAdmissionFairSharing does not."""


class ClusterQueueSpec(Model):
    """What the queue owns and how it shares."""

    model_config = object_rules(
        cel(
            "has(self.cohort) || !has(self.resourceGroups) || self.resourceGroups.all(g,"
            " g.flavors.all(f, f.resources.all(r, !has(r.borrowingLimit))))",
            BORROWING_NEEDS_COHORT,
        )
    )

    resource_groups: ResourceGroupsV1Beta1 | None = None
    """Quotas, in groups of resources that are assigned together. A resource and a flavor may be in
    one group only."""
    cohort: SubdomainName | None = None
    """The Cohort whose members share unused quota with this queue. v1beta2 calls it cohortName."""
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
    admission_checks: list[Annotated[str, Field(max_length=316)]] | None = None
    """Checks for all flavors. Replaces admissionChecksStrategy when it is not empty."""
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    """Checks for all or for some flavors."""
    stop_policy: StopPolicy = "None"
    """None admits; Hold admits nothing new and lets admitted Workloads run; HoldAndDrain also
    evicts them."""
    fair_sharing: FairSharing | None = None
    """The weight of this queue inside its cohort."""
    admission_scope: AdmissionScope | None = None
    """Part in admission fair sharing."""


class PendingWorkload(Model):
    """A waiting Workload."""

    name: str
    """The name of the Workload."""
    namespace: str
    """The namespace of the Workload."""


class PendingWorkloadsStatus(Model):
    """The first waiting Workloads; no longer written."""

    cluster_queue_pending_workload: Annotated[list[PendingWorkload], ATOMIC_LIST] | None = None
    """Waiting Workloads, first in line first."""
    last_change_time: Timestamp
    """When the list last changed."""


class ClusterQueueStatus(WorkloadCounts):
    """What the queue holds at present."""

    conditions: UnboundedConditions | None = None
    """The state of the queue; type Active says whether it can admit."""
    flavors_reservation: ClusterFlavorUsages | None = None
    """Quota held by Workloads with reserved quota, by flavor."""
    flavors_usage: ClusterFlavorUsages | None = None
    """Quota held by admitted Workloads, by flavor."""
    pending_workloads_status: PendingWorkloadsStatus | None = None
    """No longer written, and gone in v1beta2."""
    fair_sharing: FairSharingStatusWithHistory | None = None
    """The current share; only while fair sharing is configured."""


class ClusterQueue(Model):
    """A pool of quota for the whole cluster, used through LocalQueues."""

    api_version: Literal["kueue.x-k8s.io/v1beta1"]
    kind: Literal["ClusterQueue"]
    metadata: ObjectMeta | None = None
    spec: ClusterQueueSpec | None = None
    """What the queue owns and how it shares."""
    status: ClusterQueueStatus | None = None
    """What the queue holds at present."""
