"""Conversion there and back on generated objects: only what docs/spec/api.md 1.11 drops is lost."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.crd_strategies import objects

from sluice.api.conversion import CONVERTED_KINDS, convert
from sluice.api.models.kinds import KINDS
from sluice.api.topology_assignment import decode

OLD, NEW = "kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2"
MODEL = {(k.kind, f"kueue.x-k8s.io/{v.name}"): v.model for k in KINDS for v in k.versions}
Object = dict[str, Any]


def drop(obj: Object, path: str) -> None:
    """Delete what a path names; `[]` stands for every item of a list."""
    head, _, rest = path.partition(".")
    if head.endswith("[]"):
        for item in obj.get(head.removesuffix("[]")) or ():
            drop(item, rest)
    elif not rest:
        obj.pop(head, None)
    elif isinstance(obj.get(head), dict):
        drop(obj[head], rest)


DROPPED_DOWNWARDS = {
    "ClusterQueue": ["spec.concurrentAdmissionPolicy"],
    "Workload": [
        "spec.preemptionGates",
        "spec.podSets[].topologyRequest.podsetSliceRequiredTopologyConstraints",
        "status.preemptionGates",
    ],
}
DROPPED_UPWARDS = {
    "ClusterQueue": [
        "status.pendingWorkloadsStatus",
        "status.fairSharing.admissionFairSharingStatus",
    ],
    "Cohort": ["status.fairSharing.admissionFairSharingStatus"],
    "LocalQueue": ["status.flavors"],
}


def expand(obj: Object) -> None:
    """Write placements as lists of domains, so that encodings don't matter."""
    admission = (obj.get("status") or {}).get("admission") or {}
    for assignment in admission.get("podSetAssignments") or ():
        topology = assignment.get("topologyAssignment")
        if topology and "slices" in topology:
            topology["slices"] = decode(topology)


def normal_cluster_queue(obj: Object) -> None:
    """Write a v1beta1 ClusterQueue as it looks after it was stored in v1beta2."""
    spec = obj.get("spec", {})
    for field, value in spec.get("flavorFungibility", {}).items():
        if value in ("Borrow", "Preempt"):
            spec["flavorFungibility"][field] = "MayStopSearch"
    if checks := spec.pop("admissionChecks", None):
        rules = [{"name": name} for name in checks]
        spec["admissionChecksStrategy"] = {"admissionChecks": rules}
    if not spec.get("admissionChecksStrategy", {}).get("admissionChecks"):
        spec.pop("admissionChecksStrategy", None)


def normal_workload(obj: Object) -> None:
    """Write a v1beta1 Workload as it looks after it was stored in v1beta2."""
    if (spec := obj.get("spec")) is not None and not (
        spec.get("priorityClassName") and spec.get("priorityClassSource")
    ):
        spec.pop("priorityClassName", None)
        spec["priorityClassSource"] = ""


NORMAL: dict[str, Callable[[Object], None]] = {
    "ClusterQueue": normal_cluster_queue,
    "Workload": normal_workload,
}
generous = settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow], deadline=None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(CONVERTED_KINDS))
@given(data=st.data())
@generous
def test_down_and_up_again(kind: str, data: st.DataObject) -> None:
    original = data.draw(objects(kind, "v1beta2"))
    before = copy.deepcopy(original)
    old = convert(original, OLD)
    assert original == before
    MODEL[kind, OLD].model_validate(old)
    back = convert(old, NEW)
    for path in DROPPED_DOWNWARDS.get(kind, ()):
        drop(original, path)
    expand(original)
    expand(back)
    assert back == original


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(CONVERTED_KINDS))
@given(data=st.data())
@generous
def test_up_and_down_again(kind: str, data: st.DataObject) -> None:
    original = data.draw(objects(kind, "v1beta1"))
    before = copy.deepcopy(original)
    new = convert(original, NEW)
    assert original == before
    MODEL[kind, NEW].model_validate(new)
    back = convert(new, OLD)
    for path in DROPPED_UPWARDS.get(kind, ()):
        drop(original, path)
    NORMAL.get(kind, lambda obj: None)(original)
    assert back == original
