"""Credits together with weights, limits, gangs, several flavors, topology and rejected writes."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support import racks
from tests.support.builders import cohort, cq, flavor, ps, wl
from tests.support.credit_builders import policy
from tests.support.harness import Harness, queues

from sluice.engine.options import EngineOptions, FairSharing

FAIR = EngineOptions(wake_up_batch_ms=0, fair_sharing=FairSharing())
AT_ONCE = EngineOptions(wake_up_batch_ms=0)
MODES = pytest.mark.parametrize(
    "options", [pytest.param(AT_ONCE, id="classical"), pytest.param(FAIR, id="fair")]
)


def order(harness: Harness) -> list[str]:
    admitted: list[str] = []
    for _ in range(30):
        due_ms = harness.engine.next_deadline_ms()
        if due_ms is None or due_ms > harness.now_ms:
            return admitted
        harness.cycle()
        admitted.extend(harness.admitted())
    raise AssertionError("cycles without end")


@MODES
def test_without_weight_one_still_borrows_with_credits(options: EngineOptions) -> None:
    records = queues(
        cohort("R", cpu="1"), cq("A", "R", cpu="0", fair_weight=0.0), cq("B", "R", cpu="0")
    )
    harness = Harness(*records, policy(balances={"A": 5, "B": 1}), options=options)
    harness.observe(wl("a", "A", cpu="1"), wl("b", "B", cpu="1"))
    assert order(harness) == ["a"]


@MODES
def test_a_borrowing_limit_holds_however_rich(options: EngineOptions) -> None:
    records = queues(cohort("R", cpu="4"), cq("A", "R", cpu=("0", "1")), cq("B", "R", cpu="0"))
    harness = Harness(*records, policy(balances={"A": 9, "B": 0}), options=options)
    harness.observe(*[wl(f"{q}{i}", q.upper(), cpu="1") for q in "ab" for i in range(3)])
    assert order(harness) == ["a0", "b0", "b1", "b2"]


@MODES
def test_what_is_not_lent_is_no_gain(options: EngineOptions) -> None:
    records = queues(
        cohort("R"),
        cq("A", "R", cpu=("4", None, "0")),
        cq("B", "R", cpu="4"),
        cq("C", "R", cpu="0"),
    )
    harness = Harness(*records, policy(balances={}), options=options)
    harness.observe(wl("c", "C", cpu="4"))
    assert order(harness) == ["c"]
    harness.now_ms += 3_600_000
    harness.cycle()
    book = harness.engine.credits.book("credits")
    assert book is not None
    earned = {a.id.name: a.earned > 0 for a in book.accounts.values()}
    assert earned == {"A": False, "B": True, "C": False}


def test_a_gang_of_two_pod_sets_is_taken_whole() -> None:
    records = queues(cohort("R", cpu="3"), cq("A", "R", cpu="0"), cq("B", "R", cpu="0"))
    harness = Harness(*records, policy(balances={"A": 9, "B": 0}))
    harness.observe(wl("a", "A", ps("driver", cpu="1"), ps("workers", 2, cpu="1")))
    harness.observe(*[wl(f"b{i}", "B", cpu="1") for i in range(3)])
    assert order(harness) == ["a"]


def test_the_cheaper_flavor_leaves_more_credits() -> None:
    two: Any = {"default": {"cpu": "0"}, "spot": {"cpu": "0"}}
    pool: Any = {"default": {"cpu": "0"}, "spot": {"cpu": "4"}}
    records = queues(
        cohort("R", flavors=pool), cq("A", "R", flavors=two), cq("B", "R", flavors=two)
    )
    weights = {"cpu": 1000, "spot/cpu": 100}
    harness = Harness(
        flavor("spot"), *records, policy(balances={"A": 1, "B": 0.8}, weights=weights)
    )
    harness.observe(*[wl(f"{q}{i}", q.upper(), cpu="1") for q in "ab" for i in range(4)])
    # A core of spot costs a tenth: 1.0, 0.9, 0.8 against 0.8, then equal shares decide.
    assert order(harness) == ["a0", "a1", "b0", "a2"]


@pytest.mark.parametrize("richer", ["A", "B"])
def test_hosts_go_to_the_richer_account(richer: str) -> None:
    quota: Any = {racks.FLAVOR: {"cpu": "0"}}
    tree = (
        cq("A", "R", flavors=quota),
        cq("B", "R", flavors=quota),
    )
    balances = {"A": 0.0, "B": 0.0, richer: 5.0}
    pool = cohort("R", flavors={racks.FLAVOR: {"cpu": "100"}})
    harness = racks.world(racks.part("r3"), pool, policy(balances=balances), cqs=tree)
    rack = racks.required(racks.RACK)
    harness.observe(*[wl(q.lower(), q, ps(count=4, cpu="1", topology=rack)) for q in "AB"])
    # There is quota for both, but only one rack with six cores.
    assert order(harness) == [richer.lower()]
    assert racks.where(harness, richer.lower()) == {"h6": 4}


def test_a_rejected_write_gives_the_turn_back() -> None:
    records = queues(cohort("R", cpu="1"), cq("A", "R", cpu="0"), cq("B", "R", cpu="0"))
    harness = Harness(*records, policy(balances={"A": 5, "B": 0}))
    harness.observe(wl("a", "A", cpu="1"), wl("b", "B", cpu="1"))
    harness.reject_next()
    assert order(harness) == ["a", "a"]
    assert harness.holding() == {"a"}


def test_another_equivalent_head_takes_the_next_turn() -> None:
    records = queues(cohort("R", cpu="2"), cq("A", "R", cpu="0"), cq("B", "R", cpu="0"))
    harness = Harness(*records, policy(balances={"A": 5, "B": 0}))
    harness.observe(*[replace(wl(f"a{i}", "A", cpu="1"), uid=f"uid-{i}") for i in range(9)])
    harness.observe(wl("b", "B", cpu="1"))
    assert order(harness) == ["a0", "a1"]
    assert harness.parked("A") == [f"a{i}" for i in range(2, 9)]


def test_a_tree_with_more_to_admit_than_a_cycle_goes_on_in_the_next() -> None:
    records = queues(cohort("R", cpu="200"), cq("A", "R", cpu="0"), cq("B", "R", cpu="0"))
    harness = Harness(*records, policy(balances={"A": 500, "B": 0}))
    harness.observe(*[wl(f"a{i:03}", "A", cpu="1") for i in range(150)])
    harness.observe(*[wl(f"b{i:03}", "B", cpu="1") for i in range(100)])
    admitted = order(harness)
    assert admitted[:150] == [f"a{i:03}" for i in range(150)]
    assert admitted[150:] == [f"b{i:03}" for i in range(50)]
