"""The engine's `Placement` over real nodes and domains."""

from collections.abc import Iterable
from typing import assert_never, final

from sluice.api.names import FlavorName
from sluice.api.records import (
    Kind,
    Node,
    Pod,
    PodSet,
    ResourceFlavor,
    Topology,
    TopologyRequest,
    Workload,
)
from sluice.engine.options import Gates
from sluice.engine.placement import (
    Placement,
    PlacementOutcome,
    PlacementRequest,
    TopologyUsage,
    is_explicit,
)
from sluice.engine.topology.counts import fits
from sluice.engine.topology.landscape import Landscape
from sluice.engine.topology.levels import missing_level
from sluice.engine.topology.search import Search
from sluice.engine.topology.tree import Amounts, Cell, CellBook

_NOTHING: frozenset[FlavorName] = frozenset()


@final
class TopologyPlacement(Placement):
    """Places pods in the topologies of flavors; see `sluice.engine.placement`."""

    __slots__ = ("_is_recording", "_land", "_search", "_undo")

    def __init__(self, gates: Gates) -> None:
        self._land = Landscape(share_hosts=gates.tas_overlapping_flavors)
        self._search = Search(self._land, gates)
        self._undo: list[tuple[Cell, Amounts, int]] = []
        self._is_recording = False

    def observe(self, record: Node | Pod | Topology | ResourceFlavor) -> frozenset[FlavorName]:
        """Take in a fact; return the flavors whose capacity grew or whose tree changed."""
        if isinstance(record, Node):
            return self._land.set_node(record)
        if isinstance(record, Pod):
            return self._land.set_pod(record)
        if isinstance(record, Topology):
            return self._land.set_topology(record)
        if isinstance(record, ResourceFlavor):
            return self._land.set_flavor(record)
        assert_never(record)

    def gone(self, kind: Kind, key: str) -> frozenset[FlavorName]:
        """Forget an object; return the flavors whose capacity grew or whose tree changed."""
        if kind is Kind.NODE:
            return self._land.drop_node(key)
        if kind is Kind.POD:
            return self._land.drop_pod(key)
        if kind is Kind.TOPOLOGY:
            return self._land.drop_topology(key)
        if kind is Kind.RESOURCE_FLAVOR:
            return self._land.drop_flavor(FlavorName(key))
        return _NOTHING

    def levels(self, flavor: FlavorName) -> tuple[str, ...] | None:
        """Return the level keys of a flavor's topology, None when it has none or it is unknown."""
        return self._land.levels(flavor)

    def refusal(
        self,
        pod_set: PodSet,
        flavor: FlavorName,
        *,
        is_implied: bool,
        covers_pod_resources: bool,
    ) -> str | None:
        """Return why a flavor is not compatible with a pod set's topology request (6.2)."""
        if is_implied:
            return None
        request: TopologyRequest | None = pod_set.topology
        has_topology = self._land.flavors[flavor].topology is not None
        if request is None or not is_explicit(request):
            if not has_topology:
                return None
            return f"flavor {flavor} is only for pod sets that ask for a topology"
        if not has_topology:
            return f"flavor {flavor} has no topology" if covers_pod_resources else None
        levels = self._land.levels(flavor)
        if levels is None:
            return f"the topology of flavor {flavor} is not known"
        missing = missing_level(request, levels)
        return None if missing is None else f"the topology of flavor {flavor} has {missing}"

    def place(
        self,
        workload: Workload,
        requests: tuple[PlacementRequest, ...],
        *,
        assume_empty: bool,
    ) -> PlacementOutcome:
        """Find domains for all requests on the present state; changes nothing."""
        return self._search.run(workload, requests, assume_empty=assume_empty)

    def can_place(self, workload: Workload, requests: tuple[PlacementRequest, ...]) -> bool:
        """Tell whether `place` would find domains for all requests now."""
        found = self._search.run(workload, requests, assume_empty=False, is_probe=True)
        return not found.failed and not found.errors

    def fits(self, usages: tuple[TopologyUsage, ...]) -> bool:
        """Tell whether every domain exists and holds its pods now, each taken by itself (6.9)."""
        for usage in usages:
            tree = self._land.tree(usage.flavor)
            if tree is None:
                return False
            request = self._land.resources.amounts(usage.pod, with_pod=False)
            for domain in usage.assignment.domains:
                leaf = tree.leaf_at(domain.values)
                if leaf < 0:
                    return False
                room = list(tree.free[leaf])
                used = tree.cells[leaf].used
                for i in range(min(len(room), len(used))):
                    room[i] -= used[i]
                if fits(room, request) < domain.count:
                    return False
        return True

    def book(self, usages: tuple[TopologyUsage, ...]) -> None:
        """Add usage; domains that are no longer in the tree are remembered but don't count."""
        for usage in usages:
            self._charge(usage, 1)

    def unbook(self, usages: tuple[TopologyUsage, ...]) -> None:
        """Take usage away that was booked before."""
        for usage in usages:
            self._charge(usage, -1)

    def _charge(self, usage: TopologyUsage, sign: int) -> None:
        amounts = self._land.pod_amounts(usage.pod)
        book, levels, flavor = self._land.book, usage.assignment.levels, usage.flavor
        for domain in usage.assignment.domains:
            cell = book.of(levels, domain.values, flavor)
            times = sign * domain.count
            book.add(cell, amounts, times)
            if self._is_recording:
                self._undo.append((cell, amounts, times))

    def checkpoint(self) -> int:
        """Return a mark for `rollback`; marks nest. What is booked from now on can be undone."""
        self._is_recording = True
        return len(self._undo)

    def rollback(self, mark: int) -> None:
        """Undo every `book` and `unbook` since the mark."""
        book = self._land.book
        while len(self._undo) > mark:
            cell, amounts, times = self._undo.pop()
            book.add(cell, amounts, -times)

    def commit(self) -> None:
        """Forget what could be undone, and record nothing until the next `checkpoint`."""
        self._undo.clear()
        self._is_recording = False

    def misbooked(self, usages: Iterable[TopologyUsage]) -> list[str]:
        """Return where usage differs from these bookings, for checks between cycles."""
        wanted = CellBook.like(self._land.book)
        for usage in usages:
            amounts = self._land.pod_amounts(usage.pod)
            for domain in usage.assignment.domains:
                cell = wanted.of(usage.assignment.levels, domain.values, usage.flavor)
                wanted.add(cell, amounts, domain.count)
        found = self._land.book.differences(wanted)
        if self._undo:
            found.append(f"{len(self._undo)} bookings could still be undone")
        return found
