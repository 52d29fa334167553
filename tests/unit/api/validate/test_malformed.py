"""Whatever JSON comes, validation answers with field errors and raises InvalidObject at most."""

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.objects import changed

from sluice.api import defaults
from sluice.api.edits import Edits
from sluice.api.errors import InvalidObject
from sluice.api.validate import cluster_queue, cohort, resource_flavor, workload

KINDS = (cluster_queue, cohort, resource_flavor, workload)
DEFAULTS = (defaults.cluster_queue, defaults.resource_flavor, defaults.workload)
FIELDS = (
    "metadata", "spec", "status", "labels", "annotations", "finalizers", "resourceGroups",
    "coveredResources", "flavors", "name", "resources", "nominalQuota", "borrowingLimit",
    "cohortName", "namespaceSelector", "matchExpressions", "values", "preemption", "fairSharing",
    "weight", "admissionChecksStrategy", "admissionChecks", "onFlavors", "nodeLabels",
    "nodeTaints", "key", "effect", "podSets", "template", "containers", "requests", "cpu", "count",
    "minCount", "topologyRequest", "podSetSliceSize", "conditions", "type", "admission",
    "podSetAssignments", "resourceUsage", "reclaimablePods", "podSetUpdates", "clusterName",
    "nominatedClusterNames", "concurrentAdmissionPolicy", "migration", "constraints",
)  # fmt: skip
SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 300) | st.floats() | st.sampled_from(
        ["", "main", "cpu", "1", "-1", "1e9", "QuotaReserved", "True", "Ready", "é"]
    )
)  # fmt: skip
ANY_JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
    ),
    max_leaves=25,
)
OBJECTS = st.fixed_dictionaries(
    {}, optional={"metadata": ANY_JSON, "spec": ANY_JSON, "status": ANY_JSON}
)
ALL_GATES = {"ConcurrentAdmission": True, "PriorityBoost": True, "PartialAdmission": False}


@settings(deadline=None)
@given(OBJECTS, OBJECTS)
def test_any_json(old: dict[str, Any], new: dict[str, Any]) -> None:
    for kind in KINDS:
        with contextlib.suppress(InvalidObject):
            assert all(str(error) for error in kind.on_create(new, ALL_GATES))
        with contextlib.suppress(InvalidObject):
            assert all(str(error) for error in kind.on_update(old, new, ALL_GATES))


@settings(deadline=None)
@given(OBJECTS)
def test_defaults_of_any_json(obj: dict[str, Any]) -> None:
    for default in DEFAULTS:
        with contextlib.suppress(InvalidObject):
            default(Edits(obj), ALL_GATES)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"spec": []}, 'spec: Invalid value: "array": must be an object'),
        (
            {"spec.resourceGroups": {"a": 1}},
            'spec.resourceGroups: Invalid value: "object": must be a list',
        ),
        ({"spec.cohortName": 5}, "spec.cohortName: Invalid value: 5: must be a string"),
        (
            {"spec.resourceGroups": [{"coveredResources": [True]}]},
            "spec.resourceGroups[0].coveredResources[0]: Invalid value: true: must be a string",
        ),
    ],
)
def test_a_wrong_type_is_named(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        cluster_queue.on_create(changed({"spec": {}}, changes), {})
    assert str(caught.value) == expected
