"""What a Job's status should say. Pure; called by `jobs`.

Reasons and messages are those of Kubernetes' Job controller, since people and Kueue's rules read
them. A finished Job first gets SuccessCriteriaMet or FailureTarget, and Complete or Failed once its
Pods are gone; the API server refuses any other order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluice.api.times import from_ms, to_ms
from sluice.local.standins import records
from sluice.local.standins.jobpods import PodCounts, is_indexed, show_indexes

Json = dict[str, Any]
View = Mapping[str, Any]

COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
SUSPENDED: Final = "Suspended"
_SUCCESS_CRITERIA: Final = "SuccessCriteriaMet"
_FAILURE_TARGET: Final = "FailureTarget"
_REACHED: Final = ("CompletionsReached", "Reached expected number of succeeded pods")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How a Job's Pods ended so far, those that are gone by now included."""

    succeeded: int
    failed: int
    completed_indexes: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a Job ends: its condition with reason and message."""

    is_success: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """An event to record about a Job."""

    reason: str
    note: str
    warning: bool = False


def is_finished(job: View) -> bool:
    """Tell whether a Job is Complete or Failed."""
    return records.is_true(job, COMPLETE) or records.is_true(job, FAILED)


def finished_at_ms(job: View) -> int | None:
    """Return when a Job finished, None when it hasn't."""
    for kind in (COMPLETE, FAILED):
        found = records.condition(job, kind)
        if found is not None and found.get("status") == "True":
            return to_ms(found["lastTransitionTime"])
    return None


def decided(job: View) -> Outcome | None:
    """Return the outcome that the status already announces, None when it is open."""
    for kind, is_success in ((_SUCCESS_CRITERIA, True), (_FAILURE_TARGET, False)):
        found = records.condition(job, kind)
        if found is not None and found.get("status") == "True":
            return Outcome(
                is_success=is_success,
                reason=found.get("reason", ""),
                message=found.get("message", ""),
            )
    return None


def outcome(job: View, counts: PodCounts, tally: Tally, now_ms: int) -> Outcome | None:
    """Return how a Job ends, None when it goes on."""
    known = decided(job)
    if known is not None:
        return known
    spec = job["spec"]
    if tally.failed > int(spec.get("backoffLimit", 6)):
        return Outcome(
            is_success=False,
            reason="BackoffLimitExceeded",
            message="Job has reached the specified backoff limit",
        )
    if deadline_left_s(job, now_ms) == 0:
        return Outcome(
            is_success=False,
            reason="DeadlineExceeded",
            message="Job was active longer than specified deadline",
        )
    completions = spec.get("completions")
    if completions is None:
        is_done = tally.succeeded > 0 and not counts.active
    else:
        is_done = tally.succeeded >= int(completions)
    if is_done and not spec.get("suspend"):
        return Outcome(is_success=True, reason=_REACHED[0], message=_REACHED[1])
    return None


def deadline_left_s(job: View, now_ms: int) -> float | None:
    """Return the seconds until a Job's deadline (at least 0), None when it has none."""
    limit_s, status = job["spec"].get("activeDeadlineSeconds"), job.get("status") or {}
    if limit_s is None or not status.get("startTime") or job["spec"].get("suspend"):
        return None
    ran_s = (now_ms - to_ms(status["startTime"])) / 1000
    return max(0.0, float(limit_s) - ran_s)


def next_status(
    job: View, counts: PodCounts, tally: Tally, end: Outcome | None, now_ms: int
) -> tuple[Json, list[Notice]]:
    """Return the status a Job should have, and the events that the change calls for.

    Args:
        job: The Job as it is.
        counts: Its Pods after what was just created and deleted.
        tally: How Pods ended.
        end: How the Job ends, None when it goes on.
        now_ms: The time, epoch milliseconds.
    """
    now = from_ms(now_ms)
    status: Json = dict(job.get("status") or {})
    conditions = [dict(condition) for condition in status.get("conditions") or ()]
    notices: list[Notice] = []
    if end is None:
        _set_suspended(job, status, conditions, now, notices)
    if not status.get("startTime") and not job["spec"].get("suspend"):
        status["startTime"] = now
    _set_count(status, "active", len(counts.active))
    _set_count(status, "succeeded", tally.succeeded)
    _set_count(status, "failed", tally.failed)
    status["ready"] = counts.ready
    status["terminating"] = len(counts.terminating)
    status.setdefault("uncountedTerminatedPods", {})
    if is_indexed(job) and tally.completed_indexes:
        status["completedIndexes"] = show_indexes(tally.completed_indexes)
    if end is not None:
        _set_end(status, conditions, counts, end, now, notices)
    if conditions:
        status["conditions"] = conditions
    return status, notices


def _set_count(status: Json, name: str, value: int) -> None:
    if value:
        status[name] = value
    else:
        status.pop(name, None)


def _set_suspended(
    job: View, status: Json, conditions: list[Json], now: str, notices: list[Notice]
) -> None:
    if job["spec"].get("suspend"):
        if records.set_condition(
            conditions,
            SUSPENDED,
            "True",
            now,
            reason="JobSuspended",
            message="Job suspended",
            is_probed=True,
        ):
            notices.append(Notice(reason="Suspended", note="Job suspended"))
            status.pop("startTime", None)
        return
    has_condition = any(condition["type"] == SUSPENDED for condition in conditions)
    if has_condition and records.set_condition(
        conditions,
        SUSPENDED,
        "False",
        now,
        reason="JobResumed",
        message="Job resumed",
        is_probed=True,
    ):
        notices.append(Notice(reason="Resumed", note="Job resumed"))
        # A resumed Job's deadline starts anew.
        status["startTime"] = now


def _set_end(
    status: Json,
    conditions: list[Json],
    counts: PodCounts,
    end: Outcome,
    now: str,
    notices: list[Notice],
) -> None:
    first, last = (_SUCCESS_CRITERIA, COMPLETE) if end.is_success else (_FAILURE_TARGET, FAILED)
    text: dict[str, str] = {"reason": end.reason, "message": end.message}
    records.set_condition(conditions, first, "True", now, is_probed=True, **text)
    if counts.active or counts.terminating:
        return
    status.setdefault("startTime", now)
    if records.set_condition(conditions, last, "True", now, is_probed=True, **text):
        if end.is_success:
            status["completionTime"] = now
            notices.append(Notice(reason="Completed", note="Job completed"))
        else:
            notices.append(Notice(reason=end.reason, note=end.message, warning=True))
