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
from sluice.engine.topology import match, reasons, replace
from sluice.engine.topology.balanced import Balancer
from sluice.engine.topology.choose import Chooser, Dom, Want
from sluice.engine.topology.counts import Counts, Shape
from sluice.engine.topology.landscape import Landscape
from sluice.engine.topology.levels import Ask, interpret
from sluice.engine.topology.match import NodeFilter
from sluice.engine.topology.tree import Amounts, Cell, Tree

COUNTS_MAX: Final = 32
_NO_ROOM: Final = "no room"
_SOMEWHERE: Final = TopologyAssignment(levels=(), domains=())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spot:
    """Where one search may look, and whether running pods count."""

    flavor: FlavorName
    tree: Tree
    ask: Ask
    assume_empty: bool
    leaves: range | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Assumed:
    """Pods counted on a cell for the time of one run."""

    cell: Cell
    amounts: Amounts
    count: int


@final
class Search:
    """Runs placements on a landscape; remembers counts between calls."""

    __slots__ = (
        "_assumed", "_counts", "_counts_version", "_gates", "_is_last", "_is_probe", "_land",
    )  # fmt: skip

    def __init__(self, land: Landscape, gates: Gates) -> None:
        self._land = land
        self._gates = gates
        self._counts: dict[object, Counts] = {}
        self._counts_version = 0
        self._assumed: list[_Assumed] = []
        self._is_probe = False
        self._is_last = False

    def run(
        self,
        workload: Workload,
        requests: tuple[PlacementRequest, ...],
        *,
        assume_empty: bool,
        is_probe: bool = False,
    ) -> PlacementOutcome:
        """Place all requests; see `Placement.place`.

        Args:
            workload: Whose unhealthy nodes count.
            requests: In spec order.
            assume_empty: Pretend that no topology-aware Workload runs.
            is_probe: Only find out whether it would fail; neither places nor reasons are told.
        """
        self._is_probe = is_probe
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
        if self._counts_version != self._land.version:
            self._counts.clear()
            self._counts_version = self._land.version
        try:
            for flavor in sorted(by_flavor):
                groups = _groups(by_flavor[flavor])
                for at, group in enumerate(groups):
                    self._is_last = len(by_flavor) == 1 and at == len(groups) - 1
                    if not self._place_group(workload, flavor, group, assume_empty, outcome):
                        break
        finally:
            for assumed in self._assumed:
                self._land.book.assume(assumed.cell, assumed.amounts, -assumed.count)
            self._assumed.clear()
        return outcome

    # One group --------------------------------------------------------------------------------

    def _place_group(
        self,
        workload: Workload,
        flavor: FlavorName,
        group: Sequence[PlacementRequest],
        assume_empty: bool,
        outcome: PlacementOutcome,
    ) -> bool:
        """Place a group and assume it; False after noting why it failed."""
        tree = self._land.tree(flavor)
        assert tree is not None
        if workload.unhealthy_nodes and any(r.previous is not None for r in group):
            # Each pod set is repaired by itself: its leader or its workers stay where they are.
            return all(
                self._place_one(workload, tree, flavor, request, assume_empty, outcome)
                for request in group
            )
        workers, leader = _roles(group)
        if leader is None:
            return self._place_one(workload, tree, flavor, workers, assume_empty, outcome)
        ask = self._interpret(workers, tree)
        if isinstance(ask, str):
            outcome.failed[workers.index] = ask
            return False
        spot = _Spot(flavor=flavor, tree=tree, ask=ask, assume_empty=assume_empty)
        doms = self._doms(spot, workers, leader, workers.count)
        if isinstance(doms, str):
            outcome.failed[workers.index] = doms
            return False
        for request in (workers, leader):
            placed = self._assignment(tree, doms, leaders=request is leader)
            outcome.placed[request.index] = placed
            self._assume_beyond(tree, flavor, request, placed, None)
        return True

    def _place_one(
        self,
        workload: Workload,
        tree: Tree,
        flavor: FlavorName,
        request: PlacementRequest,
        assume_empty: bool,
        outcome: PlacementOutcome,
    ) -> bool:
        """Place a pod set by itself and assume it; False after noting why it failed."""
        ask = self._interpret(request, tree)
        if isinstance(ask, str):
            outcome.failed[request.index] = ask
            return False
        spot = _Spot(flavor=flavor, tree=tree, ask=ask, assume_empty=assume_empty)
        previous = request.previous
        found: TopologyAssignment | str
        if previous is not None and request.grows:
            found = self._grown(spot, request, previous)
        elif previous is not None and workload.unhealthy_nodes:
            found = self._repaired(workload, spot, request, previous)
        else:
            previous = None
            found = self._fresh(spot, request)
        if isinstance(found, str):
            outcome.failed[request.index] = found
            return False
        outcome.placed[request.index] = found
        self._assume_beyond(tree, flavor, request, found, None if assume_empty else previous)
        return True

    def _interpret(self, request: PlacementRequest, tree: Tree) -> Ask | str:
        return interpret(
            None if request.is_implied else request.pod_set.topology,
            tree.levels,
            has_layers=self._gates.tas_multi_layer,
        )

    def _assume_beyond(
        self,
        tree: Tree,
        flavor: FlavorName,
        request: PlacementRequest,
        assignment: TopologyAssignment,
        before: TopologyAssignment | None,
    ) -> None:
        """Count an assignment for the rest of this run, less what is counted for it already."""
        had: dict[int, int] = {}
        if before is not None:
            for domain in before.domains:
                leaf = tree.leaf_at(domain.values)
                had[leaf] = had.get(leaf, 0) + domain.count
        amounts = self._land.pod_amounts(request.pod)
        for domain in assignment.domains:
            count = domain.count
            if had:
                count -= had.get(tree.leaf_at(domain.values), 0)
            if count > 0:
                cell = self._land.book.of(assignment.levels, domain.values, flavor)
                self._assume(_Assumed(cell=cell, amounts=amounts, count=count))

    def _assume(self, assumed: _Assumed) -> None:
        self._land.book.assume(assumed.cell, assumed.amounts, assumed.count)
        self._assumed.append(assumed)

    def _fresh(self, spot: _Spot, request: PlacementRequest) -> TopologyAssignment | str:
        doms = self._doms(spot, request, None, request.count)
        return doms if isinstance(doms, str) else self._assignment(spot.tree, doms, leaders=False)

    def _grown(
        self, spot: _Spot, request: PlacementRequest, previous: TopologyAssignment
    ) -> TopologyAssignment | str:
        """Place an elastic slice: pods that run stay where they are (6.11)."""
        if any(spot.tree.leaf_at(d.values) < 0 for d in previous.domains):
            return self._fresh(spot, request)
        more = request.count - sum(d.count for d in previous.domains)
        if more <= 0:
            return _cut(previous, request.count)
        start = len(self._assumed)
        if spot.assume_empty:
            # The pods that run already stay even when all others are thought away.
            self._assume_beyond(spot.tree, spot.flavor, request, previous, None)
        doms = self._doms(spot, request, None, more)
        while len(self._assumed) > start:
            assumed = self._assumed.pop()
            self._land.book.assume(assumed.cell, assumed.amounts, -assumed.count)
        if isinstance(doms, str):
            return doms
        placed = self._assignment(spot.tree, doms, leaders=False).domains
        return replace.merge(spot.tree, previous.domains, placed)

    def _repaired(
        self,
        workload: Workload,
        spot: _Spot,
        request: PlacementRequest,
        previous: TopologyAssignment,
    ) -> TopologyAssignment | str:
        """Replace the pods of the first unhealthy node (6.8)."""
        node = workload.unhealthy_nodes[0]
        if workload.is_owned_by_pod and self._gates.skip_reassignment_for_pods:
            return previous
        if not replace.touches(previous, node):
            return previous
        task = replace.plan(spot.tree, spot.ask, previous, node)
        if isinstance(task, str):
            return task
        bound = _Spot(
            flavor=spot.flavor,
            tree=spot.tree,
            ask=spot.ask.with_slices(task.slice_level, task.slice_size),
            assume_empty=spot.assume_empty,
            leaves=task.leaves,
        )
        doms = self._doms(bound, request, None, task.count)
        if isinstance(doms, str):
            return doms
        placed = self._assignment(spot.tree, doms, leaders=False).domains
        return replace.merge(spot.tree, task.kept, placed)

    def _assignment(self, tree: Tree, doms: list[Dom], *, leaders: bool) -> TopologyAssignment:
        """Return the leaves that got workers, or leaders, in order of values (6.7.6)."""
        if self._is_probe and self._is_last:
            return _SOMEWHERE
        domains = []
        for dom in sorted(doms, key=lambda d: d.values):
            count = dom.leaders if leaders else dom.share
            if count > 0:
                domains.append(TopologyDomain(values=tree.identity(dom.values), count=count))
        return TopologyAssignment(levels=tree.stored_levels(), domains=tuple(domains))

    # One placement ----------------------------------------------------------------------------

    def _doms(
        self,
        spot: _Spot,
        workers: PlacementRequest,
        leader: PlacementRequest | None,
        count: int,
    ) -> list[Dom] | str:
        """Return the leaves found with their shares, or why there are none."""
        counts = self._counted(spot, workers, leader)
        want = spot.ask.want(count, 0 if leader is None else 1, mixed=self._gates.tas_profile_mixed)
        found: list[Dom] | None = None
        if want.required or _may_fit(counts, want):
            chooser = Chooser(spot.tree, counts, want)
            if self._is_probe and self._is_last:
                return [] if chooser.can_place() else _NO_ROOM
            if self._gates.tas_balanced_placement and not want.required and not want.unconstrained:
                found = Balancer(spot.tree, chooser, want).place()
            if found is None:
                found = chooser.place()
        if found is not None:
            return found
        if self._is_probe:
            return _NO_ROOM
        topology = self._land.flavors[spot.flavor].topology or ""
        leaves = sum(1 for nodes in spot.tree.nodes if nodes)
        return reasons.shortage(topology, leaves, self._land.resources.names, counts, want)

    def _counted(
        self, spot: _Spot, workers: PlacementRequest, leader: PlacementRequest | None
    ) -> Counts:
        """Return up-to-date counts, those of an earlier call if there are any."""
        template, update = workers.pod_set.template, workers.update
        wanted = NodeFilter(
            tolerations=(
                *template.tolerations,
                *(update.tolerations if update is not None else ()),
                *self._land.flavors[spot.flavor].tolerations,
            ),
            selector=_selector(template.node_selector, update),
            terms=template.affinity_terms,
            leaves=spot.leaves,
        )
        preferred = template.affinity_preferred if self._gates.tas_preferred_affinity else ()
        ask = spot.ask
        shape = Shape(
            pod=self._land.pod_amounts(workers.pod),
            leader=None if leader is None else self._land.pod_amounts(leader.pod),
            slice_size=ask.slice_size,
            slice_level=ask.slice_level,
            inner=ask.inner,
            empty=spot.assume_empty,
        )
        key = (spot.flavor, shape, wanted, preferred)
        counts = self._counts.pop(key, None)
        if counts is None:
            if len(self._counts) >= COUNTS_MAX:
                self._counts.pop(next(iter(self._counts)))
            usable = match.usable_leaves(spot.tree, wanted)
            scores = match.leaf_scores(spot.tree, preferred)
            counts = Counts(spot.tree, self._land.book, shape, usable, scores)
        else:
            counts.follow()
        self._counts[key] = counts
        return counts


def _may_fit(counts: Counts, want: Want) -> bool:
    """Tell quickly whether several domains can hold a want; never wrong when it says no."""
    need = want.count // want.slice_size
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


def _selector(
    selector: tuple[tuple[str, str], ...], update: PodSetUpdate | None
) -> tuple[tuple[str, str], ...]:
    """Return a node selector with what checks add to it, in key order."""
    if update is None or not update.node_selector:
        return selector
    return tuple(sorted({**dict(selector), **dict(update.node_selector)}.items()))


def _cut(assignment: TopologyAssignment, count: int) -> TopologyAssignment:
    """Return the first ``count`` pods of an assignment."""
    domains = []
    for domain in assignment.domains:
        take = min(domain.count, count)
        if take > 0:
            domains.append(TopologyDomain(values=domain.values, count=take))
        count -= take
    return TopologyAssignment(levels=assignment.levels, domains=tuple(domains))
