"""Deadlines of an admitted Workload: pods ready in time, back in time, and done in time.

Pure: the jitter of the back-off comes from a hash, so that replay gives the same times.
Source: docs/spec/api.md 4.5, docs/spec/algorithm.md 7.4 and 7.5. Called by `lifecycle`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

from sluice.api import times
from sluice.api.conditions import ConditionType, EvictionReason
from sluice.engine import lifecycle_status as transitions
from sluice.engine.lifecycle_checks import requeue_not_before
from sluice.engine.lifecycle_facts import WARNING, Draft, LifecycleOptions, Note, Requeuing

_JITTER_MAX: Final = 0.0001
_WAIT_FOR_START: Final = "WaitForStart"
_WAIT_FOR_RECOVERY: Final = "WaitForRecovery"

EvictWithDetail = Callable[..., None]


def backoff_ms(requeuing: Requeuing, count: int, seed: str) -> int:
    """Return the delay before the next attempt.

    Args:
        requeuing: Base and bound.
        count: Which eviction this is, from 1.
        seed: Spreads Workloads; the same seed gives the same delay.
    """
    # 2**63 seconds is beyond any bound; a larger exponent would only cost time.
    delay_s: int = min(
        requeuing.backoff_base_s * 2 ** min(max(count - 1, 0), 63), requeuing.backoff_max_s
    )
    share = (zlib.crc32(f"{seed}/{count}".encode()) & 0xFFFF) / 0xFFFF
    return round(delay_s * 1000 * (1 + _JITTER_MAX * share))


def pods_ready(draft: Draft, options: LifecycleOptions, evict: EvictWithDetail) -> bool:
    """Evict a Workload whose pods were not ready in time; return whether it was.

    Args:
        draft: An admitted Workload.
        options: Timeouts and back-off.
        evict: Evicts within the draft.
    """
    deadline = _deadline(draft, options)
    if deadline is None:
        return False
    due_ms, cause = deadline
    if due_ms > draft.at.now_ms:
        draft.wait_until(due_ms)
        return False
    metadata = draft.workload["metadata"]
    state = dict(draft.status.get("requeueState") or {})
    count = (state.get("count") or 0) + 1
    limit = options.requeuing.count_max
    if limit is not None and count > limit:
        draft.status = transitions.ask_deactivation(
            draft.status,
            draft.at,
            reason="RequeuingLimitExceeded",
            message="exceeding the maximum number of re-queuing retries",
        )
        draft.active = False
        return True
    delay_ms = backoff_ms(options.requeuing, count, metadata.get("uid", ""))
    draft.status = {**draft.status, "requeueState": {**state, "count": count}}
    draft.status = requeue_not_before(draft.status, draft.at.now_ms + delay_ms)
    key = f"{metadata.get('namespace', '')}/{metadata['name']}"
    evict(
        draft,
        EvictionReason.PODS_READY_TIMEOUT,
        f"Exceeded the PodsReady timeout {key}",
        detail=cause,
    )
    return True


def _deadline(draft: Draft, options: LifecycleOptions) -> tuple[int, str] | None:
    if options.pods_ready_timeout_ms is None:
        return None
    condition = draft.condition(ConditionType.PODS_READY)
    admitted = draft.condition(ConditionType.ADMITTED)
    if admitted is None or (condition is not None and condition.get("status") == "True"):
        return None
    if condition is not None and condition.get("reason") == _WAIT_FOR_RECOVERY:
        if not options.recovery_timeout_ms:
            return None
        since_ms = times.to_ms(condition["lastTransitionTime"])
        return since_ms + options.recovery_timeout_ms, _WAIT_FOR_RECOVERY
    since_ms = times.to_ms(admitted["lastTransitionTime"])
    return since_ms + options.pods_ready_timeout_ms, _WAIT_FOR_START


def execution_time(draft: Draft) -> None:
    """Ask to deactivate a Workload that ran for longer than it may."""
    seconds_max = draft.workload["spec"].get("maximumExecutionTimeSeconds")
    admitted = draft.condition(ConditionType.ADMITTED)
    if seconds_max is None or admitted is None:
        return
    past_s = draft.status.get("accumulatedPastExecutionTimeSeconds") or 0
    due_ms = times.to_ms(admitted["lastTransitionTime"]) + (seconds_max - past_s) * 1000
    if due_ms > draft.at.now_ms:
        draft.wait_until(due_ms)
        return
    status = transitions.without(draft.status, "accumulatedPastExecutionTimeSeconds")
    draft.status = transitions.ask_deactivation(
        status,
        draft.at,
        reason="MaximumExecutionTimeExceeded",
        message="exceeding the maximum execution time",
    )
    draft.active = False
    draft.notes.append(
        Note(
            reason="MaximumExecutionTimeExceeded",
            message=f"The maximum execution time ({seconds_max}s) exceeded",
            type=WARNING,
        )
    )
