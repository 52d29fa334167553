"""Workload counters: each transition once, and only where decisions are taken."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from sluice.api.times import from_ms
from sluice.controllers.caches import Caches
from sluice.controllers.metrics import Role
from sluice.controllers.metrics_workloads import WorkloadMetrics
from sluice.jobs.catalogue import all_integrations
from sluice.jobs.integration import select
from sluice.kube.access import ClusterAccess
from sluice.kube.client import Client

START_MS = 1_700_000_000_000
QUEUE = {"cluster_queue": "cq", "priority_class": "high", "replica_role": "leader"}


class World:
    """A cache of Workloads that tests write to, with the metrics attached."""

    def __init__(self) -> None:
        self.role = Role.LEADER
        self.registry = CollectorRegistry()
        registry, _ = select(all_integrations(), ["batch/job"])
        self.caches = Caches(Client(ClusterAccess(host="http://unused")), registry)
        WorkloadMetrics(self.registry, self.caches, role=lambda: self.role)
        self.version = 0
        self.conditions: dict[str, Any] = {}
        self.caches.workloads.synced.set()
        self.write(0)

    def write(self, at_s: int, **conditions: tuple[str, str]) -> None:
        """Set conditions (status, reason) at a second after the start."""
        for kind, (status, reason) in conditions.items():
            self.conditions[kind] = {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": "",
                "lastTransitionTime": from_ms(START_MS + at_s * 1000),
            }
        self.version += 1
        status: dict[str, Any] = {"conditions": list(self.conditions.values())}
        if self.conditions.get("QuotaReserved", {}).get("status") == "True":
            status["admission"] = {"clusterQueue": "cq", "podSetAssignments": []}
        self.caches.workloads.observe_write(
            {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "Workload",
                "metadata": {
                    "namespace": "ns",
                    "name": "w",
                    "uid": "u",
                    "resourceVersion": str(self.version),
                    "creationTimestamp": from_ms(START_MS),
                },
                "spec": {
                    "queueName": "lq",
                    "podSets": [],
                    "priorityClassRef": {
                        "group": "kueue.x-k8s.io",
                        "kind": "WorkloadPriorityClass",
                        "name": "high",
                    },
                },
                "status": status,
            }
        )

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"kueue_{name}", {**QUEUE, **labels})


@pytest.fixture
def world() -> World:
    return World()


def test_the_way_to_running(world: World) -> None:
    world.write(5, QuotaReserved=("True", "QuotaReserved"))
    world.write(8, Admitted=("True", "Admitted"))
    world.write(20, PodsReady=("True", "Started"))
    world.write(90, Finished=("True", "Succeeded"))
    for name in ("quota_reserved", "admitted", "finished"):
        assert world.value(f"{name}_workloads_total") == 1
    assert world.value("quota_reserved_wait_time_seconds_sum") == 5
    assert world.value("admission_wait_time_seconds_sum") == 8
    assert world.value("admission_checks_wait_time_seconds_sum") == 3
    assert world.value("ready_wait_time_seconds_sum") == 20
    assert world.value("admitted_until_ready_wait_time_seconds_sum") == 12


def test_what_does_not_change_is_not_counted_again(world: World) -> None:
    world.write(5, QuotaReserved=("True", "QuotaReserved"))
    world.write(6)
    world.write(7)
    assert world.value("quota_reserved_workloads_total") == 1


def test_a_second_admission_waits_since_the_requeue(world: World) -> None:
    admitted = {"QuotaReserved": ("True", "QuotaReserved"), "Admitted": ("True", "Admitted")}
    world.write(5, **admitted)
    world.write(100, Evicted=("True", "Preempted"))
    world.write(101, QuotaReserved=("False", "Pending"), Admitted=("False", "NoReservation"))
    world.write(110, Requeued=("True", "Preempted"))
    world.write(117, **admitted, Evicted=("False", "QuotaReserved"))
    assert world.value("admitted_workloads_total") == 2
    assert world.value("admission_wait_time_seconds_sum") == 5 + 7
    evicted = {"reason": "Preempted", "underlying_cause": ""}
    assert world.value("evicted_workloads_total", **evicted) == 1


def test_a_deactivation_has_reason_and_cause_apart(world: World) -> None:
    world.write(5, QuotaReserved=("True", "QuotaReserved"))
    world.write(9, Evicted=("True", "DeactivatedDueToRequeuingLimitExceeded"))
    labels = {"reason": "Deactivated", "underlying_cause": "RequeuingLimitExceeded"}
    assert world.value("evicted_workloads_total", **labels) == 1


def test_recovered_pods_did_not_become_ready_first(world: World) -> None:
    world.write(5, QuotaReserved=("True", "QuotaReserved"), Admitted=("True", "Admitted"))
    world.write(9, PodsReady=("True", "Recovered"))
    assert world.value("ready_wait_time_seconds_count") is None


def test_a_standby_counts_nothing(world: World) -> None:
    world.role = Role.FOLLOWER
    world.write(5, QuotaReserved=("True", "QuotaReserved"))
    world.role = Role.LEADER
    world.write(6)
    assert world.value("quota_reserved_workloads_total") is None
