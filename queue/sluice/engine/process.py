"""Takes the entries of a cycle one by one: admit, preempt, reserve room, or leave for later.

Each entry is tested on the state that the entries before it left (docs/spec/algorithm.md 3.7). What
is booked here beyond the admitted Workloads lasts until the end of the cycle only. Used by
`sluice.engine.cycle`.
"""

from typing import Final

from sluice.api.conditions import EvictionReason, PendingReason
from sluice.api.records import PreemptionPolicy
from sluice.engine import concurrent, messages
from sluice.engine.assignment import DEFERRED_FIT, FIT, NO_FIT, PREEMPT
from sluice.engine.commands import Command, Evict
from sluice.engine.entry import ASSUMED, EVICTED, Entry
from sluice.engine.nominate import Nominator, pins_of
from sluice.engine.pending import Requeue
from sluice.engine.preemption.candidates import Target
from sluice.engine.states import WorkloadState
from sluice.engine.topology_step import is_broken
from sluice.engine.tree import NO_LIMIT, available
from sluice.engine.world import World

_FITS: Final = 0
_NO_QUOTA: Final = 1
_NO_TOPOLOGY: Final = 2


class Processor:
    """Processes the entries of one cycle.

    Attributes:
        admitted: Entries to be admitted, in order; booked in the simulation so far.
        commands: Evictions issued.
        is_blocked: A Workload waits for others' pods to be ready (blockAdmission, 7.4).
        preempts: At least one eviction was issued.
    """

    __slots__ = (
        "_nominator", "_victims", "_world", "admitted", "commands", "is_blocked", "preempts",
    )  # fmt: skip

    def __init__(self, world: World, nominator: Nominator) -> None:
        self._world = world
        self._nominator = nominator
        self._victims: dict[WorkloadState, None] = {}
        self.admitted: list[Entry] = []
        self.commands: list[Command] = []
        self.is_blocked = False
        self.preempts = False

    def process(self, entry: Entry) -> None:
        """Decide about one entry, the first rule of 3.7.3 that applies."""
        options = self._world.options
        gates = options.gates
        if gates.concurrent_admission and concurrent.is_outdone(self._world, entry):
            entry.skip(concurrent.OUTDONE)
            entry.pending = PendingReason.PENDING_EVALUATION
            return
        fits = self._recompute_if_needed(entry)
        mode = entry.assignment.mode
        if mode != FIT and self._fails_fast(entry):
            return
        if mode == NO_FIT:
            entry.reason = Requeue.NO_FIT
            return
        if mode == PREEMPT and not entry.targets:
            self._wait_without_candidates(entry)
            return
        if (
            mode == PREEMPT
            and (gates.concurrent_admission or gates.orchestrated_preemption)
            and entry.wl.record.closed_gates
        ):
            entry.reason = Requeue.PREEMPTION_GATED
            entry.wl.scan = None
            entry.say(PendingReason.ADMISSION_GATED, messages.GATED)
            return
        if mode == DEFERRED_FIT:
            entry.reason = Requeue.PENDING_PREEMPTION
            entry.wl.scan = None
            entry.say(PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS, messages.DEFERRED)
            self._book(entry)
            return
        if self._overlaps(entry):
            entry.skip(messages.OVERLAPPING)
            return
        if fits != _FITS:
            entry.skip(messages.NO_LONGER_FITS)
            return
        for target in entry.targets:
            self._victims[target.wl] = None
        self._book(entry)
        entry.targets = [t for t in entry.targets if not t.is_replaced]
        if mode == PREEMPT:
            self._preempt(entry)
            return
        self._admit(entry)

    def _recompute_if_needed(self, entry: Entry) -> int:
        """Compute an entry anew when entries before it invalidate it; return if it fits (3.7.2)."""
        gates = self._world.options.gates
        fits = self._test_fit(entry)
        if entry.attempt is None:
            return fits
        if self._overlaps(entry):
            if not gates.recompute_on_overlap:
                return fits
            self._recompute(entry, without_victims=True)
            if entry.assignment.mode == FIT:
                entry.assignment.mode = DEFERRED_FIT
            return self._test_fit(entry)
        if fits == _NO_TOPOLOGY and gates.tas_recompute_in_cycle:
            self._recompute(entry, without_victims=False)
            return self._test_fit(entry)
        return fits

    def _recompute(self, entry: Entry, *, without_victims: bool) -> None:
        attempt = entry.attempt
        assert attempt is not None
        simulation = self._world.simulation
        attempt.scan = None
        attempt.pinned = pins_of(entry.assignment)
        point = simulation.checkpoint()
        if without_victims:
            for wl in self._victims:
                simulation.remove(wl)
                wl.is_hidden = True
        self._nominator.compute(entry)
        if without_victims:
            for wl in self._victims:
                wl.is_hidden = False
        simulation.rollback(point)
        attempt.pinned = None

    def _overlaps(self, entry: Entry) -> bool:
        victims = self._victims
        return bool(victims) and any(target.wl in victims for target in entry.targets)

    def _test_fit(self, entry: Entry) -> int:
        """Test whether an entry fits once all victims so far and its own are gone (3.7.1)."""
        simulation = self._world.simulation
        gone = dict(self._victims) if self._victims else {}
        for target in entry.targets:
            gone[target.wl] = None
        if not gone:
            return self._fits_now(entry)
        point = simulation.checkpoint()
        for wl in gone:
            simulation.remove(wl)
        result = self._fits_now(entry)
        simulation.rollback(point)
        return result

    def _fits_now(self, entry: Entry) -> int:
        if not entry.holds_quota:
            node = entry.cq.node
            for fr, value in entry.assignment.used.items():
                if value > available(node, fr):
                    return _NO_QUOTA
        if entry.topology and not self._world.placement.fits(entry.topology):
            return _NO_TOPOLOGY
        return _FITS

    def _book(self, entry: Entry) -> None:
        simulation = self._world.simulation
        if not entry.holds_quota:
            simulation.add(entry.cq.node, entry.assignment.used)
        simulation.book(entry.topology)

    def _fails_fast(self, entry: Entry) -> bool:
        """Evict a Workload whose unhealthy node can't be replaced (3.7.3.2)."""
        wl = entry.wl
        gates = self._world.options.gates
        if not (gates.tas_failed_node_replacement and gates.tas_fail_fast):
            return False
        if not entry.holds_quota or wl.admission is None:
            return False
        if not any(p.topology and is_broken(wl, p.topology) for p in wl.admission.pod_sets):
            return False
        node = wl.record.unhealthy_nodes[0]
        wl.assume_eviction()
        entry.status = EVICTED
        self.commands.append(
            Evict(
                workload=wl.key,
                uid=wl.uid,
                resource_version=wl.record.resource_version,
                cluster_queue=entry.cq.name,
                reason=EvictionReason.NODE_FAILURES,
                message=f"Workload was evicted: there is no replacement for the failed node {node}",
            )
        )
        return True

    def _wait_without_candidates(self, entry: Entry) -> None:
        """Keep room for an entry that would have to preempt but finds nobody (3.7.3.4)."""
        entry.reason = Requeue.NO_CANDIDATES
        cq = entry.cq
        if cq.record.preemption.reclaim_within_cohort is PreemptionPolicy.ANY or entry.is_preemptor:
            return
        if cq.tree.book is not None:
            # Where credits decide, no capacity stays idle for a head that can't use it.
            return
        if not entry.holds_quota:
            self._world.simulation.add(cq.node, _room_to_keep(entry))
        self._world.simulation.book(entry.topology)

    def _preempt(self, entry: Entry) -> None:
        """Issue the evictions of an entry's targets (3.7.3.11, 4.8)."""
        wl = entry.wl
        wl.scan = None
        for target in entry.targets:
            self._evict(entry, target)
        entry.reason = Requeue.PENDING_PREEMPTION
        count = len(entry.targets)
        text = messages.explain(messages.reasons_of(entry.assignment))
        entry.say(
            PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS,
            f"{text}. Pending the preemption of {count} workload(s)",
        )

    def _evict(self, entry: Entry, target: Target) -> None:
        victim = target.wl
        if victim.is_evicted or victim.is_evicting:
            return
        assert victim.cq is not None
        victim.assume_eviction()
        self.preempts = True
        self.commands.append(
            Evict(
                workload=victim.key,
                uid=victim.uid,
                resource_version=victim.record.resource_version,
                cluster_queue=victim.cq.name,
                reason=EvictionReason.PREEMPTED,
                message=messages.preempted(entry.wl, entry.cq, victim, target.reason),
                preempted_reason=target.reason,
                preemptor=entry.wl.key,
                preemptor_uid=entry.wl.uid,
            )
        )

    def _admit(self, entry: Entry) -> None:
        options = self._world.options
        if (
            options.block_admission
            and not entry.holds_quota
            and (self._world.unready or any(self._becomes_admitted(e) for e in self.admitted))
        ):
            self.is_blocked = True
            entry.skip(messages.NOT_READY)
            entry.pending = PendingReason.WAITING_FOR_PODS_READY
            return
        if options.gates.concurrent_admission:
            sibling = concurrent.admitted_sibling(self._world, entry)
            if sibling is not None:
                self._migrate(entry, sibling)
                return
        entry.status = ASSUMED
        self.admitted.append(entry)

    def _becomes_admitted(self, entry: Entry) -> bool:
        """Tell whether an entry of this cycle will count as admitted but not ready."""
        return not entry.holds_quota

    def _migrate(self, entry: Entry, sibling: WorkloadState) -> None:
        """Evict the less favourable variant in whose place this one may run (4.10)."""
        entry.reason = Requeue.PENDING_MIGRATION
        entry.wl.scan = None
        if not concurrent.may_migrate(entry):
            entry.reason = Requeue.GENERIC
            entry.say(PendingReason.PENDING_EVALUATION, concurrent.NOT_ACCEPTABLE)
            return
        entry.say(
            PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS,
            "Workload fits on a preferred flavor. Pending the migration of 1 workload(s)",
        )
        if sibling.is_evicted or sibling.is_evicting:
            return
        assert sibling.cq is not None
        sibling.assume_eviction()
        self.preempts = True
        self.commands.append(
            Evict(
                workload=sibling.key,
                uid=sibling.uid,
                resource_version=sibling.record.resource_version,
                cluster_queue=sibling.cq.name,
                reason=EvictionReason.FLAVOR_MIGRATION,
                message=f"Migrating to the more favourable variant {entry.wl.key}",
            )
        )


def _room_to_keep(entry: Entry) -> dict[int, int]:
    """Return what a waiting preemptor keeps others from taking in this cycle (3.9.4).

    With a borrowing limit an amount can be negative when the queue is beyond it, as in Kueue.
    """
    node = entry.cq.node
    kept: dict[int, int] = {}
    for fr, value in entry.assignment.used.items():
        used, nominal = node.usage[fr], node.nominal[fr]
        if entry.assignment.borrow > 0:
            limit = node.borrowing[fr]
            kept[fr] = value if limit >= NO_LIMIT else min(value, nominal + limit - used)
        else:
            kept[fr] = max(0, min(value, nominal - used))
    return kept
