"""How many pods and slices fit in each domain (phase 1).

A `Counts` belongs to one shape of request on one tree. It is filled once and then follows the log
of changed cells, so that a search which frees one victim after another pays only for the leaves
that changed and their ancestors. Source: docs/spec/algorithm.md 6.5.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from sluice.engine.topology.match import Usable
from sluice.engine.topology.tree import Amounts, CellBook, Tree

FITS_MAX: Final = 2**31 - 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the counts depend on.

    Attributes:
        pod: Requests of one worker pod with its ``pods`` unit.
        leader: The same of the leader pod, None without one.
        slice_size: Pods in a slice, at least 1.
        slice_level: Level index at which slices live.
        inner: Per level, the size that counts are rounded down to below ``slice_level``; 1: none.
        empty: Pretend that no topology-aware usage exists.
    """

    pod: Amounts
    leader: Amounts | None
    slice_size: int
    slice_level: int
    inner: tuple[int, ...]
    empty: bool = False


def fits(capacity: list[int], request: Amounts) -> int:
    """Return how often a request fits into a capacity; 0 for a request of nothing."""
    best = -1
    size = len(capacity)
    for number, amount in request:
        have = capacity[number] if number < size else 0
        if have < amount:
            return 0
        here = have // amount
        if best < 0 or here < best:
            best = here
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
        scores: Sums of the leaves' preferences; None without preferences.
        excluded: Leaves that may not be used, by reason.
    """

    __slots__ = (
        "_allowed", "_book", "_epoch", "_limit_totals", "_limits", "_preferences", "_seen",
        "_shape", "_tree", "excluded", "lead", "pods", "pods_led", "scores", "slices",
        "slices_led",
    )  # fmt: skip

    def __init__(
        self,
        tree: Tree,
        book: CellBook,
        shape: Shape,
        usable: Usable,
        preferences: tuple[int, ...] | None = None,
    ) -> None:
        """Count everything.

        Args:
            tree: Of one flavor.
            book: Where the tree's cells log changes.
            shape: What is counted.
            usable: Which leaves may be used.
            preferences: Per leaf its score; None for none.
        """
        self._tree = tree
        self._book = book
        self._shape = shape
        self._allowed = usable.allowed
        self.excluded: Mapping[str, int] = usable.excluded
        self._preferences = preferences
        self.pods = _zeros(tree)
        self.slices = _zeros(tree)
        self.lead = _zeros(tree)
        # Without a leader nothing is lost to one: the same lists serve for both.
        self.pods_led = self.pods if shape.leader is None else _zeros(tree)
        self.slices_led = self.slices if shape.leader is None else _zeros(tree)
        self.scores = None if preferences is None else _zeros(tree)
        self._limits: list[int] | None = None
        self._limit_totals: dict[int, int] = {}
        self._seen = 0
        self._epoch = 0
        self._count_all()

    def _count_all(self) -> None:
        tree = self._tree
        self._seen, self._epoch = len(self._book.log), self._book.epoch
        self._limits = None
        for leaf in range(len(tree.free)):
            self._count_leaf(leaf)
        for level in range(len(tree.levels) - 2, -1, -1):
            for index in range(len(tree.values[level])):
                self._count_inner(level, index)

    def follow(self) -> None:
        """Take in the cells that changed since the last look."""
        log = self._book.log
        if self._epoch != self._book.epoch:
            self._count_all()
            return
        if self._seen == len(log):
            return
        changed = set(log[self._seen :])
        self._seen = len(log)
        tree = self._tree
        leaf_of_cell = tree.leaf_of_cell
        allowed = self._allowed
        leaves = []
        for number in changed:
            leaf = leaf_of_cell.get(number, -1)
            if leaf >= 0 and (allowed is None or allowed[leaf]):
                leaves.append(leaf)
        if self._limits is not None:
            for leaf in leaves:
                self._note_limit(leaf, self._limits)
        if self._shape.leader is None:
            for leaf in leaves:
                self._change(leaf)
            return
        touched = {leaf for leaf in leaves if self._count_leaf(leaf)}
        for level in range(len(tree.levels) - 1, 0, -1):
            parents = tree.parents[level]
            touched = {parents[index] for index in touched}
            for index in touched:
                self._count_inner(level - 1, index)

    def _change(self, leaf: int) -> None:
        """Count one leaf anew and pass the difference up; only without a leader."""
        shape, tree = self._shape, self._tree
        level = len(tree.levels) - 1
        row = self.pods[level]
        old, new = row[leaf], self._pods_on(leaf)
        if old == new:
            return
        row[leaf] = new
        size, slice_level = shape.slice_size, shape.slice_level
        gain = 0
        if level == slice_level:
            gain = new // size - old // size
            self.slices[level][leaf] += gain
        index = leaf
        while level > 0:
            inner = shape.inner[level]
            more = new - old if inner == 1 else (new // inner - old // inner) * inner
            if more == 0 and gain == 0:
                return
            index = tree.parents[level][index]
            level -= 1
            row = self.pods[level]
            old = row[index]
            new = old + more
            row[index] = new
            if level == slice_level:
                gain = new // size - old // size
            if level <= slice_level:
                self.slices[level][index] += gain

    def _pods_on(self, leaf: int) -> int:
        """Return how many worker pods fit on a leaf: `fits` of its capacity, without a copy."""
        free = self._tree.free[leaf]
        cell = self._tree.cells[leaf]
        used, assumed = cell.used, cell.assumed
        free_size, assumed_size = len(free), len(assumed)
        used_size = 0 if self._shape.empty else len(used)
        best = -1
        for number, amount in self._shape.pod:
            if number >= free_size:
                return 0
            have = free[number]
            if number < used_size:
                have -= used[number]
            if number < assumed_size:
                have -= assumed[number]
            if have < amount:
                return 0
            here = have // amount
            if best < 0 or here < best:
                best = here
        return 0 if best < 0 else min(best, FITS_MAX)

    def _capacity(self, leaf: int) -> list[int]:
        """Return what is left on a leaf."""
        capacity = list(self._tree.free[leaf])
        cell = self._tree.cells[leaf]
        size = len(capacity)
        if not self._shape.empty:
            used = cell.used
            for i in range(min(size, len(used))):
                capacity[i] -= used[i]
        if cell.assumed:
            assumed = cell.assumed
            for i in range(min(size, len(assumed))):
                capacity[i] -= assumed[i]
        return capacity

    def _count_leaf(self, leaf: int) -> bool:
        """Count one leaf; tell whether anything changed."""
        shape = self._shape
        level = len(self._tree.levels) - 1
        pods = led = lead = 0
        if self._allowed is None or self._allowed[leaf]:
            pods = led = self._pods_on(leaf)
            leader = shape.leader
            if leader is not None:
                capacity = self._capacity(leaf)
                if fits(capacity, leader) > 0:
                    lead = 1
                    for number, amount in leader:
                        capacity[number] -= amount
                    led = fits(capacity, shape.pod)
            if self._preferences is not None and self.scores is not None:
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
        pods = slices = lead = 0
        loss = slice_loss = -1
        for i in range(first[index], first[index + 1]):
            here, led = child_pods[i], child_led[i]
            if size > 1:
                here -= here % size
                led -= led % size
            pods += here
            slices += child_slices[i]
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
        self.lead[level][index] = lead
        self.slices[level][index], self.slices_led[level][index] = slices, slices_led
        if self.scores is not None:
            self.scores[level][index] = sum(self.scores[below][first[index] : first[index + 1]])

    # What is in the way -----------------------------------------------------------------------

    def limits(self) -> Mapping[int, int]:
        """Return how many usable leaves hold no pod, by the resource they are shortest of."""
        if self._limits is None:
            limits = [-1] * len(self._tree.free)
            self._limits = limits
            self._limit_totals = {}
            for leaf in range(len(limits)):
                if self._allowed is None or self._allowed[leaf]:
                    self._note_limit(leaf, limits)
        return self._limit_totals

    def _note_limit(self, leaf: int, limits: list[int]) -> None:
        """Find out which resource keeps every pod off a leaf, if one does."""
        capacity = self._capacity(leaf)
        size = len(capacity)
        found = -1
        least_have = least_need = 0
        # A leaf that lost its nodes is in nobody's way.
        requests = self._shape.pod if self._tree.nodes[leaf] else ()
        for number, need in requests:
            have = capacity[number] if number < size else 0
            # The smallest share of what one pod needs; of equal ones the first by number.
            if have < need and (found < 0 or have * least_need < least_have * need):
                found, least_have, least_need = number, have, need
        before = limits[leaf]
        if before == found:
            return
        limits[leaf] = found
        totals = self._limit_totals
        if before >= 0:
            totals[before] -= 1
        if found >= 0:
            totals[found] = totals.get(found, 0) + 1


def _zeros(tree: Tree) -> list[list[int]]:
    return [[0] * len(level) for level in tree.values]
