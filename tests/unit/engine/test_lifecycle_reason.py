"""The reason of a Workload parked because its equivalent failed, from the engine itself."""

from typing import Any

from sluice.api import wire
from sluice.api.names import WorkloadKey
from sluice.engine.engine import Engine
from sluice.engine.events import Observed
from sluice.engine.lifecycle_reason import parked_reason
from sluice.engine.options import EngineOptions

NOW_MS = 1_800_000_000_000


def observe(engine: Engine, kind: str, name: str, **fields: Any) -> None:
    namespace = {"namespace": "ns"} if kind in ("LocalQueue", "Workload") else {}
    metadata = {
        "name": name,
        "uid": name,
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        **namespace,
    }
    record = wire.decode_as(kind, {"kind": kind, "metadata": metadata, **fields})
    engine.observe(Observed(at_ms=NOW_MS, record=record))


def workload(engine: Engine, name: str) -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    observe(engine, "Workload", name, spec={"queueName": "lq", "podSets": [pod_set]})


def full_queue() -> Engine:
    """Return an engine whose only queue has no quota, with one Workload that has failed."""
    engine = Engine(EngineOptions())
    observe(engine, "Namespace", "ns")
    observe(engine, "ResourceFlavor", "f")
    quota = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": "0"}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
    observe(engine, "ClusterQueue", "cq", spec={"namespaceSelector": {}, "resourceGroups": groups})
    observe(engine, "LocalQueue", "lq", spec={"clusterQueue": "cq"})
    workload(engine, "first")
    for _ in range(3):
        engine.cycle(NOW_MS)
    return engine


def test_a_later_equivalent_has_the_reason_of_the_first() -> None:
    engine = full_queue()
    first = parked_reason(engine, WorkloadKey("ns/first"))
    workload(engine, "second")
    second = parked_reason(engine, WorkloadKey("ns/second"))
    assert first is not None
    assert second is not None
    assert second[0] == first[0] == "ExceedsMaxQuota"
    assert second[1].startswith("Bypassed scheduling evaluation")


def test_nothing_is_said_of_what_is_not_parked() -> None:
    engine = full_queue()
    assert parked_reason(engine, WorkloadKey("ns/unknown")) is None
