"""Conversion between v1beta1 and v1beta2 against docs/spec/api.md 1.11."""

import copy
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.samples import samples

from sluice.api.conversion import CONVERTED_KINDS, convert
from sluice.api.errors import InvalidObject
from sluice.api.models.kinds import KINDS

OLD, NEW = "kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2"


def make(kind: str, version: str, **parts: Any) -> dict[str, Any]:
    """Return an object with a spec or status."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, **parts}


def ref(group: str, kind: str) -> dict[str, Any]:
    """Return the part of a v1beta2 spec that names a priority class."""
    return {"priorityClassRef": {"group": group, "kind": kind, "name": "high"}}


BOTH_WAYS = [
    pytest.param("ClusterQueue", {"cohort": "c"}, {"cohortName": "c"}, id="cohort"),
    pytest.param(
        "ClusterQueue",
        {"flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "preference": "x"}},
        {"flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "preference": "x"}},
        id="fungibility with current names",
    ),
    pytest.param(
        "ClusterQueue",
        {"admissionChecksStrategy": {"admissionChecks": [{"name": "a", "onFlavors": ["f"]}]}},
        {"admissionChecksStrategy": {"admissionChecks": [{"name": "a", "onFlavors": ["f"]}]}},
        id="strategy",
    ),
    pytest.param(
        "Workload",
        {
            "priority": 1,
            "priorityClassName": "high",
            "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
        },
        {"priority": 1, **ref("kueue.x-k8s.io", "WorkloadPriorityClass")},
        id="workload priority class",
    ),
    pytest.param(
        "Workload",
        {
            "priorityClassName": "high",
            "priorityClassSource": "scheduling.k8s.io/priorityclass",
        },
        ref("scheduling.k8s.io", "PriorityClass"),
        id="pod priority class",
    ),
    pytest.param(
        "Workload", {"queueName": "q", "priorityClassSource": ""}, {"queueName": "q"}, id="no class"
    ),
    pytest.param(
        "MultiKueueCluster",
        {"kubeConfig": {"location": "s", "locationType": "Secret"}},
        {"clusterSource": {"kubeConfig": {"location": "s", "locationType": "Secret"}}},
        id="kubeconfig",
    ),
    pytest.param(
        "MultiKueueCluster",
        {
            "kubeConfig": {"location": "", "locationType": "Secret"},
            "clusterProfileRef": {"name": "p"},
        },
        {"clusterSource": {"clusterProfileRef": {"name": "p"}}},
        id="cluster profile",
    ),
]


@pytest.mark.parametrize(("kind", "old", "new"), BOTH_WAYS)
def test_specs_convert_both_ways(kind: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    assert convert(make(kind, OLD, spec=old), NEW) == make(kind, NEW, spec=new)
    assert convert(make(kind, NEW, spec=new), OLD) == make(kind, OLD, spec=old)


UPWARDS = [
    pytest.param(
        "ClusterQueue",
        {"flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}},
        {
            "flavorFungibility": {
                "whenCanBorrow": "MayStopSearch",
                "whenCanPreempt": "MayStopSearch",
            }
        },
        id="legacy fungibility",
    ),
    pytest.param(
        "ClusterQueue",
        {
            "admissionChecks": ["a", "b"],
            "admissionChecksStrategy": {"admissionChecks": [{"name": "c"}]},
        },
        {"admissionChecksStrategy": {"admissionChecks": [{"name": "a"}, {"name": "b"}]}},
        id="check names replace the strategy",
    ),
    pytest.param(
        "ClusterQueue",
        {"admissionChecks": [], "admissionChecksStrategy": {"admissionChecks": [{"name": "c"}]}},
        {"admissionChecksStrategy": {"admissionChecks": [{"name": "c"}]}},
        id="no check names keep the strategy",
    ),
    pytest.param("ClusterQueue", {"admissionChecksStrategy": {}}, {}, id="empty strategy"),
    pytest.param(
        "Workload",
        {"priorityClassName": "high", "priorityClassSource": ""},
        {},
        id="class without source",
    ),
]


@pytest.mark.parametrize(("kind", "old", "new"), UPWARDS)
def test_specs_convert_upwards(kind: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    assert convert(make(kind, OLD, spec=old), NEW) == make(kind, NEW, spec=new)


DOWNWARDS = [
    pytest.param(
        "ClusterQueue", {"concurrentAdmissionPolicy": {}}, {}, id="concurrent admission is dropped"
    ),
    pytest.param(
        "Workload",
        {
            "preemptionGates": [{"name": "g"}],
            "podSets": [
                {"topologyRequest": {"podsetSliceRequiredTopologyConstraints": [], "required": "r"}}
            ],
        },
        {"podSets": [{"topologyRequest": {"required": "r"}}], "priorityClassSource": ""},
        id="gates and slice constraints are dropped",
    ),
]


@pytest.mark.parametrize(("kind", "new", "old"), DOWNWARDS)
def test_specs_convert_downwards(kind: str, new: dict[str, Any], old: dict[str, Any]) -> None:
    assert convert(make(kind, NEW, spec=new), OLD) == make(kind, OLD, spec=old)


HISTORY = {"weightedShare": 1, "admissionFairSharingStatus": {"consumedResources": {}}}
STATUSES_UPWARDS = [
    pytest.param(
        "ClusterQueue",
        {"pendingWorkloads": 1, "pendingWorkloadsStatus": {}, "fairSharing": HISTORY},
        {"pendingWorkloads": 1, "fairSharing": {"weightedShare": 1}},
        id="ClusterQueue",
    ),
    pytest.param(
        "Cohort", {"fairSharing": HISTORY}, {"fairSharing": {"weightedShare": 1}}, id="Cohort"
    ),
    pytest.param(
        "LocalQueue",
        {"flavorUsage": [1], "flavors": [], "fairSharing": HISTORY},
        {"flavorsUsage": [1], "fairSharing": HISTORY},
        id="LocalQueue",
    ),
    pytest.param(
        "Workload",
        {"accumulatedPastExexcutionTimeSeconds": 7},
        {"accumulatedPastExecutionTimeSeconds": 7},
        id="Workload",
    ),
]


@pytest.mark.parametrize(("kind", "old", "new"), STATUSES_UPWARDS)
def test_statuses_convert_upwards(kind: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    assert convert(make(kind, OLD, status=old), NEW) == make(kind, NEW, status=new)


def test_statuses_convert_downwards() -> None:
    queue = make("LocalQueue", NEW, status={"flavorsUsage": [1]})
    assert convert(queue, OLD) == make("LocalQueue", OLD, status={"flavorUsage": [1]})
    workload = make(
        "Workload",
        NEW,
        status={"accumulatedPastExecutionTimeSeconds": 7, "preemptionGates": [{"name": "g"}]},
    )
    assert convert(workload, OLD) == make(
        "Workload", OLD, status={"accumulatedPastExexcutionTimeSeconds": 7}
    )


def test_placement_is_expanded_and_compressed() -> None:
    (old, _), (new, _) = samples("Workload", "v1beta1"), samples("Workload", "v1beta2")
    upgraded = convert(old, NEW)["status"]["admission"]["podSetAssignments"][0]
    assert upgraded["topologyAssignment"]["slices"] == [
        {
            "domainCount": 2,
            "valuesPerLevel": [
                {"universal": "r1"},
                {"individual": {"prefix": "node-", "roots": ["a", "b"]}},
            ],
            "podCounts": {"universal": 2},
        }
    ]
    downgraded = convert(new, OLD)["status"]["admission"]["podSetAssignments"][0]
    assert downgraded["topologyAssignment"]["domains"] == [
        {"values": ["r1", "node-a.example"], "count": 1},
        {"values": ["r1", "node-b.example"], "count": 1},
        {"values": ["r2", "x"], "count": 1},
        {"values": ["s3", "y"], "count": 1},
    ]


def test_the_kinds_are_those_whose_definitions_convert() -> None:
    assert {kind.kind for kind in KINDS if kind.converts} == CONVERTED_KINDS


@pytest.mark.parametrize("kind", sorted(CONVERTED_KINDS))
def test_the_same_version_is_left_alone(kind: str) -> None:
    for version, sample in ((v, s) for v in ("v1beta1", "v1beta2") for s in samples(kind, v)):
        assert convert(sample, f"kueue.x-k8s.io/{version}") is sample


@pytest.mark.parametrize(
    ("obj", "to_version", "message"),
    [
        pytest.param(make("Workload", OLD), "v1beta2", "desiredAPIVersion: Unsup", id="target"),
        pytest.param(make("Workload", "batch/v1"), NEW, "apiVersion: Unsupported", id="source"),
        pytest.param(make("Topology", OLD), NEW, 'kind: Unsupported value: "Topology"', id="kind"),
        pytest.param({"apiVersion": OLD, "kind": []}, NEW, "kind: Unsupported", id="kind's type"),
        pytest.param(make("Cohort", OLD, status=1), NEW, "status: .*an object", id="status"),
        pytest.param(
            make("Workload", OLD, status={"admission": 1}), NEW, "shape of a Workload", id="shape"
        ),
        pytest.param(
            {
                "apiVersion": OLD,
                "kind": "Workload",
                "spec": {"priorityClassSource": [], "priorityClassName": "a"},
            },
            NEW,
            "shape of a Workload",
            id="shape without metadata",
        ),
    ],
)
def test_bad_input_is_named(obj: dict[str, Any], to_version: str, message: str) -> None:
    with pytest.raises(InvalidObject, match=message):
        convert(obj, to_version)


def test_a_bad_placement_is_named_with_its_path() -> None:
    workload = samples("Workload", "v1beta1")[0]
    assignment = workload["status"]["admission"]["podSetAssignments"][0]
    assignment["topologyAssignment"]["domains"][1]["values"] = ["r1"]
    path = r"podSetAssignments\[0\]\.topologyAssignment\.domains\[1\]\.values"
    with pytest.raises(InvalidObject, match=rf"^status\.admission\.{path}: .*2 entries"):
        convert(workload, NEW)


@pytest.mark.slow
def test_the_cost_does_not_grow_with_what_is_not_converted() -> None:
    large = samples("Workload", "v1beta2")[0]
    container = large["spec"]["podSets"][0]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": f"V{i}", "value": "x" * 50} for i in range(500)]
    many = [large] * 200

    def seconds(work: Callable[[Any], object]) -> float:
        started = time.perf_counter()
        for obj in many:
            work(obj)
        return time.perf_counter() - started

    # Measured on one core: both ways take a hundredth of a deep copy, so a copy would show.
    converting = min(seconds(lambda obj: convert(convert(obj, OLD), NEW)) for _ in range(3))
    assert converting < min(seconds(copy.deepcopy) for _ in range(3)) / 5
