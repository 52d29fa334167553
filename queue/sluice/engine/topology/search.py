"""Finds domains for the pod sets of one Workload, flavor by flavor.

Source: docs/spec/algorithm.md 6.3, 6.5 to 6.8 and 6.11. Pod sets placed a moment ago are counted as
assumed usage on their cells while the next one is placed, and taken back at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from sluice.api.names import FlavorName
from sluice.api.records import (
    PodSetUpdate,
    TopologyAssignment,
    TopologyDomain,
    TopologyRequest,
    Workload,
)
from sluice.engine.options import Gates
from sluice.engine.placement import PlacementOutcome, PlacementRequest
from sluice.engine.topology import match, replace
from sluice.engine.topology.balanced import Balancer
from sluice.engine.topology.choose import Chooser, Dom, Want
from sluice.engine.topology.counts import Counts, Shape
from sluice.engine.topology.landscape import Landscape
from sluice.engine.topology.levels import Ask, interpret
from sluice.engine.topology.tree import PODS, Cell, Tree

COUNTS_MAX: Final = 32
LOG_LENGTH_MAX: Final = 200_000
_NO_SLICES: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spot:
    """Where one search may look."""

    flavor: FlavorName
    tree: Tree
    ask: Ask
    leaves: range | None = None


@final
class Search:
    """Runs placements on a landscape; remembers counts between calls."""

    __slots__ = ("_counts", "_counts_version", "_gates", "_land")

    def __init__(self, land: Landscape, gates: Gates) -> None:
        self._land = land
        self._gates = gates
        self._counts: dict[object, Counts] = {}
        self._counts_version = 0

    def run(
        self, workload: Workload, requests: tuple[PlacementRequest, ...], *, assume_empty: bool
    ) -> PlacementOutcome:
        """Place all requests; see `Placement.place`."""
        outcome = PlacementOutcome()
        by_flavor: dict[FlavorName, list[PlacementRequest]] = {}
        for request in requests:
            usable = [f for f in request.flavors if self._land.levels(f) is not None]
            if len(usable) == 1:
                by_flavor.setdefault(usable[0], []).append(request)
            else:
                found = "more than one" if usable else "no"
                outcome.errors[request.index] = (
                    f"{found} flavor with a topology assigned to pod set {request.pod_set.name}"
                )
        assumed: list[tuple[Cell, list[int], int]] = []
        self._trim()
        try:
            for flavor in sorted(by_flavor):
                for group in _groups(by_flavor[flavor]):
                    placed = self._place_group(workload, flavor, group, assume_empty, outcome)
                    if placed is None:
                        break
                    assumed.extend(placed)
        finally:
            for cell, vector, times in assumed:
                self._land.book.assume(cell, vector, -times)
        return outcome

    def _trim(self) -> None:
        if self._counts_version != self._land.version:
            self._counts.clear()
            self._counts_version = self._land.version
        if len(self._land.book.log) > LOG_LENGTH_MAX:
            self._counts.clear()
            self._land.book.log.clear()

    # One group --------------------------------------------------------------------------------

    def _place_group(
        self,
        workload: Workload,
        flavor: FlavorName,
        group: Sequence[PlacementRequest],
        assume_empty: bool,
        outcome: PlacementOutcome,
    ) -> list[tuple[Cell, list[int], int]] | None:
        """Place a group and return what it assumes, or None after noting why it failed."""
        tree = self._land.tree(flavor)
        assert tree is not None
        workers, leader = _roles(group)
        ask = interpret(None if workers.is_implied else workers.pod_set.topology, tree)
        if isinstance(ask, str):
            outcome.failed[workers.index] = f"{ask} in the topology of flavor {flavor}"
            return None
        spot = _Spot(flavor=flavor, tree=tree, ask=ask)
        found: dict[int, TopologyAssignment] | str
        if leader is not None:
            found = self._with_leader(spot, workers, leader, assume_empty)
        elif workers.grows and workers.previous is not None:
            found = self._grown(spot, workers, workers.previous, assume_empty)
        elif workload.unhealthy_nodes and workers.previous is not None:
            found = self._repaired(workload, spot, workers, workers.previous, assume_empty)
        else:
            found = self._fresh(spot, workers, assume_empty)
        if isinstance(found, str):
            outcome.failed[workers.index] = found
            return None
        outcome.placed.update(found)
        return [
            taken
            for request in group
            if request.index in found
            for taken in self._assume(tree, flavor, request, found[request.index])
        ]

    def _assume(
        self,
        tree: Tree,
        flavor: FlavorName,
        request: PlacementRequest,
        assignment: TopologyAssignment,
    ) -> list[tuple[Cell, list[int], int]]:
        vector = list(self._pod(request))
        before = dict[tuple[str, ...], int]()
        if request.previous is not None:
            before = {d.values[-1:]: d.count for d in request.previous.domains}
        taken = []
        for domain in assignment.domains:
            count = domain.count - (before.get(domain.values[-1:], 0) if before else 0)
            if count > 0:
                cell = self._land.book.of(assignment.levels, domain.values, flavor)
                self._land.book.assume(cell, vector, count)
                taken.append((cell, vector, count))
        return taken

    def _fresh(
        self, spot: _Spot, request: PlacementRequest, assume_empty: bool
    ) -> dict[int, TopologyAssignment] | str:
        doms = self._doms(spot, request, None, request.count, assume_empty)
        if isinstance(doms, str):
            return doms
        return {request.index: _assignment(spot.tree, doms, leaders=False)}

    def _with_leader(
        self, spot: _Spot, workers: PlacementRequest, leader: PlacementRequest, assume_empty: bool
    ) -> dict[int, TopologyAssignment] | str:
        doms = self._doms(spot, workers, leader, workers.count, assume_empty)
        if isinstance(doms, str):
            return doms
        return {
            workers.index: _assignment(spot.tree, doms, leaders=False),
            leader.index: _assignment(spot.tree, doms, leaders=True),
        }

    def _grown(
        self,
        spot: _Spot,
        request: PlacementRequest,
        previous: TopologyAssignment,
        assume_empty: bool,
    ) -> dict[int, TopologyAssignment] | str:
        """Place an elastic slice: pods that run stay where they are (6.11)."""
        if any(spot.tree.leaf_at(d.values) < 0 for d in previous.domains):
            return self._fresh(spot, request, assume_empty)
        more = request.count - sum(d.count for d in previous.domains)
        if more <= 0:
            return {request.index: _cut(previous, request.count)}
        doms = self._doms(spot, request, None, more, assume_empty)
        if isinstance(doms, str):
            return doms
        placed = _assignment(spot.tree, doms, leaders=False).domains
        return {request.index: replace.merge(spot.tree, previous.domains, placed)}

    def _repaired(
        self,
        workload: Workload,
        spot: _Spot,
        request: PlacementRequest,
        previous: TopologyAssignment,
        assume_empty: bool,
    ) -> dict[int, TopologyAssignment] | str:
        """Replace the pods of the first unhealthy node (6.8)."""
        node = workload.unhealthy_nodes[0]
        if workload.is_owned_by_pod or not replace.touches(previous, node):
            return {request.index: previous}
        task = replace.plan(spot.tree, spot.ask, previous, node)
        if isinstance(task, str):
            return task
        ask = spot.ask.with_slices(task.slice_level, task.slice_size)
        bound = _Spot(flavor=spot.flavor, tree=spot.tree, ask=ask, leaves=task.leaves)
        doms = self._doms(bound, request, None, task.count, assume_empty)
        if isinstance(doms, str):
            return doms
        placed = _assignment(spot.tree, doms, leaders=False).domains
        return {request.index: replace.merge(spot.tree, task.kept, placed)}

    # One placement ----------------------------------------------------------------------------

    def _pod(self, request: PlacementRequest) -> tuple[int, ...]:
        amounts: dict[str, int] = dict(request.pod)
        amounts[PODS] = amounts.get(PODS, 0) + 1
        return tuple(self._land.resources.vector(amounts))

    def _doms(
        self,
        spot: _Spot,
        workers: PlacementRequest,
        leader: PlacementRequest | None,
        count: int,
        assume_empty: bool,
    ) -> list[Dom] | str:
        """Return the leaves found with their shares, or why there are none."""
        counts, has_scores = self._counted(spot, workers, leader, assume_empty)
        want = spot.ask.want(count, 0 if leader is None else 1, mixed=self._gates.tas_profile_mixed)
        if not has_scores and not _may_fit(counts, want):
            return self._shortage(spot, counts, want)
        chooser = Chooser(spot.tree, counts, want)
        found: list[Dom] | None = None
        if self._gates.tas_balanced_placement and not want.required and not want.unconstrained:
            found = Balancer(spot.tree, chooser, want).place()
        if found is None:
            found = chooser.place()
        return self._shortage(spot, counts, want) if found is None else found

    def _counted(
        self,
        spot: _Spot,
        workers: PlacementRequest,
        leader: PlacementRequest | None,
        assume_empty: bool,
    ) -> tuple[Counts, bool]:
        template, update = workers.pod_set.template, workers.update
        flavor = self._land.flavors[spot.flavor]
        tolerations = (*template.tolerations, *(update.tolerations if update else ()))
        tolerations = (*tolerations, *flavor.tolerations)
        selector = (*template.node_selector, *_selector(update))
        preferred = template.affinity_preferred if self._gates.tas_preferred_affinity else ()
        ask = spot.ask
        shape = Shape(
            pod=self._pod(workers),
            leader=None if leader is None else self._pod(leader),
            slice_size=ask.slice_size,
            slice_level=ask.slice_level,
            inner=ask.inner,
            empty=assume_empty,
        )
        terms = template.affinity_terms
        key = (spot.flavor, shape, tolerations, selector, terms, preferred, spot.leaves)
        counts = self._counts.pop(key, None)
        if counts is None:
            if len(self._counts) >= COUNTS_MAX:
                self._counts.pop(next(iter(self._counts)))
            allowed = match.allowed_leaves(spot.tree, tolerations, dict(selector), terms)
            allowed = _within(spot.tree, allowed, spot.leaves)
            scores = match.leaf_scores(spot.tree, preferred)
            counts = Counts(spot.tree, self._land.book, shape, allowed, scores)
        else:
            counts.follow()
        self._counts[key] = counts
        return counts, bool(preferred)

    def _shortage(self, spot: _Spot, counts: Counts, want: Want) -> str:
        """Say how much of a want fits (docs/spec/api.md 4.2)."""
        name = self._land.flavors[spot.flavor].topology
        level = want.level if want.required or want.unconstrained else 0
        room = counts.slices_led[level] if want.leaders else counts.slices[level]
        fits = max(room, default=0) if want.required else sum(room)
        need = want.count // want.slice_size
        unit = "pod(s)" if want.slice_size == _NO_SLICES else "slice(s)"
        text = f'topology "{name}" doesn\'t allow to fit any of {need} {unit}'
        if fits > 0:
            fits = min(fits, max(0, need - 1))
            text = f'topology "{name}" allows to fit only {fits} out of {need} {unit}'
        if counts.excluded:
            text += f". Excluded by taints, selectors or affinity: {counts.excluded} domain(s)"
        return text


def _may_fit(counts: Counts, want: Want) -> bool:
    """Tell quickly whether a choice can succeed; never wrong when it says no."""
    need = want.count // want.slice_size
    if want.required:
        if want.leaders:
            level = want.level
            return any(
                lead > 0 and room >= need
                for lead, room in zip(counts.lead[level], counts.slices_led[level], strict=True)
            )
        return any(room >= need for room in counts.slices[want.level])
    return sum(counts.slices[want.level if want.unconstrained else 0]) >= need


def _groups(requests: Sequence[PlacementRequest]) -> list[list[PlacementRequest]]:
    groups: dict[str, list[PlacementRequest]] = {}
    for request in requests:
        topology: TopologyRequest | None = request.pod_set.topology
        name = topology.group if topology is not None else None
        groups.setdefault(f"group/{name}" if name else f"set/{request.index}", []).append(request)
    return list(groups.values())


def _roles(
    group: Sequence[PlacementRequest],
) -> tuple[PlacementRequest, PlacementRequest | None]:
    """Return (workers, leader) of a group (6.7.7); a group has one or two pod sets."""
    if len(group) == 1:
        return group[0], None
    first, second = group[0], group[1]
    return (second, first) if second.count > first.count else (first, second)


def _selector(update: PodSetUpdate | None) -> tuple[tuple[str, str], ...]:
    return () if update is None else update.node_selector


def _within(
    tree: Tree, allowed: tuple[bool, ...] | None, leaves: range | None
) -> tuple[bool, ...] | None:
    if leaves is None:
        return allowed
    return tuple(
        leaf in leaves and (allowed is None or allowed[leaf]) for leaf in range(len(tree.free))
    )


def _assignment(tree: Tree, doms: list[Dom], *, leaders: bool) -> TopologyAssignment:
    domains = []
    for dom in sorted(doms, key=lambda d: d.values):
        count = dom.leaders if leaders else dom.share
        if count > 0:
            values = dom.values[-1:] if tree.hostname_lowest else dom.values
            domains.append(TopologyDomain(values=values, count=count))
    return TopologyAssignment(levels=tree.stored_levels(), domains=tuple(domains))


def _cut(assignment: TopologyAssignment, count: int) -> TopologyAssignment:
    """Return the first ``count`` pods of an assignment."""
    domains = []
    for domain in assignment.domains:
        take = min(domain.count, count)
        if take > 0:
            domains.append(TopologyDomain(values=domain.values, count=take))
        count -= take
    return TopologyAssignment(levels=assignment.levels, domains=tuple(domains))
