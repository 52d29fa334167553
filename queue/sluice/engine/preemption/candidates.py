"""Who may be preempted, by policy, and in which order candidates are taken.

Source: docs/spec/algorithm.md 4.1 to 4.3. Used by the classical and the fair search.
"""

from collections.abc import Callable
from functools import cmp_to_key

from sluice.api.conditions import PreemptionReason
from sluice.api.names import ClusterQueueName, LocalQueueKey
from sluice.api.records import PreemptionPolicy
from sluice.engine.fairshare import side_below
from sluice.engine.simulation import Simulation
from sluice.engine.states import ClusterQueueState, WorkloadState
from sluice.engine.tree import available


class Target:
    """A Workload to preempt, and on what ground; ``is_replaced``: the old slice, never evicted."""

    __slots__ = ("is_replaced", "reason", "wl")

    def __init__(self, wl: WorkloadState, reason: PreemptionReason) -> None:
        self.wl = wl
        self.reason = reason
        self.is_replaced = False

    @staticmethod
    def replaced(wl: WorkloadState) -> "Target":
        """Return the target that stands for the slice an elastic Workload replaces (3.5.1)."""
        target = Target(wl, PreemptionReason.IN_CLUSTER_QUEUE)
        target.is_replaced = True
        return target


class Demand:
    """What a search of targets is for.

    Attributes:
        wl: The preemptor.
        cq: Its ClusterQueue.
        needed: Flavor-resources that need preemption, N.
        request: All amounts by flavor-resource, R.
        places: Tells whether the preemptor's topology can be placed on the present state; None when
            it has none (the oracle of 3.3.5 never asks).
    """

    __slots__ = ("cq", "needed", "places", "request", "wl")

    def __init__(
        self,
        wl: WorkloadState,
        cq: ClusterQueueState,
        needed: list[int],
        request: dict[int, int],
        places: Callable[[], bool] | None = None,
    ) -> None:
        self.wl = wl
        self.cq = cq
        self.needed = needed
        self.request = request
        self.places = places

    def fits(self, *, may_borrow: bool) -> bool:
        """Tell whether the request fits on the present state (4.4.5)."""
        node = self.cq.node
        for fr, value in self.request.items():
            if not may_borrow and node.quota[fr] < node.usage[fr] + value:
                return False
            if value > available(node, fr):
                return False
        return self.places is None or self.places()


class Search:
    """What the searches share.

    Attributes:
        queues: All ClusterQueues by name.
        simulation: For trying removals.
        usage_of: Usage of a LocalQueue under admission fair sharing, None when unknown; None itself
            when that is off.
    """

    __slots__ = ("queues", "simulation", "usage_of")

    def __init__(
        self,
        queues: dict[ClusterQueueName, ClusterQueueState],
        simulation: Simulation,
        usage_of: Callable[[ClusterQueueState, LocalQueueKey], float | None] | None,
    ) -> None:
        self.queues = queues
        self.simulation = simulation
        self.usage_of = usage_of

    def sort(self, candidates: list[WorkloadState], cq: ClusterQueueState) -> None:
        """Sort candidates into the order of 4.3, for a preemptor in ``cq``.

        Under credits those of poorer accounts come earlier (docs/spec/credits.md 3.3).
        """
        if cq.tree.book is not None:
            ranks = credit_ranks(candidates, cq)
            candidates.sort(key=cmp_to_key(lambda a, b: self._compare(a, b, cq, ranks)))
        elif self.usage_of is None:
            candidates.sort(key=lambda c: (*order_key(c, cq), c.uid, c.key))
        else:
            candidates.sort(key=cmp_to_key(lambda a, b: self._compare(a, b, cq, {})))

    def _compare(
        self,
        left: WorkloadState,
        right: WorkloadState,
        cq: ClusterQueueState,
        ranks: dict[ClusterQueueState, int],
    ) -> int:
        a, b = order_key(left, cq), order_key(right, cq)
        if a[:2] != b[:2]:
            return -1 if a[:2] < b[:2] else 1
        if ranks:
            assert left.cq is not None
            assert right.cq is not None
            first_rank, second_rank = ranks[left.cq], ranks[right.cq]
            if first_rank != second_rank:
                return -1 if first_rank < second_rank else 1
        if (
            self.usage_of is not None
            and left.cq is right.cq
            and left.cq is not None
            and left.lq != right.lq
        ):
            mine, other = self.usage_of(left.cq, left.lq), self.usage_of(left.cq, right.lq)
            if mine is not None and other is not None and mine != other:
                return -1 if mine > other else 1
        first, second = (a, left.uid, left.key), (b, right.uid, right.key)
        if first == second:
            return 0
        return -1 if first < second else 1


def credit_ranks(
    candidates: list[WorkloadState], cq: ClusterQueueState
) -> dict[ClusterQueueState, int]:
    """Return what credits rank the queues of candidates by, poorest account first.

    The account is that of the node just below the lowest common ancestor with ``cq``, its projected
    balance that of the present state: call it when a search starts. Empty without credits.
    """
    book = cq.tree.book
    ranks: dict[ClusterQueueState, int] = {}
    if book is None:
        return ranks
    for wl in candidates:
        other = wl.cq
        assert other is not None
        if other not in ranks:
            side = side_below(cq.node, other.node)[1]
            ranks[other] = 0 if other is cq else book.projected(side)
    return ranks


def order_key(wl: WorkloadState, cq: ClusterQueueState) -> tuple[bool, bool, int, int]:
    """Return the part of 4.3 that needs no other candidate (fair usage and uid apart)."""
    return (not (wl.is_evicted or wl.is_evicting), wl.cq is cq, wl.eff, -wl.reserved_ms)


def allows(policy: PreemptionPolicy, preemptor: WorkloadState, candidate: WorkloadState) -> bool:
    """Tell whether a policy lets the preemptor take a candidate (4.2)."""
    if policy is PreemptionPolicy.ANY:
        return True
    if policy is PreemptionPolicy.NEVER:
        return False
    if preemptor.eff > candidate.eff:
        return True
    return (
        policy is PreemptionPolicy.LOWER_OR_NEWER_EQUAL_PRIORITY
        and preemptor.eff == candidate.eff
        and preemptor.ts_ms < candidate.ts_ms
    )


def relevant(
    cq: ClusterQueueState, policy: PreemptionPolicy, demand: Demand
) -> list[WorkloadState]:
    """Return the Workloads of a ClusterQueue that use what is needed and that a policy gives."""
    found: list[WorkloadState] = []
    needed = demand.needed
    preemptor = demand.wl
    for wl in cq.reserved.values():
        if wl.is_hidden or wl is preemptor:
            continue
        flavors = wl.flavors
        for fr in needed:
            if fr in flavors:
                if allows(policy, preemptor, wl):
                    found.append(wl)
                break
    return found
