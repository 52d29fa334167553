"""What pod sets ask of a topology, on which flavors (docs/spec/algorithm.md 6.2 to 6.6, 6.10)."""

from fractions import Fraction
from typing import Any

import pytest
from tests.support import builders, racks
from tests.support.builders import ps
from tests.support.racks import BLOCK, FLAVOR, FREE, HOST, HOSTS, RACK, preferred, required, sliced

from sluice.api.names import ResourceName
from sluice.api.records import TopologyRequest
from sluice.engine import messages
from sluice.engine.options import EngineOptions, Gates, Transformation, TransformationStrategy

# Flavors (6.2).


def test_6_2_a_flavor_without_topology_does_not_do() -> None:
    flavors = {"default": {"cpu": "100"}, FLAVOR: {"cpu": "100"}}
    world = racks.world(cqs=(racks.queue(flavors=flavors),))
    world.observe(racks.gang("w", 1, required(RACK)))
    world.cycle()
    assert world.admitted() == {"w": {"main/cpu": FLAVOR}}


def test_6_2_a_flavor_with_a_topology_is_only_for_those_who_ask() -> None:
    flavors = {FLAVOR: {"cpu": "100"}, "default": {"cpu": "100"}}
    world = racks.world(cqs=(racks.queue(flavors=flavors),))
    world.observe(racks.gang("w", 1, None))
    world.cycle()
    assert world.admitted() == {"w": {"main/cpu": "default"}}
    assert racks.where(world, "w") is None


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(required("row"), id="required"),
        pytest.param(preferred("row"), id="preferred"),
        pytest.param(required(RACK, ("row", 2)), id="slice"),
        pytest.param(required(BLOCK, (RACK, 4), ("row", 2)), id="inner slice"),
        pytest.param(TopologyRequest(unconstrained=False), id="unconstrained: false"),
        pytest.param(TopologyRequest(has_slice_fields=True), id="a slice size alone"),
    ],
)
def test_6_2_a_flavor_without_the_level_is_passed_over(request_: TopologyRequest) -> None:
    world = racks.world()
    world.observe(racks.gang("w", 1, request_))
    world.cycle()
    reason, message = world.told()["w"]
    assert reason == "NoMatchingFlavor"
    assert FLAVOR in message


def test_6_2_a_resource_made_by_a_transformation_needs_no_topology() -> None:
    transformation = Transformation(
        input=ResourceName("cpu"),
        strategy=TransformationStrategy.RETAIN,
        outputs=((ResourceName("credits"), Fraction(2)),),
    )
    options = EngineOptions(transformations=(transformation,), wake_up_batch_ms=0)
    queue = racks.queue(more_groups=[{"default": {"credits": "100"}}])
    world = racks.world(cqs=(queue,), options=options)
    world.observe(racks.gang("w", 2, required(RACK)))
    world.cycle()
    assert world.admitted() == {"w": {"main/cpu": FLAVOR, "main/credits": "default"}}
    assert racks.where(world, "w") == {"h4": 2}


def test_6_2_two_flavors_with_topologies_are_too_many_for_one_pod_set() -> None:
    queue = racks.queue(more_groups=[{"tas2": {"memory": "100"}}])
    world = racks.world(HOSTS, racks.flavor("tas2"), cqs=(queue,))
    world.observe(builders.wl("w", "q", ps(cpu="1", memory="1", topology=FREE)))
    world.cycle()
    assert "more than one flavor with a topology" in world.told()["w"][1]


def test_6_2_a_pod_set_without_any_flavor_can_not_be_placed() -> None:
    world = racks.world()
    world.observe(builders.wl("w", "q", ps("a", cpu="1", topology=FREE), ps("b", topology=FREE)))
    world.cycle()
    assert world.told()["w"] == (
        "NoMatchingFlavor",
        "failed to assign flavors to pod set b: no flavor with a topology is assigned",
    )


def test_6_9_pods_without_requests_are_placed_but_never_pass_the_last_test() -> None:
    world = racks.world()
    group = required(RACK, group="g")
    world.observe(racks.crew("w", ps("b", 2, cpu="2", topology=group), ps("a", topology=group)))
    world.cycle()
    # The leader takes the flavor of its group (3.3.2) and has a place; 0 pods of nothing fit there.
    assert world.told()["w"] == ("WaitingForQuota", messages.NO_LONGER_FITS)
    assert world.pending("q") == ["w"]


def test_6_3_the_leader_of_a_group_takes_room_from_later_pod_sets() -> None:
    world = racks.world({"b1": {"r1": {"h1": 3, "h2": 5}}})
    group = required(HOST, group="g")
    workers, leader = ps("b", 2, cpu="1", topology=group), ps("a", cpu="1", topology=group)
    last = ps("c", cpu="1", topology=required(HOST))
    world.observe(builders.wl("w", "q", leader, workers, last))
    world.cycle()
    assert racks.where(world, "w", "b") == {"h1": 2}
    assert racks.where(world, "w", "a") == {"h1": 1}
    assert racks.where(world, "w", "c") == {"h2": 1}


# Levels and slices (6.4).


def test_6_4_slices_above_the_requested_level_fit_nowhere() -> None:
    world = racks.world()
    world.observe(racks.gang("w", 2, required(HOST, (RACK, 2))))
    world.cycle()
    reason, message = world.told()["w"]
    assert reason == "TopologyPlacementFailed"
    assert f"podset slice topology {RACK} is above the podset topology {HOST}" in message
    assert world.parked("q") == ["w"]


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(required(BLOCK, (RACK, 4), (RACK, 2)), id="not below the one before"),
        pytest.param(required(BLOCK, (RACK, 3), (HOST, 2)), id="does not divide it"),
    ],
)
def test_6_4_inner_slices_that_make_no_sense_fit_nowhere(request_: TopologyRequest) -> None:
    world = racks.world()
    world.observe(racks.gang("w", 12, request_))
    world.cycle()
    assert "podset slice" in world.told()["w"][1]


@pytest.mark.parametrize("unconstrained", [None, True, False])
def test_6_4_slices_alone_start_at_the_highest_level(unconstrained: bool | None) -> None:
    fields = racks.slices_of(((RACK, 3),))
    world = racks.world()
    world.observe(racks.gang("w", 6, TopologyRequest(unconstrained=unconstrained, **fields)))
    world.cycle()
    # Three slices fit in each block; with least free first the tie goes to the block with fewer
    # pods, and the two slices to its only rack.
    assert racks.where(world, "w") == {"h6": 6}


def test_6_4_what_is_left_of_the_last_slice_is_not_placed() -> None:
    world = racks.world()
    world.observe(racks.gang("w", 5, required(BLOCK, (RACK, 2))))
    world.cycle()
    assert racks.where(world, "w") == {"h6": 4}


@pytest.mark.parametrize(
    ("is_on", "hosts"),
    [(True, {"h2": 2, "h3": 2, "h4": 2, "h5": 2}), (False, {"h1": 1, "h2": 3, "h3": 4})],
)
def test_6_4_without_the_gate_only_the_outermost_slices_count(
    is_on: bool, hosts: dict[str, int]
) -> None:
    world = racks.world(racks.part("r1", "r2"), gates=Gates(tas_multi_layer=is_on))
    world.observe(racks.gang("w", 8, required(BLOCK, (RACK, 4), (HOST, 2))))
    world.cycle()
    assert racks.where(world, "w") == hosts


# Strategies (6.6).


@pytest.mark.parametrize(
    ("is_on", "hosts"),
    [(True, {"h1": 1, "h2": 2, "h4": 2, "h5": 2}), (False, {"h1": 1, "h6": 6})],
)
def test_6_6_unconstrained_requests_fit_best_without_the_mixed_profile(
    is_on: bool, hosts: dict[str, int]
) -> None:
    world = racks.world(gates=Gates(tas_profile_mixed=is_on))
    world.observe(racks.gang("w", 7))
    world.cycle()
    assert racks.where(world, "w") == hosts


def preferring(weight: int, **labels: str) -> dict[str, Any]:
    expressions = [{"key": k, "operator": "In", "values": [v]} for k, v in labels.items()]
    term = {"weight": weight, "preference": {"matchExpressions": expressions}}
    rules = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"nodeAffinity": rules}}


@pytest.mark.parametrize(("is_on", "host"), [(False, "h1"), (True, "h2")])
def test_6_6_preferred_affinity_counts_with_its_gate(is_on: bool, host: str) -> None:
    world = racks.world({"b1": {"r1": {"h1": 2}}}, gates=Gates(tas_preferred_affinity=is_on))
    world.observe(racks.node("h2", "b1", "r1", 4, labels={"disk": "ssd"}))
    world.observe(racks.gang("w", 2, required(HOST), spec=preferring(5, disk="ssd")))
    world.cycle()
    assert racks.where(world, "w") == {host: 2}


def test_6_6_best_fit_looks_at_the_best_score_only() -> None:
    world = racks.world({"b1": {"r1": {"h1": 4}}}, gates=Gates(tas_preferred_affinity=True))
    world.observe(racks.node("h2", "b1", "r1", 1, labels={"disk": "ssd"}))
    world.observe(racks.gang("w", 3, required(HOST), spec=preferring(5, disk="ssd")))
    world.cycle()
    # The host with the best score comes first in order A; it is too small, and that decides.
    assert racks.where(world, "w") is None


def test_6_10_balanced_placement_only_concerns_preferred_requests() -> None:
    gates = Gates(tas_balanced_placement=True)
    for request in (required(BLOCK), FREE, sliced((RACK, 2))):
        plain = racks.world(racks.part("r1", "r2"))
        balanced = racks.world(racks.part("r1", "r2"), gates=gates)
        for world in (plain, balanced):
            world.observe(racks.gang("w", 8, request))
            world.cycle()
        assert racks.where(balanced, "w") == racks.where(plain, "w") is not None


# What is said when it doesn't fit (docs/spec/api.md 4.2).


def test_the_reason_counts_what_would_fit() -> None:
    world = racks.world()
    world.observe(racks.gang("w", 9, required(RACK)), racks.gang("v", 1, FREE, cpu="7"))
    world.cycle()
    world.cycle()
    assert world.workloads[builders.key("w")].conditions["QuotaReserved"].message == (
        "couldn't assign flavors to pod set main: "
        'topology "t" allows to fit only 8 out of 9 pod(s)'
    )
    assert world.workloads[builders.key("v")].conditions["QuotaReserved"].message == (
        "couldn't assign flavors to pod set main: "
        'topology "t" doesn\'t allow to fit any of 1 pod(s). Total nodes: 6; '
        'excluded: resource "cpu": 6'
    )


def test_the_reason_says_what_keeps_pods_off_the_nodes() -> None:
    world = racks.world({"b1": {"r1": {"h1": 1}}})
    world.observe(
        racks.node("h2", "b1", "r1", 4, taints=[("key", "value", "NoSchedule")]),
        racks.node("h3", "b1", "r1", 1, labels={"zone": "a"}),
        racks.node("h4", "b1", "r1", 4),
        racks.gang(
            "w", 4, required(RACK, (RACK, 2)), cpu="2", spec={"nodeSelector": {"zone": "a"}}
        ),
    )
    world.cycle()
    assert world.told()["w"][1] == (
        "couldn't assign flavors to pod set main: "
        'topology "t" doesn\'t allow to fit any of 2 slice(s). Total nodes: 4; '
        'excluded: nodeSelector: 2, resource "cpu": 1, taint "key=value:NoSchedule": 1'
    )
