"""Which ClusterQueue fair preemption takes from next (docs/spec/algorithm.md 4.5.4).

A walk from the root to the side with the highest share, repeated after each target because shares
change. Under credits the poorest account stands in place of the highest share (docs/spec/credits.md
3.3). Used by `sluice.engine.preemption.fair`.
"""

from sluice.api.names import ClusterQueueName
from sluice.engine.fairshare import Share, is_borrowing, share
from sluice.engine.preemption.candidates import order_key
from sluice.engine.states import ClusterQueueState, WorkloadState
from sluice.engine.tree import QuotaNode

_Claim = tuple[bool, int, Share]
"""How much speaks for taking from a node: (borrows, -projected balance, share), greater is taken
first. Without credits only the share counts."""
_NO_CLAIM: _Claim = (False, 0, (0, 0.0))


class Selector:
    """Chooses ClusterQueues while they have candidates left."""

    __slots__ = ("_ancestors", "_by_queue", "_cq", "_pruned", "_queues", "_ranks")

    def __init__(
        self,
        cq: ClusterQueueState,
        candidates: list[WorkloadState],
        queues: dict[ClusterQueueName, ClusterQueueState],
        ranks: dict[ClusterQueueState, int],
    ) -> None:
        self._cq = cq
        self._queues = queues
        self._ranks = ranks
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
            queue, queue_claim = self._best_queue(cohort)
            child, child_claim = self._best_cohort(cohort)
            if queue is None and child is None:
                self._pruned.add(id(cohort))
                return None
            if child is None or (queue is not None and child_claim < queue_claim):
                return queue
            if queue is not None and child_claim == queue_claim and self._settles(queue, child):
                return queue
            cohort = child

    def _claim(self, node: QuotaNode) -> _Claim:
        """Return what speaks for taking from a node on the present, simulated state."""
        book = self._cq.tree.book
        if book is None:
            return (False, 0, share(node))
        # A node that isn't borrowing counts as infinitely rich.
        if not is_borrowing(node):
            return (False, 0, share(node))
        return (True, -book.projected(node), share(node))

    def _best_queue(self, cohort: QuotaNode) -> tuple[QuotaNode | None, _Claim]:
        best: QuotaNode | None = None
        best_claim = _NO_CLAIM
        for node in cohort.queues:
            if id(node) in self._pruned:
                continue
            if not self._by_queue.get(node.name) or (
                node is not self._cq.node and not is_borrowing(node)
            ):
                self._pruned.add(id(node))
                continue
            claim = self._claim(node)
            if (
                best is None
                or claim > best_claim
                or (claim == best_claim and self._precedes(node, best))
            ):
                best, best_claim = node, claim
        return best, best_claim

    def _order_key(self, node: QuotaNode) -> tuple[bool, bool, int, int, int, str]:
        wl = self._by_queue[node.name][0]
        assert wl.cq is not None
        is_held, is_own, eff, reserved_ms = order_key(wl, self._cq)
        return (is_held, is_own, self._ranks.get(wl.cq, 0), eff, reserved_ms, wl.uid)

    def _precedes(self, node: QuotaNode, other: QuotaNode) -> bool:
        return self._order_key(node) < self._order_key(other)

    def _first_below(self, node: QuotaNode) -> QuotaNode | None:
        """Return the queue below a cohort whose first candidate comes first (4.3)."""
        if node.is_queue:
            return node if self._by_queue.get(node.name) else None
        found = [self._first_below(child) for child in (*node.queues, *node.cohorts)]
        queues = [queue for queue in found if queue is not None]
        return min(queues, key=self._order_key, default=None)

    def _settles(self, node: QuotaNode, other: QuotaNode) -> bool:
        """Tell whether under credits the order of candidates (4.3) decides for a node.

        Without credits a cohort wins over a queue, and the last of equal cohorts over the others.
        """
        if self._cq.tree.book is None:
            return False
        mine, theirs = self._first_below(node), self._first_below(other)
        if mine is None or theirs is None:
            return theirs is None
        return self._precedes(mine, theirs)

    def _best_cohort(self, cohort: QuotaNode) -> tuple[QuotaNode | None, _Claim]:
        best: QuotaNode | None = None
        best_claim = _NO_CLAIM
        for node in cohort.cohorts:
            if id(node) in self._pruned:
                continue
            if id(node) not in self._ancestors and not is_borrowing(node):
                self._pruned.add(id(node))
                continue
            claim = self._claim(node)
            is_ahead = best is None or claim > best_claim
            if not is_ahead and best is not None and claim == best_claim:
                is_ahead = not self._settles(best, node)
            if is_ahead:
                best, best_claim = node, claim
        return best, best_claim
