"""The pending Workloads of ClusterQueues: heaps, parking, requeueing, waking up.

A pending Workload is in its queue's heap or parked as inadmissible. The heap is cleaned lazily: an
item counts while its number is still the Workload's. Source: docs/spec/algorithm.md section 2. Used
by `sluice.engine.world` (events) and `sluice.engine.cycle` (heads and requeueing).
"""

import heapq
from enum import IntEnum
from typing import Final

from sluice.api.conditions import ConditionType
from sluice.api.records import Workload
from sluice.engine.afs import UsageLedger
from sluice.engine.assignment import PodSetNeed
from sluice.engine.options import EngineOptions
from sluice.engine.ordering import effective_priority, queue_timestamp_ms
from sluice.engine.states import (
    ACTIVE,
    INADMISSIBLE,
    INFLIGHT,
    OUTSIDE,
    Bucket,
    ClusterQueueState,
    Decision,
    Preemptor,
    SortKey,
    WorkloadState,
)

_HEAP_SLACK: Final = 64
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
    """Moves Workloads between heaps and parking.

    Attributes:
        hot: ClusterQueues whose heap has a Workload, active or not.
    """

    __slots__ = ("_hashes", "_ledger", "_options", "_seq", "hot")

    def __init__(self, options: EngineOptions, ledger: UsageLedger) -> None:
        self._options = options
        self._ledger = ledger
        self._hashes = options.gates.equivalence_hashing
        self._seq = 0
        self.hot: dict[str, ClusterQueueState] = {}

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

    def sort_key(self, cq: ClusterQueueState, wl: WorkloadState) -> SortKey:
        """Return what a Workload is ordered by in a queue, on the present state (2.3)."""
        usage = self._ledger.usage(wl.lq) if cq.is_by_usage else 0.0
        preemptor = cq.preemptor
        is_sticky = preemptor is not None and preemptor.is_sticky and preemptor.key == wl.key
        return (usage, 0 if is_sticky else 1, -wl.eff, wl.ts_ms, wl.uid, wl.key)

    def push(self, cq: ClusterQueueState, wl: WorkloadState) -> None:
        """Put a Workload into the heap; it must be nowhere else."""
        self._seq += 1
        wl.sort_key = self.sort_key(cq, wl)
        wl.heap_seq = self._seq
        wl.place = ACTIVE
        wl.cq = cq
        heapq.heappush(cq.heap, (wl.sort_key, wl.heap_seq, wl))
        if cq.active_count == 0:
            self.hot[cq.name] = cq
        cq.active_count += 1
        if wl.shape is not None:
            bucket = cq.buckets.get(wl.shape)
            if bucket is None:
                bucket = Bucket(wl.shape)
                cq.buckets[wl.shape] = bucket
            bucket.members[wl.key] = wl
            wl.bucket = bucket

    def park(self, cq: ClusterQueueState, wl: WorkloadState) -> None:
        """Put a Workload aside until something changes; it must be nowhere else."""
        wl.place = INADMISSIBLE
        wl.cq = cq
        cq.inadmissible[wl.key] = wl

    def take_out(self, wl: WorkloadState) -> None:
        """Remove a Workload from wherever it is pending."""
        cq = wl.cq
        if wl.place == ACTIVE and cq is not None:
            self._leave_heap(cq, wl)
        elif wl.place == INADMISSIBLE and cq is not None:
            del cq.inadmissible[wl.key]
        elif wl.place != INFLIGHT:
            return
        wl.place = OUTSIDE
        wl.cq = None

    def _leave_heap(self, cq: ClusterQueueState, wl: WorkloadState) -> None:
        wl.heap_seq = 0
        cq.active_count -= 1
        bucket = wl.bucket
        if bucket is not None:
            del bucket.members[wl.key]
            wl.bucket = None
            if not bucket.members and not bucket.is_parked:
                del cq.buckets[bucket.shape]
        if cq.active_count == 0:
            cq.heap.clear()
            del self.hot[cq.name]
        elif len(cq.heap) > 2 * cq.active_count + _HEAP_SLACK:
            cq.heap = [item for item in cq.heap if item[2].heap_seq == item[1]]
            heapq.heapify(cq.heap)

    def pop(self, cq: ClusterQueueState) -> WorkloadState | None:
        """Take the head of a queue into the present cycle (2.5)."""
        if cq.is_by_usage and cq.needs_reorder:
            self._reorder(cq)
        cq.pop_cycle += 1
        heap = cq.heap
        while heap:
            item = heapq.heappop(heap)
            wl = item[2]
            if wl.heap_seq == item[1]:
                self._leave_heap(cq, wl)
                wl.place = INFLIGHT
                wl.seen_generation = wl.record.generation
                return wl
        return None

    def _reorder(self, cq: ClusterQueueState) -> None:
        """Sort the heap again because usage of LocalQueues changed (2.5, 5.4.3)."""
        cq.needs_reorder = False
        items = []
        for _, seq, wl in cq.heap:
            if wl.heap_seq == seq:
                wl.sort_key = self.sort_key(cq, wl)
                items.append((wl.sort_key, seq, wl))
        heapq.heapify(items)
        cq.heap = items

    def requeue(
        self, cq: ClusterQueueState, wl: WorkloadState, reason: Requeue, now_ms: int
    ) -> list[WorkloadState]:
        """Put a head back after an attempt (2.6).

        Args:
            cq: Its ClusterQueue.
            wl: In flight, still queueable, its needs fresh.
            reason: What came of the attempt.
            now_ms: Time of the cycle.

        Returns:
            Equivalent Workloads that were parked with it, unevaluated.
        """
        if cq.is_strict:
            is_immediate = reason != Requeue.NAMESPACE_MISMATCH
        else:
            is_immediate = reason in _IMMEDIATE
        if reason == Requeue.PENDING_PREEMPTION or reason == Requeue.PENDING_MIGRATION:
            self._set_preemptor(cq, wl)
        if is_backoff_over(wl.record, now_ms) and (
            is_immediate
            or cq.inadmissible_cycle >= cq.pop_cycle
            or (wl.scan is not None and wl.scan.is_pending())
        ):
            self.push(cq, wl)
            return []
        self.park(cq, wl)
        if (
            (reason == Requeue.NO_FIT or reason == Requeue.NO_CANDIDATES)
            and not cq.is_strict
            and wl.shape is not None
        ):
            return self._park_equivalent(cq, wl)
        return []

    def _park_equivalent(self, cq: ClusterQueueState, wl: WorkloadState) -> list[WorkloadState]:
        bucket = cq.buckets.get(wl.shape)
        if bucket is None:
            bucket = Bucket(wl.shape)
            cq.buckets[wl.shape] = bucket
        bucket.why = wl.decision
        if not bucket.is_parked:
            bucket.is_parked = True
            cq.parked.append(bucket)
        moved = list(bucket.members.values())
        for other in moved:
            self._leave_heap(cq, other)
            self.park(cq, other)
        return moved

    def _set_preemptor(self, cq: ClusterQueueState, wl: WorkloadState) -> None:
        before = cq.preemptor
        cq.preemptor = Preemptor(wl.key, wl.seen_generation, not cq.is_strict)
        if before is not None and before.is_sticky and before.key != wl.key:
            for _, seq, other in cq.heap:
                if other.heap_seq == seq and other.key == before.key:
                    self._leave_heap(cq, other)
                    self.push(cq, other)
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
        was_active = wl.place == ACTIVE and wl.cq is cq
        if (
            wl.place == INADMISSIBLE
            and wl.cq is cq
            and before is not None
            and not _is_worth_another_look(before, wl.record, wl.seen_generation)
        ):
            return False
        self.take_out(wl)
        if not was_active and not is_backoff_over(wl.record, now_ms):
            self.park(cq, wl)
            return False
        if not was_active and not cq.is_strict and wl.shape is not None:
            bucket = cq.buckets.get(wl.shape)
            if bucket is not None and bucket.is_parked:
                if bucket.why is not None and wl.decision is None:
                    wl.decision = bypassed(bucket.why)
                self.park(cq, wl)
                return False
        self.push(cq, wl)
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
        cq.inadmissible_cycle = cq.pop_cycle
        for bucket in cq.parked:
            bucket.is_parked = False
            bucket.why = None
            if not bucket.members:
                del cq.buckets[bucket.shape]
        cq.parked.clear()
        if not cq.inadmissible:
            return False
        selector = cq.record.namespace_selector
        selected: dict[str, bool] = {}
        moved = 0
        for wl in list(cq.inadmissible.values()):
            namespace = wl.record.namespace
            is_selected = selected.get(namespace)
            if is_selected is None:
                labels = namespaces.get(namespace)
                is_selected = (
                    labels is not None and selector is not None and selector.matches(labels)
                )
                selected[namespace] = is_selected
            if is_selected and is_backoff_over(wl.record, now_ms):
                del cq.inadmissible[wl.key]
                self.push(cq, wl)
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
