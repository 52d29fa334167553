"""Assumed, confirmed, failed and lost reservations; checks; blocked admission; reclaimable pods."""

from dataclasses import replace

import pytest
from tests.support.builders import (
    T0_MS,
    check,
    condition,
    cq,
    key,
    lq,
    ps,
    ready,
    reserved,
    wl,
)
from tests.support.harness import Harness, queues

from sluice.api.conditions import ConditionType
from sluice.api.names import ClusterQueueName, LocalQueueKey
from sluice.api.records import Admission, AdmissionMode, Kind, PodSetAssignment
from sluice.engine.commands import ReserveQuota
from sluice.engine.events import Gone, Observed
from sluice.engine.options import AdmissionFairSharing, EngineOptions


def one_queue(options: EngineOptions | None = None, **fields: object) -> Harness:
    return Harness(
        *queues(cq("q", cpu="4", **fields)), options=options or EngineOptions(wake_up_batch_ms=0)
    )


def admission(amount: int = 4000, queue: str = "q", count: int = 1) -> Admission:
    return Admission(
        cluster_queue=ClusterQueueName(queue),
        pod_sets=(
            PodSetAssignment(
                name="main",  # type: ignore[arg-type]
                flavors=(("cpu", "default"),),  # type: ignore[arg-type]
                usage=(("cpu", amount),),  # type: ignore[arg-type]
                count=count,
            ),
        ),
    )


def test_an_echo_older_than_the_write_does_not_drop_an_assumed_reservation() -> None:
    harness = one_queue()
    harness.observe(wl("w", "q", cpu="4"))
    before = harness.workloads[key("w")]
    harness.echoes = False
    harness.cycle()
    label_changed = replace(before, job_uid="x", resource_version="")
    for echo in (before, label_changed):
        harness.engine.observe(Observed(at_ms=harness.now_ms, record=echo))

    assert harness.usage("q") == {"default/cpu": 4000}
    harness.observe(wl("next", "q", cpu="1"))
    harness.run()
    assert "next" not in harness.admitted()


def test_a_newer_fact_without_the_reservation_drops_it() -> None:
    harness = one_queue()
    harness.observe(wl("w", "q", cpu="4"))
    harness.echoes = False
    harness.cycle()
    harness.observe(replace(harness.workloads[key("w")], admission=None, conditions={}))

    assert harness.usage("q") == {}
    assert harness.pending("q") == ["w"]


def test_a_failed_reservation_leaves_no_trace_and_is_queued_again() -> None:
    harness = one_queue()
    harness.observe(wl("w", "q", cpu="4"))
    harness.reject_next()
    harness.cycle()
    assert harness.usage("q") == {}
    assert harness.pending("q") == ["w"]

    harness.run()
    assert harness.holding() == {"w"}


def test_a_failed_reservation_wakes_those_who_waited_for_the_room() -> None:
    harness = Harness(*queues(cq("a", "R", cpu="4"), cq("b", "R", cpu="0")))
    harness.observe(wl("w", "a", cpu="4"))
    harness.echoes = False
    reserve = next(c for c in harness.cycle() if isinstance(c, ReserveQuota))
    harness.observe(wl("waits", "b", cpu="4"))
    harness.cycle()
    assert harness.parked("b") == ["waits"]

    harness.gone(Kind.WORKLOAD, "ns/w")
    assert reserve.workload == key("w")
    assert harness.pending("b") == ["waits"]


def test_a_failed_eviction_is_issued_again() -> None:
    harness = one_queue(within="LowerPriority")
    harness.observe(wl("victim", "q", cpu="4"))
    harness.cycle()
    harness.observe(wl("w", "q", cpu="4", priority=1))
    harness.reject_next()
    harness.cycle()
    assert harness.evicted().keys() == {"victim"}
    assert "w" not in harness.holding()

    harness.run()
    assert harness.holding() == {"w"}


def test_4_7_a_victim_that_is_still_stopping_is_not_evicted_twice() -> None:
    harness = one_queue(within="LowerPriority")
    harness.victims_stop = False
    harness.observe(wl("old", "q", cpu="2"), wl("older", "q", cpu="2", created_s=-1))
    harness.run()
    harness.observe(wl("w", "q", cpu="2", priority=1))
    harness.cycle()
    (victim,) = harness.evicted()
    for _ in range(3):
        harness.cycle()
        assert harness.evicted() == {}

    harness.stopped(victim)
    harness.run()
    assert "w" in harness.holding()
    assert len(harness.holding()) == 2


def test_a_deleted_workload_does_not_come_back_by_an_old_fact() -> None:
    harness = one_queue()
    harness.observe(wl("w", "q", cpu="4"))
    old = harness.workloads[key("w")]
    harness.engine.observe(
        Gone(at_ms=harness.now_ms, kind=Kind.WORKLOAD, key="ns/w", resource_version="99")
    )
    harness.engine.observe(Observed(at_ms=harness.now_ms, record=old))
    assert harness.engine.explain(key("w")) is None

    fresh = replace(old, uid="another", resource_version="100")
    harness.engine.observe(Observed(at_ms=harness.now_ms, record=fresh))
    assert harness.pending("q") == ["w"]


def test_a_new_object_of_the_same_name_replaces_the_old_one() -> None:
    harness = one_queue()
    harness.observe(wl("w", "q", cpu="4"))
    harness.cycle()
    harness.observe(wl("w", "q", cpu="1", uid="another"))

    assert harness.usage("q") == {}
    assert harness.pending("q") == ["w"]


def test_reservations_found_at_start_are_booked_whatever_comes_first() -> None:
    held = wl("w", "q", cpu="4", **reserved(admission()))
    late = Harness()
    late.observe(held)
    late.observe(*queues(cq("q", cpu="4")))
    early = one_queue()
    early.observe(held)

    assert late.usage("q") == early.usage("q") == {"default/cpu": 4000}


def test_a_queue_that_goes_and_returns_has_its_reservations_again() -> None:
    harness = one_queue()
    harness.observe(wl("w", "q", cpu="4"))
    harness.cycle()
    harness.gone(Kind.CLUSTER_QUEUE, "q")
    assert harness.engine.cluster_queue_status(ClusterQueueName("q")) is None

    harness.observe(cq("q", cpu="4"))
    assert harness.usage("q") == {"default/cpu": 4000}


def test_7_3_quota_is_held_while_checks_are_pending() -> None:
    harness = one_queue(checks={"b": ["default"], "a": [], "elsewhere": ["other"]})
    harness.observe(check("a"), check("b"), check("elsewhere"))
    harness.observe(wl("w", "q", cpu="4"))
    (command,) = harness.cycle()
    assert isinstance(command, ReserveQuota)
    assert (command.checks, command.admitted) == (("a", "b"), False)

    status = harness.engine.cluster_queue_status(ClusterQueueName("q"))
    assert status is not None
    assert (status.reserving, status.admitted) == (1, 0)


def test_7_3_a_workload_whose_checks_are_ready_is_admitted_at_once() -> None:
    harness = one_queue(checks={"a": []})
    harness.observe(check("a"), wl("w", "q", cpu="4", checks=ready("a")))
    (command,) = harness.cycle()

    assert isinstance(command, ReserveQuota)
    assert command.admitted


def test_3_2_a_workload_with_a_failed_check_is_not_tried() -> None:
    harness = one_queue()
    failed = replace(ready("a")[0], state="Retry")
    harness.observe(wl("w", "q", cpu="4", checks=(failed,)))
    harness.cycle()

    assert harness.told()["w"] == (
        "PendingEvaluation",
        "The workload has failed admission checks",
    )


def test_7_4_blocked_admission_lets_one_become_ready_at_a_time() -> None:
    harness = one_queue(EngineOptions(wake_up_batch_ms=0, block_admission=True))
    harness.observe(wl("a", "q", cpu="1"), wl("b", "q", cpu="1", created_s=1))
    harness.run()
    assert harness.holding() == {"a"}
    assert harness.told()["b"][0] == "WaitingForPodsReady"

    harness.change("a", {ConditionType.PODS_READY: condition(True, "Started")})
    harness.run()
    assert harness.holding() == {"a", "b"}


def test_7_7_reclaimable_pods_give_quota_back_in_proportion() -> None:
    harness = one_queue()
    harness.observe(wl("w", "q", ps(count=4, cpu="1")))
    harness.cycle()
    harness.change("w", reclaimable=(("main", 3),))

    assert harness.usage("q") == {"default/cpu": 1000}


def test_1_10_a_partly_admitted_workload_gives_back_only_what_is_below_its_count() -> None:
    harness = one_queue()
    harness.observe(wl("w", "q", ps(count=8, cpu="500m"), **reserved(admission(2000, count=4))))
    harness.change("w", reclaimable=(("main", 2),))
    assert harness.usage("q") == {"default/cpu": 2000}

    harness.change("w", reclaimable=(("main", 5),))
    assert harness.usage("q") == {"default/cpu": 1500}


AFS = EngineOptions(
    wake_up_batch_ms=0, admission_fair_sharing=AdmissionFairSharing(half_life_ms=600_000)
)


def shared_queue() -> Harness:
    harness = Harness(
        cq("q", cpu="8", admission_mode=AdmissionMode.USAGE_BASED, checks={"c": []}),
        check("c"),
        lq("q", "x"),
        lq("q", "y"),
        options=AFS,
    )
    harness.now_ms = T0_MS
    harness.observe(wl("x1", "x", cpu="4"))
    return harness


def order(harness: Harness) -> list[str]:
    """Return who would go first: a Workload of x is older than one of y."""
    harness.observe(wl("x2", "x", cpu="9", created_s=1), wl("y1", "y", cpu="9", created_s=2))
    return harness.pending("q")


def test_5_4_a_reservation_is_charged_at_once() -> None:
    harness = shared_queue()
    harness.cycle()

    assert order(harness) == ["y1", "x2"]


@pytest.mark.parametrize("how", ["rejected", "deleted", "finished"])
def test_5_4_the_penalty_of_what_never_ran_is_dropped(how: str) -> None:
    harness = shared_queue()
    if how == "rejected":
        harness.reject_next()
    harness.cycle()
    if how == "deleted":
        harness.gone(Kind.WORKLOAD, "ns/x1")
    elif how == "finished":
        harness.finish("x1")

    assert [name for name in order(harness) if name != "x1"] == ["x2", "y1"]


def test_5_4_it_becomes_consumed_usage_once_admitted() -> None:
    harness = shared_queue()
    harness.cycle()
    harness.now_ms = T0_MS
    harness.change("x1", {ConditionType.ADMITTED: condition(True, "Admitted")})

    status = harness.engine.local_queue_status(LocalQueueKey("ns/x"))
    assert status is not None
    assert status.consumed == (("cpu", "1171572875n"),)
