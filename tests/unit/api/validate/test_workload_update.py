"""docs/spec/api.md 2.2, Workload, UPDATE only: what may not change, and the texts."""

from typing import Any

import pytest
from tests.support.objects import DROP, Json, changed

from sluice.api.validate import workload

RESERVED = {
    "type": "QuotaReserved",
    "status": "True",
    "reason": "QuotaReserved",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
POD_SET = {"name": "main", "count": 3, "template": {"spec": {}}}
ADMITTED: Json = {
    "metadata": {"name": "job-sample", "namespace": "team-a"},
    "spec": {"podSets": [POD_SET]},
    "status": {
        "conditions": [RESERVED],
        "admission": {
            "clusterQueue": "cq",
            "podSetAssignments": [{"name": "main", "count": 3, "topologyAssignment": {"x": 1}}],
        },
        "reclaimablePods": [{"name": "main", "count": 2}],
        "admissionChecks": [
            {"name": "prov", "state": "Ready", "podSetUpdates": [{"name": "main"}]}
        ],
    },
}
PENDING = changed(ADMITTED, {"status": {}})
ELASTIC = {"metadata.annotations": {"kueue.x-k8s.io/elastic-job": "true"}}


def texts(old: Json, new: Json, gates: dict[str, bool] | None = None) -> list[str]:
    return [str(error) for error in workload.on_update(old, new, gates or {})]


@pytest.mark.parametrize(
    ("changes", "gates", "expected"),
    [
        pytest.param({}, {}, [], id="nothing"),
        pytest.param(
            {"spec.podSets.1": {"name": "b"}},
            {},
            [
                'spec.podSets: Invalid value: [{"name":"main","count":3,"template":{"spec":{}}},'
                '{"name":"b"}]: field is immutable'
            ],
            id="length",
        ),
        pytest.param(
            {"spec.podSets.0.template": {"spec": {"hostNetwork": True}}},
            {},
            [
                'spec.podSets.0: Invalid value: {"name":"main","count":3,"template":'
                '{"spec":{"hostNetwork":true}}}: field is immutable'
            ],
            id="template",
        ),
        pytest.param(
            {"spec.podSets.0.count": 4},
            {},
            [
                'spec.podSets.0: Invalid value: {"name":"main","count":4,"template":{"spec":{}}}: '
                "field is immutable"
            ],
            id="grown",
        ),
        pytest.param({"spec.podSets.0.count": 2}, {}, [], id="shrunk"),
        pytest.param(
            {"spec.podSets.0.count": 2},
            {"ElasticJobsViaWorkloadSlices": False},
            [
                'spec.podSets.0: Invalid value: {"name":"main","count":2,"template":{"spec":{}}}: '
                "field is immutable"
            ],
            id="shrunk without the gate",
        ),
        pytest.param(
            {"status.reclaimablePods.0.count": 1},
            {},
            ["status.reclaimablePods[main].count: Invalid value: 1: cannot be less than 2"],
            id="fewer reclaimable pods",
        ),
        pytest.param(
            {"status.reclaimablePods": []},
            {},
            ["status.reclaimablePods[main]: Required value: cannot be removed"],
            id="reclaimable pods removed",
        ),
        pytest.param({"status.reclaimablePods.0.count": 3}, {}, [], id="more reclaimable pods"),
        pytest.param(
            {"status.admission.clusterQueue": "other"},
            {"TopologyAwareScheduling": False},
            [
                'status.admission: Invalid value: {"clusterQueue":"other","podSetAssignments":'
                '[{"name":"main","count":3,"topologyAssignment":{"x":1}}]}: field is immutable'
            ],
            id="other queue",
        ),
        pytest.param(
            {"status.admission.podSetAssignments.0.topologyAssignment": {"x": 2}},
            {},
            [],
            id="placed elsewhere",
        ),
        pytest.param(
            {"status.admission.podSetAssignments.0.topologyAssignment": {"x": 2}},
            {"TopologyAwareScheduling": False},
            [
                'status.admission: Invalid value: {"clusterQueue":"cq","podSetAssignments":'
                '[{"name":"main","count":3,"topologyAssignment":{"x":2}}]}: field is immutable'
            ],
            id="placed elsewhere without the gate",
        ),
        pytest.param(
            {"status.admissionChecks.0.podSetUpdates": []},
            {},
            [
                "status.admissionChecks[0].podSetUpdates: Invalid value: []: field is immutable",
            ],
            id="updates of a ready check",
        ),
        pytest.param(
            {"status.admissionChecks.0": {"name": "prov", "state": "Retry"}},
            {},
            [],
            id="updates of a check that is not ready any more",
        ),
    ],
)
def test_changes_while_quota_is_reserved(
    changes: dict[str, Any], gates: dict[str, bool], expected: list[str]
) -> None:
    assert texts(ADMITTED, changed(ADMITTED, changes), gates) == expected


def test_a_pending_workload_may_change() -> None:
    assert texts(PENDING, changed(PENDING, {"spec.podSets.0.count": 9})) == []


def test_quota_may_come_and_go() -> None:
    assert texts(PENDING, ADMITTED) == []
    assert texts(ADMITTED, changed(PENDING, {"status.conditions": []})) == []


def test_reclaimable_pods_may_fall_once_quota_is_gone() -> None:
    without = changed(ADMITTED, {"status.reclaimablePods": [], "status.conditions": []})
    assert texts(ADMITTED, without) == []


def test_an_elastic_workload_that_shrinks_may_lose_reclaimable_pods() -> None:
    old = changed(ADMITTED, ELASTIC)
    new = changed(old, {"spec.podSets.0.count": 1, "status.reclaimablePods": []})
    assert texts(old, new) == []
    same_size = changed(old, {"status.reclaimablePods": []})
    assert texts(old, same_size) == [
        "status.reclaimablePods[main]: Required value: cannot be removed"
    ]


def test_an_elastic_workload_keeps_an_entry_that_its_new_size_exceeds() -> None:
    old = changed(ADMITTED, ELASTIC)
    smaller = {"spec.podSets.0.count": 1}
    assert texts(old, changed(old, smaller)) == []
    assert texts(ADMITTED, changed(ADMITTED, smaller)) == [
        "status.reclaimablePods[main].count: Invalid value: 2: should be less than or equal to 1"
    ]


@pytest.mark.parametrize(
    ("nominated", "annotations", "gates", "is_refused"),
    [
        (["w1", "w2"], {}, {}, False),
        (["w2"], {}, {}, True),
        ([], {}, {}, True),
        ([], {"kueue.x-k8s.io/workload-slice-replacement-for": "ns/x"}, {}, False),
        (
            [],
            {"kueue.x-k8s.io/workload-slice-replacement-for": "ns/x"},
            {"ElasticJobsViaWorkloadSlices": False},
            True,
        ),
    ],
)
def test_the_cluster_is_one_of_those_nominated_before(
    nominated: list[str], annotations: dict[str, str], gates: dict[str, bool], is_refused: bool
) -> None:
    old = changed(
        PENDING,
        {"status.nominatedClusterNames": nominated, "metadata.annotations": annotations},
    )
    new = changed(old, {"status.clusterName": "w1", "status.nominatedClusterNames": DROP})
    shown = ", ".join(nominated) or "none"
    expected = (
        'status.clusterName: Invalid value: "w1": '
        f"must be one of the nominatedClusterNames before the update: {shown}"
    )
    assert texts(old, new, gates) == ([expected] if is_refused else [])


def test_gates_of_admission_only_shrink() -> None:
    gated = {"metadata.annotations": {"kueue.x-k8s.io/admission-gated-by": "a.io/x"}}
    assert texts(changed(PENDING, gated), PENDING) == []
    assert texts(PENDING, changed(PENDING, gated)) == [
        "metadata.annotations[kueue.x-k8s.io/admission-gated-by]: Forbidden: "
        "cannot add admission gate after creation"
    ]
