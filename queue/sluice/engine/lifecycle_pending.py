"""Why a Workload without quota waits, as far as its queues, gates and owner decide it.

The scheduler's own reasons (WaitingForQuota and so on) stay where nothing here stands in the way;
a reason given here that no longer holds gives way to PendingEvaluation. A Workload that nothing
blocks and that was never looked at gets no condition, which saves a write for each.
Pure. Source: docs/spec/api.md 4.2 (QuotaReserved, evaluation order). Called by `lifecycle`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice.api import conditions, names
from sluice.api.conditions import ConditionType, PendingReason
from sluice.api.records import StopPolicy
from sluice.engine import lifecycle_status as transitions
from sluice.engine.lifecycle_facts import WARNING, Draft, Facts, LifecycleOptions, Note

_EVALUATION: Final = "Workload is pending evaluation in the scheduling queue"
_GATE_CLEARED: Final = "AdmissionGatedBy cleared, waiting for quota reservation"
_GATED: Final = "Admission is gated by: "
_LEGACY: Final = {
    PendingReason.MISCONFIGURED: PendingReason.INADMISSIBLE,
    PendingReason.SUSPENDED: PendingReason.INADMISSIBLE,
    PendingReason.PENDING_EVALUATION: PendingReason.PENDING,
}
_Blocker = tuple[PendingReason, str]


def set_deactivated(draft: Draft) -> None:
    """Say that the Workload is deactivated."""
    _say(draft, PendingReason.DEACTIVATED, transitions.DEACTIVATED_MESSAGE)


def take_back(draft: Draft, message: str, *, missing: bool) -> None:
    """Take the quota of a Workload that is not admitted back, because of its queue.

    Args:
        draft: The draft.
        message: What the user reads.
        missing: The queue is gone, not just stopped.
    """
    reason = PendingReason.MISCONFIGURED if missing else PendingReason.SUSPENDED
    draft.status = transitions.mark_pending(draft.status, draft.at, reason=reason, message=message)
    draft.notes.append(Note(reason=str(reason), message=message, type=WARNING))


def explain(draft: Draft, facts: Facts, options: LifecycleOptions) -> None:
    """Bring QuotaReserved=False of a Workload without quota up to date."""
    present = draft.condition(ConditionType.QUOTA_RESERVED)
    on_hold = present is not None and present.get("reason") == PendingReason.ON_HOLD
    if on_hold:
        return
    blocker = _blocker(draft, facts)
    if blocker is not None:
        reason, message = blocker
        if _say(draft, _shown(reason, options), message):
            is_gate = reason is PendingReason.ADMISSION_GATED
            kind = "Normal" if is_gate else WARNING
            draft.notes.append(
                Note(reason=str(_shown(reason, options)), message=message, type=kind)
            )
        return
    if facts.parked is not None and not _says_why(present):
        reason_text, message = facts.parked
        draft.status = transitions.mark_pending(
            draft.status, draft.at, reason=reason_text, message=message
        )
        return
    if present is None or not _is_ours(str(present.get("reason")), str(present.get("message"))):
        return
    if str(present.get("message")).startswith(_GATED):
        draft.notes.append(Note(reason="AdmissionGateCleared", message=_GATE_CLEARED))
        _say(draft, _shown(PendingReason.PENDING_EVALUATION, options), _GATE_CLEARED)
        return
    _say(draft, _shown(PendingReason.PENDING_EVALUATION, options), _EVALUATION)


def _blocker(draft: Draft, facts: Facts) -> _Blocker | None:
    local, cluster = facts.local_queue, facts.cluster_queue
    if local is None:
        name = facts.local_queue_name
        return PendingReason.MISCONFIGURED, f"LocalQueue {name} doesn't exist"
    if local.stop_policy is not StopPolicy.NONE or local.is_terminating:
        return PendingReason.SUSPENDED, f"LocalQueue {local.name} is inactive"
    if cluster is None:
        name = facts.cluster_queue_name
        return PendingReason.MISCONFIGURED, f"ClusterQueue {name} doesn't exist"
    if not facts.cluster_queue_active:
        return PendingReason.SUSPENDED, f"ClusterQueue {cluster.name} is inactive"
    annotations = draft.workload["metadata"].get("annotations") or {}
    if gates := annotations.get(names.ADMISSION_GATED_BY, "").strip():
        return PendingReason.ADMISSION_GATED, f"{_GATED}{gates}"
    return None


def _says_why(present: Mapping[str, Any] | None) -> bool:
    """Tell whether a condition already gives a reason of the scheduler's.

    It stays then, unlike in Kueue (docs/spec/api.md 4.2): what an attempt said of this Workload
    tells more than that another one failed.
    """
    if present is None:
        return False
    reason = str(present.get("reason"))
    if reason in (PendingReason.PENDING_EVALUATION, PendingReason.PENDING):
        return False
    return not _is_ours(reason, str(present.get("message")))


def _is_ours(reason: str, message: str) -> bool:
    """Tell whether a reason was given here (or by an older version), not by the scheduler."""
    if reason == PendingReason.DEACTIVATED:
        return True
    if reason == PendingReason.ADMISSION_GATED:
        return message.startswith(_GATED)
    if reason in (PendingReason.MISCONFIGURED, PendingReason.SUSPENDED, PendingReason.INADMISSIBLE):
        return message.startswith(("LocalQueue ", "ClusterQueue "))
    return False


def _shown(reason: PendingReason, options: LifecycleOptions) -> PendingReason:
    return reason if options.granular_reasons else _LEGACY.get(reason, reason)


def _say(draft: Draft, reason: PendingReason, message: str) -> bool:
    """Set the reason unless it is there; return whether something changed."""
    present = draft.condition(ConditionType.QUOTA_RESERVED)
    if (
        present is not None
        and present.get("status") == conditions.FALSE
        and present.get("reason") == reason
        and present.get("message") == message
    ):
        return False
    draft.status = transitions.mark_pending(draft.status, draft.at, reason=reason, message=message)
    return True
