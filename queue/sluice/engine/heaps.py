"""The heaps of pending Workloads: pushing, popping, parking one or a whole class.

A ClusterQueue keeps its pending Workloads in boxes by equivalence class, so that parking or waking
a class costs one swap, not its size. Above the boxes is a heap of their first items. Everything is
cleaned lazily. Which Workload goes where and why is in `sluice.engine.pending`.
"""

import heapq
from collections.abc import Iterator
from typing import Final

from sluice.engine.afs import UsageLedger
from sluice.engine.states import (
    INFLIGHT,
    OUTSIDE,
    PENDING,
    Box,
    Bucket,
    ClusterQueueState,
    HeapItem,
    SortKey,
    WorkloadState,
)

_SLACK: Final = 64


class Heaps:
    """Moves Workloads into and out of boxes.

    Attributes:
        hot: ClusterQueues whose heap has a Workload, whether they take part or not.
        parked_total: Parked Workloads in all ClusterQueues.
        sleeping: ClusterQueues that a wake-up would change: with parked Workloads or classes.
    """

    __slots__ = ("_ledger", "_number", "hot", "parked_total", "sleeping")

    def __init__(self, ledger: UsageLedger) -> None:
        self._ledger = ledger
        self._number = 0
        self.hot: dict[str, ClusterQueueState] = {}
        self.parked_total = 0
        self.sleeping: dict[str, None] = {}

    def sort_key(self, cq: ClusterQueueState, wl: WorkloadState) -> SortKey:
        """Return what a Workload is ordered by in a queue, on the present state (2.3)."""
        usage = self._ledger.usage(wl.lq) if cq.is_by_usage else 0.0
        preemptor = cq.preemptor
        is_sticky = preemptor is not None and preemptor.is_sticky and preemptor.key == wl.key
        return (usage, 0 if is_sticky else 1, -wl.eff, wl.ts_ms, wl.uid, wl.key)

    def bucket(self, cq: ClusterQueueState, wl: WorkloadState) -> Bucket:
        """Return the equivalence class of a Workload in a queue, a new one if there is none."""
        found = cq.buckets.get(wl.shape)
        if found is None:
            found = Bucket(wl.shape)
            cq.buckets[wl.shape] = found
        return found

    def is_in_place(self, cq: ClusterQueueState, wl: WorkloadState) -> bool:
        """Tell whether a Workload in the heap is where its key and class put it now."""
        box = wl.box
        return (
            box is not None
            and box.bucket.shape == wl.shape
            and wl.sort_key == self.sort_key(cq, wl)
        )

    def push(self, cq: ClusterQueueState, wl: WorkloadState) -> None:
        """Put a Workload into the heap; it must be nowhere else."""
        bucket = self.bucket(cq, wl)
        box = bucket.active
        if wl.decision is None:
            if len(bucket.untold) > 2 * box.count + _SLACK:
                bucket.untold = [o for o in bucket.untold if o.box is box and o.decision is None]
            bucket.untold.append(wl)
        self._put(cq, box, wl)
        self._count_active(cq, 1)
        first = box.items[0]
        if first[1] == wl.ticket:
            heapq.heappush(cq.heads, first)

    def _put(self, cq: ClusterQueueState, box: Box, wl: WorkloadState) -> None:
        self._number += 1
        wl.ticket = self._number
        wl.sort_key = self.sort_key(cq, wl)
        wl.place = PENDING
        wl.cq = cq
        wl.box = box
        heapq.heappush(box.items, (wl.sort_key, wl.ticket, wl))
        box.count += 1

    def _count_active(self, cq: ClusterQueueState, change: int) -> None:
        if change == 0:
            return
        if cq.active_count == 0:
            self.hot[cq.name] = cq
        cq.active_count += change
        if cq.active_count == 0:
            cq.heads.clear()
            del self.hot[cq.name]

    def _count_parked(self, cq: ClusterQueueState, change: int) -> None:
        cq.parked_count += change
        self.parked_total += change
        if cq.parked_count > 0:
            cq.tree.parked[cq.name] = None
            self.sleeping[cq.name] = None

    def park(self, cq: ClusterQueueState, wl: WorkloadState) -> Bucket:
        """Put a Workload aside, to return with its class when the queue is woken."""
        bucket = self.bucket(cq, wl)
        self._put(cq, bucket.parked, wl)
        self._count_parked(cq, 1)
        cq.waiting[bucket] = None
        return bucket

    def hold(self, cq: ClusterQueueState, wl: WorkloadState) -> None:
        """Put a Workload aside that waking must look at by itself."""
        wl.place = PENDING
        wl.cq = cq
        wl.box = None
        cq.held[wl.key] = wl
        self._count_parked(cq, 1)

    def take_out(self, wl: WorkloadState) -> None:
        """Remove a Workload from wherever it is pending."""
        cq = wl.cq
        if wl.place != PENDING or cq is None:
            return
        box = wl.box
        wl.box = None
        wl.place = OUTSIDE
        wl.cq = None
        if box is None:
            del cq.held[wl.key]
            self._count_parked(cq, -1)
            return
        box.count -= 1
        if box.is_active:
            self._count_active(cq, -1)
        else:
            self._count_parked(cq, -1)
        if box.count == 0:
            box.items.clear()
            self._drop_if_empty(cq, box.bucket)
        elif box.items[0][2] is wl:
            self._clean_top(box)
            if box.is_active:
                heapq.heappush(cq.heads, box.items[0])
        elif len(box.items) > 2 * box.count + _SLACK:
            box.items = [item for item in box.items if _counts(box, item)]
            heapq.heapify(box.items)
        if len(cq.heads) > 2 * len(cq.buckets) + _SLACK:
            self._rebuild_heads(cq)

    def _clean_top(self, box: Box) -> None:
        items = box.items
        while not _counts(box, items[0]):
            heapq.heappop(items)

    def _drop_if_empty(self, cq: ClusterQueueState, bucket: Bucket) -> None:
        if bucket.parked.count == 0 and not bucket.is_parked:
            cq.waiting.pop(bucket, None)
            if bucket.active.count == 0:
                del cq.buckets[bucket.shape]

    def _rebuild_heads(self, cq: ClusterQueueState) -> None:
        cq.heads = [b.active.items[0] for b in cq.buckets.values() if b.active.count]
        heapq.heapify(cq.heads)

    def pop(self, cq: ClusterQueueState) -> WorkloadState | None:
        """Take the head of a queue into the present cycle (2.5)."""
        if cq.needs_reorder and cq.is_by_usage:
            self._reorder(cq)
        heads = cq.heads
        while heads:
            item = heapq.heappop(heads)
            wl = item[2]
            box = wl.box
            if box is not None and box.is_active and wl.cq is cq and wl.ticket == item[1]:
                self.take_out(wl)
                wl.place = INFLIGHT
                wl.cq = cq
                wl.seen_generation = wl.record.generation
                return wl
            heads = cq.heads
        return None

    def _reorder(self, cq: ClusterQueueState) -> None:
        """Sort the heap again because usage of LocalQueues changed (2.5, 5.4.3)."""
        cq.needs_reorder = False
        for bucket in cq.buckets.values():
            for box in (bucket.active, bucket.parked):
                kept = [item[2] for item in box.items if _counts(box, item)]
                box.items = []
                box.count = 0
                for wl in kept:
                    self._put(cq, box, wl)
        self._rebuild_heads(cq)

    def renew(self, cq: ClusterQueueState, wl: WorkloadState) -> None:
        """Sort a Workload again whose key changed, where it is."""
        box = wl.box
        if box is not None:
            self.take_out(wl)
            if box.is_active:
                self.push(cq, wl)
            else:
                self.park(cq, wl)

    def park_class(self, cq: ClusterQueueState, bucket: Bucket) -> None:
        """Park all Workloads of a class that are in the heap."""
        bucket.is_parked = True
        cq.waiting[bucket] = None
        moved = bucket.active.count
        if moved:
            self._move_class(bucket, into_active=False)
            self._count_active(cq, -moved)
            self._count_parked(cq, moved)

    def wake_class(self, cq: ClusterQueueState, bucket: Bucket) -> int:
        """Return all parked Workloads of a class to the heap; return how many."""
        bucket.is_parked = False
        bucket.why = None
        cq.waiting.pop(bucket, None)
        moved = bucket.parked.count
        if moved:
            self._move_class(bucket, into_active=True)
            self._count_parked(cq, -moved)
            self._count_active(cq, moved)
            heapq.heappush(cq.heads, bucket.active.items[0])
        else:
            self._drop_if_empty(cq, bucket)
        return moved

    def _move_class(self, bucket: Bucket, *, into_active: bool) -> None:
        """Move all of one box into the other, or swap the two when that is cheaper."""
        source, target = bucket.parked, bucket.active
        if not into_active:
            source, target = target, source
        if source.count > target.count:
            source.is_active, target.is_active = target.is_active, source.is_active
            bucket.active, bucket.parked = bucket.parked, bucket.active
            source, target = target, source
        for item in source.items:
            if _counts(source, item):
                item[2].box = target
                heapq.heappush(target.items, item)
                target.count += 1
        source.items = []
        source.count = 0
        self._clean_top(target)

    def members(self, cq: ClusterQueueState) -> Iterator[WorkloadState]:
        """Yield all pending Workloads of a queue, parked ones too, in no particular order."""
        for bucket in cq.buckets.values():
            for box in (bucket.active, bucket.parked):
                for item in box.items:
                    if _counts(box, item):
                        yield item[2]
        yield from cq.held.values()


def _counts(box: Box, item: HeapItem) -> bool:
    """Tell whether an item of a box still stands for its Workload."""
    return item[2].box is box and item[2].ticket == item[1]
