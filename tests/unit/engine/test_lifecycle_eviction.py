"""Evictions around the scheduler, their completion, and coming back."""

from typing import Any

import pytest
from tests.unit.engine.lifecycle_worlds import (
    ADMITTED,
    NOW_MS,
    RESERVED,
    ago,
    condition,
    facts,
    settle,
    shown,
    step,
    workload,
)

from sluice.api import conditions, times
from sluice.api.records import StopPolicy
from sluice.engine import lifecycle_status as transitions
from sluice.engine.lifecycle_facts import Facts, LifecycleOptions
from sluice.engine.lifecycle_status import Moment

AT = Moment(now_ms=NOW_MS, generation=3)


@pytest.mark.parametrize(
    ("given", "around", "reason", "message"),
    [
        pytest.param(
            workload(RESERVED, ADMITTED, spec={"active": False}),
            facts(),
            "Deactivated",
            "The workload is deactivated",
            id="deactivated",
        ),
        pytest.param(
            workload(RESERVED, ADMITTED),
            facts(cluster=StopPolicy.HOLD_AND_DRAIN),
            "ClusterQueueStopped",
            "The ClusterQueue is stopped",
            id="ClusterQueue drained",
        ),
        pytest.param(
            workload(RESERVED, ADMITTED),
            facts(local=StopPolicy.HOLD_AND_DRAIN),
            "LocalQueueStopped",
            "The LocalQueue is stopped",
            id="LocalQueue drained",
        ),
    ],
)
def test_evicted_and_still_holding(
    given: dict[str, Any], around: Facts, reason: str, message: str
) -> None:
    result = step(given, around)
    assert result.status is not None
    assert shown(result, "Evicted") == ("True", reason, message)
    assert result.status["admission"] == given["status"]["admission"], "quota waits for the pods"
    assert [note.reason for note in result.notes] == [f"EvictedDueTo{reason}"]
    stats = result.status["schedulingStats"]["evictions"]
    assert stats == [{"reason": reason, "underlyingCause": "", "count": 1}]
    again = step({**given, "status": result.status}, around)
    assert again.status is None, "an eviction is written once"


@pytest.mark.parametrize(
    ("reason", "requeued"),
    [
        ("Preempted", "True"),
        ("NodeFailures", "True"),
        ("PodsReadyTimeout", "False"),
        ("LocalQueueStopped", "False"),
    ],
)
def test_release(reason: str, requeued: str) -> None:
    evicted = condition("Evicted", reason=reason, message="why")
    status = transitions.release(workload(RESERVED, ADMITTED, evicted)["status"], AT)
    assert "admission" not in status
    by_type = {c["type"]: (c["status"], c["reason"], c["message"]) for c in status["conditions"]}
    assert by_type["Requeued"] == (requeued, reason, "why")
    assert by_type["QuotaReserved"] == ("False", "PendingEvaluation", "why")
    assert by_type["Admitted"][:2] == ("False", "NoReservation")
    assert status["accumulatedPastExecutionTimeSeconds"] == 60


def test_release_of_a_deactivated_one_says_so_at_once() -> None:
    evicted = condition("Evicted", reason="Deactivated", message="why")
    given = workload(RESERVED, ADMITTED, evicted, spec={"active": False})
    status = transitions.release(given["status"], AT)
    settled, steps = settle({**given, "status": status}, facts())
    assert steps == []
    reason = conditions.find(settled["status"]["conditions"], "QuotaReserved")
    assert reason is not None
    assert reason["reason"] == "Deactivated"


@pytest.mark.parametrize(
    ("held_back_by", "around", "reason"),
    [
        ("Deactivated", facts(), "Reactivated"),
        ("DeactivatedDueToAdmissionCheck", facts(), "Reactivated"),
        ("LocalQueueStopped", facts(), "LocalQueueRestarted"),
        ("ClusterQueueStopped", facts(), "ClusterQueueRestarted"),
        ("PodsReadyTimeout", facts(), "BackoffFinished"),
        ("LocalQueueStopped", facts(local=StopPolicy.HOLD), None),
        ("ClusterQueueStopped", facts(cluster=StopPolicy.HOLD, active=False), None),
    ],
)
def test_requeued(held_back_by: str, around: Facts, reason: str | None) -> None:
    given = workload(
        condition("Requeued", "False", held_back_by),
        requeueState={"count": 1, "requeueAt": ago(1)},
    )
    result = step(given, around)
    if reason is None:
        assert shown(result, "Requeued") in (None, ("False", held_back_by, ""))
    else:
        assert (shown(result, "Requeued") or ())[:2] == ("True", reason)
        assert result.status is not None
        assert result.status["requeueState"] == {"count": 1}


def test_a_backoff_is_waited_for() -> None:
    due_ms = NOW_MS + 30_000
    given = workload(
        condition("Requeued", "False", "PodsReadyTimeout"),
        requeueState={"count": 1, "requeueAt": times.from_ms(due_ms)},
    )
    result = step(given)
    assert result.status is None
    assert result.look_again_ms == due_ms


def test_reserving_turns_what_was_before_off() -> None:
    before = workload(
        condition("QuotaReserved", "False", "WaitingForQuota"),
        condition("Evicted", reason="Preempted", message="text"),
        condition("Preempted", reason="InClusterQueue", message="text"),
        resourceRequests=[{"name": "main"}],
    )["status"]
    status = transitions.reserve(
        before, AT, admission={"clusterQueue": "cq"}, checks=(), admitted=True, message="m"
    )
    assert "resourceRequests" not in status
    by_type = {c["type"]: (c["status"], c["reason"], c["message"]) for c in status["conditions"]}
    assert by_type["QuotaReserved"] == ("True", "QuotaReserved", "m")
    assert by_type["Admitted"] == ("True", "Admitted", "The workload is admitted")
    assert by_type["Evicted"] == ("False", "QuotaReserved", "Previously: text")
    assert by_type["Preempted"] == ("False", "QuotaReserved", "Previously: text")


def test_eviction_resets_checks() -> None:
    checks = [
        {"name": "a", "state": "Ready", "message": "ok", "podSetUpdates": [{}], "retryCount": 2},
        {"name": "b", "state": "Retry", "message": "", "requeueAfterSeconds": 5, "retryCount": 1},
        {"name": "c", "state": "Pending", "message": "", "retryCount": 3},
    ]
    before = workload(RESERVED, admissionChecks=checks, clusterName="w")["status"]
    status = transitions.evict(before, AT, reason="Preempted", message="m", preempted="x")
    ready, retry, pending = status["admissionChecks"]
    assert "clusterName" not in status
    assert ready["state"] == "Pending"
    assert ready["message"] == "Reset to Pending after eviction. Previously: Ready"
    assert "podSetUpdates" not in ready
    assert "retryCount" not in ready
    assert (retry["retryCount"], retry["requeueAfterSeconds"]) == (2, 5)
    assert pending == checks[2]


def test_an_orphan_is_finished_and_let_go() -> None:
    given = workload()
    given["metadata"]["ownerReferences"] = []
    given["metadata"]["labels"] = {"kueue.x-k8s.io/job-uid": "x"}
    result = step(given)
    assert (shown(result, "Finished") or ())[:2] == ("True", "OwnerNotFound")
    assert result.drop_finalizer
    kept = step(given, options=LifecycleOptions(finish_orphans=False))
    assert kept.status is None
    assert not kept.drop_finalizer


@pytest.mark.parametrize(("age_s", "delete"), [(30, False), (60, True)])
def test_retention_of_finished_ones(age_s: int, delete: bool) -> None:
    given = workload(condition("Finished", since=ago(age_s)))
    result = step(given, options=LifecycleOptions(retain_finished_ms=60_000))
    assert result.delete is delete
    assert (result.look_again_ms is None) is delete


def test_retention_of_deactivated_ones() -> None:
    evicted = condition("Evicted", reason="DeactivatedDueToAdmissionCheck", since=ago(61))
    given = workload(evicted, spec={"active": False})
    options = LifecycleOptions(retain_deactivated_ms=60_000)
    assert step(given, options=options).delete_owner
    by_user = workload(
        condition("Evicted", reason="Deactivated", since=ago(61)), spec={"active": False}
    )
    assert not step(by_user, options=options).delete_owner


def test_a_workload_that_is_being_deleted_is_left_to_its_job() -> None:
    given = workload(RESERVED, ADMITTED, spec={"active": False})
    given["metadata"]["deletionTimestamp"] = ago(1)
    assert step(given).status is None


def test_an_orphan_that_is_finished_only_loses_its_finalizer() -> None:
    given = workload(condition("Finished"))
    given["metadata"]["ownerReferences"] = []
    given["metadata"]["deletionTimestamp"] = ago(1)
    result = step(given)
    assert result.status is None
    assert result.drop_finalizer


def test_eviction_counts_by_reason_and_cause_and_closes_gates() -> None:
    gate = {"name": "g", "position": "Open", "lastTransitionTime": ago(60)}
    closed = {**gate, "name": "c", "position": "Closed"}
    stats = {"evictions": [{"reason": "Preempted", "underlyingCause": "", "count": 2}]}
    before = workload(
        RESERVED,
        condition("BlockedOnPreemptionGates", message="gated"),
        preemptionGates=[gate, closed],
        schedulingStats=stats,
    )["status"]
    status = transitions.evict(before, AT, reason="Preempted", message="m")
    assert status["schedulingStats"]["evictions"][0]["count"] == 3
    assert [g["position"] for g in status["preemptionGates"]] == ["Closed", "Closed"]
    assert status["preemptionGates"][1] == closed
    by_type = {c["type"]: c["status"] for c in status["conditions"]}
    assert by_type["BlockedOnPreemptionGates"] == "False"
    other = transitions.evict(status, AT, reason="NodeFailures", message="m")
    assert len(other["schedulingStats"]["evictions"]) == 2


def test_pending_while_gated() -> None:
    status = transitions.mark_pending(
        {}, AT, reason="AdmissionGated", message="m", blocked_on_gates=True
    )
    by_type = {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}
    assert by_type["BlockedOnPreemptionGates"] == ("True", "PreemptionGated")


def test_reserving_with_a_delayed_topology() -> None:
    admission = {"podSetAssignments": [{"name": "main", "delayedTopologyRequest": "Pending"}]}
    status = transitions.reserve(
        {}, AT, admission=admission, checks=(), admitted=False, message="m"
    )
    by_type = {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}
    assert by_type["Admitted"] == ("False", "PendingDelayedTopologyRequests")
    assert transitions.topology_pending(status)


def test_deactivation_by_us_is_told_once_evicted_is_there() -> None:
    """The request to deactivate stayed behind after a crash: it is taken away, nothing else."""
    evicted = condition("Evicted", reason="DeactivatedDueToAdmissionCheck")
    target = condition("DeactivationTarget", reason="AdmissionCheck")
    given = workload(RESERVED, evicted, target, spec={"active": False}, requeueState={"count": 1})
    result = step(given)
    assert result.status is not None
    assert shown(result, "DeactivationTarget") is None
    assert "requeueState" not in result.status
    assert result.notes == ()
