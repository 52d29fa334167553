"""Transitions of a Workload's status, each as one function from JSON to JSON.

One function per arrow of the state diagram (docs/spec/api.md 4.1): quota reserved, admitted, marked
pending, evicted, released, finished. They return a new status and never change the given one, so
that a caller can chain several into one write. Pure. Called by the rules in `lifecycle`, by the
executor of engine commands and by job controllers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sluice.api import conditions, times
from sluice.api.conditions import ConditionType, EvictionReason, PendingReason

Json = dict[str, Any]

ADMITTED_MESSAGE: Final = "The workload is admitted"
DEACTIVATED_MESSAGE: Final = "The workload is deactivated"
NOT_READY_MESSAGE: Final = "Not all pods are ready or succeeded"
_REQUEUED_AT_ONCE: Final = (EvictionReason.PREEMPTED, EvictionReason.NODE_FAILURES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When a transition happens and which generation of the object it was decided on."""

    now_ms: int
    generation: int


def _set(
    status: Json, at: Moment, kind: str, value: str, reason: str, message: str, *, seen: bool = True
) -> Json:
    present = status.get("conditions") or ()
    changed = conditions.set_condition(
        present,
        kind=kind,
        status=value,
        reason=reason,
        message=message,
        now_ms=at.now_ms,
        generation=at.generation if seen else None,
    )
    return {**status, "conditions": changed}


def without(status: Json, *fields: str) -> Json:
    """Return a status without some fields."""
    return {key: value for key, value in status.items() if key not in fields}


def reserve(
    status: Json,
    at: Moment,
    *,
    admission: Json,
    checks: Iterable[str],
    admitted: bool,
    message: str,
) -> Json:
    """Return a status that holds quota, and is admitted too when nothing else is missing.

    Args:
        status: The present status.
        at: Time and generation.
        admission: The new ``status.admission``.
        checks: Names of all admission checks that the assigned flavors need.
        admitted: All of them are Ready, or there are none.
        message: Message of QuotaReserved.
    """
    result = without(status, "resourceRequests")
    result["admission"] = admission
    result = sync_checks(result, at, checks)
    kind = ConditionType.QUOTA_RESERVED
    result = _set(result, at, kind, conditions.TRUE, "QuotaReserved", message)
    result = _turn_off(
        result,
        at,
        (
            ConditionType.EVICTED,
            ConditionType.PREEMPTED,
            ConditionType.BLOCKED_ON_PREEMPTION_GATES,
        ),
        "QuotaReserved",
    )
    return admit(result, at) if admitted else _not_admitted(result, at)


def _turn_off(status: Json, at: Moment, kinds: Sequence[ConditionType], reason: str) -> Json:
    for kind in kinds:
        condition = conditions.find(status.get("conditions"), kind)
        if condition is not None and condition.get("status") == conditions.TRUE:
            message = f"Previously: {condition.get('message', '')}"
            # The Preempted condition carries no generation (docs/spec/api.md 4.2).
            seen = kind is not ConditionType.PREEMPTED
            status = _set(status, at, kind, conditions.FALSE, reason, message, seen=seen)
    return status


def admit(status: Json, at: Moment) -> Json:
    """Return a status with Admitted=True."""
    return _set(status, at, ConditionType.ADMITTED, conditions.TRUE, "Admitted", ADMITTED_MESSAGE)


def _not_admitted(status: Json, at: Moment) -> Json:
    reserved = conditions.is_true(status.get("conditions"), ConditionType.QUOTA_RESERVED)
    if not reserved:
        reason, message = "NoReservation", "The workload has no reservation"
    elif not checks_ready(status):
        reason, message = "UnsatisfiedAdmissionChecks", "The workload has not all checks ready"
    else:
        reason = "PendingDelayedTopologyRequests"
        message = "There are pending delayed topology requests"
    admitted = conditions.find(status.get("conditions"), ConditionType.ADMITTED)
    if admitted is not None and admitted.get("status") == conditions.TRUE:
        seconds = max(0, at.now_ms - times.to_ms(admitted["lastTransitionTime"])) // 1000
        past = status.get("accumulatedPastExecutionTimeSeconds") or 0
        status = {**status, "accumulatedPastExecutionTimeSeconds": past + seconds}
    return _set(status, at, ConditionType.ADMITTED, conditions.FALSE, reason, message)


def checks_ready(status: Json) -> bool:
    """Tell whether every listed admission check is Ready; true when there are none."""
    return all(check.get("state") == "Ready" for check in status.get("admissionChecks") or ())


def topology_pending(status: Json) -> bool:
    """Tell whether a pod set waits for a delayed topology assignment."""
    assignments = (status.get("admission") or {}).get("podSetAssignments") or ()
    return any(
        a.get("delayedTopologyRequest") == "Pending" and not a.get("topologyAssignment")
        for a in assignments
    )


def sync_checks(status: Json, at: Moment, wanted: Iterable[str]) -> Json:
    """Return a status whose ``admissionChecks`` are exactly the wanted ones, new ones Pending."""
    present = {check["name"]: check for check in status.get("admissionChecks") or ()}
    wanted_names = sorted(set(wanted))
    if wanted_names == list(present):
        return status
    since = times.from_ms(at.now_ms)
    checks = [
        present.get(name)
        or {"name": name, "state": "Pending", "lastTransitionTime": since, "message": ""}
        for name in wanted_names
    ]
    return {**status, "admissionChecks": checks} if checks else without(status, "admissionChecks")


def mark_pending(
    status: Json,
    at: Moment,
    *,
    reason: str,
    message: str,
    requests: Sequence[Json] | None = None,
    blocked_on_gates: bool = False,
) -> Json:
    """Return a status that says why the Workload holds no quota.

    Args:
        status: The present status.
        at: Time and generation.
        reason: Reason of QuotaReserved=False.
        message: What the user reads.
        requests: ``status.resourceRequests`` to show, or None to leave it.
        blocked_on_gates: Also set BlockedOnPreemptionGates.
    """
    result = without(status, "admission")
    if requests is not None:
        result["resourceRequests"] = list(requests)
    kind = ConditionType.QUOTA_RESERVED
    result = _set(result, at, kind, conditions.FALSE, reason, message)
    if blocked_on_gates:
        gated = ConditionType.BLOCKED_ON_PREEMPTION_GATES
        result = _set(result, at, gated, conditions.TRUE, "PreemptionGated", message)
    return _not_admitted(result, at)


def evict(
    status: Json, at: Moment, *, reason: str, message: str, cause: str = "", preempted: str = ""
) -> Json:
    """Return a status that asks the job to stop; quota stays booked (docs/spec/api.md 4.2).

    Args:
        status: The present status.
        at: Time and generation.
        reason: One of `EvictionReason`.
        message: What the user reads.
        cause: Underlying cause; of a deactivation it is appended to the reason.
        preempted: Reason of the Preempted condition, empty when nobody preempts.
    """
    is_deactivation = reason == EvictionReason.DEACTIVATED
    shown = f"{reason}DueTo{cause}" if is_deactivation and cause else str(reason)
    result = without(status, "clusterName", "nominatedClusterNames", "unhealthyNodes")
    if result.get("admissionChecks"):
        result["admissionChecks"] = [_reset_check(c, at) for c in result["admissionChecks"]]
    result = _turn_off(result, at, (ConditionType.BLOCKED_ON_PREEMPTION_GATES,), shown)
    if result.get("preemptionGates"):
        result["preemptionGates"] = [_closed(gate, at) for gate in result["preemptionGates"]]
    result["schedulingStats"] = _count_eviction(result.get("schedulingStats"), str(reason), cause)
    result = _set(result, at, ConditionType.EVICTED, conditions.TRUE, shown, message)
    if preempted:
        kind = ConditionType.PREEMPTED
        result = _set(result, at, kind, conditions.TRUE, preempted, message, seen=False)
    return result


def _reset_check(check: Mapping[str, Any], at: Moment) -> Json:
    state = check.get("state")
    if state == "Pending":
        return dict(check)
    kept = ("podSetUpdates", "retryCount")
    reset = {key: value for key, value in check.items() if key not in kept}
    if state == "Retry":
        reset["retryCount"] = (check.get("retryCount") or 0) + 1
    reset["state"] = "Pending"
    reset["message"] = f"Reset to Pending after eviction. Previously: {state}"
    reset["lastTransitionTime"] = times.from_ms(at.now_ms)
    return reset


def _closed(gate: Mapping[str, Any], at: Moment) -> Json:
    if gate.get("position") == "Closed":
        return dict(gate)
    return {**gate, "position": "Closed", "lastTransitionTime": times.from_ms(at.now_ms)}


def _count_eviction(stats: Mapping[str, Any] | None, reason: str, cause: str) -> Json:
    evictions = [dict(entry) for entry in (stats or {}).get("evictions") or ()]
    for entry in evictions:
        if entry["reason"] == reason and entry["underlyingCause"] == cause:
            entry["count"] += 1
            break
    else:
        evictions.append({"reason": reason, "underlyingCause": cause, "count": 1})
    return {**(stats or {}), "evictions": evictions}


def release(status: Json, at: Moment, *, owned_by_pod: bool = False) -> Json:
    """Return the status after an eviction is complete: the job has stopped, the quota is free.

    Args:
        status: Status with Evicted=True.
        at: Time and generation.
        owned_by_pod: The only owner is a plain Pod, which can't run again.
    """
    evicted = conditions.find(status.get("conditions"), ConditionType.EVICTED) or {}
    reason, message = str(evicted.get("reason", "")), str(evicted.get("message", ""))
    again = reason in _REQUEUED_AT_ONCE and not owned_by_pod
    value = conditions.TRUE if again else conditions.FALSE
    result = _set(status, at, ConditionType.REQUEUED, value, reason or "Evicted", message)
    pending = PendingReason.PENDING_EVALUATION
    if reason.startswith(EvictionReason.DEACTIVATED):
        # The controller would say Deactivated next (docs/spec/api.md 4.2); one write is enough.
        pending, message = PendingReason.DEACTIVATED, DEACTIVATED_MESSAGE
    return mark_pending(result, at, reason=pending, message=message)


def requeue(status: Json, at: Moment, *, reason: str, message: str) -> Json:
    """Return a status that may be queued again; a back-off that is over is forgotten."""
    result = _set(status, at, ConditionType.REQUEUED, conditions.TRUE, reason, message)
    state = result.get("requeueState")
    if state and "requeueAt" in state:
        result["requeueState"] = {k: v for k, v in state.items() if k != "requeueAt"}
    return result


def finish(status: Json, at: Moment, *, reason: str, message: str) -> Json:
    """Return a status with Finished=True."""
    return _set(status, at, ConditionType.FINISHED, conditions.TRUE, reason, message)


def ask_deactivation(status: Json, at: Moment, *, reason: str, message: str) -> Json:
    """Return a status that asks for ``spec.active: false``, with the cause as reason."""
    kind = ConditionType.DEACTIVATION_TARGET
    return _set(status, at, kind, conditions.TRUE, reason, message)


def forget_deactivation(status: Json) -> Json:
    """Return a status without the request to deactivate and without requeueing state."""
    kept = conditions.remove(status.get("conditions"), ConditionType.DEACTIVATION_TARGET)
    return {**without(status, "requeueState"), "conditions": kept}


def pods_ready(status: Json, at: Moment, *, ready: bool) -> Json:
    """Return a status whose PodsReady condition says what the job reports (algorithm.md 7.4)."""
    kind = ConditionType.PODS_READY
    present = conditions.find(status.get("conditions"), kind)
    before, reason = (
        (None, "") if present is None else (present.get("status"), str(present.get("reason", "")))
    )
    recovering = reason in ("WaitForRecovery", "Recovered")
    admitted = conditions.is_true(status.get("conditions"), ConditionType.ADMITTED)
    if admitted and ready:
        # Once True the reason stays: Started never turns into Recovered without a failure.
        new = "Recovered" if recovering else "Started"
        text = "All pods reached readiness and the workload is running"
        return _set(status, at, kind, conditions.TRUE, new, text)
    if admitted and (before == conditions.TRUE or reason == "WaitForRecovery"):
        text = "At least one pod has failed, waiting for recovery"
        return _set(status, at, kind, conditions.FALSE, "WaitForRecovery", text)
    return _set(status, at, kind, conditions.FALSE, "WaitForStart", NOT_READY_MESSAGE)
