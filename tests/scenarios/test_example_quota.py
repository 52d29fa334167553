"""Worked examples 8.1 to 8.4 of docs/spec/algorithm.md: what is available in a tree."""

import pytest
from tests.support.builders import cohort, cq, wl
from tests.support.harness import Harness, queues

from sluice.api.names import CohortName
from sluice.api.records import ClusterQueue, Cohort
from sluice.engine.forest import Forest
from sluice.engine.tree import (
    QuotaNode,
    add_usage,
    available,
    borrow_level,
    raw_available,
    remove_usage,
)

CPU = 0
CORE = 1000


class Nodes:
    """A built tree whose usage a test sets in cores."""

    def __init__(self, *records: ClusterQueue | Cohort) -> None:
        forest = Forest()
        for record in records:
            if isinstance(record, Cohort):
                forest.set_cohort(record)
            else:
                forest.set_queue(record)
                forest.active.add(record.name)
        roots = {r for r in map(forest.root_of, forest.cohorts) if r is not None}
        roots |= {
            r for q in forest.queues.values() if (r := forest.root_of(CohortName(q.cohort or "")))
        }
        self.nodes = {n.name: n for root in sorted(roots) for n in forest.build(root).nodes}

    def __getitem__(self, name: str) -> QuotaNode:
        return self.nodes[name]

    def use(self, **cores: int) -> "Nodes":
        for name, value in cores.items():
            add_usage(self[name], CPU, value * CORE, None)
        return self

    def free(self, *names: str) -> list[int]:
        return [available(self[name], CPU) // CORE for name in names]


def lending() -> Nodes:
    return Nodes(cq("A", "R", cpu=("10", None, "4")), cq("B", "R", cpu=("8", "5")))


def test_8_1_lending_and_borrowing_limits() -> None:
    nodes = lending().use(A=7, B=9)

    assert nodes["A"].guaranteed[CPU] == 6 * CORE
    assert nodes["R"].quota[CPU] == 12 * CORE
    assert nodes["R"].usage[CPU] == 10 * CORE
    assert nodes.free("R", "A", "B") == [2, 2, 2]
    assert [nodes[n].potential[CPU] // CORE for n in ("A", "B")] == [18, 12]


def two_levels() -> Nodes:
    return Nodes(
        cohort("R"),
        cohort("M", "R", cpu=("2", "3", "1")),
        cq("m1", "M", cpu=("4", None, "3")),
        cq("m2", "M", cpu=("2", "1")),
        cq("x", "R", cpu="6"),
    )


@pytest.mark.parametrize(
    ("usage", "free"),
    [
        ({}, [11, 3, 7]),
        ({"m1": 5, "x": 4}, [5, 3, 3]),
        ({"m1": 5, "x": 4, "m2": 3}, [2, 0, 2]),
    ],
)
def test_8_1_limits_at_two_levels(usage: dict[str, int], free: list[int]) -> None:
    nodes = two_levels()

    assert (nodes["M"].quota[CPU], nodes["M"].guaranteed[CPU]) == (7 * CORE, 6 * CORE)
    assert nodes["R"].quota[CPU] == 7 * CORE
    assert nodes.use(**usage).free("m1", "m2", "x") == free


def test_8_2_debt_eats_guaranteed_quota() -> None:
    nodes = Nodes(cq("A", "R", cpu=("10", None, "4")), cq("B", "R", cpu="5")).use(A=5, B=11)

    assert raw_available(nodes["R"], CPU) == -2 * CORE
    assert raw_available(nodes["A"], CPU) == -1 * CORE
    assert nodes.free("A") == [0]


def test_8_2_a_workload_within_the_guarantee_waits_for_the_debt() -> None:
    harness = Harness(*queues(cq("A", "R", cpu=("10", None, "4")), cq("B", "R", cpu="20")))
    harness.observe(wl("a", "A", cpu="5"), wl("b", "B", cpu="11"))
    harness.cycle()
    assert harness.holding() == {"a", "b"}

    harness.observe(cq("B", "R", cpu="5"), wl("late", "A", cpu="1"))
    harness.cycle()

    assert harness.told()["late"][0] == "WaitingForQuota"
    assert harness.parked("A") == ["late"]


def test_8_3_usage_bubbles_through_a_lending_limit() -> None:
    nodes = lending()
    steps = []
    for value in (4, 5, -4):
        change = add_usage if value > 0 else remove_usage
        change(nodes["A"], CPU, abs(value) * CORE, None)
        steps.append((nodes["A"].usage[CPU] // CORE, nodes["R"].usage[CPU] // CORE))

    assert steps == [(4, 0), (9, 3), (5, 0)]


@pytest.mark.parametrize(("cores", "level"), [(1, (0, True)), (3, (1, True)), (6, (2, False))])
def test_8_4_borrow_level_is_the_height_of_the_subtree_that_fits(
    cores: int, level: tuple[int, bool]
) -> None:
    nodes = Nodes(
        cohort("R"),
        cohort("M", "R"),
        cq("C", "R", cpu="5"),
        cq("A", "M", cpu="4"),
        cq("B", "M", cpu="6"),
    ).use(A=3, B=2)

    assert borrow_level(nodes["A"], CPU, cores * CORE) == level


def test_8_4_the_lower_level_goes_first_whatever_the_priority() -> None:
    harness = Harness(
        *queues(
            cohort("R"),
            cohort("M", "R"),
            cq("C", "R", cpu="5"),
            cq("A", "M", cpu="0"),
            cq("B", "M", cpu="6"),
            cq("D", "R", cpu="0"),
        )
    )
    harness.observe(wl("near", "A", cpu="6"), wl("far", "D", cpu="6", priority=100))
    harness.cycle()

    assert harness.holding() == {"near"}
    assert harness.pending("D") == ["far"]
