"""Who is queued, parked and woken (docs/spec/algorithm.md section 2)."""

from typing import Any

import pytest
from tests.support.builders import T0_MS, cohort, condition, cq, flavor, lq, namespace, ps, wl
from tests.support.harness import Harness, queues

from sluice.api.conditions import ConditionType
from sluice.api.records import Kind, LabelSelector
from sluice.engine.options import EngineOptions

BATCHED = EngineOptions(wake_up_batch_ms=1000)


def one_queue(**fields: Any) -> Harness:
    return Harness(*queues(cq("q", cpu="4", **fields)))


@pytest.mark.parametrize(
    ("fields", "cure"),
    [
        pytest.param({"gated_by": "a,b"}, {"gated_by": ""}, id="2.11 admission gate"),
        pytest.param({"active": False}, {"active": True}, id="inactive"),
        pytest.param(
            {"conditions": {ConditionType.QUOTA_RESERVED: condition(False, "OnHold")}},
            {"conditions": {ConditionType.QUOTA_RESERVED: condition(False, "Pending")}},
            id="on hold",
        ),
        pytest.param(
            {"conditions": {ConditionType.WAITING_FOR_REPLACEMENT_PODS: condition(True)}},
            {"conditions": {ConditionType.WAITING_FOR_REPLACEMENT_PODS: condition(False)}},
            id="waiting for replacement pods",
        ),
        pytest.param({"is_variant_parent": True}, None, id="4.10 parent of variants"),
    ],
)
def test_2_1_who_may_not_be_queued(fields: dict[str, Any], cure: dict[str, Any] | None) -> None:
    harness = one_queue()
    harness.observe(wl("w", "q", cpu="1", **fields))
    harness.cycle()
    assert harness.pending("q") == harness.parked("q") == []
    assert harness.holding() == set()

    if cure is not None:
        harness.change("w", **cure)
        harness.cycle()
        assert harness.holding() == {"w"}


def test_2_1_queues_may_appear_after_the_workload() -> None:
    harness = Harness()
    harness.observe(wl("w", "q", cpu="1"))
    harness.observe(lq("q"))
    harness.cycle()
    assert harness.commands == ()

    harness.observe(cq("q", cpu="4"))
    harness.run()

    assert harness.holding() == {"w"}


def test_2_3_priority_then_age_then_uid() -> None:
    harness = one_queue(stop="Hold")
    harness.observe(
        wl("d", "q", cpu="1", created_s=2, uid="b"),
        wl("c", "q", cpu="1", created_s=2, uid="a"),
        wl("b", "q", cpu="1", created_s=1),
        wl("a", "q", cpu="1", created_s=9, priority=1),
    )

    assert harness.pending("q") == ["a", "b", "c", "d"]


def test_2_2_an_eviction_for_pods_not_ready_moves_a_workload_back() -> None:
    evicted = {ConditionType.EVICTED: condition(True, "PodsReadyTimeout", at_s=500)}
    harness = one_queue(stop="Hold")
    harness.observe(
        wl("was-evicted", "q", cpu="1", created_s=1, conditions=evicted),
        wl("fresh", "q", cpu="1", created_s=2),
    )

    assert harness.pending("q") == ["fresh", "was-evicted"]


def test_2_2_a_preempted_workload_keeps_its_place() -> None:
    evicted = {ConditionType.EVICTED: condition(True, "Preempted", at_s=500)}
    harness = one_queue(stop="Hold")
    harness.observe(
        wl("preempted", "q", cpu="1", created_s=1, conditions=evicted),
        wl("fresh", "q", cpu="1", created_s=2),
    )

    assert harness.pending("q") == ["preempted", "fresh"]


def test_2_6_the_sticky_preemptor_sorts_first_in_a_best_effort_queue() -> None:
    harness = one_queue(within="LowerPriority")
    harness.victims_stop = False
    harness.observe(wl("victim", "q", cpu="4"))
    harness.cycle()
    harness.observe(wl("preemptor", "q", cpu="4", priority=1))
    harness.cycle()
    assert harness.evicted().keys() == {"victim"}

    harness.observe(wl("urgent", "q", cpu="4", priority=9))

    assert harness.pending("q") == ["preemptor", "urgent"]


def test_2_8_an_update_that_changes_nothing_leaves_a_workload_parked() -> None:
    harness = one_queue()
    harness.observe(wl("w", "q", cpu="9"))
    harness.cycle()
    harness.change("w", job_uid="other")
    assert harness.parked("q") == ["w"]

    harness.change("w", pod_sets=(ps(cpu="2"),))
    harness.cycle()
    assert harness.holding() == {"w"}


def test_2_8_a_new_equivalent_of_a_parked_workload_is_parked_at_once() -> None:
    harness = one_queue()
    harness.observe(wl("first", "q", cpu="9"))
    harness.cycle()
    harness.observe(wl("second", "q", cpu="9"), wl("other", "q", cpu="8"))

    assert harness.parked("q") == ["first", "second"]
    assert harness.pending("q") == ["other"]
    explanation = harness.engine.explain(harness.workloads["ns/second"].key)
    assert explanation is not None
    assert explanation.message.startswith("Bypassed scheduling evaluation")


def test_2_9_a_wake_up_forgets_the_classes_that_failed_even_when_nobody_is_parked() -> None:
    harness = one_queue()
    harness.observe(wl("first", "q", cpu="9"))
    harness.cycle()
    harness.gone(Kind.WORKLOAD, "ns/first")
    harness.observe(cq("q", cpu="9"), wl("second", "q", cpu="9"))

    assert harness.pending("q") == ["second"]


def parked(*records: Any, options: EngineOptions | None = None) -> Harness:
    """Return a world where ``b1`` waits in queue b for what ``a1`` holds in a."""
    both = (cq("a", "R", cpu="4"), cq("b", "R", cpu="0"))
    harness = Harness(
        *queues(*both), *records, options=options or EngineOptions(wake_up_batch_ms=0)
    )
    harness.observe(wl("a1", "a", cpu="4"))
    harness.cycle()
    harness.observe(wl("b1", "b", cpu="4"))
    harness.cycle()
    assert harness.parked("b") == ["b1"]
    return harness


def evict(harness: Harness) -> None:
    harness.change("a1", {ConditionType.EVICTED: condition(True, "Deactivated", at_s=3700)})
    harness.stopped("a1")


@pytest.mark.parametrize(
    "release",
    [
        pytest.param(lambda h: h.finish("a1"), id="finished"),
        pytest.param(lambda h: h.gone(Kind.WORKLOAD, "ns/a1"), id="deleted"),
        pytest.param(lambda h: h.change("a1", active=False), id="deactivated"),
        pytest.param(evict, id="eviction completed"),
        pytest.param(lambda h: h.change("a1", reclaimable=(("main", 1),)), id="pods reclaimable"),
    ],
)
def test_2_9_quota_given_up_in_the_tree_wakes(release: Any) -> None:
    harness = parked()
    release(harness)

    assert harness.pending("b") == ["b1"]
    harness.cycle()
    assert "b1" in harness.holding()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda h: h.observe(cq("a", "R", cpu="8")), id="quota of another queue"),
        pytest.param(lambda h: h.observe(cohort("R", cpu="4")), id="quota of the cohort"),
        pytest.param(lambda h: h.observe(flavor(labels={"a": "b"})), id="labels of the flavor"),
        pytest.param(lambda h: h.observe(*queues(cq("c", "R", cpu="4"))), id="a new member"),
    ],
)
def test_2_9_configuration_wakes(change: Any) -> None:
    harness = parked()
    change(harness)

    assert harness.pending("b") == ["b1"]


def test_2_9_another_tree_does_not_wake() -> None:
    harness = parked(*queues(cq("far", cpu="1")))
    harness.observe(cq("far", cpu="9"))

    assert harness.parked("b") == ["b1"]


def test_2_9_notifications_are_gathered_for_the_batch() -> None:
    harness = parked(options=BATCHED)
    harness.finish("a1")
    assert harness.parked("b") == ["b1"]
    assert harness.engine.next_deadline_ms() == harness.now_ms + 1000

    harness.now_ms += 1000
    harness.run()
    assert "b1" in harness.holding()


def test_2_9_a_namespace_that_comes_to_match_wakes_its_workloads() -> None:
    selector = LabelSelector(match_labels=(("team", "a"),))
    harness = one_queue(namespace_selector=selector)
    harness.observe(wl("w", "q", cpu="1"))
    harness.cycle()
    assert harness.told()["w"][0] == "Misconfigured"
    assert harness.parked("q") == ["w"]

    harness.observe(namespace(team="a"))
    harness.run()
    assert harness.holding() == {"w"}


def test_2_9_waking_leaves_workloads_of_other_namespaces_parked() -> None:
    selector = LabelSelector(match_labels=(("team", "a"),))
    harness = Harness(
        namespace(team="a"),
        namespace("other"),
        cq("q", cpu="4", namespace_selector=selector),
        lq("q"),
        lq("q", namespace="other"),
    )
    harness.observe(wl("theirs", "q", cpu="9", namespace="other"), wl("ours", "q", cpu="9"))
    harness.run()
    assert sorted(harness.parked("q")) == ["ours", "theirs"]

    harness.observe(cq("q", cpu="9", namespace_selector=selector))
    harness.run()

    assert harness.holding() == {"ours"}
    assert harness.parked("q") == ["theirs"]


def test_2_10_a_stopped_local_queue_takes_its_workloads_out_until_it_resumes() -> None:
    harness = one_queue(strict=True)
    harness.observe(wl("w", "q", cpu="9"))
    harness.observe(lq("q", stop="Hold"))
    assert harness.pending("q") == []

    harness.observe(lq("q"))
    assert harness.pending("q") == ["w"]


def test_2_10_a_held_cluster_queue_pops_no_heads_but_keeps_its_heap() -> None:
    harness = one_queue()
    harness.observe(wl("running", "q", cpu="1"))
    harness.cycle()
    harness.observe(cq("q", cpu="4", stop="Hold"), wl("w", "q", cpu="1"))
    assert harness.cycle() == ()
    assert harness.pending("q") == ["w"]
    assert harness.engine.next_deadline_ms() is None

    harness.observe(cq("q", cpu="4"))
    harness.run()
    assert harness.holding() == {"running", "w"}


def test_a_workload_that_moves_to_another_queue_leaves_the_first() -> None:
    harness = Harness(*queues(cq("q", cpu="4"), cq("other", cpu="4")))
    harness.observe(wl("w", "q", cpu="9"))
    harness.cycle()
    harness.change("w", queue="other")

    assert harness.parked("q") == []
    assert harness.pending("other") == ["w"]


def test_waiting_times_count_from_the_last_eviction() -> None:
    harness = one_queue()
    evicted = {ConditionType.EVICTED: condition(True, "Preempted", at_s=3000)}
    harness.observe(wl("w", "q", cpu="1", conditions=evicted))
    (command,) = harness.cycle()

    assert command.wait_ms == harness.now_ms - 1000 - (T0_MS + 3_000_000)  # type: ignore[union-attr]
