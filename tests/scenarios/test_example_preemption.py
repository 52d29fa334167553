"""Worked examples 8.8 to 8.12 and 8.15 of docs/spec/algorithm.md: who is preempted, and why."""

import pytest
from tests.support.builders import T0_MS, cohort, cq, wl
from tests.support.harness import Harness, queues

from sluice.api.names import CohortName
from sluice.engine import fairshare
from sluice.engine.forest import Forest
from sluice.engine.options import EngineOptions, FairSharing, FairStrategy
from sluice.engine.tree import add_usage

FINAL, INITIAL = FairStrategy.FINAL_SHARE, FairStrategy.INITIAL_SHARE


def hold(harness: Harness, at_s: int, name: str, queue: str, cpu: str, priority: int = 0) -> None:
    """Let a Workload run whose quota was reserved at a given second."""
    before = harness.now_ms
    harness.now_ms = T0_MS + at_s * 1000
    harness.observe(wl(name, queue, cpu=cpu, priority=priority))
    harness.cycle()
    assert name in harness.admitted()
    harness.now_ms = before


def lazy(b: dict[str, int], free_at: int) -> Harness:
    harness = Harness(
        *queues(cq("A", "R", cpu="6", reclaim="Any"), cq("B", "R", cpu="4"), cq("C", "R", cpu="2"))
    )
    hold(harness, 1, "a1", "A", "2")
    for name, at_s in b.items():
        hold(harness, at_s, name, "B", {"b1": "3", "b2": "2", "b": "4"}[name])
    hold(harness, free_at, "c1", "C", "1")
    hold(harness, 20, "c2", "C", "4", priority=5)
    harness.observe(wl("w", "A", cpu="4", priority=1))
    harness.victims_stop = False
    harness.cycle()
    return harness


def test_8_8_candidates_are_checked_again_as_others_go() -> None:
    assert set(lazy({"b1": 50, "b2": 30}, 10).evicted()) == {"b1", "c1"}


def test_8_8_what_is_not_needed_is_given_back() -> None:
    assert set(lazy({"b": 50}, 90).evicted()) == {"c2"}


def advantage(b_uses: bool) -> Harness:
    harness = Harness(
        *queues(
            cohort("R"),
            cohort("L", "R"),
            cohort("K", "R"),
            cq("A", "L", cpu="0", reclaim="Any"),
            cq("B", "L", cpu="4"),
            cq("C", "K", cpu="4"),
        )
    )
    if b_uses:
        hold(harness, 1, "b", "B", "1")
    for at_s, name, cpu in ((2, "c1", "4"), (3, "c2", "3" if b_uses else "4")):
        hold(harness, at_s, name, "C", cpu, priority=100)
    harness.observe(wl("w", "A", cpu="4"))
    harness.victims_stop = False
    harness.cycle()
    return harness


def test_8_9_a_subtree_that_fits_the_request_has_the_better_claim() -> None:
    assert advantage(b_uses=False).evicted() == {"c2": "InCohortReclamation"}


def test_8_9_without_that_claim_preemption_is_not_even_considered() -> None:
    harness = advantage(b_uses=True)

    assert harness.evicted() == {}
    assert harness.told()["w"][0] == "WaitingForQuota"


def threshold(priorities: tuple[int, int], cpu: str) -> Harness:
    harness = Harness(
        *queues(
            cq("A", "R", cpu="2", reclaim="LowerPriority", borrow="LowerPriority", threshold=5),
            cq("B", "R", cpu="2"),
            cq("C", "R", cpu="4"),
        )
    )
    for at_s, priority in enumerate(priorities):
        hold(harness, at_s, f"b{at_s}", "B", "4", priority=priority)
    harness.observe(wl("w", "A", cpu=cpu, priority=10))
    harness.victims_stop = False
    harness.cycle()
    return harness


@pytest.mark.parametrize(
    ("priorities", "cpu", "evicted"),
    [
        pytest.param((5, 6), "4", {"b0": "InCohortReclaimWhileBorrowing"}, id="at the threshold"),
        pytest.param((6, 6), "4", {}, id="all above it"),
        pytest.param((6, 6), "2", {"b1": "InCohortReclamation"}, id="within nominal"),
    ],
)
def test_8_10_threshold_of_preemption_while_borrowing(
    priorities: tuple[int, int], cpu: str, evicted: dict[str, str]
) -> None:
    assert threshold(priorities, cpu).evicted() == evicted


def fair(
    b: dict[str, str],
    *strategies: FairStrategy,
    preemptor: tuple[str, str] = ("a", "1"),
    a_weight: float = 1.0,
) -> dict[str, str]:
    rules = {"reclaim": "Any"}
    harness = Harness(
        *queues(
            cq("a", "R", cpu="2", fair_weight=a_weight, **rules),
            cq("b", "R", cpu="2", **rules),
            cq("c", "R", cpu="4", **rules),
        ),
        options=EngineOptions(wake_up_batch_ms=0, fair_sharing=FairSharing(strategies=strategies)),
    )
    hold(harness, 1, "a1", "a", "3")
    for at_s, (name, cpu) in enumerate(b.items(), 2):
        hold(harness, at_s, name, "b", cpu)
    harness.observe(wl("w", preemptor[0], cpu=preemptor[1]))
    harness.victims_stop = False
    harness.cycle()
    return harness.evicted()


ONES = {f"b{i}": "1" for i in range(5)}
TWO_THREE = {"two": "2", "three": "3"}


@pytest.mark.parametrize(
    ("b", "strategies", "evicted"),
    [
        pytest.param(ONES, (FINAL,), {"b4": "InCohortFairSharing"}, id="final share, equal after"),
        pytest.param(TWO_THREE, (FINAL,), {}, id="final share fails for both"),
        pytest.param(TWO_THREE, (), {"three": "InCohortFairSharing"}, id="then initial share"),
        pytest.param(TWO_THREE, (INITIAL,), {"three": "InCohortFairSharing"}, id="initial share"),
    ],
)
def test_8_11_strategies(
    b: dict[str, str], strategies: tuple[FairStrategy, ...], evicted: dict[str, str]
) -> None:
    assert fair(b, *strategies) == evicted


@pytest.mark.parametrize(
    ("cpu", "evicted"), [("1", {"three"}), ("4", {"three", "a1"})], ids=["one core", "four cores"]
)
def test_8_11_a_queue_within_nominal_takes_from_the_highest_share(
    cpu: str, evicted: set[str]
) -> None:
    assert fair(TWO_THREE, preemptor=("c", cpu)) == dict.fromkeys(evicted, "InCohortReclamation")


def test_8_11_a_borrowing_queue_without_weight_preempts_nobody() -> None:
    assert fair(TWO_THREE, a_weight=0.0) == {}


@pytest.mark.parametrize(("weight", "of_m"), [(1.0, 100.0), (2.0, 50.0)])
def test_8_12_shares_in_a_hierarchy(weight: float, of_m: float) -> None:
    forest = Forest()
    forest.set_cohort(cohort("M", "R", cpu=("0", "4"), weight=weight))
    for record in (cq("m1", "M", cpu="4"), cq("m2", "M", cpu="2"), cq("x", "R", cpu="14")):
        forest.set_queue(record)
        forest.active.add(record.name)
    nodes = {n.name: n for n in forest.build(CohortName("R")).nodes}
    add_usage(nodes["m1"], 0, 7000, None)
    add_usage(nodes["m2"], 0, 1000, None)

    assert fairshare.share(nodes["m1"]) == (0, 300.0)
    assert fairshare.share(nodes["M"]) == (0, of_m)


def overlapping(*c: tuple[str, str]) -> Harness:
    harness = Harness(
        *queues(
            cq("a", "R", cpu="2", reclaim="Any"),
            cq("b", "R", cpu="2", reclaim="Any"),
            cq("c", "R", cpu="0"),
        )
    )
    for at_s, (name, cpu) in enumerate(c):
        hold(harness, at_s, name, "c", cpu)
    harness.observe(wl("a1", "a", cpu="2", priority=1), wl("b1", "b", cpu="2"))
    harness.victims_stop = False
    harness.cycle()
    return harness


def test_8_15_the_second_preemptor_of_the_same_victim_is_deferred() -> None:
    harness = overlapping(("c1", "4"))

    assert set(harness.evicted()) == {"c1"}
    assert harness.pending("b") == ["b1"]
    assert "will fit after these preemptions complete" in harness.told()["b1"][1]

    harness.stopped("c1")
    harness.run()
    assert harness.holding() == {"a1", "b1"}


def test_8_15_the_second_preemptor_finds_another_victim() -> None:
    assert set(overlapping(("c2", "2"), ("c1", "2")).evicted()) == {"c1", "c2"}
