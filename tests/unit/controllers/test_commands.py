"""What each command of the engine writes to a Workload, and when it no longer fits."""

from typing import Any

import pytest

from sluice.api.conditions import EvictionReason, PendingReason, PreemptionReason
from sluice.api.names import CheckName, ClusterQueueName, FlavorName, PodSetName, ResourceName
from sluice.api.names import WorkloadKey as Key
from sluice.api.records import Admission, PodSetAssignment
from sluice.controllers.commands import Outcome, Stale, outcome_of
from sluice.engine.commands import (
    AssignTopology,
    Command,
    Evict,
    FinishSlice,
    MarkPending,
    ReserveQuota,
)

NOW_MS = 1_700_000_000_000
ADMISSION = Admission(
    cluster_queue=ClusterQueueName("cq"),
    pod_sets=(
        PodSetAssignment(
            name=PodSetName("main"),
            flavors=((ResourceName("cpu"), FlavorName("f")),),
            usage=((ResourceName("cpu"), 2000),),
            count=2,
        ),
    ),
)
COMMON: dict[str, Any] = {
    "workload": Key("ns/wl"),
    "uid": "u",
    "resource_version": "5",
    "cluster_queue": ClusterQueueName("cq"),
}
RESERVE = ReserveQuota(
    **COMMON,
    admission=ADMISSION,
    checks=(),
    admitted=True,
    message="Quota reserved in ClusterQueue cq",
    wait_ms=2500,
)
MARK = MarkPending(
    **COMMON,
    reason=PendingReason.WAITING_FOR_QUOTA,
    message="no room",
    requests=((PodSetName("main"), ((ResourceName("cpu"), 2000),)),),
)
EVICT = Evict(
    **COMMON,
    reason=EvictionReason.PREEMPTED,
    message="make room",
    preempted_reason=PreemptionReason.IN_CLUSTER_QUEUE,
)


def workload(*true: str, spec: Any = None, meta: Any = None, **status: Any) -> dict[str, Any]:
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "message": ""}
        | {"lastTransitionTime": "2023-01-01T00:00:00Z"}
        for kind in true
    ]
    return {
        "metadata": {"name": "wl", "namespace": "ns", "uid": "u", "generation": 1, **(meta or {})},
        "spec": {"active": True, **(spec or {})},
        "status": {"conditions": conditions, **status},
    }


def outcome(command: Command, raw: dict[str, Any], *, tracks_pods: bool = False) -> Outcome:
    return outcome_of(command, raw, generation=1, now_ms=NOW_MS, tracks_pods=tracks_pods)


def shown(result: Outcome) -> dict[str, tuple[str, str]]:
    assert result.status is not None
    return {c["type"]: (c["status"], c["reason"]) for c in result.status["conditions"]}


def test_reserve_and_admit_is_one_write_with_two_events() -> None:
    result = outcome(RESERVE, workload(), tracks_pods=True)
    assert shown(result) == {
        "QuotaReserved": ("True", "QuotaReserved"),
        "Admitted": ("True", "Admitted"),
        "PodsReady": ("False", "WaitForStart"),
    }
    assert result.status is not None
    assert result.status["admission"]["podSetAssignments"] == [
        {"name": "main", "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "2"}, "count": 2}
    ]
    assert [(note.reason, note.message) for note in result.notes] == [
        (
            "QuotaReserved",
            "Quota reserved in ClusterQueue cq, wait time since queued was 2s",
        ),
        ("Admitted", "Admitted by ClusterQueue cq, wait time since reservation was 0s"),
    ]


def test_reserve_with_checks_waits_for_them() -> None:
    command = ReserveQuota(
        **COMMON,
        admission=ADMISSION,
        checks=(CheckName("b"), CheckName("a")),
        admitted=False,
        message="m",
        wait_ms=0,
    )
    result = outcome(command, workload(), tracks_pods=True)
    assert shown(result)["Admitted"] == ("False", "UnsatisfiedAdmissionChecks")
    assert "PodsReady" not in shown(result)
    assert result.status is not None
    assert [(c["name"], c["state"]) for c in result.status["admissionChecks"]] == [
        ("a", "Pending"),
        ("b", "Pending"),
    ]


def test_reserve_again_after_an_unknown_outcome_writes_nothing() -> None:
    first = outcome(RESERVE, workload())
    again = outcome(RESERVE, {**workload(), "status": first.status})
    assert again.status is None
    assert again.notes == ()


@pytest.mark.parametrize(
    ("command", "raw"),
    [
        pytest.param(RESERVE, workload(meta={"uid": "other"}), id="another object"),
        pytest.param(RESERVE, workload(meta={"generation": 2}), id="spec changed"),
        pytest.param(RESERVE, workload(meta={"deletionTimestamp": "x"}), id="being deleted"),
        pytest.param(RESERVE, workload("Finished"), id="finished"),
        pytest.param(RESERVE, workload(spec={"active": False}), id="deactivated"),
        pytest.param(
            RESERVE, workload("QuotaReserved", admission={"clusterQueue": "x"}), id="reserved"
        ),
        pytest.param(MARK, workload("QuotaReserved"), id="pending no more"),
        pytest.param(EVICT, workload(), id="nothing to evict"),
        pytest.param(EVICT, workload("QuotaReserved", "Finished"), id="ended by itself"),
    ],
)
def test_stale(command: Command, raw: dict[str, Any]) -> None:
    with pytest.raises(Stale):
        outcome(command, raw)


def test_mark_says_why_and_what_is_asked_for() -> None:
    result = outcome(MARK, workload())
    assert shown(result)["QuotaReserved"] == ("False", "WaitingForQuota")
    assert result.status is not None
    assert result.status["resourceRequests"] == [{"name": "main", "resources": {"cpu": "2"}}]
    assert [(note.reason, note.type) for note in result.notes] == [("WaitingForQuota", "Warning")]
    assert outcome(MARK, {**workload(), "status": result.status}).status is None


def test_evict_keeps_the_admission() -> None:
    admission = {"clusterQueue": "cq"}
    result = outcome(EVICT, workload("QuotaReserved", "Admitted", admission=admission))
    assert shown(result)["Evicted"] == ("True", "Preempted")
    assert shown(result)["Preempted"] == ("True", "InClusterQueue")
    assert result.status is not None
    assert result.status["admission"] == admission
    assert [note.reason for note in result.notes] == ["EvictedDueToPreempted", "Preempted"]
    assert outcome(EVICT, workload("QuotaReserved", "Evicted")).status is None


def test_topology_found_later_admits() -> None:
    command = AssignTopology(
        **COMMON, admission=ADMISSION, admitted=True, clear_unhealthy_nodes=True
    )
    result = outcome(command, workload("QuotaReserved", unhealthyNodes=[{"name": "n"}]))
    assert shown(result)["Admitted"] == ("True", "Admitted")
    assert result.status is not None
    assert "unhealthyNodes" not in result.status
    with pytest.raises(Stale):
        outcome(command, workload("QuotaReserved", "Evicted"))


def test_a_replaced_slice_is_finished() -> None:
    command = FinishSlice(
        workload=Key("ns/wl"), uid="u", resource_version="5", replaced_by=Key("ns/n"), message="m"
    )
    assert shown(outcome(command, workload()))["Finished"] == ("True", "WorkloadSliceReplaced")
    assert outcome(command, workload("Finished")).status is None
