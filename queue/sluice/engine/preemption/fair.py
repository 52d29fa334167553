"""Preemption by shares (docs/spec/algorithm.md 4.5)."""

from sluice.api.conditions import PreemptionReason
from sluice.api.names import ClusterQueueName
from sluice.api.records import PreemptionPolicy
from sluice.engine.fairshare import share, side_below
from sluice.engine.options import FairStrategy
from sluice.engine.preemption.candidates import (
    Demand,
    Search,
    Target,
    credit_ranks,
    relevant,
)
from sluice.engine.preemption.fill_back import fill_back
from sluice.engine.preemption.selector import Selector
from sluice.engine.states import ClusterQueueState, WorkloadState
from sluice.engine.tree import QuotaNode, is_within_nominal

_BOTH = (FairStrategy.FINAL_SHARE, FairStrategy.INITIAL_SHARE)


class FairRules:
    """Strategies in order (none means both) and the gate FairSharingPreemptWithinNominal."""

    __slots__ = ("preempts_within_nominal", "strategies")

    def __init__(
        self, strategies: tuple[FairStrategy, ...], *, preempts_within_nominal: bool
    ) -> None:
        self.strategies = strategies or _BOTH
        self.preempts_within_nominal = preempts_within_nominal


class _Hunt:
    """One search: the targets so far and the candidates put off for the second strategy."""

    __slots__ = ("demand", "node", "retry", "rules", "search", "targets", "within_nominal")

    def __init__(self, search: Search, rules: FairRules, demand: Demand) -> None:
        self.search = search
        self.rules = rules
        self.demand = demand
        self.node = demand.cq.node
        self.targets: list[Target] = []
        self.retry: list[WorkloadState] = []
        self.within_nominal = rules.preempts_within_nominal and is_within_nominal(
            self.node, demand.needed
        )

    def take(self, wl: WorkloadState, reason: PreemptionReason) -> bool:
        """Remove a candidate as a target; tell whether the request fits now."""
        simulation = self.search.simulation
        simulation.remove(wl)
        self.targets.append(Target(wl, reason))
        simulation.subtract(self.node, self.demand.request)
        fits = self.demand.fits(may_borrow=True)
        simulation.add(self.node, self.demand.request)
        return fits

    def run_first(self, selector: Selector) -> bool:
        """Apply the first strategy (4.5.5); True when the request fits."""
        while (cq := selector.next()) is not None:
            candidates = selector.candidates(cq)
            if cq is self.demand.cq:
                if self.take(candidates.pop(0), PreemptionReason.IN_CLUSTER_QUEUE):
                    return True
            elif self.within_nominal:
                if self.take(candidates.pop(0), PreemptionReason.IN_COHORT_RECLAMATION):
                    return True
            elif self._take_by_share(cq, candidates):
                return True
        return False

    def _take_by_share(self, cq: ClusterQueueState, candidates: list[WorkloadState]) -> bool:
        """Take the first candidate of a queue whose removal the strategy accepts."""
        mine, theirs = side_below(self.node, cq.node)
        own, other = share(mine), share(theirs)
        if own[0] and not other[0]:
            self.retry.extend(candidates)
            candidates.clear()
            return False
        strategy = self.rules.strategies[0]
        while candidates:
            wl = candidates.pop(0)
            if strategy is FairStrategy.INITIAL_SHARE:
                is_accepted = own < other
            else:
                is_accepted = own <= self._share_without(theirs, wl)
            if is_accepted:
                return self.take(wl, PreemptionReason.IN_COHORT_FAIR_SHARING)
            self.retry.append(wl)
        return False

    def _share_without(self, node: QuotaNode, wl: WorkloadState) -> tuple[int, float]:
        simulation = self.search.simulation
        point = simulation.checkpoint()
        simulation.remove(wl)
        result = share(node)
        simulation.rollback(point)
        return result

    def run_second(self, selector: Selector) -> bool:
        """Apply the second strategy, at most once per queue (4.5.6); True when it fits."""
        while (cq := selector.next()) is not None:
            candidates = selector.candidates(cq)
            mine, theirs = side_below(self.node, cq.node)
            wl = candidates[0]
            candidates.clear()
            if share(mine) < share(theirs) and self.take(
                wl, PreemptionReason.IN_COHORT_FAIR_SHARING
            ):
                return True
        return False


def find_targets(search: Search, rules: FairRules, demand: Demand) -> list[Target]:
    """Return the Workloads to preempt for a demand, empty when there is no way."""
    candidates = _candidates(search, demand)
    if not candidates:
        return []
    search.sort(candidates, demand.cq)
    ranks = credit_ranks(candidates, demand.cq)
    simulation = search.simulation
    point = simulation.checkpoint()
    simulation.add(demand.cq.node, demand.request)
    hunt = _Hunt(search, rules, demand)
    fits = hunt.run_first(Selector(demand.cq, candidates, search.queues, ranks))
    if not fits and len(rules.strategies) > 1:
        fits = hunt.run_second(Selector(demand.cq, hunt.retry, search.queues, ranks))
    targets: list[Target] = []
    if fits:
        simulation.subtract(demand.cq.node, demand.request)
        targets = fill_back(simulation, demand, hunt.targets, may_borrow=True)
    simulation.rollback(point)
    return targets


def _candidates(search: Search, demand: Demand) -> list[WorkloadState]:
    """Return whom the policies give, in own and in borrowing queues (4.5.1)."""
    cq = demand.cq
    rules = cq.record.preemption
    found: list[WorkloadState] = []
    if rules.within_cluster_queue is not PreemptionPolicy.NEVER:
        found.extend(relevant(cq, rules.within_cluster_queue, demand))
    if cq.node.parent is None or rules.reclaim_within_cohort is PreemptionPolicy.NEVER:
        return found
    for node in cq.tree.nodes:
        if not node.is_queue or not node.is_active or node is cq.node:
            continue
        if any(node.nominal[fr] < node.usage[fr] for fr in demand.needed):
            other = search.queues[ClusterQueueName(node.name)]
            found.extend(relevant(other, rules.reclaim_within_cohort, demand))
    return found
