"""Kueue's feature gates: which exist, their defaults, what they depend on. Pure.

Source: docs/spec/api.md section 7. The composition root resolves the settings once; nobody else
looks at a gate by name except through `FeatureGates`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sluice.api.errors import ConfigError


class Stage(StrEnum):
    """How mature a gate's feature is."""

    ALPHA = "Alpha"
    BETA = "Beta"
    STABLE = "GA"
    DEPRECATED = "Deprecated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One feature gate.

    Attributes:
        default: Its value when nobody sets it.
        stage: How mature its feature is.
        requires: Gates that must be on when it is on.
        is_locked: Whether it may not be set to anything but its default.
    """

    default: bool
    stage: Stage
    requires: tuple[str, ...] = ()
    is_locked: bool = False


_TAS: Final = "TopologyAwareScheduling"
_NODE: Final = "TASFailedNodeReplacement"
_DRA: Final = "KueueDRAIntegration"


def _on(*requires: str) -> Gate:
    return Gate(default=True, stage=Stage.BETA, requires=requires)


def _alpha(*requires: str) -> Gate:
    return Gate(default=False, stage=Stage.ALPHA, requires=requires)


_LOCKED: Final = Gate(default=True, stage=Stage.STABLE, is_locked=True)

GATES: Final[Mapping[str, Gate]] = {
    "AdmissionFairSharing": _on(),
    "AdmissionGatedBy": _on(),
    "AssignQueueLabelsForPods": _on(),
    "CleanupProvisioningRequestsOnEviction": _on(),
    "ConcurrentAdmission": _alpha(),
    "CustomMetricLabels": _alpha(),
    "DeferRayServiceFinalizationForRedisCleanup": _on(),
    "DisableWaitForPodsReady": _alpha(),
    "ElasticJobsViaWorkloadSlices": _on(),
    "ElasticJobsViaWorkloadSlicesWithTAS": _alpha("ElasticJobsViaWorkloadSlices", _TAS),
    "FailureRecoveryPolicy": _alpha(),
    "FairSharingPreemptWithinNominal": _on(),
    "FairSharingPrioritizeNonBorrowing": _on(),
    "FastQuotaReleaseInPodIntegration": _alpha(),
    "FinishOrphanedWorkloads": _on(),
    "FlavorFungibility": _on(),
    "FlavorFungibilityPreserveScanProgress": _on("FlavorFungibility"),
    "KueueDRAIntegration": _on(),
    "KueueDRAIntegrationConsumableCapacity": _alpha(_DRA),
    "KueueDRAIntegrationExtendedResource": _on(_DRA),
    "KueueDRAIntegrationPartitionableDevices": _on(_DRA),
    "KueueDRARejectWorkloadsWhenDRADisabled": _on(),
    "LWSImmutableGroupSize": _on(),
    "LocalQueueMetrics": _on(),
    "ManagedJobsNamespaceSelectorAlwaysRespected": _LOCKED,
    "MetricForWorkloadCreationLatency": _on(),
    "MetricsForCohorts": _on(),
    "MultiKueue": _on(),
    "MultiKueueAdaptersForCustomJobs": _on(),
    "MultiKueueClusterProfile": _alpha(),
    "MultiKueueIncrementalDispatcherConfig": _on(),
    "MultiKueueIncrementalDispatcherRespectConfigOrder": _on(),
    "MultiKueueKubeConfigPathValidation": _on(),
    "MultiKueueManagerQuotaAutomation": _alpha(),
    "MultiKueueOrchestratedPreemption": _alpha(),
    "MultiKueueRemoteSpecSync": _on(),
    "PartialAdmission": _on(),
    "PodIntegrationValidateGroupOwner": _on(),
    "PrioritizePreemptorWorkloads": _alpha(),
    "PriorityBoost": _alpha(),
    "PrioritySortingWithinCohort": _on(),
    "QuotaCheckStrategy": _on(),
    "ReclaimablePods": _on(),
    "RecomputeAssignmentUponPreemptionTargetsOverlap": _on(),
    "RejectUpdatesToCQWithInvalidOnFlavors": _alpha(),
    "RemoveFinalizersWithStrictPatch": _on(),
    "SchedulerLibraryIntegration": _alpha(),
    "SchedulingEquivalenceHashing": _on(),
    "ShortWorkloadNames": _alpha(),
    "SkipAncestorCheckForDeletedWorkloads": _on(),
    "SkipReassignmentForPodOwnedWorkloads": _on(),
    "SparkApplicationIntegration": _alpha(),
    "TASAssignmentsEncodingByHostnamePrefix": _on(),
    "TASBalancedPlacement": _alpha(_TAS),
    "TASCacheNodeMatchResults": _on(),
    "TASCacheTopologyTree": _on(),
    "TASCachingRemainingResources": _on(),
    "TASFailedNodeReplacement": _on(_TAS),
    "TASFailedNodeReplacementFailFast": _on(_TAS, _NODE),
    "TASHandleOverlappingFlavors": _on(_TAS),
    "TASMultiLayerTopology": _on(_TAS),
    "TASProfileMixed": _on(_TAS),
    "TASRecomputeAssignmentWithinSchedulingCycle": _on(_TAS),
    "TASReplaceNodeDueToNotReadyOverFixedTime": Gate(
        default=False, stage=Stage.DEPRECATED, requires=(_TAS, _NODE)
    ),
    "TASReplaceNodeOnNodeTaints": _on(_TAS),
    "TASReplaceNodeOnPodTermination": _on(_TAS, _NODE),
    "TASRespectNodeAffinityPreferred": _alpha(_TAS),
    "TASValidateWorkloadSliceSize": _on(),
    "TLSOptions": _LOCKED,
    "TopologyAwareScheduling": _on(),
    "UnadmittedWorkloadsExplicitStatus": Gate(
        default=False, stage=Stage.BETA, requires=("UnadmittedWorkloadsObservability",)
    ),
    "UnadmittedWorkloadsObservability": _on(),
    "ValidateRayAndSparkJobUpdates": _on(),
    "VectorizedResourceRequests": _on(),
    "VisibilityOnDemand": _on(),
    "WorkloadIdentifierAnnotations": _on(),
    "WorkloadPriorityClassDefaulting": _on(),
    "WorkloadRequestUseMergePatch": _alpha(),
    "WorkloadValidateResourcesAreNonNegative": _on(),
    "WorkloadValidationForPodSetMetadata": _on(),
}

_GROUPS: Final[Mapping[str, Stage]] = {"AllAlpha": Stage.ALPHA, "AllBeta": Stage.BETA}
"""Names that set every gate of a stage, as Kubernetes programs take them."""


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """The value of every gate.

    Attributes:
        values: All gates by name.
    """

    values: Mapping[str, bool]

    def enabled(self, name: str) -> bool:
        """Return whether a gate is on.

        Raises:
            KeyError: There is no such gate; a fault of the caller.
        """
        return self.values[name]

    def changed(self) -> Mapping[str, bool]:
        """Return the gates that differ from their defaults."""
        return {n: on for n, on in self.values.items() if on != GATES[n].default}


DEFAULT_GATES: Final = FeatureGates({name: gate.default for name, gate in GATES.items()})


def parse_flag(text: str) -> dict[str, bool]:
    """Return the settings of ``--feature-gates A=true,B=false``; the last of a name counts.

    Raises:
        ConfigError: An entry is not of that form.
    """
    settings = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, separator, value = entry.partition("=")
        word = value.strip().lower()
        if not separator or word not in ("true", "false"):
            raise ConfigError(f"--feature-gates: {entry!r} is not of the form Name=true|false")
        settings[name.strip()] = word == "true"
    return settings


def resolve(settings: Mapping[str, bool]) -> FeatureGates:
    """Return all gates with some of them set.

    Raises:
        ConfigError: A name is unknown, a locked gate is changed, or a gate is on without one that
            it depends on; the message names every such gate and the fix.
    """
    problems = list(_problems_of_names(settings))
    if problems:
        raise ConfigError("featureGates: " + "; ".join(problems))
    values = dict(DEFAULT_GATES.values)
    for group, stage in _GROUPS.items():
        if group in settings:
            values.update({n: settings[group] for n, g in GATES.items() if g.stage is stage})
    values.update({name: on for name, on in settings.items() if name in GATES})
    problems = [
        f"{name} needs {needed}: turn {needed} on, or {name} off"
        for name, gate in GATES.items()
        if values[name]
        for needed in gate.requires
        if not values[needed]
    ]
    if problems:
        raise ConfigError("featureGates: " + "; ".join(problems))
    return FeatureGates(values)


def _problems_of_names(settings: Mapping[str, bool]) -> Iterable[str]:
    for name, on in settings.items():
        if name in _GROUPS:
            continue
        gate = GATES.get(name)
        if gate is None:
            close = difflib.get_close_matches(name, GATES, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            yield f"unknown feature gate {name}{hint}"
        elif gate.is_locked and on != gate.default:
            yield f"{name} is locked to {str(gate.default).lower()}: remove it"
