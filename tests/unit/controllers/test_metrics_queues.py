"""Gauges of queues: what the engine knows, when it is asked."""

from typing import Any

import pytest

from sluice.api.selectors import compile_selector
from sluice.clock import ManualClock
from sluice.controllers.caches import Caches
from sluice.controllers.metrics import Role
from sluice.controllers.metrics_queues import QueueMetrics
from sluice.controllers.scheduler import Scheduler
from sluice.engine.engine import Engine
from sluice.engine.options import EngineOptions
from sluice.jobs.catalogue import all_integrations
from sluice.jobs.integration import select
from sluice.kube.access import ClusterAccess
from sluice.kube.client import Client
from sluice.kube.informer import Informer

GROUP = "kueue.x-k8s.io/v1beta2"


class World:
    """Caches and an engine that tests write objects to."""

    def __init__(self) -> None:
        registry, _ = select(all_integrations(), ["batch/job"])
        self.caches = Caches(Client(ClusterAccess(host="http://unused")), registry)
        self.engine = Engine(EngineOptions())
        Scheduler(self.engine, ManualClock(1_700_000_000_000)).attach(self.caches)
        self.version = 0
        for informer in self.caches.all():
            informer.synced.set()
        self.put(self.caches.namespaces, "", "ns", kind="Namespace", version="v1")
        self.put(self.caches.flavors, "", "f", kind="ResourceFlavor", spec={})

    def put(
        self,
        informer: Informer[Any],
        namespace: str,
        name: str,
        *,
        kind: str,
        version: str = GROUP,
        labels: dict[str, str] | None = None,
        **body: Any,
    ) -> None:
        self.version += 1
        metadata: dict[str, Any] = {
            "name": name,
            "uid": f"{kind}-{name}",
            "resourceVersion": str(self.version),
            "creationTimestamp": "2023-11-14T22:13:20Z",
            "labels": labels or {},
        }
        if namespace:
            metadata["namespace"] = namespace
        informer.observe_write({"apiVersion": version, "kind": kind, "metadata": metadata, **body})

    def cluster_queue(self, name: str, **spec: Any) -> None:
        quota = {"name": "cpu", "nominalQuota": "4"}
        groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [quota]}]}]
        spec = {"resourceGroups": groups, "namespaceSelector": {}, **spec}
        self.put(self.caches.cluster_queues, "", name, kind="ClusterQueue", spec=spec)

    def local_queue(self, name: str, cluster_queue: str, **labels: str) -> None:
        spec = {"clusterQueue": cluster_queue}
        queues = self.caches.local_queues
        self.put(queues, "ns", name, kind="LocalQueue", spec=spec, labels=labels)

    def workload(self, name: str, queue: str, cpu: str) -> None:
        container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
        spec = {"queueName": queue, "podSets": [pod_set], "active": True, "priority": 0}
        self.put(self.caches.workloads, "ns", name, kind="Workload", spec=spec, status={})

    def samples(self, **options: Any) -> dict[tuple[str, ...], float]:
        """Return values by metric name and label values, the role left out."""
        source = QueueMetrics(self.caches, self.engine, role=lambda: Role.LEADER, **options)
        found = {}
        for family in source.snapshot():
            for sample in family.samples:
                labels = dict(sample.labels)
                assert labels.pop("replica_role") == "leader"
                found[sample.name, *labels.values()] = sample.value
        return found


@pytest.fixture
def world() -> World:
    world = World()
    world.cluster_queue("cq", cohortName="team")
    world.local_queue("lq", "cq")
    return world


def test_pending_workloads_are_active_until_they_are_parked(world: World) -> None:
    world.workload("w", "lq", "100")
    assert world.samples()["kueue_pending_workloads", "cq", "active"] == 1
    for at_ms in range(3):
        world.engine.cycle(1_700_000_000_000 + at_ms)
    found = world.samples()
    assert found["kueue_pending_workloads", "cq", "active"] == 0
    assert found["kueue_pending_workloads", "cq", "inadmissible"] == 1
    assert found["kueue_local_queue_pending_workloads", "lq", "ns", "inadmissible"] == 1


def test_what_is_given_quota_is_counted(world: World) -> None:
    world.workload("w", "lq", "1")
    world.engine.cycle(1_700_000_000_000)
    found = world.samples()
    assert found["kueue_reserving_active_workloads", "cq"] == 1
    assert found["kueue_local_queue_reserving_active_workloads", "lq", "ns"] == 1
    assert found["kueue_pending_workloads", "cq", "active"] == 0


def test_exactly_one_state_of_a_queue_is_set(world: World) -> None:
    world.cluster_queue("stopped", stopPolicy="Hold")
    found = world.samples()
    states = ("pending", "active", "terminating")
    active = [found["kueue_cluster_queue_status", "cq", state] for state in states]
    assert active == [0, 1, 0]
    stopped = [found["kueue_cluster_queue_status", "stopped", state] for state in states]
    assert stopped == [1, 0, 0]


def test_a_queue_tells_its_cohorts(world: World) -> None:
    parent = {"parentName": "company"}
    world.put(world.caches.cohorts, "", "team", kind="Cohort", spec=parent)
    assert world.samples()["kueue_cluster_queue_info", "cq", "team", "company"] == 1


def test_a_queue_that_is_gone_has_no_series(world: World) -> None:
    world.caches.cluster_queues.store.remove("cq")
    assert not [key for key in world.samples() if "cq" in key]


def test_local_queues_are_left_out_or_selected(world: World) -> None:
    world.local_queue("shown", "cq", show="yes")
    assert not [k for k in world.samples(local_queues=False) if k[0].startswith("kueue_local")]
    selector = compile_selector({"matchLabels": {"show": "yes"}})
    chosen = world.samples(local_queue_selector=selector)
    names = {key[1] for key in chosen if key[0] == "kueue_local_queue_status"}
    assert names == {"shown"}
