"""Queue status as JSON."""

from typing import Any

from sluice.api.names import ClusterQueueName, FlavorName, LocalQueueKey, ResourceName
from sluice.controllers import queue_status
from sluice.engine.status import (
    ClusterQueueStatus,
    CohortStatus,
    FlavorUsage,
    LocalQueueStatus,
    ResourceUsage,
)
from sluice.jobs.difference import same

NOW_MS = 1_700_000_000_000
USAGE = (
    FlavorUsage(
        name=FlavorName("f"),
        resources=(ResourceUsage(name=ResourceName("cpu"), total=2500, borrowed=500),),
    ),
)


def cluster(**changes: Any) -> ClusterQueueStatus:
    values: dict[str, Any] = {
        "name": ClusterQueueName("cq"),
        "pending": 3,
        "reserving": 2,
        "admitted": 1,
        "reservation": USAGE,
        "usage": (),
        "is_active": True,
        "reason": "Ready",
        "message": "Can admit new workloads",
        "weighted_share": None,
    }
    return ClusterQueueStatus(**(values | changes))


def test_cluster_queue() -> None:
    status = queue_status.cluster_queue({}, cluster(), now_ms=NOW_MS, seen=4)
    assert status["flavorsReservation"] == [
        {"name": "f", "resources": [{"name": "cpu", "total": "2500m", "borrowed": "500m"}]}
    ]
    assert (status["pendingWorkloads"], status["reservingWorkloads"]) == (3, 2)
    assert status["admittedWorkloads"] == 1
    assert status["conditions"] == [
        {
            "type": "Active",
            "status": "True",
            "reason": "Ready",
            "message": "Can admit new workloads",
            "lastTransitionTime": "2023-11-14T22:13:20Z",
            "observedGeneration": 4,
        }
    ]
    assert "fairSharing" not in status


def test_nothing_differs_a_second_time() -> None:
    first = queue_status.cluster_queue({}, cluster(), now_ms=NOW_MS, seen=4)
    later = queue_status.cluster_queue(first, cluster(), now_ms=NOW_MS + 60_000, seen=4)
    assert same(first, later)


def test_share_comes_and_goes() -> None:
    with_share = queue_status.cluster_queue({}, cluster(weighted_share=7), now_ms=NOW_MS, seen=1)
    assert with_share["fairSharing"] == {"weightedShare": 7}
    without = queue_status.cluster_queue(with_share, cluster(), now_ms=NOW_MS, seen=1)
    assert "fairSharing" not in without
    assert queue_status.cohort({}, CohortStatus(name="c", weighted_share=3)) == {
        "fairSharing": {"weightedShare": 3}
    }
    assert (
        queue_status.cohort({"fairSharing": {}}, CohortStatus(name="c", weighted_share=None)) == {}
    )


def test_conditions_of_others_stay() -> None:
    other = {"type": "MultiKueueManagerQuotaAutomation", "status": "True"}
    status = queue_status.cluster_queue(
        {"conditions": [other]}, cluster(is_active=False), now_ms=NOW_MS, seen=1
    )
    assert [(c["type"], c["status"]) for c in status["conditions"]] == [
        ("MultiKueueManagerQuotaAutomation", "True"),
        ("Active", "False"),
    ]


def test_local_queue() -> None:
    local = LocalQueueStatus(
        key=LocalQueueKey("ns/lq"),
        pending=1,
        reserving=0,
        admitted=0,
        reservation=USAGE,
        usage=(),
        is_active=False,
        reason="Stopped",
        message="LocalQueue is stopped",
        consumed=((ResourceName("cpu"), "1500m"),),
        consumed_updated_ms=NOW_MS,
    )
    status = queue_status.local_queue({}, local, now_ms=NOW_MS, seen=1)
    assert status["flavorsReservation"] == [
        {"name": "f", "resources": [{"name": "cpu", "total": "2500m"}]}
    ]
    assert status["fairSharing"] == {
        "weightedShare": 0,
        "admissionFairSharingStatus": {
            "consumedResources": {"cpu": "1500m"},
            "lastUpdate": "2023-11-14T22:13:20Z",
        },
    }
