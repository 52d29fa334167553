"""Who is admitted next where credits decide (docs/spec/credits.md 3.1 and 3.2)."""

from typing import Any

import pytest
from tests.support.builders import cohort, cq, flavor, lq, ps, wl
from tests.support.credit_builders import policy
from tests.support.harness import Harness, queues

from sluice.api.records import Record
from sluice.engine.options import EngineOptions, FairSharing

FAIR = EngineOptions(wake_up_batch_ms=0, fair_sharing=FairSharing())
AT_ONCE = EngineOptions(wake_up_batch_ms=0)
MODES = pytest.mark.parametrize(
    "options", [pytest.param(AT_ONCE, id="classical"), pytest.param(FAIR, id="fair")]
)


def flat(pool: str = "2", **balances: float) -> list[Record]:
    """Two queues without quota of their own and a pool; balances in core-hours."""
    return [
        *queues(cohort("R", cpu=pool), cq("A", "R", cpu="0"), cq("B", "R", cpu="0")),
        policy(balances=balances),
    ]


def order(harness: Harness) -> list[str]:
    """Run until nothing changes; return what was admitted, in order."""
    admitted: list[str] = []
    for _ in range(30):
        due_ms = harness.engine.next_deadline_ms()
        if due_ms is None or due_ms > harness.now_ms:
            return admitted
        harness.cycle()
        admitted.extend(harness.admitted())
    raise AssertionError("cycles without end")


@MODES
def test_the_richer_account_goes_first_whatever_the_priority(options: EngineOptions) -> None:
    harness = Harness(*flat("1", A=1, B=5), options=options)
    harness.observe(wl("a", "A", cpu="1", priority=100), wl("b", "B", cpu="1", created_s=9))
    assert order(harness) == ["b"]


@MODES
def test_without_a_policy_priority_decides(options: EngineOptions) -> None:
    records = flat("1", A=1, B=5)[:-1]
    harness = Harness(*records, options=options)
    harness.observe(wl("a", "A", cpu="1", priority=100), wl("b", "B", cpu="1", created_s=9))
    assert order(harness) == ["a"]


@MODES
def test_within_nominal_goes_before_any_borrower(options: EngineOptions) -> None:
    harness = Harness(
        *queues(cq("A", "R", cpu="1"), cq("B", "R", cpu="1")),
        policy(balances={"A": -9, "B": 9}),
        options=options,
    )
    harness.observe(wl("b1", "B", cpu="2", priority=9), wl("a1", "A", cpu="1", created_s=5))
    assert order(harness) == ["a1"]


@MODES
def test_one_rich_account_takes_turns_as_its_debt_shows(options: EngineOptions) -> None:
    harness = Harness(*flat("4", A=2.5, B=0.2), options=options)
    harness.observe(*[wl(f"a{i}", "A", cpu="1") for i in range(4)])
    harness.observe(*[wl(f"b{i}", "B", cpu="1") for i in range(4)])
    # Projected after each core: 2.5, 1.5, 0.5 against 0.2; then -0.5 against 0.2.
    assert order(harness) == ["a0", "a1", "a2", "b0"]


def test_equal_credits_leave_it_to_shares_then_age() -> None:
    harness = Harness(*flat("3", A=1, B=1))
    harness.observe(wl("a0", "A", cpu="1", created_s=1), wl("a1", "A", cpu="1", created_s=2))
    harness.observe(wl("b0", "B", cpu="1", created_s=3), wl("b1", "B", cpu="1", created_s=4))
    assert order(harness) == ["a0", "b0", "a1"]


def test_a_gang_that_does_not_fit_blocks_nobody() -> None:
    harness = Harness(*flat("2", A=9, B=0))
    harness.observe(wl("a", "A", cpu="1", count=3), wl("b0", "B", cpu="1"), wl("b1", "B", cpu="1"))
    assert order(harness) == ["b0", "b1"]
    assert harness.parked("A") == ["a"]


def test_what_a_waiting_preemptor_would_keep_stays_free_for_others() -> None:
    # Without credits a1 keeps its room for the length of the cycle (algorithm.md 3.9.4).
    harness = Harness(
        *queues(cq("A", "R", cpu="6", within="LowerPriority"), cq("B", "R", cpu="6")),
        policy(balances={"A": 0, "B": 0}),
    )
    harness.observe(wl("a0", "A", cpu="4", priority=10), wl("b0", "B", cpu="6"))
    assert sorted(order(harness)) == ["a0", "b0"]
    harness.observe(wl("a1", "A", cpu="4", priority=5), wl("b1", "B", cpu="2", created_s=9))
    assert order(harness) == ["b1"]


def test_what_is_owed_since_the_last_settlement_counts() -> None:
    harness = Harness(*flat("1", A=1, B=0.995))
    harness.observe(wl("a0", "A", cpu="1"))
    assert order(harness) == ["a0"]
    # Half a minute of a core: 1 - 0.0083 is less than 0.995, before any settlement.
    harness.now_ms += 29_000
    harness.finish("a0")
    harness.observe(wl("a1", "A", cpu="1"), wl("b1", "B", cpu="1", created_s=9))
    assert order(harness) == ["b1"]


def test_a_free_resource_is_not_borrowed() -> None:
    flavors = {"default": {"cpu": "0", "example.com/gpu": "1"}}
    pool = {"default": {"cpu": "9", "example.com/gpu": "1"}}
    harness = Harness(
        *queues(cohort("R", flavors=pool), cq("A", "R", flavors=flavors)),
        *queues(cq("B", "R", flavors=flavors)),
        policy(balances={"A": -9, "B": 9}, weights={"example.com/gpu": 1000, "cpu": 0}),
    )
    one: dict[str, Any] = {"example__com/gpu": "1"}
    two: dict[str, Any] = {"example__com/gpu": "2"}
    # Both borrow cpu, which costs nothing; a is within its quota of GPUs, b is not.
    harness.observe(wl("b", "B", ps(cpu="1", **two)), wl("a", "A", ps(cpu="1", **one), created_s=5))
    assert order(harness) == ["a", "b"]


def test_credits_decide_at_every_level() -> None:
    harness = Harness(
        *queues(
            cohort("R", cpu="2"), cohort("M", "R"), cohort("N", "R"),
            cq("M1", "M", cpu="0"), cq("M2", "M", cpu="0"), cq("N1", "N", cpu="0"),
        ),
        policy(
            balances={"Cohort/M": 5, "Cohort/N": 1, "M1": 0, "M2": 3, "N1": 99},
            cohorts={"M1": "M", "M2": "M", "N1": "N"},
        ),
    )  # fmt: skip
    harness.observe(wl("m1", "M1", cpu="1"), wl("m2", "M2", cpu="1"), wl("n1", "N1", cpu="1"))
    # N1 is rich only among N's own; M has more than N, and in M it is M2's turn first.
    assert order(harness) == ["m2", "m1"]


def test_strict_queues_keep_their_order() -> None:
    harness = Harness(
        *queues(cohort("R", cpu="2"), cq("A", "R", cpu="0", strict=True), cq("B", "R", cpu="0")),
        policy(balances={"A": 9, "B": 0}),
    )
    harness.observe(wl("a0", "A", cpu="3"), wl("a1", "A", cpu="1", created_s=1))
    harness.observe(wl("b0", "B", cpu="1"), wl("b1", "B", cpu="1"))
    assert order(harness) == ["b0", "b1"]


def test_trees_without_a_policy_keep_their_order() -> None:
    harness = Harness(
        *flat("2", A=0, B=9),
        *queues(cohort("S", cpu="1"), cq("C", "S", cpu="0"), cq("D", "S", cpu="0")),
    )
    harness.observe(wl("c", "C", cpu="1"), wl("d", "D", cpu="1", priority=1))
    harness.observe(wl("a", "A", cpu="1", priority=5), wl("b", "B", cpu="1"))
    harness.cycle()
    # The turn of the oldest or most urgent head is taken by its tree's winner.
    assert list(harness.admitted()) == ["b", "d", "a"]
    assert harness.parked("C") + harness.pending("C") == ["c"]


def test_a_second_flavor_is_found_again_after_another_was_admitted() -> None:
    two = {"default": {"cpu": "0"}, "spot": {"cpu": "0"}}
    pool = {"default": {"cpu": "1"}, "spot": {"cpu": "1"}}
    harness = Harness(
        *queues(cohort("R", flavors=pool), cq("A", "R", flavors=two), cq("B", "R", flavors=two)),
        policy(balances={"A": 3, "B": 0}),
    )
    harness.observe(flavor("spot"))
    harness.observe(wl("a", "A", cpu="1"), wl("b", "B", cpu="1"))
    harness.cycle()
    assert harness.admitted() == {"a": {"main/cpu": "default"}, "b": {"main/cpu": "spot"}}


def test_a_waiting_workload_is_told_whose_credits_went_before_it() -> None:
    harness = Harness(*flat("1", A=0.5, B=2))
    harness.observe(wl("a", "A", cpu="1"), wl("b", "B", cpu="1"))
    harness.cycle()
    _, message = harness.told()["a"]
    assert message.endswith(
        "Credits of ClusterQueue B in cohort R went before it: projected balance 2.000 against "
        "0.500 unit-hours, 1.500 apart"
    )


def test_reserved_by_another_door_is_still_the_queues_account() -> None:
    harness = Harness(*flat("1", A=2, B=0), lq("A", "side-door"))
    harness.observe(wl("a", "side-door", cpu="1"), wl("b", "B", cpu="1", priority=9))
    assert order(harness) == ["a"]


def test_a_head_that_may_not_be_admitted_leaves_its_place_to_the_next() -> None:
    harness = Harness(*flat("4", A=9, B=0))
    harness.observe(wl("a0", "A", cpu="1", namespace="nowhere"), lq("A", namespace="nowhere"))
    harness.observe(*[wl(f"a{i}", "A", cpu="1", created_s=i) for i in range(1, 4)])
    harness.observe(*[wl(f"b{i}", "B", cpu="1") for i in range(4)])
    # While a0 is looked at b0 is the only head that fits; from then on A has one.
    assert order(harness) == ["b0", "a1", "a2", "a3"]
