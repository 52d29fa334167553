"""Nodes, pods, bookings and undoing in any order: the same answers as from a fresh start.

A placement that lived through random events is compared with one that is told the present state at
once (docs/spec/algorithm.md 6.1, 6.5). In between, undone bookings must leave no trace.
"""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from tests.support import racks
from tests.support import topology_worlds as worlds
from tests.support.racks import BLOCK, FREE, HOST, RACK, preferred, required

from sluice.api.names import FlavorName, ResourceName
from sluice.api.records import Kind, Node, Pod, Record, Topology, TopologyRequest
from sluice.engine.options import Gates
from sluice.engine.placement import PlacementRequest, TopologyUsage
from sluice.engine.topology.facade import TopologyPlacement

NAMES = ("h1", "h2", "h3", "h4", "h5")
REQUESTS: tuple[TopologyRequest | None, ...] = (
    required(RACK), required(HOST), required(BLOCK, (RACK, 2)), preferred(RACK), FREE, None,
    required(BLOCK, (RACK, 4), (HOST, 2)),
)  # fmt: skip
CPU = ResourceName("cpu")
FLAVORS = (FlavorName("tas"), FlavorName("tas2"))
TOLERANT = {"tolerations": [{"operator": "Exists"}]}


def _config() -> list[Record]:
    return [
        Topology(name="t", levels=racks.LEVELS),
        racks.flavor("tas"),
        racks.flavor("tas2", labels={"pool": "a"}),
    ]


class PlacementMachine(RuleBasedStateMachine):
    """One placement under test, and all that it was told."""

    @initialize(shares=st.booleans())
    def start(self, shares: bool) -> None:
        self.gates = Gates(tas_overlapping_flavors=shares)
        self.placement = TopologyPlacement(self.gates)
        for record in _config():
            self.placement.observe(record)  # type: ignore[arg-type]
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.booked: list[TopologyUsage] = []
        self.marks: list[tuple[int, list[TopologyUsage]]] = []

    # Facts: never while something may be undone.

    @precondition(lambda self: not self.marks)
    @rule(
        name=st.sampled_from(NAMES),
        rack=st.sampled_from(("r1", "r2", "r3")),
        cpu=st.integers(0, 4),
        off=st.sampled_from(({}, {}, {}, {"ready": False}, {"cordoned": True})),
        labels=st.sampled_from(({}, {"pool": "a"})),
        taints=st.sampled_from(((), (), (("bad", "", "NoSchedule"),))),
    )
    def set_node(
        self, name: str, rack: str, cpu: int, off: dict[str, bool], labels: dict[str, str],
        taints: tuple[tuple[str, str, str], ...],
    ) -> None:  # fmt: skip
        block = "b2" if rack == "r3" else "b1"
        self.nodes[name] = racks.node(name, block, rack, cpu, labels=labels, taints=taints, **off)
        self.placement.observe(self.nodes[name])

    @precondition(lambda self: not self.marks)
    @rule(name=st.sampled_from(NAMES))
    def drop_node(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.placement.gone(Kind.NODE, name)

    @precondition(lambda self: not self.marks)
    @rule(
        name=st.sampled_from(("p1", "p2", "p3")),
        node=st.sampled_from(("", *NAMES)),
        cpu=st.sampled_from(("500m", "1", "2")),
        flags=st.sampled_from(({}, {}, {"is_terminated": True}, {"uses_topology": True})),
    )
    def set_pod(self, name: str, node: str, cpu: str, flags: dict[str, bool]) -> None:
        self.pods[name] = racks.pod(name, node, cpu, **flags)
        self.placement.observe(self.pods[name])

    @precondition(lambda self: not self.marks)
    @rule(name=st.sampled_from(("p1", "p2", "p3")))
    def drop_pod(self, name: str) -> None:
        self.pods.pop(name, None)
        self.placement.gone(Kind.POD, f"other/{name}")

    # Bookings.

    @rule(
        flavor=st.sampled_from(FLAVORS),
        hosts=st.dictionaries(st.sampled_from((*NAMES, "gone")), st.integers(1, 3), min_size=1),
        cpu=st.sampled_from((500, 1000)),
    )
    def book(self, flavor: FlavorName, hosts: dict[str, int], cpu: int) -> None:
        usage = TopologyUsage(flavor=flavor, pod=((CPU, cpu),), assignment=racks.topology(hosts))
        self.placement.book((usage,))
        self.booked.append(usage)

    @precondition(lambda self: self.booked)
    @rule(data=st.data())
    def unbook(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.booked) - 1))
        self.placement.unbook((self.booked.pop(index),))

    @rule()
    def checkpoint(self) -> None:
        self.marks.append((self.placement.checkpoint(), list(self.booked)))

    @precondition(lambda self: self.marks)
    @rule()
    def rollback(self) -> None:
        mark, self.booked = self.marks.pop()
        self.placement.rollback(mark)

    @rule()
    def commit(self) -> None:
        self.placement.commit()
        self.marks.clear()

    # Answers.

    def _fresh(self) -> TopologyPlacement:
        fresh = TopologyPlacement(self.gates)
        records: list[Any] = [*_config(), *self.nodes.values(), *self.pods.values()]
        for record in records:
            fresh.observe(record)
        fresh.book(tuple(self.booked))
        return fresh

    @rule(
        request=st.sampled_from(REQUESTS),
        flavor=st.sampled_from(FLAVORS),
        count=st.integers(1, 6),
        cpu=st.sampled_from((500, 1000)),
        leader=st.booleans(),
        tolerates=st.booleans(),
        empty=st.booleans(),
    )
    def place(
        self, request: TopologyRequest | None, flavor: FlavorName, count: int, cpu: int,
        leader: bool, tolerates: bool, empty: bool,
    ) -> None:  # fmt: skip
        if leader and request is not None and request.required is not None:
            request = required(request.required, group="g")
        pod_set = racks.gang("w", count, request, spec=TOLERANT if tolerates else None).pod_sets[0]
        asked = [
            PlacementRequest(
                index=0, pod_set=pod_set, count=count, pod=((CPU, cpu),), flavors=(flavor,),
                is_implied=request is None,
            )
        ]  # fmt: skip
        if leader:
            asked.append(
                PlacementRequest(
                    index=1, pod_set=pod_set, count=1, pod=((CPU, 1500),), flavors=(flavor,)
                )
            )
        workload = worlds.workload(pod_set)
        fresh = self._fresh()
        found = self.placement.place(workload, tuple(asked), assume_empty=empty)
        assert found == fresh.place(workload, tuple(asked), assume_empty=empty)
        if not empty:
            can = self.placement.can_place(workload, tuple(asked))
            assert can == (not found.failed and not found.errors)

    @rule(
        flavor=st.sampled_from(FLAVORS),
        host=st.sampled_from(NAMES),
        count=st.integers(1, 4),
    )
    def test_fit(self, flavor: FlavorName, host: str, count: int) -> None:
        usage = TopologyUsage(
            flavor=flavor, pod=((CPU, 1000),), assignment=racks.topology({host: count})
        )
        assert self.placement.fits((usage,)) == self._fresh().fits((usage,))

    @invariant()
    def nothing_is_booked_that_should_not_be(self) -> None:
        if not self.marks:
            self.placement.commit()
            assert self.placement.misbooked(self.booked) == []


TestPlacementMachine = pytest.mark.slow(PlacementMachine.TestCase)
TestPlacementMachine.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
