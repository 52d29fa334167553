"""Raw JSON to records and back: every field a decision reads (docs/spec/api.md section 1)."""

from typing import Any

import pytest

from sluice.api import amount, times, wire
from sluice.api.errors import InvalidObject
from sluice.api.records import (
    AdmissionCheck,
    AdmissionMode,
    ClusterQueue,
    Cohort,
    FungibilityPolicy,
    FungibilityPreference,
    LimitRange,
    LocalQueue,
    MigrationMode,
    Namespace,
    Node,
    Pod,
    PreemptionPolicy,
    QueueingStrategy,
    ResourceFlavor,
    RuntimeClass,
    StopPolicy,
    Topology,
)

AT = "2026-01-01T00:00:10Z"
KX = "kueue.x-k8s.io"


def obj(kind: str, spec: Any = None, status: Any = None, **meta: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"kind": kind, "metadata": {"name": "n", **meta}}
    if spec is not None:
        body["spec"] = spec
    if status is not None:
        body["status"] = status
    return body


def quota(name: str, nominal: str, **limits: str) -> dict[str, str]:
    return {"name": name, "nominalQuota": nominal, **limits}


FULL_QUEUE = {
    "resourceGroups": [
        {
            "coveredResources": ["cpu", "memory"],
            "flavors": [
                {
                    "name": "f",
                    "resources": [
                        quota("cpu", "1500m", borrowingLimit="1", lendingLimit="500m"),
                        quota("memory", "1Gi"),
                    ],
                }
            ],
        }
    ],
    "cohortName": "c",
    "queueingStrategy": "StrictFIFO",
    "namespaceSelector": {
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "k", "operator": "Exists"}],
    },
    "flavorFungibility": {
        "whenCanBorrow": "TryNextFlavor",
        "whenCanPreempt": "Preempt",
        "preference": "PreemptionOverBorrowing",
    },
    "preemption": {
        "withinClusterQueue": "LowerOrNewerEqualPriority",
        "reclaimWithinCohort": "Any",
        "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 7},
    },
    "admissionChecksStrategy": {
        "admissionChecks": [{"name": "x", "onFlavors": ["f"]}, {"name": "y"}]
    },
    "stopPolicy": "Hold",
    "fairSharing": {"weight": "500m"},
    "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
    "concurrentAdmissionPolicy": {
        "migration": {
            "mode": "RetainFirstAdmission",
            "constraints": {"lastAcceptableFlavorName": "f"},
        }
    },
}


def test_a_full_cluster_queue() -> None:
    meta = {"uid": "u", "resourceVersion": "7", "generation": 3, "deletionTimestamp": AT}
    record = wire.decode(obj("ClusterQueue", FULL_QUEUE, **meta))
    assert isinstance(record, ClusterQueue)
    (group,) = record.resource_groups
    cpu, memory = group.flavors[0].resources
    assert (cpu.nominal, cpu.borrowing_limit, cpu.lending_limit) == (1500, 1000, 500)
    assert (memory.nominal, memory.borrowing_limit, memory.lending_limit) == (2**30, None, None)
    assert (record.cohort, record.strategy) == ("c", QueueingStrategy.STRICT_FIFO)
    assert record.namespace_selector is not None
    assert record.namespace_selector.matches({"a": "b", "k": ""})
    assert not record.namespace_selector.matches({"a": "b"})
    assert record.when_can_borrow is FungibilityPolicy.TRY_NEXT_FLAVOR
    assert record.when_can_preempt is FungibilityPolicy.MAY_STOP_SEARCH
    assert record.preference is FungibilityPreference.PREEMPTION_OVER_BORROWING
    rules = record.preemption
    assert rules.within_cluster_queue is PreemptionPolicy.LOWER_OR_NEWER_EQUAL_PRIORITY
    assert rules.borrow_priority_threshold_max == 7
    assert [(c.name, c.on_flavors) for c in record.checks] == [("x", ("f",)), ("y", ())]
    assert (record.stop_policy, record.fair_weight) == (StopPolicy.HOLD, 0.5)
    assert record.admission_mode is AdmissionMode.USAGE_BASED
    assert record.concurrent_admission is not None
    assert record.concurrent_admission.mode is MigrationMode.RETAIN_FIRST_ADMISSION
    assert (record.uid, record.resource_version, record.generation) == ("u", "7", 3)
    assert record.is_terminating


def test_an_empty_cluster_queue_has_the_defaults_and_selects_nothing() -> None:
    record = wire.decode(obj("ClusterQueue", {}))

    assert record == ClusterQueue(name="n")  # type: ignore[arg-type]  # a plain name will do
    assert isinstance(record, ClusterQueue)
    assert record.namespace_selector is None


@pytest.mark.parametrize(
    ("resource", "text", "value"),
    [
        ("cpu", "9223372036854775", amount.UNLIMITED),
        ("cpu", "9223372036854774", 9223372036854774000),
        ("memory", "9223372036854775807", amount.UNLIMITED),
        ("memory", "8Ei", amount.UNLIMITED),
        ("gpu", "100m", 1),
    ],
)
def test_quota_quantities(resource: str, text: str, value: int) -> None:
    assert amount.from_quota(resource, text) == value


@pytest.mark.parametrize(
    ("expressions", "error"),
    [
        ([{"key": "k", "operator": "Near"}], "not a valid label selector operator"),
        ([{"key": "k", "operator": "In"}], "values of operator 'In'"),
        ([{"key": "k", "operator": "Exists", "values": ["x"]}], "values of operator 'Exists'"),
    ],
)
def test_an_invalid_selector_matches_nothing_and_says_why(expressions: Any, error: str) -> None:
    record = wire.decode(
        obj("ClusterQueue", {"namespaceSelector": {"matchExpressions": expressions}})
    )
    assert isinstance(record, ClusterQueue)
    assert record.namespace_selector is not None
    assert error in record.namespace_selector.error
    assert not record.namespace_selector.matches({"k": "x"})


def test_local_queue_with_its_stored_usage() -> None:
    record = wire.decode(
        obj(
            "LocalQueue",
            {"clusterQueue": "q", "stopPolicy": "HoldAndDrain", "fairSharing": {"weight": "2"}},
            {
                "fairSharing": {
                    "admissionFairSharingStatus": {
                        "consumedResources": {"memory": "1Gi", "cpu": "1500m"},
                        "lastUpdate": AT,
                    }
                }
            },
            namespace="ns",
        )
    )
    assert isinstance(record, LocalQueue)
    assert record.key == "ns/n"
    assert record.consumed == (("cpu", "1500m"), ("memory", "1Gi"))
    assert record.consumed_updated_ms == times.to_ms(AT)
    assert (record.stop_policy, record.fair_weight) == (StopPolicy.HOLD_AND_DRAIN, 2.0)


def test_the_small_kinds() -> None:
    assert wire.decode(obj("Cohort", {"parentName": "p", "fairSharing": {"weight": 0}})) == Cohort(
        name="n",  # type: ignore[arg-type]
        parent="p",  # type: ignore[arg-type]
        fair_weight=0.0,
    )
    flavor = wire.decode(
        obj(
            "ResourceFlavor",
            {
                "nodeLabels": {"b": "1", "a": "2"},
                "nodeTaints": [{"key": "k", "effect": "NoSchedule"}],
                "tolerations": [{"operator": "Exists"}],
                "topologyName": "t",
            },
        )
    )
    assert isinstance(flavor, ResourceFlavor)
    assert flavor.node_labels == (("a", "2"), ("b", "1"))
    assert str(flavor.node_taints[0]) == "k:NoSchedule"
    assert flavor.topology == "t"
    check = wire.decode(
        obj(
            "AdmissionCheck",
            {"controllerName": "c"},
            {"conditions": [{"type": "Active", "status": "True"}]},
        )
    )
    assert check == AdmissionCheck(name="n", controller="c", is_active=True)  # type: ignore[arg-type]
    topology = wire.decode(obj("Topology", {"levels": [{"nodeLabel": "a"}, {"nodeLabel": "b"}]}))
    assert topology == Topology(name="n", levels=("a", "b"))
    assert wire.decode(obj("Namespace", labels={"x": "y"})) == Namespace(
        name="n", labels=(("x", "y"),)
    )
    ranges = wire.decode(
        obj("LimitRange", {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}, namespace="ns")
    )
    assert isinstance(ranges, LimitRange)
    assert ranges.items[0].max == (("cpu", "1"),)
    runtime = wire.decode({**obj("RuntimeClass"), "overhead": {"podFixed": {"cpu": "1"}}})
    assert runtime == RuntimeClass(name="n", overhead=(("cpu", "1"),))  # type: ignore[arg-type]


def test_nodes_and_pods() -> None:
    node = wire.decode(
        obj(
            "Node",
            {"unschedulable": True, "taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]},
            {
                "allocatable": {"cpu": "4"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
            labels={"a": "b"},
        )
    )
    assert isinstance(node, Node)
    assert (node.is_ready, node.is_unschedulable) == (True, True)
    pod = wire.decode(
        obj(
            "Pod",
            {"nodeName": "x", "containers": []},
            {"phase": "Failed"},
            namespace="ns",
            annotations={f"{KX}/podset-required-topology": "rack"},
        )
    )
    assert isinstance(pod, Pod)
    assert (pod.node, pod.is_terminated, pod.uses_topology) == ("x", True, True)


@pytest.mark.parametrize(
    "raw",
    [
        {"kind": "Gadget", "metadata": {"name": "n"}},
        {"metadata": {"name": "n"}},
        {"kind": "Workload"},
        obj("ClusterQueue", {"stopPolicy": "Sometimes"}),
        obj("ClusterQueue", {"resourceGroups": [{"flavors": []}]}),
        obj("Workload", {"podSets": [{"template": {"spec": {"overhead": {"cpu": "much"}}}}]}),
    ],
)
def test_what_cannot_be_read_is_an_invalid_object(raw: dict[str, Any]) -> None:
    with pytest.raises(InvalidObject):
        wire.decode(raw)


def test_list_items_are_decoded_by_a_given_kind() -> None:
    assert wire.decode_as("Namespace", {"metadata": {"name": "n"}}) == Namespace(name="n")
