"""How many pods and slices fit in each domain (phase 1).

A `Counts` belongs to one shape of request on one tree. It is filled once and then follows the log
of changed cells, so that a search which frees one victim after another pays only for the leaves
that changed and their ancestors. Source: docs/spec/algorithm.md 6.5.
"""

from dataclasses import dataclass
from typing import Final, final

from sluice.engine.topology.tree import CellBook, Tree, add_times

FITS_MAX: Final = 2**31 - 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the counts depend on.

    Attributes:
        pod: Requests of one worker pod with its ``pods`` unit, by resource number.
        leader: The same of the leader pod, None without one.
        slice_size: Pods in a slice, at least 1.
        slice_level: Level index at which slices live.
        inner: Per level, the size that counts are rounded down to below ``slice_level``; 1: none.
        empty: Pretend that no topology-aware usage exists.
    """

    pod: tuple[int, ...]
    leader: tuple[int, ...] | None
    slice_size: int
    slice_level: int
    inner: tuple[int, ...]
    empty: bool = False


def fits(capacity: list[int], request: tuple[int, ...]) -> int:
    """Return how often a request fits into a capacity; 0 for a request of nothing."""
    best = -1
    size = len(capacity)
    for i in range(len(request)):
        amount = request[i]
        if amount > 0:
            here = capacity[i] // amount if i < size and capacity[i] > 0 else 0
            if best < 0 or here < best:
                best = here
                if best == 0:
                    return 0
    return 0 if best < 0 else min(best, FITS_MAX)


@final
class Counts:
    """Pods, slices and leaders that fit, per level and domain.

    Attributes:
        pods: Worker pods that fit.
        pods_led: The same beside the leader, where it costs least.
        lead: 1 where a leader fits.
        slices: Slices that fit, from the slice level up; 0 below it.
        slices_led: The same beside the leader.
        scores: Sums of the leaves' preferences.
        excluded: Leaves that may not be used.
    """

    __slots__ = (
        "_allowed", "_book", "_preferences", "_seen", "_shape", "_tree", "excluded", "lead",
        "pods", "pods_led", "scores", "slices", "slices_led",
    )  # fmt: skip

    def __init__(
        self,
        tree: Tree,
        book: CellBook,
        shape: Shape,
        allowed: tuple[bool, ...] | None = None,
        preferences: tuple[int, ...] | None = None,
    ) -> None:
        """Count everything.

        Args:
            tree: Of one flavor.
            book: Where the tree's cells log changes.
            shape: What is counted.
            allowed: Per leaf whether it may be used; None for all.
            preferences: Per leaf its score; None for none.
        """
        self._tree = tree
        self._book = book
        self._shape = shape
        self._allowed = allowed
        self._preferences = preferences
        self.excluded = 0 if allowed is None else allowed.count(False)
        self.pods = [[0] * len(level) for level in tree.values]
        self.pods_led = [[0] * len(level) for level in tree.values]
        self.lead = [[0] * len(level) for level in tree.values]
        self.slices = [[0] * len(level) for level in tree.values]
        self.slices_led = [[0] * len(level) for level in tree.values]
        self.scores = [[0] * len(level) for level in tree.values]
        self._seen = len(book.log)
        for leaf in range(len(tree.free)):
            self._count_leaf(leaf)
        for level in range(len(tree.levels) - 2, -1, -1):
            for index in range(len(tree.values[level])):
                self._count_inner(level, index)

    def follow(self) -> None:
        """Take in the cells that changed since the last look."""
        log = self._book.log
        if self._seen == len(log):
            return
        changed = set(log[self._seen :])
        self._seen = len(log)
        tree = self._tree
        touched: set[int] = set()
        for number in changed:
            leaf = tree.leaf_of_cell.get(number, -1)
            if leaf >= 0 and self._count_leaf(leaf):
                touched.add(leaf)
        for level in range(len(tree.levels) - 1, 0, -1):
            parents = tree.parents[level]
            touched = {parents[index] for index in touched}
            for index in touched:
                self._count_inner(level - 1, index)

    def _capacity(self, leaf: int) -> list[int]:
        capacity = list(self._tree.free[leaf])
        cell = self._tree.cells[leaf]
        if not self._shape.empty:
            add_times(capacity, cell.used, -1)
        if cell.assumed:
            add_times(capacity, cell.assumed, -1)
        return capacity

    def _count_leaf(self, leaf: int) -> bool:
        """Count one leaf; tell whether anything changed."""
        shape = self._shape
        level = len(self._tree.levels) - 1
        pods = led = lead = 0
        if self._allowed is None or self._allowed[leaf]:
            capacity = self._capacity(leaf)
            pods = led = fits(capacity, shape.pod)
            leader = shape.leader
            if leader is not None and fits(capacity, leader) > 0:
                lead = 1
                for i in range(min(len(leader), len(capacity))):
                    capacity[i] -= leader[i]
                led = fits(capacity, shape.pod)
            if self._preferences is not None:
                self.scores[level][leaf] = self._preferences[leaf]
        before = (self.pods[level][leaf], self.pods_led[level][leaf], self.lead[level][leaf])
        self.pods[level][leaf], self.pods_led[level][leaf] = pods, led
        self.lead[level][leaf] = lead
        if level == shape.slice_level:
            self.slices[level][leaf] = pods // shape.slice_size
            self.slices_led[level][leaf] = led // shape.slice_size
        return before != (pods, led, lead)

    def _count_inner(self, level: int, index: int) -> None:
        """Count one domain above the leaves from its children."""
        shape = self._shape
        below = level + 1
        size = shape.inner[below]
        wants_leader = shape.leader is not None
        first = self._tree.first_child[level]
        child_pods, child_led = self.pods[below], self.pods_led[below]
        child_lead = self.lead[below]
        child_slices, child_slices_led = self.slices[below], self.slices_led[below]
        pods = slices = lead = score = 0
        loss = slice_loss = -1
        for i in range(first[index], first[index + 1]):
            here, led = child_pods[i], child_led[i]
            if size > 1:
                here -= here % size
                led -= led % size
            pods += here
            slices += child_slices[i]
            score += self.scores[below][i]
            if child_lead[i] > lead:
                lead = child_lead[i]
            if not wants_leader or child_lead[i] > 0:
                if loss < 0 or here - led < loss:
                    loss = here - led
                gap = child_slices[i] - child_slices_led[i]
                if slice_loss < 0 or gap < slice_loss:
                    slice_loss = gap
        pods_led = pods - loss if loss >= 0 else 0
        slices_led = slices - slice_loss if slice_loss >= 0 else 0
        if level == shape.slice_level:
            slices, slices_led = pods // shape.slice_size, pods_led // shape.slice_size
        elif level > shape.slice_level:
            slices = slices_led = 0
        self.pods[level][index], self.pods_led[level][index] = pods, pods_led
        self.lead[level][index], self.scores[level][index] = lead, score
        self.slices[level][index], self.slices_led[level][index] = slices, slices_led
