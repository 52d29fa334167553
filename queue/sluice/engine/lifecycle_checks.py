"""Admission checks of one Workload: which it needs, and what their states lead to.

Pure. Source: docs/spec/api.md 4.3, docs/spec/algorithm.md 7.3. Called by `lifecycle`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sluice.api import times
from sluice.api.conditions import ConditionType, EvictionReason
from sluice.engine import lifecycle_status as transitions
from sluice.engine.lifecycle_facts import WARNING, Draft, Facts, Note, required_checks

Evict = Callable[[Draft, EvictionReason, str], None]


def sync(draft: Draft, facts: Facts) -> None:
    """Make ``status.admissionChecks`` list what the queue demands."""
    if facts.cluster_queue is None:
        return
    if not facts.cluster_queue.checks and not draft.status.get("admissionChecks"):
        return
    admission = draft.status.get("admission")
    assigned: set[str] | None = None
    if admission is not None:
        assigned = {
            flavor
            for assignment in admission.get("podSetAssignments") or ()
            for flavor in (assignment.get("flavors") or {}).values()
        }
    wanted = required_checks(facts.cluster_queue, assigned)
    draft.status = transitions.sync_checks(draft.status, draft.at, wanted)


def plan_retry(draft: Draft) -> None:
    """Set requeueAt from checks in Retry that name a delay; it only ever moves forward."""
    if not draft.is_true(ConditionType.QUOTA_RESERVED):
        return
    due = [
        times.to_ms(check["lastTransitionTime"]) + check["requeueAfterSeconds"] * 1000
        for check in in_state(draft.status, "Retry")
        if check.get("requeueAfterSeconds") is not None
    ]
    if due:
        draft.status = requeue_not_before(draft.status, max(due))


def requeue_not_before(status: transitions.Json, at_ms: int) -> transitions.Json:
    """Return a status whose requeueAt is not before a time."""
    state = dict(status.get("requeueState") or {})
    present = state.get("requeueAt")
    text = times.from_ms(at_ms)
    if present is not None and times.to_ms(present) >= times.to_ms(text):
        return status
    state["requeueAt"] = text
    return {**status, "requeueState": state}


def evict(draft: Draft, evict_draft: Evict) -> bool:
    """Evict or deactivate a Workload whose checks say so.

    Args:
        draft: A Workload that holds quota and isn't evicted.
        evict_draft: Evicts within the draft.

    Returns:
        Whether something was done.
    """
    rejected = in_state(draft.status, "Rejected")
    if rejected:
        message = _sentence("in Rejected state", rejected)
        draft.status = transitions.ask_deactivation(
            draft.status, draft.at, reason="AdmissionCheck", message=message
        )
        draft.active = False
        note = f"Deactivated due to {message}"
        draft.notes.append(Note(reason="AdmissionCheckRejected", message=note, type=WARNING))
        return True
    retry = in_state(draft.status, "Retry")
    if retry:
        evict_draft(
            draft,
            EvictionReason.ADMISSION_CHECK,
            f"Evicted due to {_sentence('in Retry state', retry)}",
        )
        return True
    return False


def in_state(status: Mapping[str, Any], state: str) -> list[Mapping[str, Any]]:
    """Return the checks of a status that are in a state."""
    return [c for c in status.get("admissionChecks") or () if c.get("state") == state]


def _sentence(where: str, checks: Sequence[Mapping[str, Any]]) -> str:
    word = "AdmissionCheck" if len(checks) == 1 else "AdmissionChecks"
    parts = (f'"{check["name"]}" ({check.get("message", "")})' for check in checks)
    return f"{word} {where}: {'; '.join(parts)}"
