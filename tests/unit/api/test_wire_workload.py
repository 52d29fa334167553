"""Workloads and admissions: raw JSON to records and back (docs/spec/api.md 1.4)."""

from typing import Any

import pytest

from sluice.api import times, wire
from sluice.api.records import SliceConstraint, Workload

AT = "2026-01-01T00:00:10Z"
KX = "kueue.x-k8s.io"


def obj(kind: str, spec: Any = None, status: Any = None, **meta: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "metadata": {"name": "n", **meta},
        "spec": spec or {},
        "status": status or {},
    }


QUOTA_RESERVED = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved"}
SPEC = {
    "queueName": "lq",
    "priority": 5,
    "active": False,
    "podSets": [
        {
            "name": "main",
            "count": 3,
            "minCount": 1,
            "template": {"spec": {"containers": [{"name": "c"}]}},
            "topologyRequest": {
                "required": "rack",
                "podSetSliceRequiredTopology": "host",
                "podSetSliceSize": 2,
                "podSetGroupName": "g",
            },
        },
        {
            "template": {"spec": {}},
            "topologyRequest": {
                "podsetSliceRequiredTopologyConstraints": [{"topology": "a", "size": 4}]
            },
        },
    ],
    "preemptionGates": [{"name": "open"}, {"name": "shut"}],
}
STATUS = {
    "conditions": [{**QUOTA_RESERVED, "lastTransitionTime": AT, "message": "m"}],
    "admission": {
        "clusterQueue": "q",
        "podSetAssignments": [
            {
                "name": "main",
                "flavors": {"cpu": "f"},
                "resourceUsage": {"cpu": "1500m", "memory": "1Ki"},
                "count": 3,
                "topologyAssignment": {
                    "levels": ["host"],
                    "slices": [
                        {
                            "domainCount": 2,
                            "valuesPerLevel": [
                                {"individual": {"prefix": "h-", "roots": ["1", "2"]}}
                            ],
                            "podCounts": {"individual": [2, 1]},
                        }
                    ],
                },
            }
        ],
    },
    "admissionChecks": [
        {
            "name": "c",
            "state": "Ready",
            "podSetUpdates": [
                {
                    "name": "main",
                    "nodeSelector": {"a": "b"},
                    "tolerations": [{"operator": "Exists"}],
                }
            ],
        }
    ],
    "reclaimablePods": [{"name": "main", "count": 1}],
    "requeueState": {"requeueAt": AT},
    "preemptionGates": [{"name": "open", "position": "Open"}],
    "unhealthyNodes": [{"name": "x"}],
    "clusterName": "worker",
}


def full_workload() -> dict[str, Any]:
    return obj(
        "Workload",
        SPEC,
        STATUS,
        namespace="ns",
        uid="u",
        creationTimestamp=AT,
        labels={f"{KX}/job-uid": "job"},
        annotations={
            f"{KX}/priority-boost": "-3",
            f"{KX}/admission-gated-by": "gate",
            f"{KX}/workload-slice-replacement-for": "ns/old",
            f"{KX}/elastic-job": "true",
        },
        ownerReferences=[{"kind": "Pod", "name": "p"}],
    )


def test_a_full_workload() -> None:
    record = wire.decode(full_workload())
    assert isinstance(record, Workload)
    first, second = record.pod_sets
    assert (first.name, first.count, first.min_count) == ("main", 3, 1)
    assert first.topology is not None
    assert first.topology.slices == (SliceConstraint(topology="host", size=2),)
    assert (first.topology.required, first.topology.group) == ("rack", "g")
    assert (second.name, second.count) == ("main", 1)
    assert second.topology is not None
    assert second.topology.slices == (SliceConstraint(topology="a", size=4),)
    assert second.topology.has_slice_fields
    assert (record.key, record.queue_key) == ("ns/n", "ns/lq")
    assert (record.priority, record.priority_boost, record.active) == (5, -3, False)
    assert (record.gated_by, record.replaces, record.is_elastic) == ("gate", "ns/old", True)
    assert (record.job_uid, record.is_owned_by_pod) == ("job", True)
    assert record.is_true("QuotaReserved")
    assert not record.is_false("QuotaReserved")
    assert record.conditions["QuotaReserved"].at_ms == times.to_ms(AT)
    assert record.closed_gates == ("shut",)
    assert record.reclaimable == (("main", 1),)
    assert record.requeue_at_ms == record.created_ms == times.to_ms(AT)
    assert (record.unhealthy_nodes, record.cluster_name) == (("x",), "worker")
    assert record.checks[0].updates[0].node_selector == (("a", "b"),)


def test_an_admission_survives_the_way_there_and_back() -> None:
    raw = full_workload()["status"]["admission"]
    record = wire.admission(raw)
    assert record is not None

    assert record.pod_sets[0].usage == (("cpu", 1500), ("memory", 1024))
    assert [(d.values, d.count) for d in record.pod_sets[0].topology.domains] == [  # type: ignore[union-attr]
        (("h-1",), 2),
        (("h-2",), 1),
    ]
    assert wire.encode_admission(record) == raw
    assert wire.admission(wire.encode_admission(record)) == record


def test_requests_are_written_as_quantities() -> None:
    requests = (("main", (("cpu", 1500), ("memory", 2048))),)

    assert wire.encode_requests(requests) == [  # type: ignore[arg-type]
        {"name": "main", "resources": {"cpu": "1500m", "memory": "2Ki"}}
    ]


@pytest.mark.parametrize(
    ("labels", "annotations", "variant_of", "is_parent"),
    [
        ({}, {}, None, False),
        ({f"{KX}/concurrent-admission-parent": "true"}, {}, None, True),
        (
            {f"{KX}/concurrent-admission-parent": "w"},
            {f"{KX}/workload-allowed-resource-flavors": "a, b"},
            "ns/w",
            False,
        ),
    ],
)
def test_variants_and_their_parent(
    labels: dict[str, str], annotations: dict[str, str], variant_of: str | None, is_parent: bool
) -> None:
    record = wire.workload(
        obj("Workload", {}, namespace="ns", labels=labels, annotations=annotations)
    )

    assert (record.variant_of, record.is_variant_parent) == (variant_of, is_parent)
    assert record.allowed_flavors == (("a", "b") if variant_of else ())


def test_equal_templates_share_one_record() -> None:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    other = {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]}

    assert wire.template(spec) is wire.template(other)
    assert wire.template(spec) != wire.template({"containers": []})
    assert len({wire.template(spec), wire.template(other)}) == 1
