"""The worked examples of docs/spec/algorithm.md 8.13, on the placement functions alone."""

import pytest

from sluice.api.records import SliceConstraint, TopologyRequest
from sluice.engine.topology.balanced import Balancer
from sluice.engine.topology.choose import Chooser, Dom
from sluice.engine.topology.counts import Counts, Shape
from sluice.engine.topology.levels import interpret
from sluice.engine.topology.match import Usable
from sluice.engine.topology.tree import Amounts, CellBook, ResourceIndex, Tree, TreeNode, build

LEVELS = ("block", "rack", "kubernetes.io/hostname")
HOSTS = {
    "b1": {"r1": {"h1": 1, "h2": 3, "h3": 4}, "r2": {"h4": 2, "h5": 2}},
    "b2": {"r3": {"h6": 6}},
}
RESOURCES = ResourceIndex()
EVERYWHERE = Usable(allowed=None, excluded={})
assert RESOURCES.of("cpu") == 1


def pod_of(cores: int) -> Amounts:
    return RESOURCES.amounts([("cpu", cores)], with_pod=True)


class World:
    """A tree with free cores per host."""

    def __init__(self, hosts: dict[str, dict[str, dict[str, int]]]) -> None:
        self.book = CellBook(share_hosts=True)
        nodes = [
            (TreeNode(host, dict(zip(LEVELS, (block, rack, host), strict=True)), ()), [100, cores])
            for block, racks in hosts.items()
            for rack, members in racks.items()
            for host, cores in members.items()
        ]
        self.tree: Tree = build(LEVELS, nodes, self.book)

    def place(
        self,
        request: TopologyRequest,
        count: int,
        *,
        leader_cores: int = 0,
        balanced: bool = False,
    ) -> tuple[dict[str, int], dict[str, int]] | None:
        """Return pods by host and leaders by host, None when they don't fit."""
        ask = interpret(request, self.tree.levels, has_layers=True)
        assert not isinstance(ask, str), ask
        shape = Shape(
            pod=pod_of(1),
            leader=pod_of(leader_cores) if leader_cores else None,
            slice_size=ask.slice_size,
            slice_level=ask.slice_level,
            inner=ask.inner,
        )
        counts = Counts(self.tree, self.book, shape, EVERYWHERE)
        want = ask.want(count, 1 if leader_cores else 0, mixed=True)
        chooser = Chooser(self.tree, counts, want)
        found = Balancer(self.tree, chooser, want).place() if balanced else chooser.place()
        return None if found is None else (_pods(found), _leaders(found))


def _pods(doms: list[Dom]) -> dict[str, int]:
    return {d.values[-1]: d.share for d in sorted(doms, key=lambda d: d.values) if d.share}


def _leaders(doms: list[Dom]) -> dict[str, int]:
    return {d.values[-1]: d.leaders for d in doms if d.leaders}


def required(level: str, *layers: tuple[str, int]) -> TopologyRequest:
    return TopologyRequest(required=level, slices=_slices(layers), has_slice_fields=bool(layers))


def preferred(level: str, *layers: tuple[str, int]) -> TopologyRequest:
    return TopologyRequest(preferred=level, slices=_slices(layers), has_slice_fields=bool(layers))


def _slices(layers: tuple[tuple[str, int], ...]) -> tuple[SliceConstraint, ...]:
    return tuple(SliceConstraint(topology=level, size=size) for level, size in layers)


ONLY_R1 = {"b1": {"r1": HOSTS["b1"]["r1"]}}


@pytest.mark.parametrize(
    ("hosts", "request_", "count", "pods"),
    [
        pytest.param(HOSTS, required("rack"), 3, {"h4": 2, "h5": 1}, id="best fitting rack"),
        pytest.param(HOSTS, required("block"), 3, {"h6": 3}, id="best fitting block"),
        pytest.param(HOSTS, required("rack"), 9, None, id="no rack holds them"),
        pytest.param(
            HOSTS, preferred("rack"), 9, {"h2": 3, "h3": 4, "h4": 2}, id="hosts are pooled"
        ),
        pytest.param(
            HOSTS,
            TopologyRequest(unconstrained=True),
            7,
            {"h1": 1, "h2": 2, "h4": 2, "h5": 2},
            id="unconstrained takes the least free",
        ),
        pytest.param(
            HOSTS, preferred(LEVELS[2]), 7, {"h2": 3, "h3": 4}, id="preferred climbs a level"
        ),
        pytest.param(ONLY_R1, required("rack"), 4, {"h3": 4}, id="one host is enough"),
        pytest.param(
            ONLY_R1,
            required("rack", ("rack", 4)),
            4,
            {"h1": 1, "h2": 3},
            id="below the slice level small hosts are filled first",
        ),
        pytest.param(
            ONLY_R1, required("rack", ("rack", 2)), 4, {"h1": 1, "h2": 3}, id="slices of two"
        ),
        pytest.param(
            {"b1": HOSTS["b1"]},
            required("block", ("rack", 4), (LEVELS[2], 2)),
            8,
            {"h2": 2, "h3": 2, "h4": 2, "h5": 2},
            id="two layers of slices",
        ),
    ],
)
def test_placement(
    hosts: dict[str, dict[str, dict[str, int]]],
    request_: TopologyRequest,
    count: int,
    pods: dict[str, int] | None,
) -> None:
    found = World(hosts).place(request_, count)
    assert (None if found is None else found[0]) == pods


@pytest.mark.parametrize(
    ("hosts", "count", "pods", "leader"),
    [
        pytest.param(ONLY_R1, 6, {"h1": 1, "h2": 3, "h3": 2}, {"h3": 1}, id="six workers"),
        pytest.param(ONLY_R1, 7, None, None, id="seven do not fit beside the leader"),
        pytest.param({"b1": HOSTS["b1"]}, 2, {"h5": 2}, {"h4": 1}, id="the smaller rack"),
    ],
)
def test_a_leader_goes_where_it_costs_least(
    hosts: dict[str, dict[str, dict[str, int]]],
    count: int,
    pods: dict[str, int] | None,
    leader: dict[str, int] | None,
) -> None:
    found = World(hosts).place(required("rack"), count, leader_cores=2)
    assert found == (None if pods is None else (pods, leader))


def test_balanced_placement() -> None:
    world = World({"b1": HOSTS["b1"]})
    assert world.place(preferred("rack"), 8) == ({"h1": 1, "h2": 3, "h3": 4}, {})
    found = world.place(preferred("rack"), 8, balanced=True)
    assert found == ({"h3": 4, "h4": 2, "h5": 2}, {})


def test_counts_follow_usage() -> None:
    world = World(HOSTS)
    shape = Shape(
        pod=pod_of(1),
        leader=None,
        slice_size=1,
        slice_level=2,
        inner=(1, 1, 1),
    )
    counts = Counts(world.tree, world.book, shape, EVERYWHERE)
    cell = world.tree.cells[world.tree.leaf_at(("h6",))]
    world.book.add(cell, pod_of(1), 4)
    counts.follow()
    assert counts.pods[0] == [12, 2]
    world.book.add(cell, pod_of(1), -4)
    counts.follow()
    fresh = Counts(world.tree, world.book, shape, EVERYWHERE)
    assert counts.pods == fresh.pods == [[12, 6], [8, 4, 6], [1, 3, 4, 2, 2, 6]]
