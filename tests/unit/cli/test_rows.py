"""Rows of queues and Workloads: what people read."""

from typing import Any

import pytest

from sluice.api.times import from_ms
from sluice.cli import rows
from sluice.cli.tables import age, table

NOW_MS = 1_700_000_000_000


def condition(kind: str, status: str = "True", reason: str = "R", ago_s: int = 60) -> Any:
    at = from_ms(NOW_MS - ago_s * 1000)
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": f"{kind} is {status}",
        "lastTransitionTime": at,
    }


def workload(name: str = "job-a-1", *conditions: Any, age_s: int = 120, **spec: Any) -> Any:
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": name,
            "creationTimestamp": from_ms(NOW_MS - age_s * 1000),
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "controller": True}
            ],
        },
        "spec": {"queueName": "lq", **spec},
        "status": {"conditions": list(conditions)},
    }


PENDING = condition("QuotaReserved", "False", "WaitingForQuota")
ADMITTED = [condition("QuotaReserved"), condition("Admitted", ago_s=30)]


@pytest.mark.parametrize(
    ("conditions", "spec", "expected"),
    [
        pytest.param([], {}, "Pending", id="not looked at yet"),
        pytest.param([PENDING], {}, "Pending (WaitingForQuota)", id="waits"),
        pytest.param([condition("QuotaReserved")], {}, "QuotaReserved", id="waits for checks"),
        pytest.param(ADMITTED, {}, "Admitted", id="runs"),
        pytest.param(
            [*ADMITTED, condition("Evicted", reason="Preempted")],
            {},
            "Evicting (Preempted)",
            id="is being stopped",
        ),
        pytest.param(
            [*ADMITTED, condition("Finished", reason="Succeeded")],
            {},
            "Finished (Succeeded)",
            id="is done",
        ),
        pytest.param([PENDING], {"active": False}, "Deactivated", id="was stopped"),
    ],
)
def test_status_of_a_workload(conditions: list[Any], spec: dict[str, Any], expected: str) -> None:
    assert rows.workload_status(workload("w", *conditions, **spec)) == expected


def test_a_running_workload() -> None:
    found = workload("job-a-1", *ADMITTED)
    found["status"]["admission"] = {"clusterQueue": "cq"}
    found["status"]["accumulatedPastExecutionTimeSeconds"] = 90
    assert rows.workload_row(found, now_ms=NOW_MS, position=None) == [
        "job-a-1",
        "job.batch",
        "a",
        "lq",
        "cq",
        "Admitted",
        "",
        "2m",
        "2m",
    ]


def test_places_in_the_queue_are_by_priority_then_age() -> None:
    found = [
        workload("young", PENDING, age_s=10),
        workload("old", PENDING, age_s=100),
        workload("urgent", PENDING, age_s=1, priority=5),
        workload("runs", *ADMITTED, age_s=500),
        workload("elsewhere", PENDING, queueName="other"),
        workload("lost", PENDING, queueName="nowhere"),
    ]
    places = rows.positions(found, {"ns/lq": "cq", "ns/other": "cq2"})
    assert places == {"ns/urgent": 0, "ns/old": 1, "ns/young": 2, "ns/elsewhere": 0}


def cluster_queue(**spec: Any) -> Any:
    quota = {"name": "cpu", "nominalQuota": "4"}
    gpu = {"name": "nvidia.com/gpu", "nominalQuota": 8}
    flavors = [{"name": "f", "resources": [quota, gpu]}, {"name": "g", "resources": [quota]}]
    used = [{"name": "cpu", "total": "2500m"}, {"name": "nvidia.com/gpu", "total": "6"}]
    return {
        "metadata": {"name": "cq"},
        "spec": {"cohortName": "c", "resourceGroups": [{"flavors": flavors}], **spec},
        "status": {
            "pendingWorkloads": 3,
            "admittedWorkloads": 1,
            "flavorsUsage": [{"name": "f", "resources": used}],
            "conditions": [condition("Active", "False", "FlavorNotFound")],
        },
    }


def test_a_cluster_queue_shows_its_use_of_each_resource() -> None:
    assert rows.cluster_queue_row(cluster_queue()) == [
        "cq",
        "c",
        "3",
        "1",
        "Inactive (FlavorNotFound)",
        "cpu 2500m/8, nvidia.com/gpu 6/8",
    ]


def test_a_stopped_queue_says_how() -> None:
    assert rows.queue_status(cluster_queue(stopPolicy="Hold")) == "Stopped (Hold)"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (59, "59s"),
        (61, "1m1s"),
        (120, "2m"),
        (11 * 60 + 5, "11m"),
        (3 * 3600 + 600, "3h10m"),
        (86_400 * 2, "2d"),
    ],
)
def test_ages(seconds: int, text: str) -> None:
    assert age(seconds) == text


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    text = table(["A", "LONG"], [["xxxx", ""], ["y", "z"]])
    assert text == "A      LONG\nxxxx\ny      z"
