"""Balanced placement written down once more, from docs/spec/algorithm.md 6.10."""

import copy
import math
from collections.abc import Sequence

from tests.support.topology_model import Domain, Model, Path

Greedy = tuple[int, Domain | None, Domain | None]
State = tuple[int, int, int]
"""Domains used, leaders left, pods left."""


class BalancedModel(Model):
    """The model with the gate TASBalancedPlacement; for preferred requests."""

    def place(self) -> tuple[dict[Path, int], dict[Path, int]] | None:
        """Return pods and leaders by leaf, balanced if that can be."""
        chosen = self._balanced()
        return super().place() if chosen is None else self._hand_down(chosen)

    def _greedy(self, domains: Sequence[Domain]) -> Greedy | None:
        n, k = self.ask.count // self.ask.slice_size, self.k
        taken: list[Domain] = []
        led = plain = None
        for d in self.order_a(domains) if k else ():
            if k > 0 and d.lead > 0:
                n, k, led = n - d.slices_led, k - d.lead, d
                taken.append(d)
        for d in self.order_b([d for d in domains if d not in taken]):
            if n > 0 and d.slices > 0:
                n, plain = n - d.slices, d
                taken.append(d)
        return None if n > 0 or k > 0 else (len(taken), led, plain)

    def _balanced(self) -> list[Domain] | None:
        ask = self.ask
        n = ask.count // ask.slice_size
        if n == 0:
            return None
        siblings: dict[Path, list[Domain]] = {}
        for d in self.levels[ask.level]:
            siblings.setdefault(d.values[:-1], []).append(d)
        best, fewest, kept = 0, 0, list[Domain]()
        for _, domains in sorted(siblings.items()):
            units = domains
            if ask.level < self.slice_level:
                units = [c for d in domains for c in d.children]
            first = self._greedy(units)
            if first is None:
                continue
            count, led, plain = first
            t = min(
                [n // count, *([led.slices_led] if led else []), *([plain.slices] if plain else [])]
            )
            lower = min(t, plain.slices_led) if led and plain else t
            if t < best:
                continue
            pruned = self._prune(domains, t)
            second = self._greedy(pruned)
            if second is None and t > lower > 0 and lower >= best:
                t, pruned = lower, self._prune(domains, lower)
                second = self._greedy(pruned)
            if second is None:
                continue
            if t > best or (t == best and second[0] < fewest):
                best, fewest, kept = t, second[0], pruned
        return self._spread(kept, best) if best else None

    def _prune(self, domains: Sequence[Domain], t: int) -> list[Domain]:
        pruned = copy.deepcopy(list(domains))
        if self.ask.level < self.slice_level:
            for d in pruned:
                self._clear(d.children, t)
                givers = [c for c in d.children if c.lead > 0 or not self.k]
                d.pods = sum(c.pods for c in d.children)
                d.slices = sum(c.slices for c in d.children)
                d.lead = max(c.lead for c in d.children)
                d.pods_led = d.pods - min(c.pods - c.pods_led for c in givers) if givers else 0
                lost = [c.slices - c.slices_led for c in givers]
                d.slices_led = d.slices - min(lost) if lost else 0
        self._clear(pruned, t)
        return pruned

    @staticmethod
    def _clear(domains: Sequence[Domain], t: int) -> None:
        for d in domains:
            if d.slices < t:
                d.pods = d.slices = 0
            if d.slices < t or d.slices_led < t:
                d.pods_led = d.slices_led = d.lead = 0

    def _spread(self, kept: list[Domain], t: int) -> list[Domain] | None:
        domains = kept
        if self.ask.level < self.slice_level:
            chosen = self._optimal(self._by_entropy(kept))
            if chosen is None:
                return None
            domains = [c for d in chosen for c in d.children]
        chosen = self._optimal(sorted(domains, key=lambda d: d.values))
        if chosen is None:
            return None
        size, k = self.ask.slice_size, self.k
        extra = self.ask.count // size - t * len(chosen)
        for d in self.order_a(chosen):
            room = (d.slices_led if k > 0 else d.slices) - t
            if room < 0 or (k > 0 and d.lead < k):
                return None
            d.leaders, k = k, 0
            more = max(0, min(room, extra))
            d.got, extra = (t + more) * size, extra - more
        return None if extra else chosen

    def _by_entropy(self, domains: Sequence[Domain]) -> list[Domain]:
        def entropy(d: Domain) -> float:
            total = sum(c.pods for c in d.children)
            shares = [c.pods / total for c in d.children if c.pods] if total else []
            return -sum(share * math.log2(share) for share in shares) if shares else 0.0

        return sorted(domains, key=lambda d: (-d.lead, -d.slices_led, -entropy(d), d.values))

    def _optimal(self, domains: list[Domain]) -> list[Domain] | None:
        greedy = self._greedy(domains)
        if greedy is None:
            return None
        ways: dict[State, list[Domain]] = {(0, self.k, self.ask.count): []}
        for d in domains:
            for (used, led, left), way in list(ways.items()):
                if used == greedy[0]:
                    continue
                if led > 0 and d.lead > 0:
                    ways.setdefault((used + 1, led - d.lead, left - d.pods_led), [*way, d])
                if d.slices > 0:
                    ways.setdefault((used + 1, led, left - d.pods), [*way, d])
        ends = [s for s in ways if s[0] == greedy[0] and s[1] == 0 and s[2] <= 0]
        return ways[max(ends, key=lambda s: s[2])] if ends else None

    def _hand_down(self, chosen: list[Domain]) -> tuple[dict[Path, int], dict[Path, int]] | None:
        ask = self.ask
        level = chosen[0].level
        while level < self.depth - 1:
            if level < self.slice_level:
                lower: list[Domain] | None = []
                for d in chosen:
                    children = self.order_b(d.children)
                    part = self.distribute(children, d.got, d.leaders, ask.slice_size, True)
                    lower = None if part is None or lower is None else [*lower, *part]
            else:
                lower = self._down(chosen, level)
            if lower is None:
                return None
            chosen, level = lower, level + 1
        return (
            {d.values: d.got for d in chosen if d.got},
            {d.values: d.leaders for d in chosen if d.leaders},
        )
