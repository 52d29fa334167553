"""Which settings of the Configuration file are understood but change nothing yet. Pure.

Accepting a setting and silently ignoring it would mislead; so the program names each of them once
at start. An entry leaves this table in the change that gives it an effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sluice.api.configuration import Settings

FIELDS: Final = (
    "integrations.externalFrameworks",
    "metrics.customLabels",
    "metrics.enableClusterQueueResources",
    "metrics.localQueueMetrics",
    "multiKueue",
    "pprofBindAddress",
    "resources.deviceClassMappings",
    "tls.curvePreferences",
    "visibilityServer",
)
"""Paths whose whole content has no effect."""

FRAMEWORKS: Final = frozenset({"batch/job"})
"""Job kinds that are managed."""

GATES: Final = frozenset(
    {
        "AdmissionFairSharing",
        "AdmissionGatedBy",
        "ConcurrentAdmission",
        "DisableWaitForPodsReady",
        "ElasticJobsViaWorkloadSlices",
        "ElasticJobsViaWorkloadSlicesWithTAS",
        "FairSharingPreemptWithinNominal",
        "FairSharingPrioritizeNonBorrowing",
        "FlavorFungibility",
        "FlavorFungibilityPreserveScanProgress",
        "MultiKueueOrchestratedPreemption",
        "PartialAdmission",
        "PrioritizePreemptorWorkloads",
        "PriorityBoost",
        "PrioritySortingWithinCohort",
        "QuotaCheckStrategy",
        "ReclaimablePods",
        "RecomputeAssignmentUponPreemptionTargetsOverlap",
        "RejectUpdatesToCQWithInvalidOnFlavors",
        "SchedulingEquivalenceHashing",
        "ShortWorkloadNames",
        "SkipReassignmentForPodOwnedWorkloads",
        "TASAssignmentsEncodingByHostnamePrefix",
        "TASBalancedPlacement",
        "TASFailedNodeReplacement",
        "TASFailedNodeReplacementFailFast",
        "TASHandleOverlappingFlavors",
        "TASMultiLayerTopology",
        "TASProfileMixed",
        "TASRecomputeAssignmentWithinSchedulingCycle",
        "TASReplaceNodeDueToNotReadyOverFixedTime",
        "TASReplaceNodeOnNodeTaints",
        "TASReplaceNodeOnPodTermination",
        "TASRespectNodeAffinityPreferred",
        "TopologyAwareScheduling",
        "UnadmittedWorkloadsExplicitStatus",
        "UnadmittedWorkloadsObservability",
        "WorkloadPriorityClassDefaulting",
        "WorkloadValidateResourcesAreNonNegative",
        "WorkloadValidationForPodSetMetadata",
    }
)
"""Feature gates that some part of the program asks."""


def fields_without_effect(settings: Settings) -> tuple[str, ...]:
    """Return the paths of everything that was set on purpose and changes nothing, sorted."""
    return tuple(sorted(_fields(settings)))


def _fields(settings: Settings) -> Iterable[str]:
    for path in FIELDS:
        if _is_given(settings.given, path):
            yield path
    for name in settings.configuration.integrations.frameworks:
        if name not in FRAMEWORKS:
            yield f"integrations.frameworks[{name}]"
    for name in settings.gates.changed():
        if name not in GATES:
            yield f"featureGates[{name}]"


def _is_given(given: Mapping[str, Any], path: str) -> bool:
    value: Any = given
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return False
        value = value[part]
    return True
