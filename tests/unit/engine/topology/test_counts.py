"""Counts that follow changes, the log and the cells they follow (docs/spec/algorithm.md 6.5)."""

import pytest
from tests.support import racks
from tests.support.racks import HOSTS, LEVELS

from sluice.api.names import FlavorName, ResourceName
from sluice.engine.options import Gates
from sluice.engine.placement import TopologyUsage
from sluice.engine.topology.counts import Counts, Shape, fits
from sluice.engine.topology.facade import TopologyPlacement
from sluice.engine.topology.match import Usable
from sluice.engine.topology.tree import (
    LOG_LENGTH_MAX,
    Amounts,
    CellBook,
    ResourceIndex,
    Tree,
    TreeNode,
    build,
)

RESOURCES = ResourceIndex()
EVERYWHERE = Usable(allowed=None, excluded={})
assert RESOURCES.of("cpu") == 1


def pod_of(cores: int) -> Amounts:
    return RESOURCES.amounts([("cpu", cores)], with_pod=True)


def tree_of(book: CellBook) -> Tree:
    return build(
        LEVELS,
        [
            (TreeNode(host, dict(zip(LEVELS, (block, rack, host), strict=True)), ()), [100, cores])
            for block, there in HOSTS.items()
            for rack, hosts in there.items()
            for host, cores in hosts.items()
        ],
        book,
    )


def shape(*, leader: int = 0, slice_size: int = 1, slice_level: int = 2, inner: int = 1) -> Shape:
    return Shape(
        pod=pod_of(1),
        leader=pod_of(leader) if leader else None,
        slice_size=slice_size,
        slice_level=slice_level,
        inner=(1, 1, inner),
    )


SHAPES = [
    pytest.param(shape(), id="pods"),
    pytest.param(shape(slice_size=2, slice_level=1), id="slices of racks"),
    pytest.param(shape(slice_size=2), id="slices of hosts"),
    pytest.param(shape(slice_size=4, slice_level=1, inner=2), id="two layers"),
    pytest.param(shape(leader=2), id="leader"),
    pytest.param(shape(leader=2, slice_size=4, slice_level=1, inner=2), id="leader, two layers"),
]


def snapshot(counts: Counts) -> tuple[list[list[int]], ...]:
    return (counts.pods, counts.pods_led, counts.lead, counts.slices, counts.slices_led)


def test_counts_of_the_example() -> None:
    book = CellBook(share_hosts=True)
    counts = Counts(tree_of(book), book, shape(), EVERYWHERE)
    assert counts.pods == [[12, 6], [8, 4, 6], [1, 3, 4, 2, 2, 6]]
    assert counts.slices == counts.slices_led == counts.pods == counts.pods_led


def test_counts_beside_a_leader() -> None:
    book = CellBook(share_hosts=True)
    counts = Counts(tree_of(book), book, shape(leader=2), EVERYWHERE)
    # A leader costs two pods wherever it fits; it doesn't on h1.
    assert counts.lead == [[1, 1], [1, 1, 1], [0, 1, 1, 1, 1, 1]]
    assert counts.pods_led == [[10, 4], [6, 2, 4], [1, 1, 2, 0, 0, 4]]


@pytest.mark.parametrize("wanted", SHAPES)
def test_counts_follow_what_is_booked(wanted: Shape) -> None:
    book = CellBook(share_hosts=True)
    tree = tree_of(book)
    counts = Counts(tree, book, wanted, EVERYWHERE)
    limits = counts.limits()
    for leaf, cores in ((5, 3), (2, 4), (0, 1), (5, 2), (2, -3), (1, 1), (5, -5), (1, -1)):
        book.add(tree.cells[leaf], pod_of(1), cores)
        counts.follow()
        fresh = Counts(tree, book, wanted, EVERYWHERE)
        assert snapshot(counts) == snapshot(fresh)
        assert {k: n for k, n in limits.items() if n} == dict(fresh.limits())


@pytest.mark.slow
def test_a_log_that_was_cut_has_everything_counted_anew() -> None:
    book = CellBook(share_hosts=True)
    tree = tree_of(book)
    counts = Counts(tree, book, shape(), EVERYWHERE)
    book.add(tree.cells[5], pod_of(1), 4)
    for _ in range(LOG_LENGTH_MAX):
        book.touch(tree.cells[0])
    assert len(book.log) < LOG_LENGTH_MAX
    counts.follow()
    assert counts.pods == [[12, 2], [8, 4, 2], [1, 3, 4, 2, 2, 2]]


def test_nothing_asked_for_fits_no_times() -> None:
    assert fits([5, 5], ()) == 0
    assert fits([5], ((1, 1),)) == 0
    assert fits([5, -3], ((1, 1),)) == 0
    assert fits([1 << 40], ((0, 1),)) == 2**31 - 1


def test_what_is_booked_outside_cycles_is_not_kept_for_undoing() -> None:
    placement = TopologyPlacement(Gates())
    usage = TopologyUsage(
        flavor=FlavorName("tas"),
        pod=((ResourceName("cpu"), 1000),),
        assignment=racks.topology({"h1": 1}),
    )
    mark = placement.checkpoint()
    placement.book((usage,))
    placement.commit()
    placement.book((usage,))
    placement.rollback(mark)
    assert placement.misbooked([usage, usage]) == []
    assert placement.misbooked([usage]) != []


def test_cells_that_nobody_needs_are_forgotten() -> None:
    book = CellBook(share_hosts=True)
    tree = tree_of(book)
    booked = book.of(LEVELS, ("b1", "r1", "gone but booked"))
    book.add(booked, pod_of(1), 1)
    idle = [book.of(LEVELS, ("b1", "r1", f"gone-{i}")) for i in range(2000)]
    book.sweep([tree])
    assert book.of(LEVELS, ("b1", "r1", "gone but booked")) is booked
    assert book.of(LEVELS, tree.values[-1][0]) is tree.cells[0]
    assert book.of(LEVELS, ("b1", "r1", "gone-7")) is not idle[7]
