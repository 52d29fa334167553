"""The pending Workloads of ClusterQueues: heaps, parking, requeueing, waking up.

A pending Workload is in its queue's heap or parked as inadmissible; `sluice.engine.heaps` keeps
them. Source: docs/spec/algorithm.md section 2. Used
by `sluice.engine.world` (events) and `sluice.engine.cycle` (heads and requeueing).
"""

from enum import IntEnum
from typing import Final

from sluice.api.conditions import ConditionType
from sluice.api.records import Workload
from sluice.engine.afs import UsageLedger
from sluice.engine.assignment import PodSetNeed
from sluice.engine.heaps import Heaps
from sluice.engine.options import EngineOptions
from sluice.engine.ordering import effective_priority, queue_timestamp_ms
from sluice.engine.states import (
    PENDING,
    Bucket,
    ClusterQueueState,
    Decision,
    Preemptor,
    WorkloadState,
)

_EVICTED: Final = ConditionType.EVICTED.value
_REQUEUED: Final = ConditionType.REQUEUED.value


class Requeue(IntEnum):
    """Why a head goes back to its queue (3.8)."""

    GENERIC = 0
    NO_FIT = 1
    NO_CANDIDATES = 2
    FAILED_AFTER_NOMINATION = 3
    PENDING_PREEMPTION = 4
    PENDING_MIGRATION = 5
    PREEMPTION_FAILED = 6
    PREEMPTION_GATED = 7
    NAMESPACE_MISMATCH = 8


_IMMEDIATE: Final = frozenset(
    {
        Requeue.FAILED_AFTER_NOMINATION,
        Requeue.PENDING_PREEMPTION,
        Requeue.PENDING_MIGRATION,
        Requeue.PREEMPTION_FAILED,
    }
)


def is_backoff_over(record: Workload, now_ms: int) -> bool:
    """Tell whether a Workload may be tried as far as its back-off goes (2.6)."""
    requeued = record.conditions.get(_REQUEUED)
    if requeued is not None and requeued.status == "False":
        return False
    return record.requeue_at_ms is None or now_ms >= record.requeue_at_ms


class Pending:
    """The rules of queueing and requeueing.

    Attributes:
        heaps: Where the Workloads are.
    """

    __slots__ = ("_hashes", "_options", "heaps")

    def __init__(self, options: EngineOptions, ledger: UsageLedger) -> None:
        self._options = options
        self._hashes = options.gates.equivalence_hashing
        self.heaps = Heaps(ledger)

    def refresh_order(self, wl: WorkloadState) -> None:
        """Recompute the priority and timestamp of a Workload from its record."""
        wl.eff = effective_priority(wl.record, self._options)
        wl.ts_ms = queue_timestamp_ms(wl.record, self._options)

    def refresh(self, wl: WorkloadState, needs: list[PodSetNeed]) -> None:
        """Recompute what the order and the equivalence class of a Workload depend on."""
        record = wl.record
        self.refresh_order(wl)
        wl.needs = needs
        if self._hashes:
            shape = (
                wl.eff,
                record.allowed_flavors,
                *(
                    (n.spec.name, n.pod.shape, n.count, n.spec.min_count, n.spec.topology)
                    for n in needs
                ),
            )
            if wl.scan is not None and wl.shape is not None and wl.shape != shape:
                wl.scan = None
            wl.shape = shape

    def requeue(
        self, cq: ClusterQueueState, wl: WorkloadState, reason: Requeue, now_ms: int
    ) -> list[WorkloadState]:
        """Put a head back after an attempt (2.6).

        Kueue also compares the cycles of the last pop and the last wake-up, not to lose a release
        that happens during an attempt; here nothing can happen during one.

        Args:
            cq: Its ClusterQueue.
            wl: Out of all queues, still queueable, its needs fresh.
            reason: What came of the attempt.
            now_ms: Time of the cycle.

        Returns:
            Equivalent Workloads that were parked with it and have not been told yet why they wait.
        """
        if cq.is_strict:
            is_immediate = reason != Requeue.NAMESPACE_MISMATCH
        else:
            is_immediate = reason in _IMMEDIATE
        if reason == Requeue.PENDING_PREEMPTION or reason == Requeue.PENDING_MIGRATION:
            self._set_preemptor(cq, wl)
        if not is_backoff_over(wl.record, now_ms):
            self.heaps.hold(cq, wl)
        elif is_immediate or (wl.scan is not None and wl.scan.is_pending()):
            self.heaps.push(cq, wl)
        elif reason == Requeue.NAMESPACE_MISMATCH:
            self.heaps.hold(cq, wl)
        else:
            bucket = self.heaps.park(cq, wl)
            if (
                (reason == Requeue.NO_FIT or reason == Requeue.NO_CANDIDATES)
                and not cq.is_strict
                and wl.shape is not None
            ):
                return self._park_equivalent(cq, bucket, wl)
        return []

    def _park_equivalent(
        self, cq: ClusterQueueState, bucket: Bucket, wl: WorkloadState
    ) -> list[WorkloadState]:
        self.heaps.park_class(cq, bucket)
        before, bucket.why = bucket.why, wl.decision
        if before is not None and wl.decision is not None and before.reason != wl.decision.reason:
            return [item[2] for item in bucket.parked.items if item[2] is not wl]
        untold, bucket.untold = bucket.untold, []
        return [other for other in untold if other.box is bucket.parked and other is not wl]

    def _set_preemptor(self, cq: ClusterQueueState, wl: WorkloadState) -> None:
        before = cq.preemptor
        cq.preemptor = Preemptor(wl.key, wl.seen_generation, not cq.is_strict)
        if before is not None and before.is_sticky and before.key != wl.key:
            for other in self.heaps.members(cq):
                if other.key == before.key:
                    self.heaps.renew(cq, other)
                    break

    def forget_preemptor(self, cq: ClusterQueueState, wl: WorkloadState) -> None:
        """Clear the record of a preemptor that is finished, deleted or admitted (2.6)."""
        if cq.preemptor is not None and cq.preemptor.key == wl.key:
            cq.preemptor = None

    def offer(
        self, cq: ClusterQueueState, wl: WorkloadState, before: Workload | None, now_ms: int
    ) -> bool:
        """Add or update a queueable Workload after a fact about it (2.8).

        Args:
            cq: The ClusterQueue of its LocalQueue.
            wl: Its needs fresh.
            before: The record it had while tracked, None when new here.
            now_ms: Time of the event.

        Returns:
            True when it is in the heap now (and a cycle may be due).
        """
        was_active = wl.is_active() and wl.cq is cq
        if (
            wl.cq is cq
            and wl.place == PENDING
            and before is not None
            and not _is_worth_another_look(before, wl.record, wl.seen_generation)
            and (not was_active or self.heaps.is_in_place(cq, wl))
        ):
            return False
        self.heaps.take_out(wl)
        if not was_active:
            if not is_backoff_over(wl.record, now_ms):
                self.heaps.hold(cq, wl)
                return False
            bucket = None if cq.is_strict or wl.shape is None else cq.buckets.get(wl.shape)
            if bucket is not None and bucket.is_parked:
                if bucket.why is not None and wl.decision is None:
                    wl.decision = bypassed(bucket.why)
                self.heaps.park(cq, wl)
                return False
        self.heaps.push(cq, wl)
        return True

    def wake(
        self, cq: ClusterQueueState, namespaces: dict[str, dict[str, str]], now_ms: int
    ) -> bool:
        """Return parked Workloads to the heap after something changed (2.9).

        Args:
            cq: A queue of the tree concerned.
            namespaces: Labels by namespace; a Workload of an unknown one stays parked.
            now_ms: Time of the change.

        Returns:
            True when at least one moved.
        """
        selector = cq.record.namespace_selector
        selected: dict[str, bool] = {}
        moved = 0

        def is_selected(wl: WorkloadState) -> bool:
            namespace = wl.record.namespace
            found = selected.get(namespace)
            if found is None:
                labels = namespaces.get(namespace)
                found = labels is not None and selector is not None and selector.matches(labels)
                selected[namespace] = found
            return found

        for bucket in list(cq.waiting):
            if selector is None or selector.match_labels or selector.expressions:
                # Only some may return: those that may not are held until they are selected.
                for wl in [item[2] for item in bucket.parked.items if item[2].is_parked()]:
                    if wl.box is bucket.parked and not is_selected(wl):
                        self.heaps.take_out(wl)
                        self.heaps.hold(cq, wl)
            moved += self.heaps.wake_class(cq, bucket)
        for wl in list(cq.held.values()):
            if is_selected(wl) and is_backoff_over(wl.record, now_ms):
                self.heaps.take_out(wl)
                self.heaps.push(cq, wl)
                moved += 1
        return moved > 0


def bypassed(why: Decision) -> Decision:
    """Return the decision of a Workload parked because an equivalent one failed."""
    return Decision(
        why.reason,
        "Bypassed scheduling evaluation because an equivalent workload recently failed",
        why.at_ms,
        why.why,
    )


def _is_worth_another_look(before: Workload, after: Workload, seen_generation: int) -> bool:
    """Tell whether an update takes a parked Workload out of parking (2.8.4)."""
    return (
        after.generation != seen_generation >= 0
        or before.pod_sets != after.pod_sets
        or before.priority != after.priority
        or before.queue != after.queue
        or before.active != after.active
        or before.priority_boost != after.priority_boost
        or before.reclaimable != after.reclaimable
        or before.conditions.get(_EVICTED) != after.conditions.get(_EVICTED)
        or before.conditions.get(_REQUEUED) != after.conditions.get(_REQUEUED)
        or before.requeue_at_ms != after.requeue_at_ms
        or bool(before.closed_gates) != bool(after.closed_gates)
    )
