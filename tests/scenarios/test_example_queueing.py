"""Worked examples 8.14, 8.16 to 8.19 of docs/spec/algorithm.md: reservation, parking, order."""

import pytest
from tests.support.builders import T0_MS, condition, cq, lq, wl
from tests.support.harness import Harness, queues

from sluice.api.conditions import ConditionType
from sluice.api.names import LocalQueueKey, ResourceName, WorkloadKey
from sluice.api.records import AdmissionMode
from sluice.engine.afs import UsageLedger
from sluice.engine.options import AdmissionFairSharing, EngineOptions, FairSharing

MINUTE_MS = 60_000
CPU = ResourceName("cpu")


@pytest.mark.parametrize(
    ("reclaim", "admitted", "heap"),
    [
        pytest.param("Never", set(), ["b2"], id="a waiting preemptor keeps its room"),
        pytest.param("Any", {"b2"}, [], id="not when it may reclaim it at any time"),
    ],
)
def test_8_14_reservation_by_a_waiting_preemptor(
    reclaim: str, admitted: set[str], heap: list[str]
) -> None:
    harness = Harness(*queues(cq("a", "R", cpu="6", reclaim=reclaim), cq("b", "R", cpu="6")))
    harness.observe(wl("a1", "a", cpu="4", priority=10), wl("b1", "b", cpu="6"))
    harness.cycle()
    harness.observe(wl("a2", "a", cpu="4", priority=5), wl("b2", "b", cpu="2"))
    harness.cycle()

    assert set(harness.admitted()) == admitted
    assert harness.pending("b") == heap
    assert harness.parked("a") == ["a2"]


def test_8_14_the_skipped_workload_is_tried_again_once_the_preemptor_parks() -> None:
    harness = Harness(*queues(cq("a", "R", cpu="6"), cq("b", "R", cpu="6")))
    harness.observe(wl("a1", "a", cpu="4", priority=10), wl("b1", "b", cpu="6"))
    harness.cycle()
    harness.observe(wl("a2", "a", cpu="4", priority=5), wl("b2", "b", cpu="2"))
    harness.run()

    assert "b2" in harness.holding()


def equivalents(strict: bool) -> Harness:
    harness = Harness(*queues(cq("q", cpu="4", strict=strict)))
    harness.observe(
        wl("w4", "q", cpu="5", priority=1),
        wl("w1", "q", cpu="5", created_s=1),
        wl("w2", "q", cpu="5", created_s=2),
        wl("w3", "q", cpu="2", created_s=3),
    )
    return harness


def test_8_16_equivalent_workloads_are_parked_together() -> None:
    harness = equivalents(strict=False)
    parked = []
    for _ in range(3):
        harness.cycle()
        parked.append(harness.parked("q"))

    assert parked == [["w4"], ["w4", "w1", "w2"], ["w4", "w1", "w2"]]
    assert harness.admitted().keys() == {"w3"}


def test_8_16_the_one_not_looked_at_is_told_why() -> None:
    harness = equivalents(strict=False)
    harness.cycle()
    harness.cycle()

    reason, message = harness.told()["w2"]
    assert reason == harness.told()["w1"][0] == "ExceedsMaxQuota"
    assert message.startswith("Bypassed scheduling evaluation")


def test_8_16_a_strict_queue_stays_at_its_head() -> None:
    harness = equivalents(strict=True)
    for _ in range(3):
        harness.cycle()

    assert harness.holding() == set()
    assert harness.pending("q") == ["w4", "w1", "w2", "w3"]
    assert harness.engine.next_deadline_ms() is None


def test_8_17_a_lower_borrow_level_beats_priority() -> None:
    harness = Harness(*queues(cq("a", "R", cpu="2"), cq("b", "R", cpu="4")))
    harness.observe(wl("a1", "a", cpu="4", priority=100), wl("b1", "b", cpu="3"))
    harness.cycle()

    assert harness.admitted().keys() == {"b1"}
    assert harness.pending("a") == ["a1"]


def test_8_17_under_fair_sharing_the_lower_share_goes_first() -> None:
    harness = Harness(
        *queues(cq("a", "R", cpu="2"), cq("b", "R", cpu="2"), cq("c", "R", cpu="4")),
        options=EngineOptions(wake_up_batch_ms=0, fair_sharing=FairSharing()),
    )
    harness.observe(wl("a0", "a", cpu="3"), wl("b0", "b", cpu="2"))
    harness.cycle()
    harness.observe(wl("a1", "a", cpu="2", priority=100), wl("b1", "b", cpu="2"))
    harness.cycle()

    assert harness.admitted().keys() == {"b1"}


AFS = AdmissionFairSharing(half_life_ms=10 * MINUTE_MS, sampling_interval_ms=5 * MINUTE_MS)


def test_8_18_entry_penalty_decay_and_weights() -> None:
    ledger = UsageLedger(AFS)
    x, y = LocalQueueKey("ns/x"), LocalQueueKey("ns/y")
    ledger.open(x, 2.0, ((CPU, "4"),), T0_MS)
    ledger.open(y, 1.0, ((CPU, "1900m"),), T0_MS)
    assert ledger.alpha(300_000) == 0.2928932188134524
    assert (ledger.usage(x), ledger.usage(y)) == (2.0, pytest.approx(1.9))

    ledger.charge(y, WorkloadKey("ns/w"), {CPU: 4000})
    assert ledger.usage(y) == pytest.approx(1.9 + 1.171572875, abs=1e-12)

    ledger.sample(x, {CPU: 8000}, T0_MS + 10 * MINUTE_MS)
    assert ledger.consumed(x) == (((CPU, "6"),), T0_MS + 10 * MINUTE_MS)


def test_8_18_the_local_queue_with_less_usage_goes_first_whatever_the_priority() -> None:
    harness = Harness(
        cq("q", cpu="4", admission_mode=AdmissionMode.USAGE_BASED),
        lq("q", "x", fair_weight=2.0, consumed=((CPU, "4"),), consumed_updated_ms=T0_MS),
        lq("q", "y", consumed=((CPU, "1900m"),), consumed_updated_ms=T0_MS),
        options=EngineOptions(wake_up_batch_ms=0, admission_fair_sharing=AFS),
    )
    harness.now_ms = T0_MS
    harness.observe(wl("wx", "x", cpu="1", priority=9), wl("wy", "y", cpu="4"))
    assert harness.pending("q") == ["wy", "wx"]
    harness.cycle()
    assert harness.admitted().keys() == {"wy"}


def test_8_18_the_penalty_of_a_running_workload_puts_its_queue_behind() -> None:
    harness = Harness(
        cq("q", cpu="8", admission_mode=AdmissionMode.USAGE_BASED),
        lq("q", "x", consumed=((CPU, "2"),), consumed_updated_ms=T0_MS),
        lq("q", "y", consumed=((CPU, "1900m"),), consumed_updated_ms=T0_MS),
        options=EngineOptions(wake_up_batch_ms=0, admission_fair_sharing=AFS),
    )
    harness.now_ms = T0_MS
    harness.observe(wl("wx", "x", cpu="1"), wl("wy", "y", cpu="4"), wl("wy2", "y", cpu="1"))
    harness.cycle()
    assert harness.admitted().keys() == {"wy"}

    assert harness.pending("q") == ["wx", "wy2"]


def backed_off(until_s: int, **conditions: object) -> dict[str, object]:
    evicted = condition(True, "PodsReadyTimeout", at_s=300)
    return {
        "requeue_at_ms": T0_MS + until_s * 1000,
        "conditions": {ConditionType.EVICTED: evicted, **conditions},
    }


def test_8_19_a_workload_backing_off_is_parked_until_it_may_be_requeued() -> None:
    harness = Harness(*queues(cq("q", cpu="4")))
    harness.now_ms = T0_MS + 300_000
    held = {ConditionType.REQUEUED: condition(False, "PodsReadyTimeout")}
    harness.observe(wl("w", "q", cpu="1", **backed_off(360, **held)))
    harness.cycle()
    assert harness.parked("q") == ["w"]

    harness.now_ms = T0_MS + 360_000
    finished = condition(True, "BackoffFinished")
    harness.change("w", {ConditionType.REQUEUED: finished}, requeue_at_ms=None)

    assert harness.pending("q") == ["w"]


def test_8_19_it_then_queues_by_the_time_of_its_eviction() -> None:
    harness = Harness(*queues(cq("q", cpu="4")))
    harness.now_ms = T0_MS + 400_000
    harness.observe(
        wl("w", "q", cpu="1", **backed_off(360)), wl("later", "q", cpu="1", created_s=100)
    )

    assert harness.pending("q") == ["later", "w"]


def test_8_19_a_back_off_that_ends_by_itself_is_a_deadline() -> None:
    harness = Harness(*queues(cq("q", cpu="4")))
    harness.now_ms = T0_MS + 300_000
    harness.observe(wl("w", "q", cpu="1", **backed_off(360)))
    assert harness.parked("q") == ["w"]
    assert harness.engine.next_deadline_ms() == T0_MS + 360_000

    harness.now_ms = T0_MS + 360_000
    harness.run()
    assert harness.holding() == {"w"}
