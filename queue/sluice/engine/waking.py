"""What the engine does when time passes: batches of wake-ups, second passes, back-offs, samples.

Source: docs/spec/algorithm.md 2.9, 3.10, 2.6, 5.4.3. Event handlers note what is due; a cycle runs
what has become due before it takes its heads. Used by the event handlers and `sluice.engine.cycle`.
"""

import heapq

from sluice.api.conditions import ConditionType, PendingReason
from sluice.api.names import ClusterQueueName, LocalQueueKey, ResourceName, WorkloadKey
from sluice.api.records import Kind
from sluice.engine.pending import is_backoff_over
from sluice.engine.states import RESERVED, ClusterQueueState, WorkloadState
from sluice.engine.topology_step import is_broken
from sluice.engine.world import World


class Waking:
    """The timers of one engine."""

    __slots__ = ("_backoffs", "_passes", "_samples", "_wakes", "_world")

    def __init__(self, world: World) -> None:
        self._world = world
        self._wakes: dict[str, tuple[int, ClusterQueueName]] = {}
        """By tree: when its parked Workloads return, and a ClusterQueue of it."""
        self._passes: dict[WorkloadKey, WorkloadState] = {}
        self._backoffs: list[tuple[int, WorkloadKey]] = []
        self._samples: dict[LocalQueueKey, None] = {}

    def notify(self, cq: ClusterQueueState, now_ms: int) -> None:
        """Note that something changed for parked Workloads of a queue's tree (2.9)."""
        cohort = cq.record.cohort
        key = f"q:{cq.name}"
        if cohort is not None:
            root = self._world.forest.root_of(cohort)
            if root is None:
                return
            key = f"c:{root}"
        batch_ms = self._world.options.wake_up_batch_ms
        if batch_ms == 0:
            self._wake(cq, now_ms)
        elif key not in self._wakes:
            self._wakes[key] = (now_ms + batch_ms, cq.name)

    def _wake(self, cq: ClusterQueueState, now_ms: int) -> None:
        world = self._world
        sleeping = world.pending.heaps.sleeping
        if not sleeping:
            return
        world.settle()
        parked = cq.tree.parked
        if not parked:
            return
        for name in list(parked):
            member = world.queues[ClusterQueueName(name)]
            if world.pending.wake(member, world.namespaces, now_ms):
                world.is_due = True
            if not member.parked_count and not member.waiting:
                del parked[name]
                sleeping.pop(name, None)

    def run(self, now_ms: int) -> None:
        """Do what is due: before the heads of a cycle are taken."""
        if self._wakes:
            for key, (due_ms, name) in list(self._wakes.items()):
                if due_ms <= now_ms:
                    del self._wakes[key]
                    cq = self._world.queues.get(name)
                    if cq is not None:
                        self._wake(cq, now_ms)
        while self._backoffs and self._backoffs[0][0] <= now_ms:
            self._end_backoff(heapq.heappop(self._backoffs)[1], now_ms)
        if self._samples:
            self._sample(now_ms)

    # Back-offs.

    def note_backoff(self, wl: WorkloadState) -> None:
        """Look at a Workload again when its back-off ends (2.6)."""
        requeue_at_ms = wl.record.requeue_at_ms
        if requeue_at_ms is not None:
            heapq.heappush(self._backoffs, (requeue_at_ms, wl.key))

    def _end_backoff(self, key: WorkloadKey, now_ms: int) -> None:
        world = self._world
        wl = world.workloads.get(key)
        if wl is None or not wl.is_parked() or not is_backoff_over(wl.record, now_ms):
            return
        cq = wl.cq
        assert cq is not None
        world.pending.heaps.take_out(wl)
        world.pending.heaps.push(cq, wl)
        world.is_due = True

    # Second passes.

    def consider_second_pass(self, wl: WorkloadState, now_ms: int) -> None:
        """Queue a Workload for a second pass, or take it off, as its state asks (3.10)."""
        if not self._needs_second_pass(wl):
            if self._passes.pop(wl.key, None) is not None:
                wl.pass_attempt = 0
                wl.pass_due_ms = None
        elif wl.key not in self._passes:
            self._queue_pass(wl, now_ms)

    def retry_second_pass(self, wl: WorkloadState, now_ms: int) -> None:
        """Queue a Workload again after a second pass that found no place."""
        if wl.place == RESERVED and self._needs_second_pass(wl):
            self._queue_pass(wl, now_ms)

    def _queue_pass(self, wl: WorkloadState, now_ms: int) -> None:
        options = self._world.options
        delay_ms = options.second_pass_base_ms << min(wl.pass_attempt, 16)
        wl.pass_attempt += 1
        wl.pass_due_ms = now_ms + min(delay_ms, options.second_pass_max_ms)
        self._passes[wl.key] = wl

    def _needs_second_pass(self, wl: WorkloadState) -> bool:
        record, admission = wl.record, wl.admission
        if wl.place != RESERVED or admission is None or wl.is_evicted or wl.is_evicting:
            return False
        if record.is_true(ConditionType.FINISHED) or is_on_hold(wl):
            return False
        if record.unhealthy_nodes:
            return any(p.topology and is_broken(wl, p.topology) for p in admission.pod_sets)
        waits = any(p.delayed_topology == "Pending" and not p.topology for p in admission.pod_sets)
        return (
            waits
            and not wl.is_admitted
            and bool(record.checks)
            and all(check.state == "Ready" for check in record.checks)
        )

    def second_pass_heads(self, now_ms: int) -> list[WorkloadState]:
        """Take the Workloads whose second pass is due, in the order they were queued."""
        due = [
            wl
            for wl in self._passes.values()
            if wl.pass_due_ms is not None and wl.pass_due_ms <= now_ms
        ]
        for wl in due:
            del self._passes[wl.key]
        return [wl for wl in due if self._needs_second_pass(wl)]

    def forget(self, wl: WorkloadState) -> None:
        """Drop the timers of a Workload that is gone."""
        self._passes.pop(wl.key, None)

    # Admission fair sharing.

    def watch_usage(self, key: LocalQueueKey) -> None:
        """Sample a LocalQueue's usage from now on (5.4.3)."""
        self._samples[key] = None

    def unwatch_usage(self, key: LocalQueueKey) -> None:
        """Stop sampling a LocalQueue."""
        self._samples.pop(key, None)

    def _sample(self, now_ms: int) -> None:
        world = self._world
        for key in self._samples:
            due_ms = world.ledger.sample_due_ms(key)
            if due_ms is None or due_ms > now_ms:
                continue
            world.ledger.sample(key, self.admitted_usage(key), now_ms)
            self.reorder(key)

    def reorder(self, key: LocalQueueKey) -> None:
        """Have the heap of a LocalQueue's ClusterQueue sorted again."""
        local = self._world.local_queues.get(key)
        if local is not None and local.record is not None:
            cq = self._world.queues.get(local.record.cluster_queue)
            if cq is not None:
                cq.needs_reorder = True
                self._world.changes.touch(Kind.LOCAL_QUEUE, key)

    def admitted_usage(self, key: LocalQueueKey) -> dict[ResourceName, int]:
        """Return what admitted Workloads of a LocalQueue use, by resource over all flavors."""
        totals: dict[ResourceName, int] = {}
        local = self._world.local_queues.get(key)
        for wl in local.workloads.values() if local is not None else ():
            if wl.place == RESERVED and wl.is_admitted:
                for _, resource, amount in wl.named_usage:
                    totals[resource] = totals.get(resource, 0) + amount
        return totals

    def usage_for_preemption(self, cq: ClusterQueueState, key: LocalQueueKey) -> float | None:
        """Return a LocalQueue's usage where it orders candidates, None where it doesn't (4.3)."""
        return self._world.ledger.usage(key) if cq.is_by_usage else None

    # Deadlines.

    def next_ms(self) -> int | None:
        """Return when the next timer is due."""
        times = [due_ms for due_ms, _ in self._wakes.values()]
        if self._backoffs:
            times.append(self._backoffs[0][0])
        times.extend(wl.pass_due_ms for wl in self._passes.values() if wl.pass_due_ms is not None)
        for key in self._samples:
            due_ms = self._world.ledger.sample_due_ms(key)
            if due_ms is not None:
                times.append(due_ms)
        return min(times, default=None)


def is_on_hold(wl: WorkloadState) -> bool:
    """Tell whether the job asked to be left alone (2.1)."""
    condition = wl.record.conditions.get(ConditionType.QUOTA_RESERVED.value)
    return (
        condition is not None
        and condition.status == "False"
        and condition.reason == PendingReason.ON_HOLD
    )
