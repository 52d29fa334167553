"""The feature gates that webhook rules ask for, with the defaults of docs/spec/api.md section 7.

Rules take a plain mapping, so that any holder of settings can pass its own; a gate that the mapping
leaves out has its default. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

Gates = Mapping[str, bool]


class Gate(StrEnum):
    """A feature gate that changes what is validated or defaulted."""

    ADMISSION_GATED_BY = "AdmissionGatedBy"
    CONCURRENT_ADMISSION = "ConcurrentAdmission"
    ELASTIC_JOBS = "ElasticJobsViaWorkloadSlices"
    MULTIKUEUE = "MultiKueue"
    PARTIAL_ADMISSION = "PartialAdmission"
    PRIORITY_BOOST = "PriorityBoost"
    REJECT_INVALID_ON_FLAVORS = "RejectUpdatesToCQWithInvalidOnFlavors"
    SKIP_ANCESTORS_OF_DELETED = "SkipAncestorCheckForDeletedWorkloads"
    TAS_MULTI_LAYER = "TASMultiLayerTopology"
    TAS_SLICE_SIZE = "TASValidateWorkloadSliceSize"
    TOPOLOGY_AWARE_SCHEDULING = "TopologyAwareScheduling"
    WORKLOAD_IDENTIFIER_ANNOTATIONS = "WorkloadIdentifierAnnotations"
    WORKLOAD_METADATA = "WorkloadValidationForPodSetMetadata"
    WORKLOAD_NON_NEGATIVE = "WorkloadValidateResourcesAreNonNegative"
    WORKLOAD_PRIORITY_CLASS_DEFAULTING = "WorkloadPriorityClassDefaulting"


_OFF_BY_DEFAULT: Final = frozenset(
    {Gate.CONCURRENT_ADMISSION, Gate.PRIORITY_BOOST, Gate.REJECT_INVALID_ON_FLAVORS}
)
DEFAULTS: Final[Gates] = {gate: gate not in _OFF_BY_DEFAULT for gate in Gate}


def is_on(gates: Gates, gate: Gate) -> bool:
    """Tell whether a gate is on."""
    return gates.get(gate, DEFAULTS[gate])
