"""Facts about Workloads: reserved, pending, finished, gone; commands that were written or failed.

A fact may be an echo older than what the engine has decided. While a reservation is assumed, a fact
without it is taken as such an echo, until the reservation is seen, the write is known to have
failed, or a fact newer than the write says otherwise. Source: docs/spec/algorithm.md 2.1, 2.6, 2.8,
2.9. Used by `sluice.engine.engine`.
"""

from typing import Final, assert_never

from sluice.api.conditions import ConditionType
from sluice.api.names import WorkloadKey
from sluice.api.records import Admission, Workload
from sluice.engine import accounting
from sluice.engine.commands import (
    AssignTopology,
    Command,
    Evict,
    FinishSlice,
    MarkPending,
    ReserveQuota,
)
from sluice.engine.pending import Requeue, is_backoff_over
from sluice.engine.states import (
    PENDING,
    RESERVED,
    ClusterQueueState,
    WorkloadState,
)
from sluice.engine.waking import Waking, is_on_hold
from sluice.engine.world import World

_TOMBSTONES_MAX: Final = 4096
_FINISHED: Final = ConditionType.FINISHED.value
_RESERVED: Final = ConditionType.QUOTA_RESERVED.value
_ADMITTED: Final = ConditionType.ADMITTED.value
_EVICTED: Final = ConditionType.EVICTED.value
_WAITING_FOR_PODS: Final = ConditionType.WAITING_FOR_REPLACEMENT_PODS.value


def version_number(text: str) -> int:
    """Return a resourceVersion as a number to order facts by; -1 when it is not one."""
    return int(text) if text.isdecimal() else -1


class WorkloadFacts:
    """Applies facts about Workloads to the world."""

    __slots__ = ("_tombstones", "_waking", "_world")

    def __init__(self, world: World, waking: Waking) -> None:
        self._world = world
        self._waking = waking
        self._tombstones: dict[WorkloadKey, int] = {}

    def observe(self, record: Workload, at_ms: int) -> None:
        """Take in a record."""
        world = self._world
        key = record.key
        version = version_number(record.resource_version)
        wl = world.workloads.get(key)
        if wl is not None and wl.uid != record.uid:
            if 0 <= version < wl.version:
                return
            self.gone(key, at_ms, "")
            wl = None
        if wl is None:
            if 0 <= version <= self._tombstones.get(key, -1):
                return
            wl = WorkloadState(record, version)
            world.workloads[key] = wl
            world.local_queue(wl.lq).workloads[key] = wl
            before = None
        elif 0 <= version < wl.version:
            return
        else:
            before = wl.record
            wl.record = record
            wl.version = version
            if wl.lq != record.queue_key:
                self._move(wl)
        self._see_mark(wl)
        self._place(wl, before, at_ms)

    def _move(self, wl: WorkloadState) -> None:
        """Follow a Workload to another LocalQueue."""
        world = self._world
        if world.ledger.drop(wl.lq, wl.key):
            self._waking.reorder(wl.lq)
        if wl.place == PENDING:
            world.touch(wl, wl.cq)
            world.pending.heaps.take_out(wl)
        del world.local_queue(wl.lq).workloads[wl.key]
        wl.lq = wl.record.queue_key
        world.local_queue(wl.lq).workloads[wl.key] = wl

    def _see_mark(self, wl: WorkloadState) -> None:
        """Notice when somebody else changed the condition that a MarkPending wrote."""
        if wl.marked is None:
            return
        condition = wl.record.conditions.get(_RESERVED)
        if condition is not None and (condition.reason, condition.message) == wl.marked:
            wl.is_mark_seen = True
        elif wl.is_mark_seen:
            wl.marked = None

    def _place(self, wl: WorkloadState, before: Workload | None, at_ms: int) -> None:
        """Put a Workload where its newest record says it belongs."""
        record = wl.record
        is_done = record.is_true(_FINISHED) or not record.active or wl.finish_assumed
        holds = record.admission is not None and record.is_true(_RESERVED)
        if wl.assumed and not holds and not is_done and not self._is_after_write(wl):
            return
        wl.assumed = False
        if wl.topology_assumed and (self._is_after_write(wl) or record.admission == wl.admission):
            wl.topology_assumed = False
        if holds and not is_done:
            self._hold(wl, before, at_ms)
            return
        self._waking.forget(wl)
        if wl.place == RESERVED:
            self._waking.notify(accounting.release(self._world, wl), at_ms)
            wl.queued_ms = at_ms
        elif record.is_true(_EVICTED):
            wl.queued_ms = max(wl.queued_ms, record.conditions[_EVICTED].at_ms)
        if is_done:
            self._drop_penalty(wl)
        self.queue(wl, before, at_ms)

    def _is_after_write(self, wl: WorkloadState) -> bool:
        return 0 <= wl.applied_version < wl.version

    def _drop_penalty(self, wl: WorkloadState) -> None:
        if self._world.ledger.drop(wl.lq, wl.key):
            self._waking.reorder(wl.lq)

    def _hold(self, wl: WorkloadState, before: Workload | None, at_ms: int) -> None:
        """Book, or book again, what a Workload's admission says."""
        world = self._world
        record = wl.record
        admission = record.admission
        assert admission is not None
        cq = world.queues.get(admission.cluster_queue)
        is_evicting = wl.is_evicting
        if wl.topology_assumed and wl.place == RESERVED and cq is wl.cq:
            # An echo from before the second pass was written; the topology found there counts.
            assert wl.admission is not None
            admission = wl.admission
        if wl.place == RESERVED and (
            cq is not wl.cq or not self._is_same_booking(wl, before, admission)
        ):
            self._waking.notify(accounting.release(world, wl), at_ms)
        if wl.place == PENDING:
            world.touch(wl, wl.cq)
            world.pending.heaps.take_out(wl)
        if cq is None:
            world.homeless.setdefault(admission.cluster_queue, {})[wl.key] = None
            return
        world.pending.forget_preemptor(cq, wl)
        was_admitted = wl.is_admitted
        is_admitted = record.is_true(_ADMITTED)
        world.pending.refresh_order(wl)
        if wl.place != RESERVED:
            since = record.conditions[_RESERVED].at_ms
            accounting.reserve(world, wl, cq, admission, reserved_ms=since, is_admitted=is_admitted)
        else:
            wl.admission = admission
            wl.reserved_ms = record.conditions[_RESERVED].at_ms
            wl.is_admitted = is_admitted
            cq.generation += 1
            world.touch(wl, cq)
            accounting.track_readiness(world, wl)
        wl.scan = None
        wl.marked = None
        wl.is_evicting = is_evicting
        self._note_eviction(wl)
        if before is not None and before.priority != record.priority:
            self._waking.notify(cq, at_ms)
        self._waking.consider_second_pass(wl, at_ms)
        if is_admitted and (not was_admitted or before is None or not before.is_true(_ADMITTED)):
            self._settle(wl, at_ms)
        if world.options.block_admission and not world.unready:
            world.is_due = True

    def _note_eviction(self, wl: WorkloadState) -> None:
        wl.is_evicted = wl.record.is_true(_EVICTED)
        if wl.is_evicted or 0 <= wl.evicted_version < wl.version:
            wl.is_evicting = False

    def _settle(self, wl: WorkloadState, at_ms: int) -> None:
        """Turn an entry penalty into consumed usage (5.4.4)."""
        ledger = self._world.ledger
        if ledger.is_on and ledger.settle(wl.lq, wl.key, self._waking.admitted_usage(wl.lq), at_ms):
            self._waking.reorder(wl.lq)

    def _is_same_booking(
        self, wl: WorkloadState, before: Workload | None, admission: Admission
    ) -> bool:
        """Tell whether a held Workload's record books what is booked already."""
        record = wl.record
        return (
            before is not None
            and wl.admission == admission
            and before.reclaimable == record.reclaimable
            and (before.pod_sets is record.pod_sets or before.pod_sets == record.pod_sets)
        )

    def queue(self, wl: WorkloadState, before: Workload | None, at_ms: int) -> None:
        """Queue a Workload without a reservation, or take it out of the queues (2.1, 2.8)."""
        world = self._world
        cq = world.home_of(wl) if self.is_queueable(wl) else None
        if cq is None:
            if wl.place == PENDING:
                old = wl.cq
                assert old is not None
                world.touch(wl, old)
                world.pending.heaps.take_out(wl)
                world.pending.forget_preemptor(old, wl)
            return
        world.refresh(wl, cq)
        if world.pending.offer(cq, wl, before, at_ms):
            world.is_due = True
        elif wl.is_parked() and not is_backoff_over(wl.record, at_ms):
            self._waking.note_backoff(wl)
        world.touch(wl, cq)

    def reconsider(self, namespace: str | None) -> None:
        """Recompute pending Workloads of a namespace (None: of all) whose requests may differ now.

        LimitRanges and RuntimeClasses change what pods ask for (1.10); a parked Workload whose
        requests did change returns to the heap, as after a change of its spec (2.8.4).
        """
        world = self._world
        for wl in list(world.workloads.values()):
            cq = wl.cq
            if wl.place != PENDING or cq is None:
                continue
            if namespace is not None and wl.record.namespace != namespace:
                continue
            before = [(need.names, need.totals, need.pod.problem) for need in wl.needs]
            world.refresh(wl, cq)
            if before != [(need.names, need.totals, need.pod.problem) for need in wl.needs]:
                world.pending.heaps.take_out(wl)
                world.pending.heaps.push(cq, wl)
                world.is_due = True

    def is_queueable(self, wl: WorkloadState) -> bool:
        """Tell whether a Workload's own state lets it be queued (2.1)."""
        record = wl.record
        if wl.place == RESERVED or not record.active or record.is_true(_FINISHED):
            return False
        if wl.finish_assumed:
            return False
        if record.gated_by and self._world.options.gates.admission_gated_by:
            return False
        if record.is_true(_RESERVED) or record.is_true(_WAITING_FOR_PODS) or is_on_hold(wl):
            return False
        return not record.is_variant_parent

    def gone(self, key: WorkloadKey, at_ms: int, resource_version: str) -> None:
        """Forget a Workload."""
        world = self._world
        wl = world.workloads.get(key)
        version = version_number(resource_version)
        if version >= 0:
            self._tombstones[key] = version
            if len(self._tombstones) > _TOMBSTONES_MAX:
                del self._tombstones[next(iter(self._tombstones))]
        if wl is None or 0 <= version < wl.version:
            return
        self._waking.forget(wl)
        self._drop_penalty(wl)
        cq: ClusterQueueState | None = wl.cq
        if wl.place == RESERVED:
            self._waking.notify(accounting.release(world, wl), at_ms)
        elif cq is not None:
            world.touch(wl, cq)
            world.pending.heaps.take_out(wl)
        if cq is not None:
            world.pending.forget_preemptor(cq, wl)
        self._forget_home(key)
        del world.workloads[key]
        local = world.local_queue(wl.lq)
        del local.workloads[key]
        if local.record is None and not local.workloads:
            del world.local_queues[wl.lq]

    def _forget_home(self, key: WorkloadKey) -> None:
        for homeless in self._world.homeless.values():
            homeless.pop(key, None)

    def lose_queue(self, wl: WorkloadState) -> None:
        """Keep a Workload whose ClusterQueue is gone, for when one of that name returns."""
        admission, reserved_ms = wl.admission, wl.reserved_ms
        is_assumed, is_admitted = wl.assumed, wl.is_admitted
        cq = accounting.release(self._world, wl)
        self._waking.forget(wl)
        self._world.homeless.setdefault(cq.name, {})[wl.key] = None
        if is_assumed:
            wl.assumed = True
            wl.admission = admission
            wl.reserved_ms = reserved_ms
            wl.is_admitted = is_admitted

    def find_queue(self, wl: WorkloadState, cq: ClusterQueueState, at_ms: int) -> None:
        """Give a Workload that has waited for its ClusterQueue what it held there."""
        if wl.assumed and wl.admission is not None:
            accounting.reserve(
                self._world,
                wl,
                cq,
                wl.admission,
                reserved_ms=wl.reserved_ms,
                is_admitted=wl.is_admitted,
            )
        else:
            self._place(wl, None, at_ms)

    # Commands.

    def applied(self, command: Command, resource_version: str, at_ms: int) -> None:
        """Note that a command was written.

        Only the write of what is assumed now counts: a fact that is newer than an earlier write,
        such as that of a MarkPending, may still be older than this one.
        """
        wl = self._target(command)
        if wl is None:
            return
        version = version_number(resource_version)
        match command:
            case Evict():
                wl.evicted_version = version
            case ReserveQuota() | AssignTopology():
                if not (wl.assumed or wl.topology_assumed) or command.admission != wl.admission:
                    return
                wl.applied_version = version
                if self._is_after_write(wl):
                    # The watch was faster, and what it showed was taken for an older echo.
                    self._place(wl, wl.record, at_ms)
            case MarkPending() | FinishSlice():
                pass
            case _:
                assert_never(command)

    def failed(self, command: Command, at_ms: int) -> None:
        """Take back what was assumed of a command (2.6, 3.7.3.14)."""
        wl = self._target(command)
        if wl is None:
            return
        match command:
            case ReserveQuota():
                if wl.assumed:
                    self._take_back(wl, at_ms)
            case AssignTopology():
                if wl.place == RESERVED:
                    wl.topology_assumed = False
                    self._place(wl, None, at_ms)
                    self._waking.retry_second_pass(wl, at_ms)
            case Evict():
                wl.is_evicting = False
                self._world.is_due = True
                self._waking.consider_second_pass(wl, at_ms)
            case MarkPending():
                wl.marked = None
            case FinishSlice():
                wl.finish_assumed = False
                self._place(wl, None, at_ms)
            case _:
                assert_never(command)

    def _target(self, command: Command) -> WorkloadState | None:
        wl = self._world.workloads.get(command.workload)
        return wl if wl is not None and wl.uid == command.uid else None

    def _take_back(self, wl: WorkloadState, at_ms: int) -> None:
        """Undo an assumed reservation: no trace in usage, penalties and topology."""
        world = self._world
        if wl.place == RESERVED:
            self._waking.notify(accounting.release(world, wl), at_ms)
        else:
            self._forget_home(wl.key)
            wl.assumed = False
            wl.admission = None
            wl.is_admitted = False
        self._drop_penalty(wl)
        self._waking.forget(wl)
        home = world.home_of(wl) if self.is_queueable(wl) else None
        if home is None:
            return
        world.refresh(wl, home)
        world.pending.requeue(home, wl, Requeue.FAILED_AFTER_NOMINATION, at_ms)
        world.touch(wl, home)
        world.is_due = True
