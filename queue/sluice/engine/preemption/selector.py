"""Which ClusterQueue fair preemption takes from next (docs/spec/algorithm.md 4.5.4).

A walk from the root to the side with the highest share, repeated after each target because shares
change. Used by `sluice.engine.preemption.fair`.
"""

from sluice.api.names import ClusterQueueName
from sluice.engine.fairshare import Share, is_borrowing, share
from sluice.engine.preemption.candidates import order_key
from sluice.engine.states import ClusterQueueState, WorkloadState
from sluice.engine.tree import QuotaNode


class Selector:
    """Chooses ClusterQueues while they have candidates left."""

    __slots__ = ("_ancestors", "_by_queue", "_cq", "_pruned", "_queues")

    def __init__(
        self,
        cq: ClusterQueueState,
        candidates: list[WorkloadState],
        queues: dict[ClusterQueueName, ClusterQueueState],
    ) -> None:
        self._cq = cq
        self._queues = queues
        self._ancestors = {id(node) for node in cq.node.path}
        self._pruned: set[int] = set()
        self._by_queue: dict[str, list[WorkloadState]] = {}
        for wl in candidates:
            assert wl.cq is not None
            self._by_queue.setdefault(wl.cq.name, []).append(wl)

    def candidates(self, cq: ClusterQueueState) -> list[WorkloadState]:
        """Return the remaining candidates of a queue, to be popped from the front."""
        return self._by_queue[cq.name]

    def next(self) -> ClusterQueueState | None:
        """Return the queue to take from, None when nobody is left."""
        node = self._cq.node
        if node.parent is None:
            return self._cq if self._by_queue.get(self._cq.name) else None
        root = node.path[0]
        while id(root) not in self._pruned:
            found = self._walk(root)
            if found is not None:
                return self._queues[ClusterQueueName(found.name)]
        return None

    def _walk(self, cohort: QuotaNode) -> QuotaNode | None:
        """Return the queue found below a cohort; None after pruning a cohort without any."""
        while True:
            queue, queue_share = self._best_queue(cohort)
            child, child_share = self._best_cohort(cohort)
            if queue is None and child is None:
                self._pruned.add(id(cohort))
                return None
            if child is None or (queue is not None and child_share < queue_share):
                return queue
            cohort = child

    def _best_queue(self, cohort: QuotaNode) -> tuple[QuotaNode | None, Share]:
        best: QuotaNode | None = None
        best_share: Share = (0, 0.0)
        for node in cohort.queues:
            if id(node) in self._pruned:
                continue
            if not self._by_queue.get(node.name) or (
                node is not self._cq.node and not is_borrowing(node)
            ):
                self._pruned.add(id(node))
                continue
            value = share(node)
            if (
                best is None
                or value > best_share
                or (value == best_share and self._precedes(node, best))
            ):
                best, best_share = node, value
        return best, best_share

    def _precedes(self, node: QuotaNode, other: QuotaNode) -> bool:
        mine, theirs = self._by_queue[node.name][0], self._by_queue[other.name][0]
        cq = self._cq
        return (*order_key(mine, cq), mine.uid) < (*order_key(theirs, cq), theirs.uid)

    def _best_cohort(self, cohort: QuotaNode) -> tuple[QuotaNode | None, Share]:
        best: QuotaNode | None = None
        best_share: Share = (0, 0.0)
        for node in cohort.cohorts:
            if id(node) in self._pruned:
                continue
            if id(node) not in self._ancestors and not is_borrowing(node):
                self._pruned.add(id(node))
                continue
            value = share(node)
            if best is None or value >= best_share:
                best, best_share = node, value
        return best, best_share
