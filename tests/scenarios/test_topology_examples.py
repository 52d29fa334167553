"""Worked examples 8.13 and 8.20 of docs/spec/algorithm.md, through the engine."""

import pytest
from tests.support import racks
from tests.support.builders import key, ps
from tests.support.racks import BLOCK, HOST, HOSTS, RACK, Hosts, part, preferred, required

from sluice.api.records import TopologyRequest
from sluice.engine.options import Gates

Pods = dict[str, int]


@pytest.mark.parametrize(
    ("hosts", "request_", "count", "pods"),
    [
        pytest.param(HOSTS, required(RACK), 3, {"h4": 2, "h5": 1}, id="best fitting rack"),
        pytest.param(HOSTS, required(BLOCK), 3, {"h6": 3}, id="best fitting block"),
        pytest.param(HOSTS, required(RACK), 9, None, id="no rack holds them"),
        pytest.param(
            part("r1", "r2"), preferred(RACK), 9, {"h2": 3, "h3": 4, "h4": 2}, id="hosts are pooled"
        ),
        pytest.param(
            HOSTS, racks.FREE, 7, {"h1": 1, "h2": 2, "h4": 2, "h5": 2}, id="least free first"
        ),
        pytest.param(HOSTS, None, 7, {"h1": 1, "h2": 2, "h4": 2, "h5": 2}, id="implied"),
        pytest.param(HOSTS, preferred(HOST), 7, {"h2": 3, "h3": 4}, id="climbs a level"),
        pytest.param(part("r1"), required(RACK), 4, {"h3": 4}, id="one host is enough"),
        pytest.param(
            part("r1"), required(RACK, (RACK, 4)), 4, {"h1": 1, "h2": 3}, id="a slice of four"
        ),
        pytest.param(
            part("r1"), required(RACK, (RACK, 2)), 4, {"h1": 1, "h2": 3}, id="slices of two"
        ),
        pytest.param(
            part("r1", "r2"),
            required(BLOCK, (RACK, 4), (HOST, 2)),
            8,
            {"h2": 2, "h3": 2, "h4": 2, "h5": 2},
            id="two layers of slices",
        ),
    ],
)
def test_8_13_one_pod_set(
    hosts: Hosts, request_: TopologyRequest | None, count: int, pods: Pods | None
) -> None:
    world = racks.world(hosts)
    world.observe(racks.gang("w", count, request_))
    world.cycle()
    assert racks.where(world, "w") == pods


@pytest.mark.parametrize(
    ("hosts", "count", "leader", "workers"),
    [
        pytest.param(part("r1"), 6, {"h3": 1}, {"h1": 1, "h2": 3, "h3": 2}, id="six workers"),
        pytest.param(part("r1"), 7, None, None, id="seven do not fit beside the leader"),
        pytest.param(part("r1", "r2"), 2, {"h4": 1}, {"h5": 2}, id="the smaller rack"),
    ],
)
@pytest.mark.parametrize("leader_first", [True, False])
def test_8_13_leader_and_workers(
    hosts: Hosts, count: int, leader: Pods | None, workers: Pods | None, leader_first: bool
) -> None:
    world = racks.world(hosts)
    group = required(RACK, group="g")
    crew = racks.crew(
        "w",
        ps("workers", count, cpu="1", topology=group),
        ps("leader", cpu="2", topology=group),
        leader_first=leader_first,
    )
    world.observe(crew)
    world.cycle()
    assert racks.where(world, "w", "leader") == leader
    assert racks.where(world, "w", "workers") == workers


def test_8_13_of_equal_counts_the_first_pod_set_is_taken_for_the_workers() -> None:
    world = racks.world(part("r2"))
    group = required(RACK, group="g")
    leader = ps("leader", cpu="2", topology=group)
    world.observe(racks.crew("w", ps("worker", cpu="1", topology=group), leader))
    world.cycle()
    assert racks.where(world, "w", "worker") == {"h4": 1}
    assert racks.where(world, "w", "leader") == {"h5": 1}


@pytest.mark.parametrize(
    ("is_on", "pods"), [(False, {"h1": 1, "h2": 3, "h3": 4}), (True, {"h3": 4, "h4": 2, "h5": 2})]
)
def test_8_13_balanced_placement(is_on: bool, pods: Pods) -> None:
    world = racks.world(part("r1", "r2"), gates=Gates(tas_balanced_placement=is_on))
    world.observe(racks.gang("w", 8, preferred(RACK)))
    world.cycle()
    assert racks.where(world, "w") == pods


@pytest.mark.parametrize(
    ("h1", "request_", "had", "pods"),
    [
        # Its own pod on h1 counts (6.8), so h1 needs three cores to be free for two more.
        pytest.param(3, required(RACK), {"h1": 1, "hX": 2}, {"h1": 3}, id="required"),
        pytest.param(2, preferred(RACK), {"h1": 1, "hX": 2}, {"h1": 1, "h4": 2}, id="preferred"),
        pytest.param(
            2,
            required(BLOCK, (RACK, 3)),
            {"h1": 2, "h2": 1, "h4": 2, "hX": 1},
            {"h1": 2, "h2": 1, "h4": 2, "h5": 1},
            id="the slice stays in its rack",
        ),
    ],
)
def test_8_20_replacement(h1: int, request_: TopologyRequest, had: Pods, pods: Pods) -> None:
    r1 = {"h1": h1, "h2": 3, "h3": 4}
    world = racks.world({"b1": {"r1": r1, "r2": HOSTS["b1"]["r2"]}, "b2": HOSTS["b2"]})
    world.observe(racks.holding("w", had, request_, unhealthy_nodes=("hX",)))
    world.now_ms += 1000
    world.cycle()
    assert racks.where(world, "w") == pods
    assert world.workloads[key("w")].unhealthy_nodes == ()
