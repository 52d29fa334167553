"""Turns heads into entries: may it be admitted at all, on which flavors, at whose expense?

Source: docs/spec/algorithm.md 3.2, 3.4, 3.5 and 1.11. All heads are nominated on the state at the
start of the cycle, before any entry is processed. Used by `sluice.engine.cycle`, and by
`sluice.engine.process` when an entry has to be computed again.
"""

from sluice.api.conditions import PendingReason
from sluice.api.names import FlavorName, ResourceName
from sluice.engine.assign import Assigner
from sluice.engine.assignment import FIT, PREEMPT, Assignment, PodSetNeed, Scan
from sluice.engine.attempt import Attempt, with_counts
from sluice.engine.entry import Entry
from sluice.engine.pending import Requeue
from sluice.engine.planning import plan_of
from sluice.engine.preemption.candidates import Demand, Target
from sluice.engine.preemption.oracle import Preemption
from sluice.engine.slices import replaced_slice
from sluice.engine.states import ClusterQueueState, WorkloadState
from sluice.engine.topology_step import TopologyStep
from sluice.engine.world import World

_FAILED_CHECKS = "The workload has failed admission checks"


class Nominator:
    """Computes assignments and targets.

    Attributes:
        cycle: Number of the present cycle.
    """

    __slots__ = ("_assigner", "_preemption", "_topology", "_world", "cycle")

    def __init__(
        self, world: World, assigner: Assigner, preemption: Preemption, topology: TopologyStep
    ) -> None:
        self._world = world
        self._assigner = assigner
        self._preemption = preemption
        self._topology = topology
        self.cycle = 0

    def nominate(self, wl: WorkloadState, cq: ClusterQueueState, *, holds_quota: bool) -> Entry:
        """Return the entry of a head; without an attempt when it may not be admitted (3.2)."""
        entry = Entry(wl, cq, holds_quota=holds_quota)
        if not self._is_admissible(entry):
            return entry
        plan = plan_of(cq, wl, self._world.flavors, self._world.placement)
        attempt = Attempt(wl, cq, plan)
        entry.attempt = attempt
        attempt.scan = self._resume(wl, cq)
        preemptor = cq.preemptor
        if preemptor is not None and self._world.options.gates.prioritize_preemptors:
            entry.is_preemptor = (
                preemptor.key == wl.key and preemptor.generation == wl.seen_generation
            )
        if holds_quota:
            attempt.fixed = _fixed_flavors(wl)
        elif wl.record.replaces is not None and self._world.options.gates.elastic_slices:
            attempt.old = replaced_slice(self._world, attempt)
        self.compute(entry)
        return entry

    def compute(self, entry: Entry) -> None:
        """Compute assignment, targets, topology and scan progress on the present state (3.5)."""
        attempt = entry.attempt
        assert attempt is not None
        entry.assignment, entry.targets = self._fit(attempt)
        if self._topology.concerns(attempt):
            self._fix_topology(entry, attempt)
            entry.topology = self._topology.usage(attempt, entry.assignment)
        entry.wl.scan = None
        if entry.assignment.is_scan_open:
            entry.wl.scan = Scan(
                [pod_set.tried for pod_set in entry.assignment.pod_sets],
                entry.cq.generation,
                self.cycle,
                entry.wl.shape,
            )

    def _is_admissible(self, entry: Entry) -> bool:
        """Check what forbids admission whatever the quota; says why when not (3.2, 1.11)."""
        wl = entry.wl
        record = wl.record
        for check in record.checks:
            if check.state in ("Retry", "Rejected"):
                entry.say(PendingReason.PENDING_EVALUATION, _FAILED_CHECKS)
                return False
        if not entry.cq.is_active:
            entry.say(PendingReason.SUSPENDED, f"ClusterQueue {entry.cq.name} is inactive")
            return False
        labels = self._world.namespaces.get(record.namespace)
        if labels is None:
            text = f"could not obtain the workload's namespace {record.namespace}: not found"
            entry.say(PendingReason.MISCONFIGURED, text)
            return False
        selector = entry.cq.record.namespace_selector
        if selector is None or not selector.matches(labels):
            entry.reason = Requeue.NAMESPACE_MISMATCH
            text = "Workload namespace doesn't match ClusterQueue selector"
            if selector is not None and selector.error:
                text = f"ClusterQueue {entry.cq.name} has an invalid selector: {selector.error}"
            entry.say(PendingReason.MISCONFIGURED, text)
            return False
        for need in wl.needs:
            if need.pod.problem:
                entry.say(
                    PendingReason.MISCONFIGURED, f"pod set {need.spec.name}: {need.pod.problem}"
                )
                return False
        return True

    def _resume(self, wl: WorkloadState, cq: ClusterQueueState) -> Scan | None:
        """Return the scan progress of the last attempt if it still holds (3.4)."""
        scan = wl.scan
        if scan is None:
            return None
        if scan.shape is not None and wl.shape is not None and scan.shape != wl.shape:
            return None
        is_old = self.cycle - scan.cycle > 1
        if not self._world.options.gates.preserve_scan_progress:
            is_old = True
        return None if is_old and cq.generation > scan.generation else scan

    def _fit(self, attempt: Attempt) -> tuple[Assignment, list[Target]]:
        """Find flavors for all pods, or for fewer; and whom to preempt for them (3.5)."""
        old = [] if attempt.old is None else [Target.replaced(attempt.old)]
        needs = attempt.wl.needs
        full = self._assigner.assign(attempt, needs)
        if full.mode == FIT:
            return full, old
        if full.mode == PREEMPT:
            targets = self._targets(attempt, full)
            if targets:
                return full, old + targets
        if self._world.options.gates.partial_admission and attempt.fixed is None:
            for need in needs:
                if need.spec.min_count is not None and need.spec.min_count < need.count:
                    reduced = self._reduce(attempt, needs)
                    if reduced is not None:
                        return reduced[0], old + reduced[1]
                    break
        return full, []

    def _reduce(
        self, attempt: Attempt, needs: list[PodSetNeed]
    ) -> tuple[Assignment, list[Target]] | None:
        """Search the smallest reduction of counts that can be admitted (3.5.4)."""
        deltas = [
            need.count - need.spec.min_count
            if need.spec.min_count is not None and need.spec.min_count < need.count
            else 0
            for need in needs
        ]
        total = sum(deltas)
        low, high = 0, total + 1
        best: tuple[Assignment, list[Target]] | None = None
        best_at = -1
        while low < high:
            middle = (low + high) // 2
            counts = [
                need.count - delta * middle // total
                for need, delta in zip(needs, deltas, strict=True)
            ]
            found = self._probe(attempt, with_counts(needs, counts))
            if found is None:
                low = middle + 1
            else:
                best, best_at = found, middle
                high = middle
        return best if best_at == low else None

    def _probe(
        self, attempt: Attempt, needs: list[PodSetNeed]
    ) -> tuple[Assignment, list[Target]] | None:
        assignment = self._assigner.assign(attempt, needs)
        if assignment.mode == FIT:
            return assignment, []
        if assignment.mode == PREEMPT:
            targets = self._targets(attempt, assignment)
            if targets:
                return assignment, targets
        return None

    def _targets(self, attempt: Attempt, assignment: Assignment) -> list[Target]:
        """Return whom to preempt for a complete assignment (4.1, 4.6)."""
        needed = {
            choice.fr
            for pod_set in assignment.pod_sets
            for choice in pod_set.flavors.values()
            if choice.mode == PREEMPT
        }
        request = {fr: value for fr, value in assignment.used.items() if value}
        demand = Demand(attempt.wl, attempt.cq, sorted(needed), request)
        if self._topology.concerns(attempt):
            asked = self._topology.requests(attempt, assignment)
            if asked:
                demand.places = lambda: self._topology.can_place(attempt, asked)
        return self._preemption.find_targets(demand)

    def _fix_topology(self, entry: Entry, attempt: Attempt) -> None:
        """Give a preempting assignment the topology that will be free for it (3.5.6)."""
        if entry.assignment.mode != PREEMPT or entry.wl.record.unhealthy_nodes:
            return
        simulation = self._world.simulation
        point = simulation.checkpoint()
        for target in entry.targets:
            # Pods of the slice it replaces stay where they are (6.11).
            if not target.is_replaced:
                simulation.remove(target.wl)
        self._topology.fix_up(attempt, entry.assignment, assume_empty=not entry.targets)
        simulation.rollback(point)


def pins_of(assignment: Assignment) -> dict[tuple[int, ResourceName], FlavorName]:
    """Return the flavors of an assignment by pod set and resource, to pin a recomputation."""
    return {
        (pod_set.need.index, resource): choice.flavor
        for pod_set in assignment.pod_sets
        for resource, choice in pod_set.flavors.items()
    }


def _fixed_flavors(wl: WorkloadState) -> dict[tuple[int, ResourceName], FlavorName]:
    """Return the flavors that a Workload's admission gives, by pod set index and resource."""
    fixed: dict[tuple[int, ResourceName], FlavorName] = {}
    if wl.admission is not None:
        by_name = {pod_set.name: pod_set for pod_set in wl.admission.pod_sets}
        for index, spec in enumerate(wl.record.pod_sets):
            pod_set = by_name.get(spec.name)
            if pod_set is not None:
                for resource, flavor in pod_set.flavors:
                    fixed[(index, resource)] = flavor
    return fixed
