"""Admission checks: which a Workload needs, and what their states lead to."""

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

from sluice.api import times
from sluice.engine.lifecycle_facts import required_checks


def check(name: str, state: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "state": state, "lastTransitionTime": ago(10), "message": "", **fields}


@pytest.mark.parametrize(
    ("assigned", "needed"),
    [
        pytest.param(None, ["all", "both"], id="before: only those for every flavor"),
        pytest.param({"f1"}, ["all", "both", "one"], id="after: those of the assigned flavor"),
        pytest.param({"f2"}, ["all", "both", "two"], id="after: of another flavor"),
    ],
)
def test_required(assigned: set[str] | None, needed: list[str]) -> None:
    around = facts(checks={"all": [], "one": ["f1"], "two": ["f2"], "both": ["f1", "f2"]})
    assert around.cluster_queue is not None
    assert required_checks(around.cluster_queue, assigned) == needed


def test_missing_checks_are_added_and_others_removed() -> None:
    given = workload(RESERVED, admissionChecks=[check("old", "Ready"), check("kept", "Ready")])
    result = step(given, facts(checks={"kept": [], "new": []}))
    assert result.status is not None
    assert [(c["name"], c["state"]) for c in result.status["admissionChecks"]] == [
        ("kept", "Ready"),
        ("new", "Pending"),
    ]
    assert shown(result, "Admitted") is None


def test_all_ready_admits() -> None:
    given = workload(RESERVED, admissionChecks=[check("a", "Ready")])
    result = step(given, facts(checks={"a": []}))
    assert shown(result, "Admitted") == ("True", "Admitted", "The workload is admitted")
    assert result.notes[0].message == (
        "Admitted by ClusterQueue cq, wait time since reservation was 60s"
    )


@pytest.mark.parametrize("state", ["Pending", "Retry"])
def test_not_ready_does_not_admit(state: str) -> None:
    given = workload(RESERVED, admissionChecks=[check("a", state)])
    result = step(given, facts(checks={"a": []}))
    assert (shown(result, "Admitted") or ("False",))[0] == "False"


def test_delayed_topology_holds_admission_back() -> None:
    admission = {
        "clusterQueue": "cq",
        "podSetAssignments": [{"name": "main", "delayedTopologyRequest": "Pending"}],
    }
    assert step(workload(RESERVED, admission=admission)).status is None


def test_retry_evicts_and_sets_when_to_come_back() -> None:
    given = workload(
        RESERVED,
        ADMITTED,
        admissionChecks=[
            check("a", "Retry", message="why", requeueAfterSeconds=100),
            check("b", "Retry", message="", requeueAfterSeconds=50),
        ],
    )
    result = step(given, facts(checks={"a": [], "b": []}))
    assert result.status is not None
    message = 'Evicted due to AdmissionChecks in Retry state: "a" (why); "b" ()'
    assert shown(result, "Evicted") == ("True", "AdmissionCheck", message)
    assert result.status["requeueState"] == {"requeueAt": times.from_ms(NOW_MS + 90_000)}
    assert {c["state"] for c in result.status["admissionChecks"]} == {"Pending"}


def test_rejected_deactivates_in_two_writes() -> None:
    given = workload(RESERVED, admissionChecks=[check("a", "Rejected", message="no")])
    settled, steps = settle(given, facts(checks={"a": []}))
    assert steps[0].active is False
    assert [note.reason for note in steps[0].notes] == ["AdmissionCheckRejected"]
    assert steps[0].notes[0].type == "Warning"
    assert (shown(steps[0], "DeactivationTarget") or ())[:2] == ("True", "AdmissionCheck")
    assert shown(steps[1], "Evicted") == (
        "True",
        "DeactivatedDueToAdmissionCheck",
        'The workload is deactivated due to AdmissionCheck in Rejected state: "a" (no)',
    )
    assert shown(steps[1], "DeactivationTarget") is None
    assert settled["spec"]["active"] is False


def test_a_half_done_deactivation_is_finished() -> None:
    target = condition("DeactivationTarget", reason="AdmissionCheck", message="m")
    assert step(workload(RESERVED, target)).active is False


def test_checks_of_an_evicted_workload_are_left_alone() -> None:
    evicted = condition("Evicted", reason="Preempted")
    given = workload(RESERVED, evicted, admissionChecks=[check("a", "Rejected")])
    result = step(given, facts(checks={"a": []}))
    assert result.active is None
