"""Which domains take the pods (phase 2): best fit, several domains, the way down to the leaves.

Source: docs/spec/algorithm.md 6.6 and 6.7. The domains of a whole level are looked at by index, in
the lists of the counts; what is chosen becomes a `Dom`, a record with its counts and its share, so
that pruning and cutting never touch the counts themselves.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from sluice.engine.topology.counts import Counts
from sluice.engine.topology.tree import Tree


@final
class Dom:
    """One domain under consideration, with its counts and, once chosen, its share."""

    __slots__ = (
        "index", "lead", "leaders", "level", "pods", "pods_led", "score", "share", "slices",
        "slices_led", "values",
    )  # fmt: skip

    def __init__(self, tree: Tree, counts: Counts, level: int, index: int) -> None:
        self.level = level
        self.index = index
        self.values = tree.values[level][index]
        self.pods = counts.pods[level][index]
        self.pods_led = counts.pods_led[level][index]
        self.lead = counts.lead[level][index]
        self.slices = counts.slices[level][index]
        self.slices_led = counts.slices_led[level][index]
        self.score = 0 if counts.scores is None else counts.scores[level][index]
        self.share = 0
        """Worker pods given to the domain."""
        self.leaders = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """What is to be placed.

    Attributes:
        count: Worker pods.
        leaders: 1 when a leader pod goes with them.
        level: Requested level index.
        required: Everything must sit in one domain of the requested level.
        least_free: Prefer domains with the least room (unconstrained requests).
        unconstrained: Never climb above the requested level; several domains are fine.
        slice_size: Pods in a slice.
        slice_level: Level index of slices.
        inner: Per level, the size of inner slices, 1 for none.
    """

    count: int
    leaders: int
    level: int
    required: bool
    least_free: bool
    unconstrained: bool
    slice_size: int
    slice_level: int
    inner: tuple[int, ...]


def order_led(doms: Iterable[Dom], least_free: bool) -> list[Dom]:
    """Return order A: those that can take the leader first."""
    sign = 1 if least_free else -1
    return sorted(
        doms, key=lambda d: (-d.lead, -d.score, sign * d.slices_led, d.pods_led, d.values)
    )


def order_plain(doms: Iterable[Dom], least_free: bool) -> list[Dom]:
    """Return order B."""
    sign = 1 if least_free else -1
    return sorted(doms, key=lambda d: (-d.score, sign * d.slices, d.pods, d.values))


def capacity(dom: Dom, led: bool, in_slices: bool) -> int:
    """Return what a domain takes, in slices or pods, beside the leader or without."""
    if in_slices:
        return dom.slices_led if led else dom.slices
    return dom.pods_led if led else dom.pods


def best_fit(doms: list[Dom], need: int, leaders: int, in_slices: bool = True) -> Dom:
    """Return the first domain of the smallest sufficient capacity, else the first of the list."""
    best: Dom | None = None
    best_capacity = 0
    for dom in doms:
        if dom.score != doms[0].score:
            break
        here = capacity(dom, leaders > 0, in_slices)
        if dom.lead >= leaders and here >= need and (best is None or here < best_capacity):
            best, best_capacity = dom, here
    return best if best is not None else doms[0]


def prioritize(doms: list[Dom], need: int, leaders: int, in_slices: bool) -> list[Dom]:
    """Return the list with the cheapest sufficient place for the leader moved to the front."""
    if leaders == 0 or len(doms) < 2:
        return doms
    total = sum(capacity(d, False, in_slices) for d in doms)
    for i, dom in enumerate(doms):
        loss = capacity(dom, False, in_slices) - capacity(dom, True, in_slices)
        if dom.lead >= leaders and total - loss >= need:
            return [dom, *doms[:i], *doms[i + 1 :]]
    return doms


def distribute(
    doms: list[Dom], pods: int, leaders: int, size: int, in_slices: bool, best: bool
) -> list[Dom] | None:
    """Give pods and leaders to domains in order, the last one by best fit.

    Args:
        doms: Domains in the order to fill them.
        pods: Worker pods to give out.
        leaders: Leader pods to give out.
        size: Pods in a slice.
        in_slices: Count in slices of ``size`` instead of pods.
        best: Use best fit for the last domain.

    Returns:
        The domains used, with their shares, or None when they don't suffice.
    """
    unit = size if in_slices else 1
    need = pods // unit
    doms = prioritize(doms, need, leaders, in_slices)
    used: list[Dom] = []
    for i, first in enumerate(doms):
        dom = first
        led = leaders > 0
        if best and capacity(dom, led, in_slices) >= need and dom.lead >= leaders:
            dom = best_fit(doms[i:], need, leaders, in_slices)
        here = capacity(dom, led, in_slices)
        used.append(dom)
        if here >= need and dom.lead >= leaders:
            dom.share, dom.leaders = need * unit, leaders
            return used
        dom.share = min(here, need) * unit
        dom.leaders = min(dom.lead, leaders)
        need -= min(here, need)
        leaders -= dom.leaders
    return None


@final
class Chooser:
    """Places one want on one tree with given counts."""

    __slots__ = ("_best", "_counts", "_tree", "_want")

    def __init__(self, tree: Tree, counts: Counts, want: Want) -> None:
        self._tree = tree
        self._counts = counts
        self._want = want
        self._best = not want.least_free

    def dom(self, level: int, index: int) -> Dom:
        """Return a fresh record of one domain."""
        return Dom(self._tree, self._counts, level, index)

    def doms(self, level: int) -> list[Dom]:
        """Return all domains of a level."""
        return [self.dom(level, i) for i in range(len(self._tree.values[level]))]

    def children(self, dom: Dom) -> list[Dom]:
        """Return the children of a domain, fresh."""
        first = self._tree.first_child[dom.level]
        return [self.dom(dom.level + 1, i) for i in range(first[dom.index], first[dom.index + 1])]

    def place(self) -> list[Dom] | None:
        """Return the leaves used with their shares, or None when the want doesn't fit."""
        want = self._want
        chosen = self._choose()
        if chosen is None:
            return None
        cut = distribute(chosen, want.count, want.leaders, want.slice_size, True, self._best)
        return None if cut is None else self.descend(cut, pooled=True)

    def can_place(self) -> bool:
        """Tell whether `place` finds something.

        What can be chosen can always be handed down: a domain's counts are made of its children's.
        """
        return self._choose() is not None

    def _choose(self) -> list[Dom] | None:
        """Return the domains of the first level that can take everything (6.7.1)."""
        want = self._want
        need = want.count // want.slice_size
        level = want.level
        scored = self._counts.scores is not None
        # Domains that lost all their nodes hold nothing, but nothing is also less than one slice.
        while self._tree.leaf_of_node:
            top = self._single_scored(level, need) if scored else self._single(level, need)
            if top >= 0:
                return [self.dom(level, top)]
            if want.required:
                return None
            if level == 0 or want.unconstrained:
                if want.leaders:
                    return self._several_led(level, need)
                return self._several(level, need)
            level -= 1
        return None

    def _single(self, level: int, need: int) -> int:
        """Return the domain that takes everything and has the least room to spare, -1 for none.

        Best fit takes the smallest sufficient one, least free first the first sufficient one in
        ascending order: without scores that is the same domain.
        """
        leaders = self._want.leaders
        room, pods = self._counts.slices_led[level], self._counts.pods_led[level]
        lead = self._counts.lead[level]
        best = -1
        best_room = best_pods = 0
        for index in range(len(room)):
            here = room[index]
            if here < need or (best >= 0 and here > best_room):
                continue
            if best >= 0 and here == best_room and pods[index] >= best_pods:
                continue
            if leaders == 0 or lead[index] >= leaders:
                best, best_room, best_pods = index, here, pods[index]
        return best

    def _single_scored(self, level: int, need: int) -> int:
        """Return the same among domains with scores: best fit knows the best score only (6.6)."""
        doms = order_led(self.doms(level), self._want.least_free)
        leaders = self._want.leaders
        if self._best:
            first = doms[0]
            if first.slices_led < need or first.lead < leaders:
                return -1
            return best_fit(doms, need, leaders).index
        for dom in doms:
            if capacity(dom, leaders > 0, True) >= need and dom.lead >= leaders:
                return dom.index
        return -1

    def _several(self, level: int, need: int) -> list[Dom] | None:
        """Return domains that take everything together, in order B (6.7.1 c)."""
        slices, pods = self._counts.slices[level], self._counts.pods[level]
        scores = None if self._counts.scores is None else self._counts.scores[level]
        order = sorted(range(len(slices)), key=pods.__getitem__)
        order.sort(key=slices.__getitem__, reverse=self._best)
        if scores is not None:
            order.sort(key=scores.__getitem__, reverse=True)
        chosen: list[Dom] = []
        for at, index in enumerate(order):
            here = slices[index]
            if need <= 0:
                break
            if here == 0:
                continue
            if self._best and here >= need:
                for other in order[at + 1 :]:
                    if scores is not None and scores[other] != scores[index]:
                        break
                    if need <= slices[other] < here:
                        index, here = other, slices[other]
            chosen.append(self.dom(level, index))
            need -= here
        return chosen if need <= 0 else None

    def _several_led(self, level: int, need: int) -> list[Dom] | None:
        """Return domains that take everything and the leader together (6.7.1 a to c)."""
        leaders = self._want.leaders
        rest = prioritize(order_led(self.doms(level), self._want.least_free), need, leaders, True)
        chosen: list[Dom] = []
        while leaders > 0 and rest and rest[0].lead > 0:
            dom = rest[0]
            if self._best and dom.slices_led >= need:
                dom = best_fit(rest, need, leaders)
            chosen.append(dom)
            rest = [d for d in rest if d is not dom]
            need -= dom.slices_led
            leaders -= dom.lead
        if leaders > 0:
            return None
        rest = order_plain(rest, self._want.least_free)
        for at, first in enumerate(rest):
            if need <= 0:
                break
            dom = first
            if self._best and dom.slices >= need:
                dom = best_fit(rest[at:], need, 0)
            chosen.append(dom)
            need -= dom.slices
        return chosen if need <= 0 else None

    def descend(self, chosen: list[Dom], *, pooled: bool) -> list[Dom] | None:
        """Hand shares down to the leaves.

        Above the slice level the children of all chosen domains are pooled (unless ``pooled`` is
        off, as after balanced placement); from there on each domain hands its share to its own
        children.
        """
        want = self._want
        while chosen and chosen[0].level < len(self._tree.levels) - 1:
            level = chosen[0].level
            lower: list[Dom] | None
            if level < want.slice_level and pooled:
                pool = order_plain(
                    (child for dom in chosen for child in self.children(dom)), want.least_free
                )
                lower = distribute(
                    pool, want.count, want.leaders, want.slice_size, True, self._best
                )
            else:
                lower = self._down_each(chosen, level)
            if lower is None:
                return None
            chosen = lower
        return chosen

    def _down_each(self, chosen: list[Dom], level: int) -> list[Dom] | None:
        want = self._want
        above = level < want.slice_level
        size = want.slice_size if above else want.inner[level + 1]
        lower: list[Dom] = []
        for dom in chosen:
            if dom.share == 0 and dom.leaders == 0:
                continue
            # The order is that of phase 1, where no slices are counted below the slice level.
            children = order_plain(self.children(dom), want.least_free)
            in_slices = above or size > 1
            if in_slices and not above:
                for child in children:
                    child.slices = child.pods // size
                    child.slices_led = child.pods_led // size
            part = distribute(children, dom.share, dom.leaders, size, in_slices, self._best)
            if part is None:
                return None
            lower.extend(part)
        return lower
