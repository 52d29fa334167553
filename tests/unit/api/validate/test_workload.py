"""docs/spec/api.md 2.2, Workload: rules of one state of a Workload, and their texts."""

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
WORKLOAD: Json = {
    "metadata": {"name": "job-sample", "namespace": "team-a"},
    "spec": {
        "queueName": "main",
        "podSets": [
            {
                "name": "main",
                "count": 3,
                "template": {
                    "metadata": {"labels": {"app": "x"}},
                    "spec": {
                        "initContainers": [{"name": "i"}],
                        "containers": [
                            {"name": "c", "resources": {"requests": {"cpu": "1"}}},
                        ],
                    },
                },
            }
        ],
    },
}
ADMITTED = changed(
    WORKLOAD,
    {
        "status.conditions": [RESERVED],
        "status.admission": {
            "clusterQueue": "cq",
            "podSetAssignments": [{"name": "main", "count": 3, "resourceUsage": {"cpu": "3"}}],
        },
    },
)
SECOND = {"name": "second", "count": 1, "template": {}}
PODS_TEXT = 'Invalid value: "pods": the key is reserved for internal kueue use'
NOT_NEGATIVE = "must be greater than or equal to 0"
TEMPLATE = "spec.podSets.0.template"
TEMPLATE_PATH = "spec.podSets[0].template"
UPDATES = "status.admissionChecks"


def check_with(update: Json) -> dict[str, Any]:
    return {UPDATES: [{"name": "c", "state": "Pending", "podSetUpdates": [update]}]}


def texts(obj: Json, gates: dict[str, bool] | None = None) -> list[str]:
    return [str(error) for error in workload.on_create(obj, gates or {})]


def test_valid_workloads_are_taken() -> None:
    assert texts(WORKLOAD) == []
    assert texts(ADMITTED) == []


@pytest.mark.parametrize(
    ("changes", "path", "shown"),
    [
        ({f"{TEMPLATE}.metadata.labels": {"a b": ""}}, "metadata.labels", "a b"),
        ({f"{TEMPLATE}.metadata.labels": {"a": "b c"}}, "metadata.labels", "b c"),
        ({f"{TEMPLATE}.metadata.annotations": {"a b": ""}}, "metadata.annotations", "a b"),
    ],
)
def test_template_metadata(changes: dict[str, Any], path: str, shown: str) -> None:
    bad = changed(WORKLOAD, changes)
    (text,) = texts(bad)
    assert text.startswith(f'{TEMPLATE_PATH}.{path}: Invalid value: "{shown}": ')
    assert texts(bad, {"WorkloadValidationForPodSetMetadata": False}) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {f"{TEMPLATE}.spec.containers.0.resources.requests": {"pods": "1"}},
            [f"{TEMPLATE_PATH}.spec.containers[0].resources.requests[pods]: {PODS_TEXT}"],
            id="pods requested",
        ),
        pytest.param(
            {f"{TEMPLATE}.spec.initContainers.0.resources.limits": {"pods": "1"}},
            [f"{TEMPLATE_PATH}.spec.initContainers[0].resources.limits[pods]: {PODS_TEXT}"],
            id="pods limited",
        ),
        pytest.param(
            {f"{TEMPLATE}.spec.resources.requests": {"pods": "1"}},
            [f"{TEMPLATE_PATH}.spec.resources.requests[pods]: {PODS_TEXT}"],
            id="pods of the pod",
        ),
        pytest.param(
            {f"{TEMPLATE}.spec.containers.0.resources.requests": {"cpu": "-1"}},
            [
                f"{TEMPLATE_PATH}.spec.containers[0].resources.requests[cpu]: "
                f'Invalid value: "-1": {NOT_NEGATIVE}'
            ],
            id="negative",
        ),
        pytest.param(
            {"spec.podSets.0.topologyRequest": {"podSetSliceRequiredTopology": "rack"}},
            [
                "spec.podSets[0].topologyRequest.podSetSliceSize: Required value: "
                "must be set when podSetSliceRequiredTopology is set"
            ],
            id="slice without size",
        ),
        pytest.param(
            {"spec.podSets.0.topologyRequest": {"podSetSliceSize": 2}},
            [
                "spec.podSets[0].topologyRequest.podSetSliceSize: Forbidden: "
                "may not be set when podSetSliceRequiredTopology is not set"
            ],
            id="size without slice",
        ),
        pytest.param(
            {
                "spec.podSets.0.topologyRequest": {
                    "podSetSliceRequiredTopology": "rack",
                    "podSetSliceSize": 0,
                }
            },
            [
                "spec.podSets[0].topologyRequest.podSetSliceSize: Invalid value: 0: "
                "must be greater than or equal to 1"
            ],
            id="size 0",
        ),
        pytest.param(
            {
                "spec.podSets.0.topologyRequest.podsetSliceRequiredTopologyConstraints": [
                    {"topology": "rack", "size": 0}
                ]
            },
            [
                "spec.podSets[0].topologyRequest.podsetSliceRequiredTopologyConstraints[0].size: "
                "Invalid value: 0: must be greater than or equal to 1"
            ],
            id="constraint size 0",
        ),
        pytest.param(
            {"spec.podSets.0.minCount": 1, "spec.podSets.1": {**SECOND, "minCount": 1}},
            ["spec.podSets: Invalid value: 2: at most one podSet can use minCount"],
            id="two minCounts",
        ),
        pytest.param(
            {
                "spec.podSets.0.minCount": 1,
                "metadata.annotations": {"kueue.x-k8s.io/elastic-job": "true"},
            },
            [
                "spec.podSets: Invalid value: 1: minCount cannot be used together with the "
                "annotation kueue.x-k8s.io/elastic-job"
            ],
            id="elastic with minCount",
        ),
        pytest.param(
            {"status.reclaimablePods": [{"name": "other", "count": 1}]},
            [
                'status.reclaimablePods[other].name: Unsupported value: "other": '
                'supported values: "main"'
            ],
            id="reclaimable pods of nothing",
        ),
        pytest.param(
            {"status.reclaimablePods": [{"name": "main", "count": 4}]},
            [
                "status.reclaimablePods[main].count: Invalid value: 4: "
                "should be less than or equal to 3"
            ],
            id="too many reclaimable pods",
        ),
        pytest.param(
            check_with({"name": "other"}),
            [
                f'{UPDATES}[0].podSetUpdates[0].name: Unsupported value: "other": '
                'supported values: "main"'
            ],
            id="update of nothing",
        ),
        pytest.param(
            {"status.conditions": [{**RESERVED, "status": "Maybe"}]},
            [
                'status.conditions[0].status: Unsupported value: "Maybe": '
                'supported values: "False", "True", "Unknown"'
            ],
            id="condition",
        ),
        pytest.param(
            {"metadata.annotations": {"kueue.x-k8s.io/admission-gated-by": ","}},
            [
                "metadata.annotations[kueue.x-k8s.io/admission-gated-by]: "
                'Invalid value: ",": cannot contain empty gate names'
            ],
            id="gates",
        ),
    ],
)
def test_refused(changes: dict[str, Any], expected: list[str]) -> None:
    found = texts(changed(WORKLOAD, changes))
    assert list(dict.fromkeys(found)) == expected


@pytest.mark.parametrize(
    ("field", "update"),
    [
        ("labels", {"labels": {"a b": ""}}),
        ("annotations", {"annotations": {"a b": ""}}),
        ("nodeSelector", {"nodeSelector": {"a b": ""}}),
        ("tolerations[0].key", {"tolerations": [{"key": "a b"}]}),
    ],
)
def test_pod_set_updates_have_label_syntax(field: str, update: Json) -> None:
    (text,) = texts(changed(WORKLOAD, check_with({"name": "main", **update})))
    assert text.startswith(f'{UPDATES}[0].podSetUpdates[0].{field}: Invalid value: "a b": ')


@pytest.mark.parametrize(
    ("gate", "changes"),
    [
        (
            "WorkloadValidateResourcesAreNonNegative",
            {f"{TEMPLATE}.spec.containers.0.resources.requests": {"cpu": "-1"}},
        ),
        ("TASValidateWorkloadSliceSize", {"spec.podSets.0.topologyRequest.podSetSliceSize": 2}),
        ("AdmissionGatedBy", {"metadata.annotations": {"kueue.x-k8s.io/admission-gated-by": ","}}),
        (
            "ElasticJobsViaWorkloadSlices",
            {
                "spec.podSets.0.minCount": 1,
                "metadata.annotations": {"kueue.x-k8s.io/elastic-job": "true"},
            },
        ),
    ],
)
def test_gates_switch_rules_off(gate: str, changes: dict[str, Any]) -> None:
    bad = changed(WORKLOAD, changes)
    assert texts(bad) != []
    assert texts(bad, {gate: False}) == []


@pytest.mark.parametrize(("boost", "ok"), [("5", True), ("-2147483648", True), ("", False)])
def test_priority_boost(boost: str, ok: bool) -> None:
    boosted = changed(WORKLOAD, {"metadata.annotations": {"kueue.x-k8s.io/priority-boost": boost}})
    assert texts(boosted) == []
    expected = [
        f'metadata.annotations[kueue.x-k8s.io/priority-boost]: Invalid value: "{boost}": '
        "must be a signed 32-bit integer"
    ]
    assert texts(boosted, {"PriorityBoost": True}) == ([] if ok else expected)


def test_quota_needs_an_admission_unless_it_lacked_one_before() -> None:
    bad = changed(ADMITTED, {"status.admission": DROP})
    text = "status.admission: Required value: must be set while the QuotaReserved condition is true"
    assert texts(bad) == [text]
    assert [str(e) for e in workload.on_update(ADMITTED, bad, {})] == [text]
    assert workload.on_update(bad, bad, {}) == []


def test_an_assignment_names_a_pod_set_while_quota_is_reserved() -> None:
    other = {"status.admission.podSetAssignments.0.name": "other"}
    assert texts(changed(ADMITTED, other)) == [
        'status.admission.podSetAssignments[0].name: Not found: "other"'
    ]
    assert texts(changed(ADMITTED, {**other, "status.conditions": DROP})) == []


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"cpu": "3", "memory": "3Gi"}, []),
        (
            {"cpu": "1"},
            [
                "status.admission.podSetAssignments[0].resourceUsage[cpu]: Invalid value: 1000: "
                "is not a multiple of 3"
            ],
        ),
        (
            {"memory": "4Mi"},
            [
                "status.admission.podSetAssignments[0].resourceUsage[memory]: "
                "Invalid value: 4194304: is not a multiple of 3"
            ],
        ),
    ],
)
def test_usage_divides_by_the_count(usage: Json, expected: list[str]) -> None:
    path = "status.admission.podSetAssignments.0.resourceUsage"
    assert texts(changed(ADMITTED, {path: usage})) == expected


def test_usage_of_no_pods_is_not_looked_at() -> None:
    path = "status.admission.podSetAssignments.0"
    assert texts(changed(ADMITTED, {f"{path}.count": 0, f"{path}.resourceUsage.cpu": "1"})) == []
