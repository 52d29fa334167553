"""Which nodes make up a topology, and what is free there (docs/spec/algorithm.md 6.1, 6.5, 2.9)."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support import builders, racks
from tests.support.racks import BLOCK, FREE, HOST, RACK, pod, required

from sluice.api import wire
from sluice.api.records import Kind, Pod
from sluice.engine.options import Gates

ONE = {"b1": {"r1": {"h1": 2}}}


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"cordoned": True}, id="cordoned"),
        pytest.param({"ready": False}, id="not ready"),
        pytest.param({"labels": {"pool": "other"}}, id="not of the flavor"),
    ],
)
def test_6_1_nodes_that_do_not_belong(fields: dict[str, Any]) -> None:
    mine = racks.flavor(labels={"pool": "mine"})
    world = racks.world({}, mine)
    world.observe(racks.node("h1", "b1", "r1", 2, **{"labels": {"pool": "mine"}, **fields}))
    world.observe(racks.gang("w", 2))
    world.cycle()
    assert world.parked("q") == ["w"]
    # The node turns into one that belongs: the parked Workload is looked at again (2.9).
    world.observe(racks.node("h1", "b1", "r1", 2, labels={"pool": "mine"}))
    world.cycle()
    assert racks.where(world, "w") == {"h1": 2}


def test_6_1_a_node_without_every_level_is_left_out() -> None:
    world = racks.world({})
    node = racks.node("h1", "b1", "r1", 2)
    labels = tuple(pair for pair in node.labels if pair[0] != RACK)
    world.observe(replace(node, labels=labels), racks.gang("w", 1))
    world.cycle()
    assert world.parked("q") == ["w"]


def test_2_9_a_new_node_wakes_what_is_parked() -> None:
    world = racks.world(ONE)
    world.observe(racks.gang("w", 3, required(RACK)))
    world.cycle()
    assert world.parked("q") == ["w"]
    world.observe(racks.node("h2", "b1", "r1", 1))
    world.cycle()
    assert racks.where(world, "w") == {"h1": 2, "h2": 1}


def test_6_1_a_node_that_is_gone_holds_nothing() -> None:
    world = racks.world({"b1": {"r1": {"h1": 2, "h2": 2}}})
    world.observe(racks.gang("first", 1))
    world.cycle()
    world.gone(Kind.NODE, "h2")
    world.observe(racks.gang("w", 2))
    world.cycle()
    assert world.parked("q") == ["w"]
    world.observe(racks.node("h2", "b1", "r1", 2))
    world.cycle()
    assert racks.where(world, "w") == {"h2": 2}


def test_6_1_usage_of_a_node_that_left_counts_again_when_it_returns() -> None:
    world = racks.world(ONE)
    world.observe(racks.holding("old", {"h1": 1}))
    world.gone(Kind.NODE, "h1")
    world.observe(racks.node("h1", "b1", "r1", 2), racks.gang("w", 2))
    world.cycle()
    assert world.parked("q") == ["w"]
    world.observe(racks.gang("small", 1))
    world.cycle()
    assert racks.where(world, "small") == {"h1": 1}


def test_6_1_capacity_that_grows_wakes() -> None:
    world = racks.world(ONE)
    world.observe(racks.gang("w", 3))
    world.cycle()
    assert world.parked("q") == ["w"]
    world.observe(racks.node("h1", "b1", "r1", 3))
    world.cycle()
    assert racks.where(world, "w") == {"h1": 3}


def test_6_1_a_node_that_moves_to_another_rack() -> None:
    world = racks.world({"b1": {"r1": {"h1": 2, "h2": 2}, "r2": {"h3": 2}}})
    world.observe(racks.gang("w", 4, required(RACK)))
    world.observe(racks.node("h2", "b1", "r2", 2))
    world.cycle()
    assert racks.where(world, "w") == {"h2": 2, "h3": 2}


def test_6_1_of_two_nodes_with_one_hostname_the_first_says_where_it_is() -> None:
    world = racks.world({})
    for name, rack in (("n2", "r2"), ("n1", "r1")):
        world.observe(racks.node(name, "b1", rack, 1, labels={HOST: "h"}))
    world.observe(racks.node("n3", "b1", "r2", 3))
    world.observe(racks.gang("w", 2, required(HOST)))
    world.cycle()
    assert racks.where(world, "w") == {"h": 2}


# Taints, selectors, affinity (6.5).

TAINT = ("gpu", "broken", "NoSchedule")
TOLERATES = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_6_5_tainted_nodes_are_left_out_unless_tolerated(effect: str) -> None:
    world = racks.world({"b1": {"r1": {"h2": 1}}})
    world.observe(racks.node("h1", "b1", "r1", 5, taints=[("gpu", "broken", effect)]))
    world.observe(racks.gang("w", 2), racks.gang("tolerant", 5, spec=TOLERATES))
    world.run()
    assert world.parked("q") == ["w"]
    assert racks.where(world, "tolerant") == {"h1": 5}


def test_6_5_the_flavor_may_tolerate_and_weak_taints_do_not_matter() -> None:
    tolerations = wire.template(TOLERATES).tolerations
    world = racks.world({}, racks.flavor(tolerations=tolerations))
    world.observe(racks.node("h1", "b1", "r1", 1, taints=[TAINT]))
    world.observe(racks.node("h2", "b1", "r1", 1, taints=[("slow", "", "PreferNoSchedule")]))
    world.observe(racks.gang("w", 2))
    world.cycle()
    assert racks.where(world, "w") == {"h1": 1, "h2": 1}


def test_6_5_a_taint_that_goes_away_wakes() -> None:
    world = racks.world({})
    world.observe(racks.node("h1", "b1", "r1", 2, taints=[TAINT]), racks.gang("w", 2))
    world.cycle()
    assert world.parked("q") == ["w"]
    world.observe(racks.node("h1", "b1", "r1", 2))
    world.cycle()
    assert racks.where(world, "w") == {"h1": 2}


def affinity(*expressions: dict[str, Any], fields: bool = False) -> dict[str, Any]:
    part = "matchFields" if fields else "matchExpressions"
    required_ = {"nodeSelectorTerms": [{part: [e]} for e in expressions]}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": required_}
    return {"affinity": {"nodeAffinity": rules}}


@pytest.mark.parametrize(
    ("spec", "host"),
    [
        pytest.param({"nodeSelector": {"disk": "ssd"}}, "h2", id="selector"),
        pytest.param(
            affinity({"key": "disk", "operator": "In", "values": ["ssd"]}), "h2", id="affinity"
        ),
        pytest.param(
            affinity(
                {"key": "disk", "operator": "In", "values": ["tape"]},
                {"key": "age", "operator": "Gt", "values": ["3"]},
            ),
            "h3",
            id="terms are or-ed, Gt",
        ),
        pytest.param(
            affinity({"key": "metadata.name", "operator": "In", "values": ["h1"]}, fields=True),
            "h1",
            id="fields",
        ),
        pytest.param(affinity({"key": "disk", "operator": "DoesNotExist"}), "h1", id="no label"),
    ],
)
def test_6_5_only_nodes_that_match(spec: dict[str, Any], host: str) -> None:
    world = racks.world({"b1": {"r1": {"h1": 2}}})
    world.observe(racks.node("h2", "b1", "r1", 2, labels={"disk": "ssd"}))
    world.observe(racks.node("h3", "b1", "r1", 2, labels={"disk": "hdd", "age": "4"}))
    world.observe(racks.gang("w", 2, required(RACK), spec=spec))
    world.cycle()
    assert racks.where(world, "w") == {host: 2}


def test_6_5_without_hosts_as_lowest_level_nodes_are_not_filtered() -> None:
    world = racks.world({}, levels=(BLOCK, RACK))
    world.observe(racks.node("h1", "b1", "r1", 1, taints=[TAINT]))
    world.observe(racks.node("h2", "b1", "r1", 1))
    world.observe(racks.gang("w", 2, required(RACK), spec={"nodeSelector": {"disk": "ssd"}}))
    world.cycle()
    # Nodes of one leaf are added up, and the full path is stored (6.1, 6.7.6).
    assert racks.where(world, "w") == {"b1/r1": 2}


# What pods outside topologies take (6.1).


def test_6_1_other_pods_take_room_until_they_end() -> None:
    world = racks.world({"b1": {"r1": {"h1": 3}}})
    world.observe(pod("p", "h1", "1500m"), racks.gang("w", 2))
    world.cycle()
    assert world.parked("q") == ["w"]
    world.observe(pod("p", "h1", "1500m", is_terminated=True))
    world.cycle()
    assert racks.where(world, "w") == {"h1": 2}


def test_6_1_a_deleted_pod_gives_its_room_back_once() -> None:
    world = racks.world({"b1": {"r1": {"h1": 2}}})
    world.observe(pod("p", "h1", "1"), racks.gang("w", 2))
    world.cycle()
    assert world.parked("q") == ["w"]
    world.gone(Kind.POD, "other/p")
    world.gone(Kind.POD, "other/p")
    world.cycle()
    assert racks.where(world, "w") == {"h1": 2}
    world.observe(racks.gang("v", 1))
    world.cycle()
    assert world.parked("q") == ["v"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(pod("p", "", "2"), id="not bound"),
        pytest.param(pod("p", "h1", "2", uses_topology=True), id="charged through its Workload"),
        pytest.param(pod("p", "h9", "2"), id="on a node nobody knows"),
    ],
)
def test_6_1_pods_that_take_no_room(other: Pod) -> None:
    world = racks.world(ONE)
    world.observe(other, racks.gang("w", 2))
    world.cycle()
    assert racks.where(world, "w") == {"h1": 2}


def test_6_1_every_pod_takes_one_of_the_pods_of_a_node() -> None:
    world = racks.world({})
    world.observe(racks.node("h1", "b1", "r1", 10, allocatable={"pods": "3"}))
    world.observe(pod("p", "h1", "0"), racks.gang("w", 3), racks.gang("v", 2, created_s=1))
    world.run()
    assert world.parked("q") == ["w"]
    assert racks.where(world, "v") == {"h1": 2}


# Hosts in two flavors (6.1, gate TASHandleOverlappingFlavors).


@pytest.mark.parametrize(("is_on", "second"), [(True, None), (False, {"h1": 2})])
def test_6_1_a_host_of_two_flavors_is_charged_once_for_both(
    is_on: bool, second: dict[str, int] | None
) -> None:
    world = racks.world(
        ONE,
        racks.flavor("tas2"),
        cqs=(racks.queue("q"), racks.queue("q2", flavors={"tas2": {"cpu": "100"}})),
        gates=Gates(tas_overlapping_flavors=is_on),
    )
    world.observe(racks.gang("w", 2))
    world.cycle()
    world.observe(racks.gang("v", 2, queue="q2"))
    world.cycle()
    assert racks.where(world, "w") == {"h1": 2}
    assert racks.where(world, "v") == second


def test_6_3_pod_sets_on_flavors_that_share_a_host_see_each_other() -> None:
    world = racks.world(
        {},
        racks.flavor("tas2"),
        cqs=(racks.queue("q", more_groups=[{"tas2": {"memory": "100"}}]),),
    )
    for name, cpu in (("h1", 2), ("h2", 1)):
        world.observe(racks.node(name, "b1", "r1", cpu, allocatable={"memory": "2", "pods": "2"}))
    first = builders.ps("a", 2, cpu="1", topology=FREE)
    second = builders.ps("b", 1, memory="1", topology=FREE)
    world.observe(builders.wl("w", "q", first, second))
    world.cycle()
    assert racks.where(world, "w", "a") == {"h1": 2}
    assert racks.where(world, "w", "b") == {"h2": 1}
