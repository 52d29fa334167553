"""Topology after quota: delayed placement and repairs (docs/spec/algorithm.md 3.10, 6.3, 6.8)."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from tests.support import builders, racks
from tests.support.builders import condition, key, ps
from tests.support.harness import Harness
from tests.support.racks import BLOCK, FREE, HOST, RACK, preferred, required

from sluice.api import names, wire
from sluice.api.conditions import ConditionType
from sluice.api.names import CheckName, PodSetName
from sluice.api.records import CheckStatus, Kind, PodSetUpdate, TopologyRequest
from sluice.engine.commands import AssignTopology, Evict, ReserveQuota
from sluice.engine.options import Gates

HOSTS = {"b1": {"r1": {"h1": 2, "h2": 2}, "r2": {"h3": 2}}}


# Delayed topology (6.3, 3.10 a).


def delayed(controller: str, cpu: str = "100") -> Harness:
    """Return a world where a Workload of two pods has quota and waits for its check."""
    cqs = (racks.queue(cpu=cpu, checks={"c": ()}),)
    world = racks.world(HOSTS, builders.check("c", controller), cqs=cqs)
    world.observe(racks.gang("w", 2, required(RACK)))
    world.cycle()
    assert world.holding() == {"w"}
    return world


def pending_topology(world: Harness, name: str = "w") -> str | None:
    admission = world.workloads[key(name)].admission
    assert admission is not None
    return admission.pod_sets[0].delayed_topology


@pytest.mark.parametrize("controller", [names.PROVISIONING_CONTROLLER, names.MULTIKUEUE_CONTROLLER])
def test_6_3_topology_waits_for_checks_that_bring_nodes(controller: str) -> None:
    world = delayed(controller)
    assert racks.where(world, "w") is None
    assert pending_topology(world) == "Pending"
    assert [c.admitted for c in world.commands if isinstance(c, ReserveQuota)] == [False]


def test_6_3_other_checks_do_not_delay() -> None:
    world = delayed("example.com/budget")
    assert racks.where(world, "w") == {"h3": 2}
    assert pending_topology(world) is None


def test_6_3_a_check_of_other_flavors_does_not_delay() -> None:
    check = builders.check("c", names.PROVISIONING_CONTROLLER)
    flavors = {"tas": {"cpu": "100"}, "default": {"cpu": "100"}}
    cqs = (racks.queue(flavors=flavors, checks={"c": ("default",)}),)
    world = racks.world(HOSTS, check, cqs=cqs)
    world.observe(racks.gang("w", 2, required(RACK)))
    world.cycle()
    assert racks.where(world, "w") == {"h3": 2}


def test_3_10_once_its_checks_are_ready_topology_is_placed_a_second_later() -> None:
    world = delayed(names.PROVISIONING_CONTROLLER)
    world.observe(racks.node("new", "b1", "r3", 2, labels={"made-for": "w"}))
    update = PodSetUpdate(
        name=PodSetName("main"),
        node_selector=(("made-for", "w"),),
        tolerations=wire.template({}).tolerations,
    )
    ready = CheckStatus(name=CheckName("c"), state="Ready", updates=(update,))
    world.change("w", checks=(ready,))
    assert world.engine.next_deadline_ms() == world.now_ms + 1000
    assert not any(isinstance(c, AssignTopology) for c in world.cycle())
    commands = world.cycle()
    assert [type(c) for c in commands] == [AssignTopology]
    # The check's updates bind the pods to the new node (6.3).
    assert racks.where(world, "w") == {"new": 2}
    assert pending_topology(world) == "Ready"
    assert world.workloads[key("w")].is_true(ConditionType.ADMITTED)


def test_3_10_a_multikueue_manager_never_places() -> None:
    world = delayed(names.MULTIKUEUE_CONTROLLER)
    world.change("w", checks=builders.ready("c"))
    world.now_ms += 5000
    world.cycle()
    assert racks.where(world, "w") is None


def test_3_10_attempts_back_off_and_quota_stays() -> None:
    world = delayed(names.PROVISIONING_CONTROLLER)
    for name in ("h1", "h2", "h3"):
        world.gone(Kind.NODE, name)
    world.change("w", checks=builders.ready("c"))
    delays = []
    for _ in range(7):
        due_ms = world.engine.next_deadline_ms()
        assert due_ms is not None
        delays.append(due_ms - world.now_ms)
        world.now_ms = due_ms
        assert not any(isinstance(c, AssignTopology) for c in world.cycle())
        world.now_ms -= 1000
    assert delays == [1000, 2000, 4000, 8000, 16000, 30000, 30000]
    assert world.usage("q") == {"tas/cpu": 2000}
    explanation = world.engine.explain(key("w"))
    assert explanation is not None
    assert "doesn't allow to fit any of 2 pod(s)" in explanation.message
    world.observe(racks.node("h9", "b1", "r1", 2))
    world.now_ms += 30_000
    world.cycle()
    assert racks.where(world, "w") == {"h9": 2}


def test_3_10_a_second_pass_books_no_quota_twice() -> None:
    world = delayed(names.PROVISIONING_CONTROLLER, cpu="2")
    world.change("w", checks=builders.ready("c"))
    world.now_ms += 1000
    world.cycle()
    assert racks.where(world, "w") == {"h3": 2}
    assert world.usage("q") == {"tas/cpu": 2000}


def test_a_topology_that_could_not_be_written_is_taken_back_and_tried_again() -> None:
    world = delayed(names.PROVISIONING_CONTROLLER)
    world.change("w", checks=builders.ready("c"))
    world.now_ms += 1000
    world.reject_next()
    world.cycle()
    assert racks.where(world, "w") is None
    # Its domain is free: somebody else gets it.
    world.observe(racks.gang("v", 2, required(RACK), created_s=-1))
    world.cycle()
    world.now_ms += 2000
    world.cycle()
    assert racks.where(world, "w") == {"h3": 2}


# Repairs (6.8).


def broken(
    request: TopologyRequest = FREE,
    gates: Gates | None = None,
    *,
    had: Mapping[str, int] = MappingProxyType({"h1": 1, "hX": 1}),
    **fields: Any,
) -> Harness:
    """Return a world where a Workload lost its pods on ``hX``."""
    world = racks.world(HOSTS, gates=gates)
    world.observe(racks.holding("w", had, request, unhealthy_nodes=("hX",), **fields))
    world.now_ms += 1000
    return world


def test_6_8_a_repair_takes_a_second_and_clears_the_mark() -> None:
    world = broken(required(RACK))
    assert world.engine.next_deadline_ms() == world.now_ms
    commands = world.cycle()
    assert [type(c) for c in commands] == [AssignTopology]
    assert racks.where(world, "w") == {"h1": 2}
    assert world.workloads[key("w")].unhealthy_nodes == ()
    world.observe(racks.gang("v", 3, required(RACK)))
    world.cycle()
    assert racks.where(world, "v") is None


def test_6_8_without_a_place_it_is_evicted_at_once() -> None:
    world = broken(required(RACK))
    world.observe(racks.holding("other", {"h1": 1, "h2": 2}))
    world.cycle()
    assert world.evicted() == {"w": "NodeFailures"}
    evict = world.commands[0]
    assert isinstance(evict, Evict)
    assert evict.message.endswith("hX")
    # Its job has stopped; it is queued again and placed anew.
    world.run()
    assert racks.where(world, "w") == {"h3": 2}


def test_6_8_an_eviction_that_could_not_be_written_is_decided_again() -> None:
    world = broken(required(RACK))
    world.observe(racks.holding("other", {"h1": 1, "h2": 2}))
    world.reject_next()
    world.cycle()
    assert world.holding() == {"w", "other"}
    world.now_ms += 2000
    world.cycle()
    assert world.evicted() == {"w": "NodeFailures"}


def test_6_8_without_the_gate_it_is_tried_again_later() -> None:
    world = broken(required(RACK), Gates(tas_fail_fast=False))
    world.observe(racks.holding("other", {"h1": 1, "h2": 2}))
    assert world.cycle() == ()
    assert world.engine.next_deadline_ms() == world.now_ms + 1000
    world.finish("other")
    world.now_ms += 1000
    world.cycle()
    assert racks.where(world, "w") == {"h1": 2}


def test_6_8_an_assignment_with_another_domain_gone_is_stale() -> None:
    world = broken(had={"h1": 1, "hX": 1, "hY": 1})
    world.cycle()
    assert world.evicted() == {"w": "NodeFailures"}


def test_6_8_only_the_first_node_is_replaced() -> None:
    world = racks.world(HOSTS)
    had = {"h1": 1, "h2": 1, "hX": 1}
    world.observe(racks.holding("w", had, unhealthy_nodes=("hX", "h2")))
    world.now_ms += 1000
    world.cycle()
    assert racks.where(world, "w") == {"h1": 2, "h2": 1}


def test_6_8_a_node_it_does_not_run_on_is_nothing_to_repair() -> None:
    world = racks.world(HOSTS)
    world.observe(racks.holding("w", {"h1": 1}, unhealthy_nodes=("h2",)))
    assert world.engine.next_deadline_ms() is None


def test_6_8_an_evicted_workload_is_not_repaired() -> None:
    evicted = {ConditionType.EVICTED: condition(True, "Preempted")}
    world = broken(conditions=evicted)
    assert world.engine.next_deadline_ms() is None


@pytest.mark.parametrize(("is_on", "hosts"), [(True, {"h1": 1, "hX": 1}), (False, {"h1": 2})])
def test_6_8_a_single_pod_keeps_its_assignment(is_on: bool, hosts: dict[str, int]) -> None:
    gates = Gates(skip_reassignment_for_pods=is_on)
    world = broken(required(RACK), gates, is_owned_by_pod=True)
    world.cycle()
    assert racks.where(world, "w") == hosts
    assert world.workloads[key("w")].unhealthy_nodes == ()


def test_6_8_with_nothing_left_it_may_go_anywhere() -> None:
    world = broken(required(RACK), had={"hX": 2})
    world.cycle()
    assert racks.where(world, "w") == {"h3": 2}


def test_6_8_inner_slices_stay_in_their_host() -> None:
    world = racks.world({"b1": {"r1": {"h1": 4, "h2": 4}, "r2": {"h3": 8}}})
    request = required(BLOCK, (RACK, 4), (HOST, 2))
    had = {"h1": 2, "hX": 2}
    world.observe(racks.holding("w", had, request, unhealthy_nodes=("hX",)))
    world.now_ms += 1000
    world.cycle()
    # Two pods are half a slice of r1, and a whole inner one: a host of r1 takes both (6.8).
    assert racks.where(world, "w") == {"h1": 4}


def test_6_8_the_bad_node_counts_as_long_as_it_is_there() -> None:
    world = racks.world({"b1": {"r1": {"h1": 2}}})
    tainted = racks.node("h2", "b1", "r1", 2, taints=[("bad", "", "NoSchedule")])
    world.observe(tainted, racks.holding("w", {"h2": 2}, preferred(RACK), unhealthy_nodes=("h2",)))
    world.now_ms += 1000
    world.cycle()
    assert racks.where(world, "w") == {"h1": 2}


def test_6_8_both_pod_sets_of_a_group_are_repaired_where_they_are() -> None:
    world = racks.world({"b1": {"r1": {"h1": 3, "hX": 3}, "r2": {"h3": 9}}})
    group = required(RACK, group="g")
    crew = racks.crew(
        "w", ps("workers", 4, cpu="1", topology=group), ps("leader", cpu="1", topology=group)
    )
    world.observe(crew)
    world.cycle()
    assert racks.where(world, "w", "workers") == {"h1": 2, "hX": 2}
    assert racks.where(world, "w", "leader") == {"h1": 1}
    # Leader and workers have pods on h1; h1 is lost, and another node comes in its place.
    world.gone(Kind.NODE, "h1")
    world.observe(racks.node("h2", "b1", "r1", 3))
    world.change("w", unhealthy_nodes=("h1",))
    world.now_ms += 1000
    world.cycle()
    assert racks.where(world, "w", "workers") == {"h2": 2, "hX": 2}
    assert racks.where(world, "w", "leader") in ({"h2": 1}, {"hX": 1})


def test_6_8_rack_assignments_have_no_nodes_to_replace() -> None:
    world = racks.world({}, levels=(BLOCK, RACK))
    world.observe(racks.node("h1", "b1", "r1", 2), racks.gang("w", 1))
    world.cycle()
    record = world.workloads[key("w")]
    world.observe(replace(record, unhealthy_nodes=("r1",)))
    assert world.engine.next_deadline_ms() is None


def test_3_2_a_stopped_queue_repairs_nothing_until_it_resumes() -> None:
    world = broken(required(RACK))
    world.observe(racks.queue(stop="Hold"))
    assert world.cycle() == ()
    assert world.holding() == {"w"}
    world.observe(racks.queue())
    world.now_ms += 2000
    world.cycle()
    assert racks.where(world, "w") == {"h1": 2}


# Elastic slices (6.11).


def elastic(old: dict[str, int], count: int, *, is_on: bool = True) -> Harness:
    """Return a world where a slice runs, and a newer one of ``count`` pods was tried."""
    world = racks.world(
        {"b1": {"r1": {"h1": 2, "h2": 3, "h3": 6}}}, gates=Gates(elastic_slices_with_tas=is_on)
    )
    world.observe(racks.holding("old", old, is_elastic=True))
    world.observe(racks.gang("new", count, is_elastic=True, replaces=key("old")))
    world.cycle()
    return world


@pytest.mark.parametrize(
    ("count", "hosts"),
    [
        pytest.param(5, {"h1": 1, "h2": 2, "h3": 2}, id="grows: one host takes the difference"),
        pytest.param(3, {"h1": 1, "h2": 2}, id="equal"),
        pytest.param(2, {"h1": 1, "h2": 1}, id="shrinks from the end"),
    ],
)
def test_6_11_pods_that_run_stay(count: int, hosts: dict[str, int]) -> None:
    world = elastic({"h1": 1, "h2": 2}, count)
    assert racks.where(world, "new") == hosts
    assert world.holding() == {"new"}
    world.observe(racks.gang("all", 11 - count))
    world.cycle()
    assert racks.where(world, "all") is not None


def test_6_11_a_stale_domain_has_everything_placed_anew() -> None:
    assert racks.where(elastic({"h1": 1, "hX": 2}, 4), "new") == {"h3": 4}


def test_6_11_without_the_gate_a_new_slice_is_placed_anew() -> None:
    assert racks.where(elastic({"h1": 1, "h2": 2}, 5, is_on=False), "new") == {"h3": 5}
