"""Why a Workload without quota waits: the order of reasons and their exact words."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.engine.lifecycle_worlds import (
    ADMITTED,
    RESERVED,
    condition,
    facts,
    shown,
    step,
    workload,
)

from sluice.api.records import StopPolicy
from sluice.engine.lifecycle_facts import Facts, LifecycleOptions

GATED = {"annotations": {"kueue.x-k8s.io/admission-gated-by": "example.com/a"}}


def gated(given: dict[str, Any]) -> dict[str, Any]:
    return {**given, "metadata": {**given["metadata"], **GATED}}


@pytest.mark.parametrize(
    ("given", "around", "reason", "message"),
    [
        pytest.param(
            workload(spec={"active": False}),
            facts(local=None),
            "Deactivated",
            "The workload is deactivated",
            id="deactivated comes first",
        ),
        pytest.param(
            workload(),
            facts(local=None, cluster=None),
            "Misconfigured",
            "LocalQueue lq doesn't exist",
            id="no LocalQueue",
        ),
        pytest.param(
            workload(),
            facts(local=StopPolicy.HOLD, cluster=None),
            "Suspended",
            "LocalQueue lq is inactive",
            id="LocalQueue stopped",
        ),
        pytest.param(
            workload(),
            facts(cluster=None),
            "Misconfigured",
            "ClusterQueue cq doesn't exist",
            id="no ClusterQueue",
        ),
        pytest.param(
            gated(workload()),
            facts(active=False),
            "Suspended",
            "ClusterQueue cq is inactive",
            id="ClusterQueue inactive, before gates",
        ),
        pytest.param(
            gated(workload()),
            facts(),
            "AdmissionGated",
            "Admission is gated by: example.com/a",
            id="gated",
        ),
    ],
)
def test_reason(given: dict[str, Any], around: Facts, reason: str, message: str) -> None:
    result = step(given, around)
    assert shown(result, "QuotaReserved") == ("False", reason, message)
    assert shown(result, "Admitted") == (
        "False",
        "NoReservation",
        "The workload has no reservation",
    )
    assert [note.reason for note in result.notes if not note.reason.startswith("Evicted")] in (
        [reason],
        [],
    )


def test_a_workload_that_nothing_blocks_gets_no_write() -> None:
    assert step(workload()).status is None


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("WaitingForQuota", "couldn't assign flavors to pod set main: ..."),
        ("Misconfigured", "resources validation failed: requests must not exceed its limits"),
        ("AdmissionGated", "Workload requires preemption, but it's gated"),
        ("OnHold", "Job is on hold"),
    ],
)
def test_what_the_scheduler_said_stays(reason: str, message: str) -> None:
    given = workload(condition("QuotaReserved", "False", reason, message=message))
    assert step(given).status is None


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("Misconfigured", "LocalQueue lq doesn't exist"),
        ("Suspended", "ClusterQueue cq is inactive"),
        ("Deactivated", "The workload is deactivated"),
        ("Inadmissible", "ClusterQueue cq is inactive"),
    ],
)
def test_a_reason_that_no_longer_holds_gives_way(reason: str, message: str) -> None:
    result = step(workload(condition("QuotaReserved", "False", reason, message=message)))
    assert shown(result, "QuotaReserved") == (
        "False",
        "PendingEvaluation",
        "Workload is pending evaluation in the scheduling queue",
    )


def test_a_cleared_gate_is_told() -> None:
    text = "Admission is gated by: example.com/a"
    result = step(workload(condition("QuotaReserved", "False", "AdmissionGated", message=text)))
    expected = "AdmissionGatedBy cleared, waiting for quota reservation"
    assert shown(result, "QuotaReserved") == ("False", "PendingEvaluation", expected)
    assert [note.reason for note in result.notes] == ["AdmissionGateCleared"]


def test_legacy_reasons() -> None:
    options = LifecycleOptions(granular_reasons=False)
    result = step(workload(), facts(local=None), options)
    assert shown(result, "QuotaReserved") == (
        "False",
        "Inadmissible",
        "LocalQueue lq doesn't exist",
    )


def test_the_same_reason_is_not_written_twice() -> None:
    first = step(workload(), facts(local=None))
    given = {**workload(), "status": first.status}
    second = step(given, facts(local=None))
    assert second.status is None
    assert second.notes == ()


CHECKS: dict[str, list[str]] = {"ac": []}


@pytest.mark.parametrize(
    ("around", "told", "reason", "message"),
    [
        pytest.param(
            facts(local=StopPolicy.HOLD, checks=CHECKS),
            "LocalQueue lq is stopped",
            "Suspended",
            "LocalQueue lq is inactive",
            id="LocalQueue on hold",
        ),
        pytest.param(
            facts(cluster=StopPolicy.HOLD, active=False, checks=CHECKS),
            "ClusterQueue cq is stopped",
            "Suspended",
            "ClusterQueue cq is inactive",
            id="ClusterQueue on hold",
        ),
        pytest.param(
            facts(local=None, checks=CHECKS),
            "LocalQueue lq is terminating or missing",
            "Misconfigured",
            "LocalQueue lq doesn't exist",
            id="LocalQueue gone",
        ),
        pytest.param(
            facts(cluster=None),
            "ClusterQueue cq is terminating or missing",
            "Misconfigured",
            "ClusterQueue cq doesn't exist",
            id="ClusterQueue gone",
        ),
    ],
)
def test_quota_of_one_not_admitted_is_taken_back(
    around: Facts, told: str, reason: str, message: str
) -> None:
    waiting = [{"name": "ac", "state": "Pending", "lastTransitionTime": "2026-03-01T11:00:00Z"}]
    result = step(workload(RESERVED, admissionChecks=waiting), around)
    assert result.status is not None
    assert "admission" not in result.status
    assert shown(result, "QuotaReserved") == ("False", reason, message)
    assert told in [note.message for note in result.notes]


@pytest.mark.parametrize("around", [facts(local=StopPolicy.HOLD), facts(cluster=StopPolicy.HOLD)])
def test_hold_leaves_admitted_ones_alone(around: Facts) -> None:
    assert step(workload(RESERVED, ADMITTED), around).status is None


PARKED = ("WaitingForQuota", "Bypassed scheduling evaluation because an equivalent one failed")


@pytest.mark.parametrize(
    ("given", "is_told"),
    [
        pytest.param(workload(), True, id="never told anything"),
        pytest.param(
            workload(condition("QuotaReserved", "False", "PendingEvaluation")),
            True,
            id="told that it is evaluated",
        ),
        pytest.param(
            workload(
                condition(
                    "QuotaReserved", "False", "Misconfigured", message="LocalQueue lq is gone"
                )
            ),
            True,
            id="told what no longer holds",
        ),
        pytest.param(
            workload(condition("QuotaReserved", "False", "NoMatchingFlavor", message="own")),
            False,
            id="told of its own attempt",
        ),
    ],
)
def test_a_workload_parked_unexamined_is_told_why(given: dict[str, Any], is_told: bool) -> None:
    result = step(given, replace(facts(), parked=PARKED))
    if is_told:
        assert shown(result, "QuotaReserved") == ("False", *PARKED)
    else:
        assert result.status is None
