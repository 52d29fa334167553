"""Whether preemption could make room for one flavor-resource (docs/spec/algorithm.md 3.3.5).

Used by the flavor search, for each flavor-resource that has potential but no free quota.
"""

from sluice.api.records import PreemptionPolicy
from sluice.engine.assignment import PM_NO_CANDIDATES, PM_PREEMPT, PM_RECLAIM
from sluice.engine.preemption import classical, fair
from sluice.engine.preemption.candidates import Demand, Search, Target
from sluice.engine.states import ClusterQueueState, WorkloadState
from sluice.engine.tree import borrow_level


class Preemption:
    """Finds targets with the algorithm of the engine's options."""

    __slots__ = ("_rules", "_search")

    def __init__(self, search: Search, rules: fair.FairRules | None) -> None:
        self._search = search
        self._rules = rules

    def find_targets(self, demand: Demand) -> list[Target]:
        """Return whom to preempt for a demand, empty when there is no way."""
        if self._rules is None:
            return classical.find_targets(self._search, demand)
        return fair.find_targets(self._search, self._rules, demand)

    def mode(
        self, wl: WorkloadState, cq: ClusterQueueState, fr: int, value: int, level: int
    ) -> tuple[int, int]:
        """Return the granular mode and borrow level of a flavor-resource that doesn't fit now.

        Args:
            wl: The Workload.
            cq: Its ClusterQueue.
            fr: Flavor-resource.
            value: Amount asked for.
            level: Borrow level on the present state.
        """
        rules = cq.record.preemption
        if (
            rules.within_cluster_queue is PreemptionPolicy.NEVER
            and rules.reclaim_within_cohort is PreemptionPolicy.NEVER
        ):
            return PM_NO_CANDIDATES, level
        targets = self.find_targets(Demand(wl, cq, [fr], {fr: value}))
        if not targets:
            return PM_NO_CANDIDATES, level
        simulation = self._search.simulation
        point = simulation.checkpoint()
        for target in targets:
            simulation.remove(target.wl)
        after, _ = borrow_level(cq.node, fr, value)
        simulation.rollback(point)
        is_own = any(target.wl.cq is cq for target in targets)
        return (PM_PREEMPT if is_own else PM_RECLAIM), after
