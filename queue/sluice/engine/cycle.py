"""One scheduling cycle: heads, nominate, order, process, requeue (docs/spec/algorithm.md 3.1).

Costs what its heads cost: nothing is copied, queues without work are not looked at. Used by
`sluice.engine.engine` only.
"""

from sluice.api.conditions import PendingReason
from sluice.engine import messages
from sluice.engine.admit import admit
from sluice.engine.assign import Assigner
from sluice.engine.assignment import FIT
from sluice.engine.commands import Command, Evict, MarkPending, ReserveQuota
from sluice.engine.credits.rounds import (
    Turn,
    Turns,
    open_turns,
    play,
    rounds_max,
)
from sluice.engine.entry import ASSUMED, EVICTED, SKIPPED, WAITING, Entry
from sluice.engine.flavor_search import FlavorSearch
from sluice.engine.nominate import Nominator
from sluice.engine.pending import Requeue, bypassed
from sluice.engine.preemption.candidates import Search
from sluice.engine.preemption.fair import FairRules
from sluice.engine.preemption.oracle import Preemption
from sluice.engine.process import Processor
from sluice.engine.states import (
    INFLIGHT,
    OUTSIDE,
    RESERVED,
    ClusterQueueState,
    Decision,
    WorkloadState,
)
from sluice.engine.topology_step import TopologyStep
from sluice.engine.tournament import Tournament, classical_order
from sluice.engine.waking import Waking
from sluice.engine.world import World


class Cycle:
    """Runs cycles on a world.

    Attributes:
        heads_total: Heads looked at by all cycles so far.
        is_due: The last cycle left something that another one, without any event, may decide.
    """

    __slots__ = ("_epoch", "_nominator", "_number", "_waking", "_world", "heads_total", "is_due")

    def __init__(self, world: World, waking: Waking) -> None:
        options = world.options
        gates = options.gates
        rules = None
        if options.fair_sharing is not None:
            rules = FairRules(
                options.fair_sharing.strategies,
                preempts_within_nominal=gates.fair_preempt_within_nominal,
            )
        usage_of = waking.usage_for_preemption if world.ledger.is_on else None
        preemption = Preemption(Search(world.queues, world.simulation, usage_of), rules)
        topology = TopologyStep(
            world.placement,
            world.flavors,
            world.checks,
            with_slices=gates.elastic_slices_with_tas,
        )
        search = FlavorSearch(preemption, is_fungible=gates.flavor_fungibility)
        assigner = Assigner(search, topology, ignores_undeclared=options.ignore_undeclared)
        self._world = world
        self._waking = waking
        self._nominator = Nominator(world, assigner, preemption, topology)
        self._number = 0
        self._epoch = 0
        self.is_due = False
        self.heads_total = 0

    def run(self, now_ms: int) -> list[Command]:
        """Run one cycle and return its commands."""
        world = self._world
        world.settle()
        world.credits.start(now_ms)
        self._waking.run(now_ms)
        if world.is_due:
            self._epoch += 1
        entries = self._nominate(now_ms)
        world.is_due = self.is_due = False
        self.heads_total += len(entries)
        if not entries:
            return []
        turns = open_turns(entries, world.simulation) if world.credits.is_on else {}
        commands: list[Command] = []
        is_due = self._pass(entries, turns, now_ms, commands)
        for turn in turns.values():
            if self._play_rounds(turn, now_ms, commands):
                is_due = True
        if any(isinstance(command, ReserveQuota | Evict) for command in commands):
            self._epoch += 1
        self.is_due = is_due
        return commands

    def _pass(
        self, entries: list[Entry], turns: Turns, now_ms: int, commands: list[Command]
    ) -> bool:
        """Process entries in their order and conclude; True when another cycle is due.

        Entries that still wait for a turn are left where they are.
        """
        processor = Processor(self._world, self._nominator)
        start = self._world.simulation.checkpoint()
        left_out = self._process(processor, [e for e in entries if e.attempt is not None], turns)
        if turns:
            waiting = {e for turn in turns.values() for e in turn.contest.waiting()}
            entries = [entry for entry in entries if entry not in waiting]
        return self._conclude(processor, start, entries, left_out, now_ms, commands)

    def _conclude(
        self,
        processor: Processor,
        start: tuple[int, int],
        entries: list[Entry],
        left_out: list[Entry],
        now_ms: int,
        commands: list[Command],
    ) -> bool:
        """Book the admitted entries, requeue the others; True when another cycle is due."""
        world = self._world
        world.simulation.rollback(start)
        world.simulation.commit()
        commands.extend(processor.commands)
        for entry in processor.admitted:
            commands.extend(admit(world, entry, now_ms))
        is_due = bool(processor.admitted) or processor.preempts
        has_skipped = has_parked = False
        for entry in entries:
            if entry.status in (ASSUMED, EVICTED):
                continue
            if entry.attempt is not None and entry.status == WAITING and entry in left_out:
                entry.status = SKIPPED
            if self._put_back(entry, now_ms, commands):
                is_due = True
            # An entry may have been skipped for room that a parked one will not keep next time.
            has_skipped = has_skipped or entry.status == SKIPPED
            has_parked = has_parked or entry.wl.is_parked()
        is_due = is_due or (has_skipped and has_parked)
        return is_due and not processor.is_blocked

    def _play_rounds(self, turn: Turn, now_ms: int, commands: list[Command]) -> bool:
        """Go on in a tree with credits as long as there are admissions; True when cut short."""
        world = self._world
        for _ in range(rounds_max(turn)):
            if not turn.has_admitted:
                return False
            self._number += 1
            self._nominator.cycle = self._number
            inadmissible = self._refill(turn)
            processor = Processor(world, self._nominator)
            start = world.simulation.checkpoint()
            while turn.step(processor):
                pass
            left_out = turn.take_all() if processor.is_blocked else []
            entries = [*turn.done, *left_out, *inadmissible]
            self._conclude(processor, start, entries, left_out, now_ms, commands)
        for entry in turn.take_all():
            self._forget_scan(entry)
            if entry.holds_quota:
                self._waking.retry_second_pass(entry.wl, now_ms)
            else:
                entry.wl.place = OUTSIDE
                world.pending.heaps.push(entry.cq, entry.wl)
        return True

    def _refill(self, turn: Turn) -> list[Entry]:
        """Begin a round: take the next heads, nominate others anew; return inadmissible ones."""
        entries = []
        for cq in turn.begin_round():
            head = self._world.pending.heaps.pop(cq) if cq.is_active else None
            if head is not None:
                self.heads_total += 1
                entries.append(self._head(head, cq))
        for entry in turn.outdated():
            turn.contest.remove(entry)
            self._forget_scan(entry)
            entries.append(
                self._nominator.nominate(entry.wl, entry.cq, holds_quota=entry.holds_quota)
            )
        for entry in entries:
            turn.enter(entry)
        return [entry for entry in entries if entry.attempt is None]

    def _forget_scan(self, entry: Entry) -> None:
        """Take back the scan progress of a nomination that had no turn."""
        if entry.attempt is not None:
            entry.wl.scan = entry.attempt.scan

    def _head(self, head: WorkloadState, cq: ClusterQueueState) -> Entry:
        """Return the entry of the head of a queue."""
        if head.needs_version != self._world.rules.version:
            self._world.refresh(head, cq)
        return self._nominator.nominate(head, cq, holds_quota=False)

    def _nominate(self, now_ms: int) -> list[Entry]:
        """Take the heads and make entries of them (2.5, 3.2)."""
        world = self._world
        second = self._waking.second_pass_heads(now_ms)
        heads = [cq for cq in world.pending.heaps.hot.values() if cq.is_active]
        if not second and not heads:
            return []
        self._number += 1
        self._nominator.cycle = self._number
        entries = []
        for wl in second:
            assert wl.cq is not None
            world.refresh(wl, wl.cq)
            entries.append(self._nominator.nominate(wl, wl.cq, holds_quota=True))
        for cq in heads:
            head = world.pending.heaps.pop(cq)
            if head is not None:
                entries.append(self._head(head, cq))
        return entries

    def _process(self, processor: Processor, entries: list[Entry], turns: Turns) -> list[Entry]:
        """Process entries in order; return those that were never looked at."""
        world = self._world
        gates = world.options.gates
        if turns:
            return self._process_turns(processor, entries, turns)
        if world.options.fair_sharing is None:
            queue = classical_order(entries, gates)
            for at, entry in enumerate(queue):
                processor.process(entry)
                if processor.is_blocked:
                    return queue[at + 1 :]
            return []
        tournament = Tournament(entries, world.simulation, gates)
        left_out = tournament.left_out
        for entry in tournament:
            if processor.is_blocked:
                left_out.append(entry)
            else:
                processor.process(entry)
        return left_out

    def _process_turns(
        self, processor: Processor, entries: list[Entry], turns: Turns
    ) -> list[Entry]:
        """Process entries of which some are in trees with credits."""
        world = self._world
        gates = world.options.gates
        if world.options.fair_sharing is None:
            left_out: list[Entry] = []
            play(processor, iter(classical_order(entries, gates)), turns, left_out)
            return left_out
        plain = [entry for entry in entries if entry.cq.tree not in turns]
        tournament = Tournament(plain, world.simulation, gates)
        play(processor, iter(tournament), turns, tournament.left_out)
        return tournament.left_out

    def _put_back(self, entry: Entry, now_ms: int, commands: list[Command]) -> bool:
        """Requeue an entry that was not admitted; True when another cycle may help it now."""
        wl = entry.wl
        self._decide(entry, now_ms)
        if entry.holds_quota:
            self._waking.retry_second_pass(wl, now_ms)
            return False
        cq = entry.cq
        reason = entry.reason
        if entry.status == SKIPPED or (reason == Requeue.GENERIC and entry.assignment.mode == FIT):
            reason = Requeue.FAILED_AFTER_NOMINATION
        if wl.place != INFLIGHT:
            return False
        self._tell(wl, commands, blocked_on_gates=reason == Requeue.PREEMPTION_GATED)
        wl.place = OUTSIDE
        for other in self._world.pending.requeue(cq, wl, reason, now_ms):
            self._bypass(other, wl, commands)
        self._world.touch(wl, cq)
        if wl.is_active():
            return self._is_new_scan(wl)
        return cq.active_count > 0

    def _is_new_scan(self, wl: WorkloadState) -> bool:
        """Tell whether another cycle looks at flavors that were not looked at since a change.

        With several pod sets the scan can go round for ever, as it does in Kueue; the Workload
        stays in the heap, but once it has been round, it waits for something to change.
        """
        if wl.scan is None or not wl.scan.is_pending():
            return False
        if wl.scan_epoch != self._epoch:
            wl.scan_epoch = self._epoch
            wl.scans_seen = set()
        seen = tuple(tuple(sorted(tried.items())) for tried in wl.scan.tried)
        if seen in wl.scans_seen:
            return False
        wl.scans_seen.add(seen)
        return True

    def _decide(self, entry: Entry, now_ms: int) -> None:
        """Record why an entry was not admitted."""
        reasons = messages.reasons_of(entry.assignment)
        if entry.pending is not None:
            reason, message = entry.pending, entry.message
        elif entry.status == SKIPPED or entry.assignment.mode == FIT:
            reason, message = PendingReason.WAITING_FOR_QUOTA, messages.NO_LONGER_FITS
        else:
            reason, message = messages.pending_reason(reasons), messages.explain(reasons)
        loss = entry.wl.credit_loss
        if loss is not None and loss.winner.place == RESERVED:
            message = f"{message}. {messages.credit_loss(loss)}"
        if not self._world.options.gates.granular_reasons:
            reason = (
                PendingReason.WAITING
                if reason is PendingReason.WAITING_FOR_PODS_READY
                else PendingReason.PENDING
            )
        entry.wl.decision = Decision(reason, message, now_ms, reasons)

    def _bypass(self, wl: WorkloadState, after: WorkloadState, commands: list[Command]) -> None:
        """Tell an equivalent Workload why it was parked without a look, if that is news to it."""
        why = after.decision
        assert why is not None
        if wl.decision is None or wl.decision.reason != why.reason:
            wl.decision = bypassed(why)
            self._tell(wl, commands, blocked_on_gates=False)

    def _tell(self, wl: WorkloadState, commands: list[Command], *, blocked_on_gates: bool) -> None:
        """Write a Workload's decision to its status unless it is there already."""
        decision = wl.decision
        cq = wl.cq
        assert decision is not None
        assert cq is not None
        mark = (decision.reason, decision.message)
        if wl.marked == mark:
            return
        wl.marked = mark
        wl.is_mark_seen = False
        commands.append(
            MarkPending(
                workload=wl.key,
                uid=wl.uid,
                resource_version=wl.record.resource_version,
                cluster_queue=cq.name,
                reason=PendingReason(decision.reason),
                message=decision.message,
                requests=messages.requests_of(wl.needs),
                blocked_on_gates=blocked_on_gates,
            )
        )
