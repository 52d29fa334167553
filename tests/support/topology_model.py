"""Placement written down once more, straight from docs/spec/algorithm.md 6.4 to 6.7, and slowly.

The engine's placement is compared with this on random trees. Nothing of the engine is used here:
domains are nested objects, every count is computed anew, every list is sorted in full.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

PODS_MAX: Final = 2**31 - 1
Path = tuple[str, ...]
Free = Mapping[str, int]


@dataclass(slots=True, kw_only=True)
class Ask:
    """A request: level and slice indices, sizes, and what one pod takes (with its pods unit)."""

    count: int
    level: int
    pod: Free
    leader: Free | None = None
    required: bool = False
    unconstrained: bool = False
    slice_size: int = 1
    slice_level: int = -1
    inner: tuple[tuple[int, int], ...] = ()
    """(level index, size) of the inner constraints, outermost first."""


@dataclass(slots=True)
class Domain:
    """A domain with the counts of 6.5 and what phase 2 gives it."""

    values: Path
    level: int
    children: list["Domain"] = field(default_factory=list)
    pods: int = 0
    pods_led: int = 0
    lead: int = 0
    slices: int = 0
    slices_led: int = 0
    got: int = 0
    leaders: int = 0


def often(free: Free, request: Free) -> int:
    """How often a request fits (6.5)."""
    counts = [max(0, free.get(name, 0)) // need for name, need in request.items() if need > 0]
    return min([*counts, PODS_MAX]) if counts else 0


class Model:
    """One tree and one request.

    Args:
        depth: Number of levels.
        leaves: Free amounts by path.
        ask: What to place.
    """

    def __init__(self, depth: int, leaves: Mapping[Path, Free], ask: Ask) -> None:
        self.depth = depth
        self.ask = ask
        self.slice_level = ask.slice_level if ask.slice_level >= 0 else depth - 1
        self.least_free = ask.unconstrained
        self.k = 0 if ask.leader is None else 1
        self.levels: list[list[Domain]] = [[] for _ in range(depth)]
        by_path: dict[Path, Domain] = {}
        for path in sorted(leaves):
            for level in range(depth):
                values = path[: level + 1]
                if values not in by_path:
                    domain = Domain(values, level)
                    by_path[values] = domain
                    self.levels[level].append(domain)
                    if level:
                        by_path[values[:-1]].children.append(domain)
            self._count_leaf(by_path[path], leaves[path])
        for level in range(depth - 2, -1, -1):
            for domain in self.levels[level]:
                self._count(domain)

    # Phase 1 (6.5).

    def _count_leaf(self, leaf: Domain, free: Free) -> None:
        ask = self.ask
        leaf.pods = leaf.pods_led = often(free, ask.pod)
        if ask.leader is not None and often(free, ask.leader) > 0:
            leaf.lead = 1
            left = {name: amount - ask.leader.get(name, 0) for name, amount in free.items()}
            leaf.pods_led = often(left, ask.pod)
        if leaf.level == self.slice_level:
            leaf.slices = leaf.pods // ask.slice_size
            leaf.slices_led = leaf.pods_led // ask.slice_size

    def inner_size(self, level: int) -> int | None:
        """inner[l] of 6.4."""
        if level <= self.slice_level:
            return None
        return next((size for at, size in self.ask.inner if at >= level), None)

    def _count(self, domain: Domain) -> None:
        size = self.inner_size(domain.level + 1) or 1
        rounded = [(c, c.pods // size * size, c.pods_led // size * size) for c in domain.children]
        givers = [entry for entry in rounded if entry[0].lead > 0 or not self.k]
        domain.pods = sum(pods for _, pods, _ in rounded)
        domain.lead = max(c.lead for c in domain.children)
        if givers:
            domain.pods_led = domain.pods - min(pods - led for _, pods, led in givers)
        if domain.level == self.slice_level:
            domain.slices = domain.pods // self.ask.slice_size
            domain.slices_led = domain.pods_led // self.ask.slice_size
        elif domain.level < self.slice_level:
            domain.slices = sum(c.slices for c in domain.children)
            if givers:
                lost = min(c.slices - c.slices_led for c, _, _ in givers)
                domain.slices_led = domain.slices - lost

    # Orders (6.6).

    def order_a(self, domains: Sequence[Domain]) -> list[Domain]:
        """Sort with leader."""
        sign = 1 if self.least_free else -1
        return sorted(domains, key=lambda d: (-d.lead, sign * d.slices_led, d.pods_led, d.values))

    def order_b(self, domains: Sequence[Domain]) -> list[Domain]:
        """Sort without leader."""
        sign = 1 if self.least_free else -1
        return sorted(domains, key=lambda d: (sign * d.slices, d.pods, d.values))

    @staticmethod
    def cap(domain: Domain, led: bool, in_slices: bool) -> int:
        """Capacity in slices or pods."""
        if in_slices:
            return domain.slices_led if led else domain.slices
        return domain.pods_led if led else domain.pods

    def best_fit(self, domains: Sequence[Domain], need: int, k: int, in_slices: bool) -> Domain:
        """The first of the smallest sufficient capacity, else the first."""
        fits = [d for d in domains if d.lead >= k and self.cap(d, k > 0, in_slices) >= need]
        return min(fits, key=lambda d: self.cap(d, k > 0, in_slices)) if fits else domains[0]

    def prioritize(self, domains: list[Domain], need: int, k: int, in_slices: bool) -> list[Domain]:
        """Move the first place where the leader costs too little to matter to the front (6.7.4)."""
        if k == 0 or len(domains) < 2:
            return domains
        total = sum(self.cap(d, False, in_slices) for d in domains)
        for d in domains:
            lost = self.cap(d, False, in_slices) - self.cap(d, True, in_slices)
            if d.lead >= k and total - lost >= need:
                return [d, *(other for other in domains if other is not d)]
        return domains

    # Phase 2 (6.7).

    def choose(self) -> list[Domain] | None:
        """6.7.1."""
        ask, n, k = self.ask, self.ask.count // self.ask.slice_size, self.k
        for level in range(ask.level, -1, -1):
            domains = self.order_a(self.levels[level])
            if not domains:
                return None
            top = domains[0]
            if self.least_free:
                top = next(
                    (d for d in domains if self.cap(d, k > 0, True) >= n and d.lead >= k), top
                )
            elif top.slices_led >= n and top.lead >= k:
                top = self.best_fit(domains, n, k, True)
            if top.slices_led >= n and top.lead >= k:
                return [top]
            if ask.required:
                return None
            if level == 0 or ask.unconstrained:
                return self._several(domains, n, k)
        return None

    def _several(self, domains: list[Domain], n: int, k: int) -> list[Domain] | None:
        rest = self.prioritize(domains, n, k, True)
        chosen: list[Domain] = []
        while k > 0 and rest and rest[0].lead > 0:
            d = rest[0]
            if not self.least_free and d.slices_led >= n:
                d = self.best_fit(rest, n, k, True)
            chosen.append(d)
            rest = [other for other in rest if other is not d]
            n -= d.slices_led
            k -= d.lead
        if k > 0:
            return None
        rest = self.order_b(rest)
        while n > 0 and rest:
            d = rest[0]
            if not self.least_free and d.slices >= n:
                d = self.best_fit(rest, n, 0, True)
            chosen.append(d)
            rest = [other for other in rest if other is not d]
            n -= d.slices
        return chosen if n <= 0 else None

    def distribute(
        self, domains: list[Domain], count: int, k: int, size: int, in_slices: bool
    ) -> list[Domain] | None:
        """6.7.3."""
        unit = size if in_slices else 1
        need = count // unit
        rest = self.prioritize(domains, need, k, in_slices)
        used: list[Domain] = []
        while rest:
            d = rest[0]
            led = k > 0
            if not self.least_free and self.cap(d, led, in_slices) >= need and d.lead >= k:
                d = self.best_fit(rest, need, k, in_slices)
            used.append(d)
            rest = [other for other in rest if other is not d]
            if self.cap(d, led, in_slices) >= need and d.lead >= k:
                d.got, d.leaders = need * unit, k
                return used
            given = min(self.cap(d, led, in_slices), need)
            d.got, d.leaders = given * unit, min(d.lead, k)
            need -= given
            k -= d.leaders
        return None

    def place(self) -> tuple[dict[Path, int], dict[Path, int]] | None:
        """Return pods and leaders by leaf; None when they don't fit."""
        ask = self.ask
        chosen = self.choose()
        if chosen is not None:
            chosen = self.distribute(chosen, ask.count, self.k, ask.slice_size, True)
        if chosen is None:
            return None
        level = chosen[0].level
        while level < self.depth - 1:
            if level < self.slice_level:
                pool = self.order_b([c for d in chosen for c in d.children])
                lower = self.distribute(pool, ask.count, self.k, ask.slice_size, True)
            else:
                lower = self._down(chosen, level)
            assert lower is not None, "what was counted above does not fit below"
            chosen, level = lower, level + 1
        return (
            {d.values: d.got for d in chosen if d.got},
            {d.values: d.leaders for d in chosen if d.leaders},
        )

    def _down(self, chosen: list[Domain], level: int) -> list[Domain] | None:
        size = self.inner_size(level + 1) or 1
        lower: list[Domain] = []
        for d in chosen:
            children = self.order_b(d.children)
            if size > 1:
                for c in children:
                    c.slices, c.slices_led = c.pods // size, c.pods_led // size
            part = self.distribute(children, d.got, d.leaders, size, size > 1)
            if part is None:
                return None
            lower.extend(part)
        return lower
