"""Whom credits have preempted first (docs/spec/credits.md 3.3)."""

from tests.support.builders import cohort, cq, wl
from tests.support.credit_builders import policy
from tests.support.harness import Harness, queues

from sluice.api.records import Record
from sluice.engine.options import EngineOptions, FairSharing

AT_ONCE = EngineOptions(wake_up_batch_ms=0)
FAIR = EngineOptions(wake_up_batch_ms=0, fair_sharing=FairSharing())


def hold(harness: Harness, *names: str, cpu: str = "1", priority: int = 0) -> None:
    """Let Workloads run, named after their queue and a number."""
    for name in names:
        harness.observe(wl(name, name[0].upper(), cpu=cpu, priority=priority))
        harness.run()
        assert name in harness.holding()


def three(*policies: Record, options: EngineOptions = AT_ONCE) -> Harness:
    """A owns two cores, B and C borrow them."""
    return Harness(
        *queues(cq("A", "R", cpu="2", reclaim="Any"), cq("B", "R", cpu="0"), cq("C", "R", cpu="0")),
        *policies,
        options=options,
    )


def test_the_poorest_account_gives_way_first() -> None:
    harness = three(policy(balances={"A": 0, "B": 1, "C": 9}))
    hold(harness, "c1", "b1")
    harness.observe(wl("a1", "A", cpu="1"))
    harness.cycle()
    assert set(harness.evicted()) == {"b1"}


def test_the_poorest_gives_way_before_lower_priority() -> None:
    harness = three(policy(balances={"A": 0, "B": 9, "C": 1}))
    hold(harness, "b1", priority=-5)
    hold(harness, "c1", priority=5)
    harness.observe(wl("a1", "A", cpu="1"))
    harness.cycle()
    assert set(harness.evicted()) == {"c1"}


def test_without_credits_it_is_the_last_that_came() -> None:
    harness = three()
    hold(harness, "c1", "b1")
    harness.observe(wl("a1", "A", cpu="1"))
    harness.cycle()
    assert set(harness.evicted()) == {"b1"}


def test_nobody_within_quota_is_preempted_for_being_poor() -> None:
    harness = Harness(
        *queues(cq("A", "R", cpu="2", reclaim="Any"), cq("B", "R", cpu="1"), cq("C", "R", cpu="0")),
        policy(balances={"A": 0, "B": -99, "C": 99}),
    )
    hold(harness, "b1", "c1", "c2")
    harness.observe(wl("a1", "A", cpu="1"))
    harness.cycle()
    assert set(harness.evicted()) <= {"c1", "c2"}
    assert harness.evicted()


def test_fair_sharing_takes_from_the_poorest_not_the_highest_share() -> None:
    harness = Harness(
        *queues(cq("A", "R", cpu="4", reclaim="Any"), cq("B", "R", cpu="0"), cq("C", "R", cpu="0")),
        policy(balances={"A": 0, "B": 1, "C": 20}),
        options=FAIR,
    )
    hold(harness, "c1", "c2", "c3", "b1")
    harness.observe(wl("a1", "A", cpu="1"))
    harness.cycle()
    # C has the highest share by far; B has the fewer credits.
    assert set(harness.evicted()) == {"b1"}


def test_fair_sharing_without_credits_takes_from_the_highest_share() -> None:
    harness = Harness(
        *queues(cq("A", "R", cpu="4", reclaim="Any"), cq("B", "R", cpu="0"), cq("C", "R", cpu="0")),
        options=FAIR,
    )
    hold(harness, "c1", "c2", "c3", "b1")
    harness.observe(wl("a1", "A", cpu="1"))
    harness.cycle()
    assert set(harness.evicted()) < {"c1", "c2", "c3"}


def test_in_a_tree_the_account_below_the_common_ancestor_counts() -> None:
    harness = Harness(
        *queues(
            cohort("R"), cohort("M", "R"), cohort("N", "R"),
            cq("A", "R", cpu="2", reclaim="Any"),
            cq("B", "M", cpu="0"), cq("C", "N", cpu="0"),
        ),
        policy(
            balances={"A": 0, "Cohort/M": 1, "Cohort/N": 9, "B": 99, "C": -99},
            cohorts={"B": "M", "C": "N"},
        ),
    )  # fmt: skip
    hold(harness, "c1", "b1")
    harness.observe(wl("a1", "A", cpu="1"))
    harness.cycle()
    # Seen from A it is M that owes; that C is poor within N is N's own affair.
    assert set(harness.evicted()) == {"b1"}


def test_victims_of_the_own_queue_come_last() -> None:
    harness = Harness(
        *queues(
            cq("A", "R", cpu="2", within="LowerPriority", reclaim="Any"), cq("B", "R", cpu="0")
        ),
        policy(balances={"A": -9, "B": 9}),
    )
    hold(harness, "a1", priority=-1)
    hold(harness, "b1")
    harness.observe(wl("a2", "A", cpu="1"))
    harness.cycle()
    assert set(harness.evicted()) == {"b1"}
