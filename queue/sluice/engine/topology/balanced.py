"""Balanced placement: few domains, each with at least the same number of slices.

Used for preferred requests when the gate TASBalancedPlacement is on; where it finds nothing the
normal choice of `choose` applies. Source: docs/spec/algorithm.md 6.10.
"""

import math
from typing import final

from sluice.engine.topology.choose import Chooser, Dom, Want, order_led, order_plain
from sluice.engine.topology.tree import Tree


@final
class Greedy:
    """What the greedy test took: how many domains, and the last of each kind."""

    __slots__ = ("last_led", "last_plain", "taken")

    def __init__(self, taken: int, last_led: Dom | None, last_plain: Dom | None) -> None:
        self.taken = taken
        self.last_led = last_led
        self.last_plain = last_plain


def greedy(doms: list[Dom], need: int, leaders: int) -> Greedy | None:
    """Take domains until the slices and the leader fit; None when they don't."""
    taken = 0
    last_led: Dom | None = None
    last_plain: Dom | None = None
    rest = doms
    if leaders > 0:
        rest = []
        for dom in order_led(doms, False):
            if leaders > 0 and dom.lead > 0:
                need -= dom.slices_led
                leaders -= dom.lead
                last_led = dom
                taken += 1
            else:
                rest.append(dom)
    for dom in order_plain(rest, False):
        if need <= 0 or dom.slices <= 0:
            break
        need -= dom.slices
        last_plain = dom
        taken += 1
    if need > 0 or leaders > 0 or taken == 0:
        return None
    return Greedy(taken, last_led, last_plain)


def _clear(dom: Dom) -> None:
    dom.pods = dom.pods_led = dom.slices = dom.slices_led = dom.lead = 0


def _prune(doms: list[Dom], threshold: int) -> None:
    for dom in doms:
        if dom.slices < threshold:
            _clear(dom)
        elif dom.slices_led < threshold:
            dom.lead = dom.pods_led = dom.slices_led = 0


def _recount(dom: Dom, children: list[Dom], want: Want) -> None:
    """Count a domain anew from its pruned children; inner sizes are left out."""
    givers = [c for c in children if c.lead > 0] if want.leaders else children
    dom.pods = sum(c.pods for c in children)
    dom.lead = max((c.lead for c in children), default=0)
    dom.pods_led = dom.pods - min(c.pods - c.pods_led for c in givers) if givers else 0
    if dom.level == want.slice_level:
        dom.slices = dom.pods // want.slice_size
        dom.slices_led = dom.pods_led // want.slice_size
    else:
        dom.slices = sum(c.slices for c in children)
        dom.slices_led = dom.slices - min(c.slices - c.slices_led for c in givers) if givers else 0


@final
class _Siblings:
    """One candidate set of sibling domains, with its children where slices live below it."""

    __slots__ = ("children", "doms", "taken", "threshold")

    def __init__(self, doms: list[Dom], children: list[list[Dom]]) -> None:
        self.doms = doms
        self.children = children
        self.threshold = 0
        self.taken = 0


def entropy(shares: list[int]) -> float:
    """Return the Shannon entropy (base 2) of shares; 0 when there are none."""
    total = sum(shares)
    if total == 0:
        return 0.0
    return -sum(s / total * math.log2(s / total) for s in shares if s > 0)


def optimal_subset(doms: list[Dom], count: int, leaders: int, size: int) -> list[Dom] | None:
    """Return ``size`` domains that hold the pods with the least left over.

    Among ways to the same state the first found is kept, so the order of ``doms`` matters.
    """
    ways: dict[tuple[int, int, int], tuple[Dom, ...]] = {(0, leaders, count): ()}
    for dom in doms:
        for (used, led, left), way in list(ways.items()):
            if used == size:
                continue
            if led > 0 and dom.lead > 0:
                state = (used + 1, max(0, led - dom.lead), left - dom.pods_led)
                ways.setdefault(state, (*way, dom))
            if dom.slices > 0:
                ways.setdefault((used + 1, led, left - dom.pods), (*way, dom))
    best: tuple[Dom, ...] | None = None
    best_left = 0
    for (used, led, left), way in ways.items():
        if used == size and led == 0 and left <= 0 and (best is None or left > best_left):
            best, best_left = way, left
    return None if best is None else list(best)


@final
class Balancer:
    """Looks for a balanced placement of one want."""

    __slots__ = ("_chooser", "_tree", "_want")

    def __init__(self, tree: Tree, chooser: Chooser, want: Want) -> None:
        self._tree = tree
        self._chooser = chooser
        self._want = want

    def place(self) -> list[Dom] | None:
        """Return the leaves with their shares, or None when there is no balanced placement."""
        want = self._want
        if want.count // want.slice_size == 0:
            return None
        best = self._best_siblings()
        if best is None:
            return None
        doms = best.doms
        if want.level < want.slice_level:
            chosen = self._subset(self._by_entropy(best))
            if chosen is None:
                return None
            kept = {dom.index for dom in chosen}
            doms = [
                child
                for dom, children in zip(best.doms, best.children, strict=True)
                if dom.index in kept
                for child in children
            ]
        chosen = self._subset(sorted(doms, key=lambda d: d.values))
        if chosen is None or not self._balance(chosen, best.threshold):
            return None
        return self._chooser.descend(chosen, pooled=False)

    def _sets(self) -> list[_Siblings]:
        want = self._want
        doms = self._chooser.doms(want.level)
        groups: dict[int, list[Dom]] = {}
        for dom in doms:
            parent = self._tree.parents[want.level][dom.index] if want.level > 0 else 0
            groups.setdefault(parent, []).append(dom)
        below = want.level < want.slice_level
        return [
            _Siblings(group, [self._chooser.children(d) for d in group] if below else [])
            for _, group in sorted(groups.items())
        ]

    def _best_siblings(self) -> _Siblings | None:
        best: _Siblings | None = None
        for candidate in self._sets():
            floor = 0 if best is None else best.threshold
            found = self._try(candidate, floor)
            if found is None:
                continue
            better = best is None or found.threshold > best.threshold
            if better or (best is not None and found.taken < best.taken):
                best = found
        return best

    def _try(self, candidate: _Siblings, floor: int) -> _Siblings | None:
        want = self._want
        need = want.count // want.slice_size
        units = [c for children in candidate.children for c in children] or candidate.doms
        first = greedy(units, need, want.leaders)
        if first is None:
            return None
        threshold = need // first.taken
        if first.last_led is not None:
            threshold = min(threshold, first.last_led.slices_led)
        fallback = threshold
        if first.last_plain is not None:
            threshold = min(threshold, first.last_plain.slices)
            fallback = threshold
            if want.leaders:
                fallback = min(threshold, first.last_plain.slices_led)
        for level in (threshold, fallback) if fallback < threshold else (threshold,):
            if level <= 0 or level < floor:
                continue
            pruned = self._pruned(candidate, level)
            second = greedy(pruned.doms, need, want.leaders)
            if second is not None:
                pruned.threshold, pruned.taken = level, second.taken
                return pruned
        return None

    def _pruned(self, candidate: _Siblings, threshold: int) -> _Siblings:
        """Return a private copy without what cannot hold the threshold."""
        copy = _Siblings(
            [self._fresh(d) for d in candidate.doms],
            [[self._fresh(c) for c in children] for children in candidate.children],
        )
        for dom, children in zip(copy.doms, copy.children, strict=False):
            _prune(children, threshold)
            _recount(dom, children, self._want)
        _prune(copy.doms, threshold)
        return copy

    def _fresh(self, dom: Dom) -> Dom:
        return self._chooser.dom(dom.level, dom.index)

    def _by_entropy(self, siblings: _Siblings) -> list[Dom]:
        spread = {
            dom.index: entropy([c.pods for c in children])
            for dom, children in zip(siblings.doms, siblings.children, strict=True)
        }
        return sorted(
            siblings.doms, key=lambda d: (-d.lead, -d.slices_led, -spread[d.index], d.values)
        )

    def _subset(self, doms: list[Dom]) -> list[Dom] | None:
        want = self._want
        taken = greedy(doms, want.count // want.slice_size, want.leaders)
        if taken is None:
            return None
        return optimal_subset(doms, want.count, want.leaders, taken.taken)

    def _balance(self, chosen: list[Dom], threshold: int) -> bool:
        """Give every domain the threshold and hand out the rest; tell whether all found a place."""
        want = self._want
        extra = want.count // want.slice_size - threshold * len(chosen)
        leaders = want.leaders
        for dom in order_led(chosen, False):
            room = dom.slices - threshold
            if leaders > 0:
                if dom.lead <= 0:
                    return False
                room = dom.slices_led - threshold
                dom.leaders = min(dom.lead, leaders)
                leaders -= dom.leaders
            if room < 0:
                return False
            more = max(0, min(room, extra))
            extra -= more
            dom.share = (threshold + more) * want.slice_size
        return extra == 0 and leaders == 0
