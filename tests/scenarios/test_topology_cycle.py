"""Topology within a cycle: modes, victims, entries after each other (docs/spec/algorithm.md 3)."""

import itertools

import pytest
from tests.support import builders, racks
from tests.support.builders import key, ps
from tests.support.harness import AT_ONCE, Harness
from tests.support.racks import BLOCK, FREE, HOST, RACK, required

from sluice.api.records import Kind, Record, Topology
from sluice.engine.options import Gates

TWO = {"b1": {"r1": {"h1": 2}, "r2": {"h2": 2}}}


def low(name: str, hosts: dict[str, int], at_s: int = 0) -> Record:
    """Return a running Workload of priority 0, reserved at a second."""
    held = racks.holding(name, hosts)
    conditions = {kind: builders.condition(True, at_s=at_s) for kind in held.conditions}
    return racks.holding(name, hosts, conditions=conditions)


# Modes (3.3.7, 3.5.6).


def test_3_3_7_quota_is_enough_but_nodes_are_full() -> None:
    world = racks.world(TWO)
    world.observe(low("a", {"h1": 2}), low("b", {"h2": 1}))
    world.observe(racks.gang("w", 2, required(RACK)))
    world.cycle()
    # On an empty topology it would fit, so it waits for others to end.
    reason, message = world.told()["w"]
    assert reason == "TopologyPlacementFailed"
    assert 'topology "t" allows to fit only 1 out of 2 pod(s)' in message
    assert world.parked("q") == ["w"]
    world.finish("b")
    world.cycle()
    assert racks.where(world, "w") == {"h2": 2}


def test_3_3_7_a_gang_that_no_rack_holds_preempts_nobody() -> None:
    world = racks.world(TWO, cqs=(racks.queue(within="LowerPriority"),))
    world.observe(low("a", {"h1": 2}), racks.gang("w", 3, required(RACK), priority=1))
    world.cycle()
    assert world.evicted() == {}
    assert world.parked("q") == ["w"]


def test_3_3_7_other_pods_are_never_thought_away() -> None:
    world = racks.world(TWO, cqs=(racks.queue(within="LowerPriority"),))
    world.observe(racks.pod("p", "h1", "1"), racks.pod("o", "h2", "1"), low("a", {"h1": 1}))
    world.observe(racks.gang("w", 2, required(RACK), priority=1))
    world.cycle()
    assert world.evicted() == {}


def test_4_4_5_victims_are_taken_until_a_domain_is_free_and_given_back_if_not_needed() -> None:
    world = racks.world(TWO, cqs=(racks.queue(within="LowerPriority"),))
    # The latest go first: b frees one core of r2, c the other of r1; a makes r1 fit.
    world.observe(low("a", {"h1": 1}, 1), low("c", {"h1": 1}, 2), low("b", {"h2": 1}, 3))
    world.observe(low("d", {"h2": 1}, 0))
    world.observe(racks.gang("w", 2, required(RACK), priority=1))
    world.cycle()
    assert world.evicted() == {"a": "InClusterQueue", "c": "InClusterQueue"}
    world.run()
    assert racks.where(world, "w") == {"h1": 2}


def test_4_6_workloads_that_only_take_free_quota_are_candidates_too() -> None:
    queue = racks.queue(flavors={"tas": {"cpu": "2", "memory": "100"}}, within="LowerPriority")
    hosts = [racks.node("h1", "b1", "r1", 2, allocatable={"memory": "2"})]
    world = racks.world({}, *hosts, cqs=(queue,))
    world.observe(builders.wl("m", "q", ps(memory="2", topology=FREE)))
    world.cycle()
    assert racks.where(world, "m") == {"h1": 1}
    world.observe(builders.wl("w", "q", ps(cpu="1", memory="1", topology=FREE), priority=1))
    world.cycle()
    assert world.evicted() == {"m": "InClusterQueue"}


def test_3_5_6_a_waiting_preemptor_keeps_its_domain_from_later_entries() -> None:
    cqs = (racks.queue("q", "co", cpu="5"), racks.queue("q2", "co", cpu="4"))
    world = racks.world(TWO, cqs=cqs)
    world.observe(low("a", {"h1": 1}))
    # w would fit on an empty topology: r1 or r2, best fit takes r1; it may preempt nobody.
    world.observe(racks.gang("blocker", 2, required(HOST)))
    world.cycle()
    assert racks.where(world, "blocker") == {"h2": 2}
    world.observe(racks.gang("w", 2, required(RACK), priority=1))
    world.observe(racks.gang("v", 1, required(RACK), queue="q2"))
    world.cycle()
    assert racks.where(world, "w") is None
    # The core that is left on h1 is kept for w in this cycle; v is placed anew, in vain, and parks.
    assert racks.where(world, "v") is None
    assert world.parked("q2") == ["v"]
    world.gone(Kind.WORKLOAD, key("w"))
    world.observe(racks.node("h3", "b1", "r3", 0))
    world.cycle()
    assert racks.where(world, "v") == {"h1": 1}


# Entries of one cycle (3.7.2, 6.9).


@pytest.mark.parametrize(("is_on", "second"), [(True, {"h2": 2}), (False, None)])
def test_3_7_2_who_finds_its_domain_taken_is_placed_anew(
    is_on: bool, second: dict[str, int] | None
) -> None:
    world = racks.world(
        TWO,
        cqs=(racks.queue("q"), racks.queue("q2")),
        gates=Gates(tas_recompute_in_cycle=is_on),
    )
    world.observe(racks.gang("w", 2, required(RACK), priority=1))
    world.observe(racks.gang("v", 2, required(RACK), queue="q2"))
    world.cycle()
    assert racks.where(world, "w") == {"h1": 2}
    assert racks.where(world, "v") == second
    world.run()
    assert racks.where(world, "v") == {"h2": 2}


def test_6_9_two_pod_sets_on_one_leaf_are_tested_one_by_one() -> None:
    hosts = {"b1": {"r1": {"h1": 3}}}
    world = racks.world(hosts, cqs=(racks.queue("q"), racks.queue("q2")))
    both = (ps("a", 1, cpu="1", topology=FREE), ps("b", 1, cpu="1", topology=FREE))
    world.observe(racks.gang("first", 2, FREE, priority=1))
    world.observe(builders.wl("w", "q2", *both))
    world.cycle()
    # One core is left. Each pod set fits there by itself, so the entry passes: as in Kueue.
    assert racks.where(world, "first") == {"h1": 2}
    assert racks.where(world, "w", "a") == racks.where(world, "w", "b") == {"h1": 1}


def test_3_7_3_a_reservation_that_could_not_be_written_leaves_no_trace() -> None:
    world = racks.world(TWO)
    world.observe(racks.gang("w", 2, required(RACK)))
    world.reject_next()
    world.cycle()
    assert racks.where(world, "w") is None
    world.observe(racks.gang("v", 4, required(BLOCK), priority=1))
    world.cycle()
    assert racks.where(world, "v") == {"h1": 2, "h2": 2}


# Flavors and partial admission.


def test_3_4_nodes_of_the_first_flavor_are_full_so_the_next_is_tried() -> None:
    flavors = {"tas": {"cpu": "9"}, "tas2": {"cpu": "9"}}
    world = racks.world(
        {},
        racks.flavor("tas", labels={"pool": "a"}),
        racks.flavor("tas2", labels={"pool": "b"}),
        cqs=(racks.queue(flavors=flavors),),
    )
    world.observe(racks.node("h1", "b1", "r1", 1, labels={"pool": "a"}))
    world.observe(racks.node("h2", "b1", "r1", 2, labels={"pool": "b"}))
    world.observe(racks.gang("w", 2, required(RACK)))
    world.run()
    assert racks.where(world, "w") == {"h2": 2}


def test_3_5_4_fewer_pods_when_that_is_what_a_rack_holds() -> None:
    world = racks.world({"b1": {"r1": {"h1": 3}, "r2": {"h2": 2}}})
    pods = ps(count=5, min_count=2, cpu="1", topology=required(RACK))
    world.observe(builders.wl("w", "q", pods))
    world.cycle()
    assert racks.where(world, "w") == {"h1": 3}


def test_1_10_reclaimed_pods_keep_their_room_on_the_nodes() -> None:
    world = racks.world({"b1": {"r1": {"h1": 2}}})
    world.observe(racks.holding("w", {"h1": 2}))
    world.change("w", reclaimable=(("main", 1),))
    assert world.usage("q") == {"tas/cpu": 1000}
    world.observe(racks.gang("v", 1))
    world.cycle()
    assert world.parked("q") == ["v"]


# Restart.


def restart(order: tuple[int, ...]) -> Harness:
    """Return an engine that learned of nodes, configuration and a running Workload in an order."""
    parts: list[list[Record]] = [
        [racks.holding("w", {"h1": 2})],
        [Topology(name="t", levels=racks.LEVELS)],
        [racks.flavor()],
        [racks.queue(), builders.lq("q")],
        list(racks.nodes(TWO)),
    ]
    return Harness(*(record for index in order for record in parts[index]), options=AT_ONCE)


@pytest.mark.parametrize("order", list(itertools.permutations(range(5)))[::7])
def test_after_a_restart_usage_is_known_in_whatever_order_objects_come(
    order: tuple[int, ...],
) -> None:
    world = restart(order)
    world.observe(racks.gang("v", 2, required(RACK)))
    world.cycle()
    assert racks.where(world, "v") == {"h2": 2}
    world.gone(Kind.WORKLOAD, key("w"))
    world.observe(racks.gang("u", 2, required(RACK)))
    world.cycle()
    assert racks.where(world, "u") == {"h1": 2}
