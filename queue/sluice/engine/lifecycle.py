"""The life of one Workload around the scheduler, as rules evaluated in a fixed order.

`next_step` looks at a Workload and the facts around it and says what to write; the order of the
rules is that of docs/spec/algorithm.md 7.1. Rules chain on one draft of the status, so that one
evaluation costs at most one status write. Level-based: after the write nothing more changes.
Pure. Called by ``sluice.controllers.workloads``.
"""

from __future__ import annotations

from typing import Final

from sluice.api import names, times
from sluice.api.conditions import ConditionType, EvictionReason
from sluice.api.records import StopPolicy
from sluice.engine import lifecycle_checks as checks
from sluice.engine import lifecycle_pending as pending
from sluice.engine import lifecycle_status as transitions
from sluice.engine import lifecycle_timeouts as timeouts
from sluice.engine.lifecycle_facts import Draft, Facts, LifecycleOptions, Note, Step
from sluice.engine.lifecycle_status import Json, Moment

_BACKED_OFF: Final = (EvictionReason.PODS_READY_TIMEOUT, EvictionReason.ADMISSION_CHECK)
_OWNER_GONE: Final = "The owner of the workload no longer exists"


def next_step(workload: Json, facts: Facts, options: LifecycleOptions, now_ms: int) -> Step:
    """Return what a Workload needs at a moment.

    Args:
        workload: The Workload as JSON; not changed.
        facts: Its queues.
        options: Settings.
        now_ms: Epoch milliseconds.
    """
    metadata = workload["metadata"]
    draft = Draft(
        workload=workload,
        status=workload.get("status") or {},
        at=Moment(now_ms=now_ms, generation=metadata.get("generation", 0)),
    )
    if _orphan(draft, options) or _finished(draft, options):
        return draft.step()
    if "deletionTimestamp" in metadata:
        # Its job stops first; the job's controller takes the finalizer off (api.md 2.3.8, 7).
        return draft.step()
    checks.plan_retry(draft)
    if _deactivation_asked(draft):
        return draft.step()
    if not workload["spec"].get("active", True):
        _deactivate(draft, options)
        return draft.step()
    _requeue(draft, facts)
    checks.sync(draft, facts)
    _admit(draft)
    if draft.is_true(ConditionType.QUOTA_RESERVED):
        _hold_or_evict(draft, facts, options)
    if not draft.is_true(ConditionType.QUOTA_RESERVED):
        pending.explain(draft, facts, options)
    return draft.step()


def _orphan(draft: Draft, options: LifecycleOptions) -> bool:
    metadata = draft.workload["metadata"]
    if metadata.get("ownerReferences"):
        return False
    had_owner = options.finish_orphans and names.JOB_UID_LABEL in (metadata.get("labels") or {})
    if not had_owner and "deletionTimestamp" not in metadata:
        return False
    if not draft.is_true(ConditionType.FINISHED):
        draft.status = transitions.finish(
            draft.status, draft.at, reason="OwnerNotFound", message=_OWNER_GONE
        )
    draft.drop_finalizer = names.IN_USE_FINALIZER in (metadata.get("finalizers") or ())
    return True


def _finished(draft: Draft, options: LifecycleOptions) -> bool:
    finished = draft.condition(ConditionType.FINISHED)
    if finished is None or not draft.is_true(ConditionType.FINISHED):
        return False
    if options.retain_finished_ms is not None:
        due_ms = times.to_ms(finished["lastTransitionTime"]) + options.retain_finished_ms
        draft.delete = due_ms <= draft.at.now_ms
        if draft.delete:
            draft.notes.append(
                Note(
                    reason="Deleted", message="Deleted finished workload: retention period expired"
                )
            )
        else:
            draft.wait_until(due_ms)
    return True


def _deactivation_asked(draft: Draft) -> bool:
    if not draft.is_true(ConditionType.DEACTIVATION_TARGET):
        return False
    if not draft.workload["spec"].get("active", True):
        return False
    draft.active = False
    return True


def _deactivate(draft: Draft, options: LifecycleOptions) -> None:
    target = draft.condition(ConditionType.DEACTIVATION_TARGET)
    if not draft.is_true(ConditionType.EVICTED):
        cause, message = "", transitions.DEACTIVATED_MESSAGE
        if target is not None and draft.is_true(ConditionType.DEACTIVATION_TARGET):
            cause = str(target.get("reason", ""))
            message = f"{message} due to {target.get('message', '')}"
        evict(draft, EvictionReason.DEACTIVATED, message, cause=cause)
    if target is not None or draft.status.get("requeueState"):
        draft.status = transitions.forget_deactivation(draft.status)
    if not draft.is_true(ConditionType.QUOTA_RESERVED):
        pending.set_deactivated(draft)
    evicted = draft.condition(ConditionType.EVICTED) or {}
    by_us = str(evicted.get("reason", "")).startswith(f"{EvictionReason.DEACTIVATED}DueTo")
    if by_us and options.retain_deactivated_ms is not None:
        due_ms = times.to_ms(evicted["lastTransitionTime"]) + options.retain_deactivated_ms
        draft.delete_owner = due_ms <= draft.at.now_ms
        if not draft.delete_owner:
            draft.wait_until(due_ms)


def evict(
    draft: Draft, reason: EvictionReason, message: str, *, cause: str = "", detail: str = ""
) -> None:
    """Evict within a draft and note it.

    Args:
        draft: The draft.
        reason: Why.
        message: What the user reads.
        cause: Cause of a deactivation: becomes part of the reason.
        detail: Cause for the statistics alone.
    """
    draft.status = transitions.evict(
        draft.status, draft.at, reason=reason, message=message, cause=cause or detail
    )
    shown = (draft.condition(ConditionType.EVICTED) or {}).get("reason", reason)
    draft.notes.append(Note(reason=f"EvictedDueTo{shown}", message=message))


def _requeue(draft: Draft, facts: Facts) -> None:
    """Let go of what held an evicted Workload back, once it is over (docs/spec/api.md 4.2)."""
    requeued = draft.condition(ConditionType.REQUEUED)
    if requeued is None or requeued.get("status") != "False":
        return
    reason = str(requeued.get("reason", ""))
    local, cluster = facts.local_queue, facts.cluster_queue
    if reason.startswith(EvictionReason.DEACTIVATED):
        # Unlike Kueue (docs/spec/api.md 4.2, quirk), a deactivation by the system can be undone
        # by setting spec.active as well.
        _set_requeued(draft, "Reactivated", "The workload was reactivated")
    elif reason in _BACKED_OFF:
        at = (draft.status.get("requeueState") or {}).get("requeueAt")
        if at is not None and times.to_ms(at) > draft.at.now_ms:
            draft.wait_until(times.to_ms(at))
        else:
            _set_requeued(draft, "BackoffFinished", "The workload backoff was finished")
    elif reason == EvictionReason.LOCAL_QUEUE_STOPPED:
        if local is not None and local.stop_policy is StopPolicy.NONE:
            _set_requeued(
                draft,
                "LocalQueueRestarted",
                "The LocalQueue was restarted after being stopped",
            )
    elif (
        reason == EvictionReason.CLUSTER_QUEUE_STOPPED
        and cluster is not None
        and cluster.stop_policy is StopPolicy.NONE
    ):
        _set_requeued(
            draft, "ClusterQueueRestarted", "The ClusterQueue was restarted after being stopped"
        )


def _set_requeued(draft: Draft, reason: str, message: str) -> None:
    draft.status = transitions.requeue(draft.status, draft.at, reason=reason, message=message)


def _admit(draft: Draft) -> None:
    status = draft.status
    if (
        not draft.is_true(ConditionType.QUOTA_RESERVED)
        or draft.is_true(ConditionType.ADMITTED)
        or draft.is_true(ConditionType.EVICTED)
        or not transitions.checks_ready(status)
        or transitions.topology_pending(status)
    ):
        return
    reserved = draft.condition(ConditionType.QUOTA_RESERVED) or {}
    wait_s = max(0, draft.at.now_ms - times.to_ms(reserved["lastTransitionTime"])) // 1000
    draft.status = transitions.admit(status, draft.at)
    queue = (status.get("admission") or {}).get("clusterQueue", "")
    draft.notes.append(
        Note(
            reason="Admitted",
            message=f"Admitted by ClusterQueue {queue}, wait time since reservation was {wait_s}s",
        )
    )


def _hold_or_evict(draft: Draft, facts: Facts, options: LifecycleOptions) -> None:
    if draft.is_true(ConditionType.EVICTED):
        return
    if checks.evict(draft, evict):
        return
    if _stopped(draft, facts):
        return
    if draft.is_true(ConditionType.ADMITTED):
        if timeouts.pods_ready(draft, options, evict):
            return
        timeouts.execution_time(draft)


def _stopped(draft: Draft, facts: Facts) -> bool:
    admitted = draft.is_true(ConditionType.ADMITTED)
    for kind, name, queue, reason in (
        (
            "LocalQueue",
            facts.local_queue_name,
            facts.local_queue,
            EvictionReason.LOCAL_QUEUE_STOPPED,
        ),
        (
            "ClusterQueue",
            facts.cluster_queue_name,
            facts.cluster_queue,
            EvictionReason.CLUSTER_QUEUE_STOPPED,
        ),
    ):
        policy = StopPolicy.NONE if queue is None else queue.stop_policy
        if admitted:
            if policy is StopPolicy.HOLD_AND_DRAIN:
                evict(draft, reason, f"The {kind} is stopped")
                return True
        elif queue is None or queue.is_terminating:
            pending.take_back(draft, f"{kind} {name} is terminating or missing", missing=True)
            return True
        elif policy is not StopPolicy.NONE:
            pending.take_back(draft, f"{kind} {name} is stopped", missing=False)
            return True
    return False
