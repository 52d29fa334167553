"""Whole engines on small topologies: random jobs, nodes and pods, checked after every cycle.

The harness verifies the engine's indexes and bookings after each cycle; here it is checked that
reserved pods always fit where they are put (docs/spec/algorithm.md 6.9), that every pod has a
place, and that nothing depends on the order in which nodes were seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import builders, racks
from tests.support.harness import Harness, queues
from tests.support.racks import BLOCK, FREE, HOST, RACK, preferred, required

from sluice.api.names import WorkloadKey
from sluice.api.records import Node, Topology, TopologyRequest
from sluice.engine.commands import Command, Evict, ReserveQuota

CORES = {"h1": 2, "h2": 3, "h3": 4, "h4": 2, "h5": 2, "h6": 6}
REQUESTS: tuple[TopologyRequest | None, ...] = (
    required(RACK), required(BLOCK), preferred(HOST), FREE, None, required(BLOCK, (RACK, 2)),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What happens before one cycle."""

    queue: str
    request: TopologyRequest | None
    count: int
    priority: int
    finishes: int
    pod_on: str
    """A pod outside topologies lands there; empty for none."""


steps = st.lists(
    st.builds(
        Step,
        queue=st.sampled_from(("A", "B")),
        request=st.sampled_from(REQUESTS),
        count=st.integers(1, 7),
        priority=st.integers(0, 3),
        finishes=st.integers(0, 9),
        pod_on=st.sampled_from(("", "", "", "h6")),
    ),
    min_size=1,
    max_size=14,
)


def nodes() -> list[Node]:
    rack_of = {"h1": "r1", "h2": "r1", "h3": "r1", "h4": "r2", "h5": "r2", "h6": "r3"}
    return [
        racks.node(name, "b2" if rack_of[name] == "r3" else "b1", rack_of[name], cpu)
        for name, cpu in CORES.items()
    ]


def engine(shown: Sequence[Node]) -> Harness:
    """Return an engine with two queues that preempt within and reclaim from each other."""
    records = queues(
        *(
            racks.queue(name, "co", cpu="8", within="LowerPriority", reclaim="Any")
            for name in ("A", "B")
        )
    )
    return Harness(Topology(name="t", levels=racks.LEVELS), racks.flavor(), *records, *shown)


def play(world: Harness, script: Sequence[Step]) -> list[tuple[Command, ...]]:
    """Run a script; check the placements after every cycle."""
    taken: dict[str, int] = {}
    history = []
    for index, step in enumerate(script):
        holding = sorted(world.holding())
        if step.finishes < len(holding):
            world.finish(holding[step.finishes])
        used = {host: taken.get(host, 0) + n for host, n in _usage(world).items()}
        if step.pod_on and used.get(step.pod_on, 0) < CORES[step.pod_on]:
            taken[step.pod_on] = taken.get(step.pod_on, 0) + 1
            world.observe(racks.pod(f"p{index}", step.pod_on, "1"))
        world.observe(
            racks.gang(
                f"w{index}",
                step.count,
                step.request,
                queue=step.queue,
                priority=step.priority,
                created_s=index,
            )
        )
        history.append(world.cycle())
        _check(world, taken)
    return history


def _usage(world: Harness) -> dict[str, int]:
    used: dict[str, int] = {}
    for name in world.holding():
        for host, pods in (racks.where(world, name) or {}).items():
            used[host] = used.get(host, 0) + pods
    return used


def _check(world: Harness, taken: dict[str, int]) -> None:
    for host, pods in _usage(world).items():
        assert pods + taken.get(host, 0) <= CORES[host], host
    for name in world.holding():
        record = world.workloads[builders.key(name)]
        pod_set = record.pod_sets[0]
        size = 2 if pod_set.topology is not None and pod_set.topology.slices else 1
        placed = racks.where(world, name)
        assert placed is not None
        assert sum(placed.values()) == pod_set.count // size * size


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(script=steps)
def test_reserved_pods_always_fit_where_they_are_put(script: list[Step]) -> None:
    play(engine(nodes()), script)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(script=steps, order=st.permutations(list(range(len(CORES)))))
def test_decisions_do_not_depend_on_the_order_of_nodes(
    script: list[Step], order: list[int]
) -> None:
    shown = nodes()
    shuffled = [shown[index] for index in order]
    first, second = play(engine(shown), script), play(engine(shuffled), script)
    assert [_essence(commands) for commands in first] == [_essence(c) for c in second]


def _essence(commands: tuple[Command, ...]) -> list[tuple[str, WorkloadKey, object]]:
    """Return what commands decide: who, and where or why."""
    found: list[tuple[str, WorkloadKey, object]] = []
    for command in commands:
        if isinstance(command, ReserveQuota):
            found.append(("reserve", command.workload, command.admission))
        elif isinstance(command, Evict):
            found.append(("evict", command.workload, command.message))
    return found
