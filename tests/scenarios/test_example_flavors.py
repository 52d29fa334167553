"""Worked examples 8.5 to 8.7 of docs/spec/algorithm.md: flavor search, preference, partial."""

import pytest
from tests.support.builders import cq, flavor, ps, wl
from tests.support.harness import Harness, queues

from sluice.api.records import ClusterQueue, FungibilityPolicy, FungibilityPreference

NEXT = FungibilityPolicy.TRY_NEXT_FLAVOR
PREEMPTING_LAST = FungibilityPreference.PREEMPTION_OVER_BORROWING
FLAVORS = (flavor("f0"), flavor("f1"), flavor("f2"))


def three_flavors(**fields: object) -> Harness:
    own = {"f0": {"cpu": "2"}, "f1": {"cpu": "1"}, "f2": {"cpu": "4"}}
    mate = cq("B", "R", flavors={"f0": {"cpu": "4"}})
    return Harness(*FLAVORS, *queues(cq("A", "R", flavors=own, **fields), mate))


def test_8_5_by_default_the_first_flavor_that_fits_by_borrowing_is_taken() -> None:
    harness = three_flavors()
    harness.observe(wl("w", "A", cpu="3"))
    harness.cycle()

    assert harness.admitted() == {"w": {"main/cpu": "f0"}}


def test_8_5_try_next_flavor_prefers_one_that_need_not_borrow() -> None:
    harness = three_flavors(when_can_borrow=NEXT)
    harness.observe(wl("w", "A", cpu="3"))
    harness.cycle()

    assert harness.admitted() == {"w": {"main/cpu": "f2"}}


def test_8_5_try_next_flavor_comes_back_to_borrowing_when_nothing_better_is_left() -> None:
    harness = three_flavors(when_can_borrow=NEXT)
    harness.observe(wl("before", "A", cpu="3", priority=1), wl("w", "A", cpu="3"))
    harness.cycle()
    assert harness.admitted() == {"before": {"main/cpu": "f2"}}

    harness.cycle()

    assert harness.admitted() == {"w": {"main/cpu": "f0"}}


def test_8_5_a_skipped_workload_goes_on_at_the_next_flavor() -> None:
    own = {"f0": {"cpu": "0"}, "f1": {"cpu": "5"}}
    harness = Harness(
        *FLAVORS,
        *queues(
            cq("a", "R", flavors=own),
            cq("b", "R", flavors=own),
            cq("c", "R", flavors={"f0": {"cpu": "3"}}),
        ),
    )
    harness.observe(wl("a1", "a", cpu="3", priority=1), wl("b1", "b", cpu="3"))
    harness.cycle()
    assert harness.admitted() == {"a1": {"main/cpu": "f0"}}
    assert harness.pending("b") == ["b1"]

    harness.cycle()

    assert harness.admitted() == {"b1": {"main/cpu": "f1"}}


def test_8_5_partial_progress_keeps_a_workload_in_the_heap_once() -> None:
    own = {"f0": {"cpu": "5"}, "f1": {"cpu": "5"}}
    harness = Harness(*FLAVORS, *queues(cq("A", flavors=own)))
    harness.observe(wl("w", "A", ps("x", cpu="3"), ps("y", cpu="9")))

    harness.cycle()
    assert harness.pending("A") == ["w"]
    harness.cycle()
    assert harness.parked("A") == ["w"]


def two_queues(preference: FungibilityPreference) -> Harness:
    harness = Harness(
        *FLAVORS,
        *queues(
            cq(
                "A",
                "R",
                flavors={"f0": {"cpu": "4"}, "f1": {"cpu": "1"}},
                reclaim="Any",
                when_can_borrow=NEXT,
                when_can_preempt=NEXT,
                preference=preference,
            ),
            cq("B", "R", flavors={"f0": {"cpu": "2"}, "f1": {"cpu": "9"}}),
        ),
    )
    harness.observe(wl("b", "B", cpu="6"))
    harness.cycle()
    assert harness.admitted() == {"b": {"main/cpu": "f0"}}
    return harness


def test_8_6_borrowing_is_preferred_over_preemption_by_default() -> None:
    harness = two_queues(FungibilityPreference.BORROWING_OVER_PREEMPTION)
    harness.observe(wl("w", "A", cpu="3"))
    harness.cycle()

    assert harness.admitted() == {"w": {"main/cpu": "f1"}}


def test_8_6_preemption_can_be_preferred_over_borrowing() -> None:
    harness = two_queues(PREEMPTING_LAST)
    harness.observe(wl("w", "A", cpu="3"))
    harness.cycle()

    assert harness.evicted() == {"b": "InCohortReclamation"}


def quirk(preference: FungibilityPreference) -> Harness:
    fungible = {"when_can_borrow": NEXT, "when_can_preempt": NEXT, "preference": preference}
    own: ClusterQueue = cq(
        "A", "R", flavors={"f0": {"cpu": "1", "gpu": "4"}}, reclaim="Any", **fungible
    )
    harness = Harness(
        *FLAVORS, *queues(own, cq("B", "R", flavors={"f0": {"cpu": "9", "gpu": "0"}}))
    )
    harness.observe(wl("b", "B", ps(gpu="4")))
    harness.cycle()
    harness.observe(wl("w", "A", ps(cpu="3", gpu="2")))
    return harness


def test_8_6_quirk_a_mixed_worst_mode_reads_as_a_fit_that_never_fits() -> None:
    harness = quirk(PREEMPTING_LAST)

    for _ in range(3):
        harness.cycle()
        assert harness.evicted() == {}
        assert harness.pending("A") == ["w"]
    assert "no longer fits" in harness.workloads["ns/w"].conditions["QuotaReserved"].message


def test_8_6_quirk_does_not_make_a_busy_loop() -> None:
    harness = quirk(PREEMPTING_LAST)
    harness.run()

    assert harness.engine.next_deadline_ms() is None


def test_8_6_with_the_default_preference_the_same_waits_without_targets() -> None:
    harness = quirk(FungibilityPreference.BORROWING_OVER_PREEMPTION)
    harness.cycle()

    assert harness.evicted() == {}
    assert harness.parked("A") == ["w"]


@pytest.mark.parametrize(
    ("quota", "victim", "admitted", "evicted"),
    [
        pytest.param("8", False, 8, set(), id="the largest count that fits"),
        pytest.param("8", True, None, {"v"}, id="preempting for more pods beats fewer"),
        pytest.param("10", True, None, {"v"}, id="full counts with preemption beat any"),
    ],
)
def test_8_7_partial_admission(
    quota: str, victim: bool, admitted: int | None, evicted: set[str]
) -> None:
    harness = Harness(*queues(cq("A", cpu=quota, within="LowerPriority")))
    harness.victims_stop = False
    if victim:
        harness.observe(wl("v", "A", cpu="3", priority=-1))
        harness.cycle()
    harness.observe(wl("w", "A", ps(count=10, min_count=4, cpu="1")))
    harness.cycle()

    assert set(harness.evicted()) == evicted
    counts = [
        p.count
        for w in harness.workloads.values()
        if w.name == "w" and w.admission is not None
        for p in w.admission.pod_sets
    ]
    assert counts == ([] if admitted is None else [admitted])


def test_8_7_the_reduced_workload_runs_once_its_victim_is_gone() -> None:
    harness = Harness(*queues(cq("A", cpu="8", within="LowerPriority")))
    harness.observe(wl("v", "A", cpu="3", priority=-1))
    harness.cycle()
    harness.observe(wl("w", "A", ps(count=10, min_count=4, cpu="1")))
    harness.run()

    admission = harness.workloads["ns/w"].admission
    assert admission is not None
    assert admission.pod_sets[0].count == 8
    assert admission.pod_sets[0].usage == (("cpu", 8000),)
