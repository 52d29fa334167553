"""Preemption by priority and by claim on quota (docs/spec/algorithm.md 4.4)."""

from typing import Final

from sluice.api.conditions import PreemptionReason
from sluice.api.names import ClusterQueueName
from sluice.api.records import PreemptionPolicy
from sluice.engine.preemption.candidates import Demand, Search, Target, relevant
from sluice.engine.preemption.fill_back import fill_back
from sluice.engine.states import ClusterQueueState, WorkloadState
from sluice.engine.tree import QuotaNode, fits_quota, is_within_nominal

_WITHIN: Final = 0
_HIERARCHICAL: Final = 1
_RECLAIM_NO_BORROW: Final = 2
_RECLAIM_WHILE_BORROW: Final = 3

_REASONS: Final = {
    _WITHIN: PreemptionReason.IN_CLUSTER_QUEUE,
    _HIERARCHICAL: PreemptionReason.IN_COHORT_RECLAMATION,
    _RECLAIM_NO_BORROW: PreemptionReason.IN_COHORT_RECLAMATION,
    _RECLAIM_WHILE_BORROW: PreemptionReason.IN_COHORT_RECLAIM_WHILE_BORROWING,
}


class _Candidate:
    """A Workload with the lowest common ancestor of its queue and the preemptor's."""

    __slots__ = ("lca", "variant", "wl")

    def __init__(self, wl: WorkloadState, lca: QuotaNode | None, variant: int) -> None:
        self.wl = wl
        self.lca = lca
        self.variant = variant


class _Collected:
    """Candidates by list: hierarchical, priority, same queue (4.4.1)."""

    __slots__ = ("hier", "lca_of", "prio", "same")

    def __init__(self) -> None:
        self.hier: list[WorkloadState] = []
        self.prio: list[WorkloadState] = []
        self.same: list[WorkloadState] = []
        self.lca_of: dict[WorkloadState, QuotaNode] = {}


def find_targets(search: Search, demand: Demand) -> list[Target]:
    """Return the Workloads to preempt for a demand, empty when there is no way."""
    collected = _collect(search, demand)
    sequence = _sequence(search, demand, collected)
    if not sequence:
        return []
    for may_borrow in _attempts(demand, collected):
        point = search.simulation.checkpoint()
        targets = _try(search, demand, sequence, may_borrow=may_borrow)
        if targets:
            targets = fill_back(search.simulation, demand, targets, may_borrow=may_borrow)
        search.simulation.rollback(point)
        if targets:
            return targets
    return []


def _collect(search: Search, demand: Demand) -> _Collected:
    collected = _Collected()
    cq = demand.cq
    rules = cq.record.preemption
    if rules.within_cluster_queue is not PreemptionPolicy.NEVER:
        collected.same = relevant(cq, rules.within_cluster_queue, demand)
    if rules.reclaim_within_cohort is PreemptionPolicy.NEVER or cq.node.parent is None:
        return collected
    rest = dict(demand.request)
    has_claim = fits_quota(cq.node, rest)
    below = cq.node
    at: QuotaNode | None = cq.node.parent
    while at is not None:
        into = collected.hier if has_claim else collected.prio
        found = _below(search, demand, at, below)
        into.extend(found)
        for wl in found:
            collected.lca_of[wl] = at
        has_claim = fits_quota(at, rest) or has_claim
        below = at
        at = at.parent
    return collected


def _below(search: Search, demand: Demand, node: QuotaNode, skip: QuotaNode) -> list[WorkloadState]:
    """Return candidates below a cohort, leaving out one child and whoever is within nominal."""
    found: list[WorkloadState] = []
    policy = demand.cq.record.preemption.reclaim_within_cohort
    for cohort in node.cohorts:
        if cohort is not skip and not is_within_nominal(cohort, demand.needed):
            found.extend(_below(search, demand, cohort, skip))
    for queue in node.queues:
        if queue is skip or not queue.is_active or is_within_nominal(queue, demand.needed):
            continue
        found.extend(relevant(search.queues[ClusterQueueName(queue.name)], policy, demand))
    return found


def _sequence(search: Search, demand: Demand, collected: _Collected) -> list[_Candidate]:
    """Return all candidates in the order they are tried (4.4.3)."""
    lists = (collected.hier, collected.prio, collected.same)
    for candidates in lists:
        if len(candidates) > 1:
            search.sort(candidates, demand.cq)
    ordered = [
        wl
        for evicted in (True, False)
        for candidates in lists
        for wl in candidates
        if (wl.is_evicted or wl.is_evicting) is evicted
    ]
    with_claim = set(collected.hier)
    return [
        _Candidate(wl, collected.lca_of.get(wl), _variant(demand, wl, wl in with_claim))
        for wl in ordered
    ]


def _variant(demand: Demand, wl: WorkloadState, has_claim: bool) -> int:
    """Return on what ground a candidate may be taken (4.4.2)."""
    if wl.cq is demand.cq:
        return _WITHIN
    if has_claim:
        return _HIERARCHICAL
    rules = demand.cq.record.preemption
    if rules.borrow_within_cohort is PreemptionPolicy.NEVER:
        return _RECLAIM_NO_BORROW
    threshold = rules.borrow_priority_threshold_max
    if wl.eff >= demand.wl.eff or (threshold is not None and wl.eff > threshold):
        return _RECLAIM_NO_BORROW
    return _RECLAIM_WHILE_BORROW


def _attempts(demand: Demand, collected: _Collected) -> tuple[bool, ...]:
    """Return whether the preemptor may borrow, per attempt, in order (4.4.4)."""
    forbids = demand.cq.record.preemption.borrow_within_cohort is PreemptionPolicy.NEVER
    if not collected.hier and not collected.prio:
        return (True,)
    if forbids and not _is_under_nominal(demand.cq, demand.needed):
        return (True,)
    if forbids and not collected.hier:
        return (False, True)
    return (True, False)


def _is_under_nominal(cq: ClusterQueueState, needed: list[int]) -> bool:
    node = cq.node
    return all(node.usage[fr] < node.nominal[fr] for fr in needed)


def _try(
    search: Search, demand: Demand, sequence: list[_Candidate], *, may_borrow: bool
) -> list[Target]:
    """Remove candidates until the request fits; the state keeps the removals (4.4.5)."""
    targets: list[Target] = []
    simulation = search.simulation
    for candidate in sequence:
        if candidate.lca is not None and _is_spared(candidate, demand, may_borrow):
            continue
        simulation.remove(candidate.wl)
        targets.append(Target(candidate.wl, _REASONS[candidate.variant]))
        if demand.fits(may_borrow=may_borrow):
            return targets
    return []


def _is_spared(candidate: _Candidate, demand: Demand, may_borrow: bool) -> bool:
    """Tell whether a candidate of another queue is passed over on the present state."""
    if may_borrow and candidate.variant == _RECLAIM_NO_BORROW:
        return True
    cq = candidate.wl.cq
    assert cq is not None
    node: QuotaNode | None = cq.node
    while node is not None and node is not candidate.lca:
        if is_within_nominal(node, demand.needed):
            return True
        node = node.parent
    return False
