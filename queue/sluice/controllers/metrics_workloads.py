"""Counters and waiting times of Workloads, taken from the changes of their conditions.

Counting transitions in the cache, rather than our own writes, counts each exactly once whoever
wrote it, and needs no hook in any controller. Only the deciding replica counts, so that sums over
replicas are right. Names and labels: docs/spec/api.md 5.2. Made by the composition root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from sluice.api import records
from sluice.api.conditions import ConditionType, EvictionReason
from sluice.controllers.caches import CachedWorkload, Caches
from sluice.controllers.metrics import Role
from sluice.kube.informer import Handlers

_E14: Final = (1.0, *(2.5 * 2**k for k in range(13)))
_E16: Final = (1.0, *(2.5 * 2**k for k in range(15)))
_QUEUE: Final = ("cluster_queue", "priority_class", "replica_role")
_DUE_TO: Final = f"{EvictionReason.DEACTIVATED.value}DueTo"


class WorkloadMetrics:
    """Counts what happens to Workloads while this replica decides."""

    def __init__(
        self, registry: CollectorRegistry, caches: Caches, *, role: Callable[[], Role]
    ) -> None:
        """Make the instruments and attach to the cache of Workloads.

        Args:
            registry: Where to register.
            caches: Whose Workloads to follow.
            role: Value of ``replica_role``.
        """
        self._caches = caches
        self._role = role

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"kueue_{name}", text, labels, registry=registry)

        def seconds(name: str, text: str, buckets: tuple[float, ...] = _E14) -> Histogram:
            return Histogram(f"kueue_{name}", text, _QUEUE, buckets=buckets, registry=registry)

        self._reserved = counter("quota_reserved_workloads", "Workloads given quota", *_QUEUE)
        self._admitted = counter("admitted_workloads", "Workloads admitted", *_QUEUE)
        self._finished = counter("finished_workloads", "Workloads finished", *_QUEUE)
        self._evicted = counter(
            "evicted_workloads",
            "Workloads evicted",
            "cluster_queue",
            "reason",
            "underlying_cause",
            "priority_class",
            "replica_role",
        )
        self._reserved_wait = seconds(
            "quota_reserved_wait_time_seconds", "From queued to quota reserved"
        )
        self._admitted_wait = seconds(
            "admission_wait_time_seconds", "From queued to admitted", _E16
        )
        self._checks_wait = seconds(
            "admission_checks_wait_time_seconds", "From quota reserved to admitted"
        )
        self._ready_wait = seconds("ready_wait_time_seconds", "From queued to pods ready")
        self._start_wait = seconds(
            "admitted_until_ready_wait_time_seconds", "From admitted to pods ready"
        )
        caches.workloads.add_handlers(Handlers(updated=self._changed))

    def _changed(self, key: str, old: CachedWorkload, new: CachedWorkload) -> None:
        del key
        role = self._role()
        if role is Role.FOLLOWER:
            return
        queue = self._queue(old.record, new.record)
        labels = (queue, new.priority_class, role.value)
        before, now = old.record, new.record
        queued_ms = _queued_ms(before)
        if reserved := _turned_true(before, now, ConditionType.QUOTA_RESERVED):
            self._reserved.labels(*labels).inc()
            self._reserved_wait.labels(*labels).observe(_seconds(queued_ms, reserved.at_ms))
        if admitted := _turned_true(before, now, ConditionType.ADMITTED):
            self._admitted.labels(*labels).inc()
            self._admitted_wait.labels(*labels).observe(_seconds(queued_ms, admitted.at_ms))
            since_ms = now.conditions[ConditionType.QUOTA_RESERVED].at_ms
            self._checks_wait.labels(*labels).observe(_seconds(since_ms, admitted.at_ms))
        ready = _turned_true(before, now, ConditionType.PODS_READY)
        if ready and ready.reason == "Started" and now.is_true(ConditionType.ADMITTED):
            self._ready_wait.labels(*labels).observe(_seconds(queued_ms, ready.at_ms))
            since_ms = now.conditions[ConditionType.ADMITTED].at_ms
            self._start_wait.labels(*labels).observe(_seconds(since_ms, ready.at_ms))
        if evicted := _turned_true(before, now, ConditionType.EVICTED):
            reason, cause = _reason_and_cause(evicted.reason)
            self._evicted.labels(queue, reason, cause, new.priority_class, role.value).inc()
        if _turned_true(before, now, ConditionType.FINISHED):
            self._finished.labels(*labels).inc()

    def _queue(self, before: records.Workload, now: records.Workload) -> str:
        """Return the ClusterQueue that held or holds its quota, else the one it is queued in."""
        if now.admission is None and before.admission is not None:
            return before.admission.cluster_queue
        return self._caches.cluster_queue_name(now)


def _turned_true(
    before: records.Workload, now: records.Workload, kind: ConditionType
) -> records.Condition | None:
    """Return the condition when it has become True, or True anew."""
    condition = now.conditions.get(kind)
    if condition is None or condition.status != "True":
        return None
    known = before.conditions.get(kind)
    if known is not None and known.status == "True" and known.at_ms == condition.at_ms:
        return None
    return condition


def _queued_ms(workload: records.Workload) -> int:
    """Return when it was queued: at creation, or when it was last requeued."""
    requeued = workload.conditions.get(ConditionType.REQUEUED)
    if requeued is not None and requeued.status == "True":
        return max(workload.created_ms, requeued.at_ms)
    return workload.created_ms


def _reason_and_cause(reason: str) -> tuple[str, str]:
    """Split ``DeactivatedDueToX`` into reason and underlying cause."""
    if reason.startswith(_DUE_TO):
        return EvictionReason.DEACTIVATED.value, reason.removeprefix(_DUE_TO)
    return reason, ""


def _seconds(from_ms: int, to_ms: int) -> float:
    return max(0, to_ms - from_ms) / 1000
