"""Everything configurable in the engine, read once when it is made.

The composition root builds `EngineOptions` from Kueue's configuration file; the engine never looks
at a gate by name. Defaults are Kueue's (docs/spec/algorithm.md 0.5, docs/spec/api.md 6).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from fractions import Fraction

from sluice.api.names import ResourceName


class RequeuingTimestamp(StrEnum):
    """Which time orders a Workload that was evicted because its pods were not ready."""

    EVICTION = "Eviction"
    CREATION = "Creation"


class FairStrategy(StrEnum):
    """When fair sharing may preempt from a node (docs/spec/algorithm.md 4.5.3)."""

    FINAL_SHARE = "LessThanOrEqualToFinalShare"
    INITIAL_SHARE = "LessThanInitialShare"


class TransformationStrategy(StrEnum):
    """What happens to the input of a resource transformation."""

    RETAIN = "Retain"
    REPLACE = "Replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Feature gates that change decisions; names in `GATE_NAMES`."""

    partial_admission: bool = True
    flavor_fungibility: bool = True
    preserve_scan_progress: bool = True
    priority_sorting_within_cohort: bool = True
    recompute_on_overlap: bool = True
    fair_preempt_within_nominal: bool = True
    fair_prioritize_non_borrowing: bool = True
    equivalence_hashing: bool = True
    admission_fair_sharing: bool = True
    topology_aware: bool = True
    tas_profile_mixed: bool = True
    tas_failed_node_replacement: bool = True
    tas_fail_fast: bool = True
    tas_recompute_in_cycle: bool = True
    tas_overlapping_flavors: bool = True
    tas_multi_layer: bool = True
    tas_hostname_prefix_encoding: bool = True
    tas_balanced_placement: bool = False
    tas_preferred_affinity: bool = False
    tas_replace_on_pod_termination: bool = True
    tas_replace_on_taints: bool = True
    tas_replace_not_ready_over_time: bool = False
    skip_reassignment_for_pods: bool = True
    elastic_slices: bool = True
    elastic_slices_with_tas: bool = False
    reclaimable_pods: bool = True
    admission_gated_by: bool = True
    quota_check_strategy: bool = True
    priority_boost: bool = False
    prioritize_preemptors: bool = False
    concurrent_admission: bool = False
    orchestrated_preemption: bool = False
    granular_reasons: bool = True


GATE_NAMES: Mapping[str, str] = {
    "PartialAdmission": "partial_admission",
    "FlavorFungibility": "flavor_fungibility",
    "FlavorFungibilityPreserveScanProgress": "preserve_scan_progress",
    "PrioritySortingWithinCohort": "priority_sorting_within_cohort",
    "RecomputeAssignmentUponPreemptionTargetsOverlap": "recompute_on_overlap",
    "FairSharingPreemptWithinNominal": "fair_preempt_within_nominal",
    "FairSharingPrioritizeNonBorrowing": "fair_prioritize_non_borrowing",
    "SchedulingEquivalenceHashing": "equivalence_hashing",
    "AdmissionFairSharing": "admission_fair_sharing",
    "TopologyAwareScheduling": "topology_aware",
    "TASProfileMixed": "tas_profile_mixed",
    "TASFailedNodeReplacement": "tas_failed_node_replacement",
    "TASFailedNodeReplacementFailFast": "tas_fail_fast",
    "TASRecomputeAssignmentWithinSchedulingCycle": "tas_recompute_in_cycle",
    "TASHandleOverlappingFlavors": "tas_overlapping_flavors",
    "TASMultiLayerTopology": "tas_multi_layer",
    "TASAssignmentsEncodingByHostnamePrefix": "tas_hostname_prefix_encoding",
    "TASBalancedPlacement": "tas_balanced_placement",
    "TASRespectNodeAffinityPreferred": "tas_preferred_affinity",
    "TASReplaceNodeOnPodTermination": "tas_replace_on_pod_termination",
    "TASReplaceNodeOnNodeTaints": "tas_replace_on_taints",
    "TASReplaceNodeDueToNotReadyOverFixedTime": "tas_replace_not_ready_over_time",
    "SkipReassignmentForPodOwnedWorkloads": "skip_reassignment_for_pods",
    "ElasticJobsViaWorkloadSlices": "elastic_slices",
    "ElasticJobsViaWorkloadSlicesWithTAS": "elastic_slices_with_tas",
    "ReclaimablePods": "reclaimable_pods",
    "AdmissionGatedBy": "admission_gated_by",
    "QuotaCheckStrategy": "quota_check_strategy",
    "PriorityBoost": "priority_boost",
    "PrioritizePreemptorWorkloads": "prioritize_preemptors",
    "ConcurrentAdmission": "concurrent_admission",
    "MultiKueueOrchestratedPreemption": "orchestrated_preemption",
    "UnadmittedWorkloadsObservability": "granular_reasons",
}
"""Kueue's gate names and the field of `Gates` each one sets."""


def gates_from(settings: Mapping[str, bool]) -> Gates:
    """Return the gates with some set; names that change no decision are left out of account."""
    known = {f.name for f in fields(Gates)}
    values = {GATE_NAMES[name]: on for name, on in settings.items() if name in GATE_NAMES}
    assert values.keys() <= known
    return Gates(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class FairSharing:
    """Fair sharing is on; an empty list of strategies means both, in order."""

    strategies: tuple[FairStrategy, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionFairSharing:
    """Usage-based order of LocalQueues (docs/spec/algorithm.md 5.4).

    Attributes:
        half_life_ms: usageHalfLifeTime; 0 forgets at once.
        sampling_interval_ms: usageSamplingInterval.
        resource_weights: Weight by resource, 1 where none is given.
        is_frozen: Take entry penalties only, settle and sample nothing: for replaying decisions
            that were recorded without the controllers that do so.
    """

    half_life_ms: int = 0
    sampling_interval_ms: int = 300_000
    resource_weights: tuple[tuple[ResourceName, float], ...] = ()
    is_frozen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformation:
    """How one requested resource turns into others (docs/spec/algorithm.md 1.10.5)."""

    input: ResourceName
    strategy: TransformationStrategy = TransformationStrategy.RETAIN
    outputs: tuple[tuple[ResourceName, Fraction], ...] = ()
    multiply_by: ResourceName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Settings of one engine.

    Attributes:
        gates: Feature gates.
        fair_sharing: None when fair sharing is off.
        admission_fair_sharing: None when it is off.
        exclude_resource_prefixes: Resources whose names start so are not counted.
        transformations: At most one per input resource.
        ignore_undeclared: quotaCheckStrategy IgnoreUndeclared: what a queue doesn't cover is free.
        requeuing_timestamp: See `RequeuingTimestamp`.
        block_admission: waitForPodsReady.blockAdmission: one Workload at a time becomes ready.
        wake_up_batch_ms: How long notifications gather before parked Workloads return to their
            heaps (Kueue: 1000); 0 means at once.
        second_pass_base_ms: First delay of a second pass; doubles with each attempt.
        second_pass_max_ms: Longest delay of a second pass.
    """

    gates: Gates = Gates()
    fair_sharing: FairSharing | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    exclude_resource_prefixes: tuple[str, ...] = ()
    transformations: tuple[Transformation, ...] = ()
    ignore_undeclared: bool = False
    requeuing_timestamp: RequeuingTimestamp = RequeuingTimestamp.EVICTION
    block_admission: bool = False
    wake_up_batch_ms: int = 100
    second_pass_base_ms: int = 1_000
    second_pass_max_ms: int = 30_000
