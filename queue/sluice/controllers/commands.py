"""What each command of the engine does to a Workload's status, and which event tells of it.

Pure functions, apart from the executor so that they can be read and tested as a table. A command
that no longer fits the Workload (spec changed, already reserved, gone) is `Stale`: the engine hears
of it and decides anew. Source: docs/spec/api.md 4.2 and 4.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, assert_never

from sluice.api import conditions, wire
from sluice.api.conditions import ConditionType, FinishedReason
from sluice.api.errors import SluiceError
from sluice.controllers.notes import ADMISSION_CONTROLLER
from sluice.engine import lifecycle_status as transitions
from sluice.engine.commands import (
    AssignTopology,
    Command,
    Evict,
    FinishSlice,
    MarkPending,
    ReserveQuota,
)
from sluice.engine.lifecycle_facts import WARNING, Note
from sluice.engine.lifecycle_status import Json, Moment
from sluice.jobs.difference import same

REPORTER: Final = ADMISSION_CONTROLLER


class Stale(SluiceError):
    """The Workload is no longer what the decision was about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What to write.

    Attributes:
        status: The new status, or None when it says so already.
        notes: Events to record once it is written.
    """

    status: Json | None
    notes: tuple[Note, ...] = ()


def outcome_of(
    command: Command, raw: Json, *, generation: int, now_ms: int, tracks_pods: bool
) -> Outcome:
    """Return what a command writes to a Workload.

    Args:
        command: The decision.
        raw: The Workload as it is now.
        generation: ``metadata.generation`` the decision was taken on.
        now_ms: Epoch milliseconds.
        tracks_pods: Its job reports readiness: an admitted one starts with PodsReady=False.

    Raises:
        Stale: The Workload is no longer what the decision was about.
    """
    metadata = raw["metadata"]
    if metadata["uid"] != command.uid:
        raise Stale("another Workload of that name has taken its place")
    status = raw.get("status") or {}
    at = Moment(now_ms=now_ms, generation=metadata.get("generation", 0))
    match command:
        case ReserveQuota():
            _check_unchanged(raw, generation)
            return _reserve(command, status, at, tracks_pods)
        case MarkPending():
            _check_unchanged(raw, generation)
            return _mark(command, status, at)
        case Evict():
            return _evict(command, status, at)
        case AssignTopology():
            return _assign_topology(command, status, at)
        case FinishSlice():
            return _finish_slice(command, status, at)
        case _:
            assert_never(command)


def _is(status: Json, kind: ConditionType) -> bool:
    return conditions.is_true(status.get("conditions"), kind)


def _check_unchanged(raw: Json, generation: int) -> None:
    metadata = raw["metadata"]
    if metadata.get("generation", 0) != generation:
        raise Stale("its spec has changed")
    if "deletionTimestamp" in metadata:
        raise Stale("it is being deleted")
    if _is(raw.get("status") or {}, ConditionType.FINISHED):
        raise Stale("it is finished")
    if not raw["spec"].get("active", True):
        raise Stale("it is deactivated")


def _reserve(command: ReserveQuota, status: Json, at: Moment, tracks_pods: bool) -> Outcome:
    admission = wire.encode_admission(command.admission)
    if _is(status, ConditionType.QUOTA_RESERVED):
        if same(status.get("admission"), admission):
            return Outcome(status=None)
        raise Stale("it holds quota already")
    new = transitions.reserve(
        status,
        at,
        admission=admission,
        checks=command.checks,
        admitted=command.admitted,
        message=command.message,
    )
    queue, wait_s = command.cluster_queue, command.wait_ms // 1000
    notes = [
        Note(
            reason="QuotaReserved",
            message=f"{command.message}, wait time since queued was {wait_s}s",
        )
    ]
    if command.admitted:
        text = f"Admitted by ClusterQueue {queue}, wait time since reservation was 0s"
        notes.append(Note(reason="Admitted", message=text))
        if tracks_pods:
            new = transitions.pods_ready(new, at, ready=False)
    return Outcome(status=new, notes=tuple(notes))


def _mark(command: MarkPending, status: Json, at: Moment) -> Outcome:
    if _is(status, ConditionType.QUOTA_RESERVED):
        raise Stale("it holds quota by now")
    new = transitions.mark_pending(
        status,
        at,
        reason=command.reason,
        message=command.message,
        requests=wire.encode_requests(command.requests) if command.requests else None,
        blocked_on_gates=command.blocked_on_gates,
    )
    if conditions.same(status.get("conditions"), new.get("conditions")):
        return Outcome(status=None)
    note = Note(reason=str(command.reason), message=command.message, type=WARNING)
    return Outcome(status=new, notes=(note,))


def _evict(command: Evict, status: Json, at: Moment) -> Outcome:
    if _is(status, ConditionType.EVICTED):
        return Outcome(status=None)
    if not _is(status, ConditionType.QUOTA_RESERVED) or _is(status, ConditionType.FINISHED):
        raise Stale("it holds no quota any more")
    preempted = "" if command.preempted_reason is None else str(command.preempted_reason)
    new = transitions.evict(
        status,
        at,
        reason=command.reason,
        message=command.message,
        cause=command.underlying_cause,
        preempted=preempted,
    )
    notes = [Note(reason=f"EvictedDueTo{command.reason}", message=command.message)]
    if preempted:
        notes.append(Note(reason="Preempted", message=command.message))
    return Outcome(status=new, notes=tuple(notes))


def _assign_topology(command: AssignTopology, status: Json, at: Moment) -> Outcome:
    if not _is(status, ConditionType.QUOTA_RESERVED) or _is(status, ConditionType.EVICTED):
        raise Stale("it holds no quota any more")
    admission = wire.encode_admission(command.admission)
    if command.clear_unhealthy_nodes and not status.get("unhealthyNodes"):
        if same(status.get("admission"), admission):
            return Outcome(status=None)
        raise Stale("its node is healthy again, and its pods may be there")
    new = {**status, "admission": admission}
    if command.clear_unhealthy_nodes:
        new = transitions.without(new, "unhealthyNodes")
    if not command.admitted or _is(status, ConditionType.ADMITTED):
        return Outcome(status=new)
    text = f"Admitted by ClusterQueue {command.cluster_queue}, wait time since reservation was 0s"
    return Outcome(
        status=transitions.admit(new, at), notes=(Note(reason="Admitted", message=text),)
    )


def _finish_slice(command: FinishSlice, status: Json, at: Moment) -> Outcome:
    if _is(status, ConditionType.FINISHED):
        return Outcome(status=None)
    reason = FinishedReason.WORKLOAD_SLICE_REPLACED
    new = transitions.finish(status, at, reason=reason, message=command.message)
    return Outcome(status=new, notes=(Note(reason=str(reason), message=command.message),))
