"""Gates off by default, quota check strategy, concurrent admission, messages, explanations."""

from dataclasses import replace

import pytest
from tests.support.builders import condition, cq, flavor, key, ps, wl
from tests.support.harness import Harness, queues

from sluice.api.conditions import ConditionType
from sluice.api.names import FlavorName, ResourceName
from sluice.api.records import ConcurrentAdmissionPolicy
from sluice.engine.options import EngineOptions, Gates, gates_from
from sluice.engine.status import Place


def gated(**gates: bool) -> EngineOptions:
    return EngineOptions(wake_up_batch_ms=0, gates=Gates(**gates))


def test_gates_are_read_by_their_public_names() -> None:
    assert gates_from({"PriorityBoost": True, "VisibilityOnDemand": False}) == Gates(
        priority_boost=True
    )


def test_0_4_priority_boost_counts_only_with_its_gate() -> None:
    orders = []
    for options in (gated(), gated(priority_boost=True)):
        harness = Harness(*queues(cq("q", cpu="4", stop="Hold")), options=options)
        harness.observe(
            wl("plain", "q", cpu="1", priority=1), wl("boosted", "q", cpu="1", priority_boost=5)
        )
        orders.append(harness.pending("q"))

    assert orders == [["plain", "boosted"], ["boosted", "plain"]]


def test_2_7_without_hashing_every_workload_is_tried() -> None:
    harness = Harness(*queues(cq("q", cpu="1")), options=gated(equivalence_hashing=False))
    harness.observe(*(wl(f"w{i}", "q", cpu="2") for i in range(3)))
    for parked in (1, 2, 3):
        harness.cycle()
        assert len(harness.parked("q")) == parked


def test_3_3_4_without_fungibility_the_search_goes_on_to_the_first_fit() -> None:
    harness = Harness(
        flavor("f1"),
        *queues(cq("q", flavors={"default": {"cpu": "1"}, "f1": {"cpu": "4"}})),
        options=gated(flavor_fungibility=False),
    )
    harness.observe(wl("a", "q", cpu="1"), wl("b", "q", cpu="1", created_s=1))
    harness.run()
    assert harness.holding() == {"a", "b"}


def test_3_4_partial_admission_can_be_off() -> None:
    harness = Harness(*queues(cq("q", cpu="2")), options=gated(partial_admission=False))
    harness.observe(wl("w", "q", ps(count=4, min_count=1, cpu="1")))
    harness.cycle()

    assert harness.holding() == set()


def test_3_6_without_priority_sorting_age_decides_between_queues() -> None:
    harness = Harness(
        *queues(cq("a", "R", cpu="0"), cq("b", "R", cpu="0"), cq("c", "R", cpu="4")),
        options=gated(priority_sorting_within_cohort=False),
    )
    harness.observe(wl("old", "a", cpu="4"), wl("high", "b", cpu="4", priority=9, created_s=1))
    harness.cycle()

    assert harness.holding() == {"old"}


def test_3_7_2_without_recomputation_an_overlapping_entry_is_skipped() -> None:
    harness = Harness(
        *queues(
            cq("a", "R", cpu="2", reclaim="Any"),
            cq("b", "R", cpu="2", reclaim="Any"),
            cq("c", "R", cpu="0"),
        ),
        options=gated(recompute_on_overlap=False),
    )
    harness.observe(wl("c1", "c", cpu="4"))
    harness.cycle()
    harness.victims_stop = False
    harness.observe(wl("a1", "a", cpu="2", priority=1), wl("b1", "b", cpu="2"))
    harness.cycle()

    assert harness.told()["b1"][1].startswith("Workload has overlapping preemption targets")
    assert harness.pending("b") == ["b1"]


@pytest.mark.parametrize("ignores", [False, True])
def test_3_3_2_undeclared_resources_block_or_are_ignored(ignores: bool) -> None:
    options = EngineOptions(wake_up_batch_ms=0, ignore_undeclared=ignores)
    harness = Harness(*queues(cq("q", cpu="4")), options=options)
    harness.observe(wl("w", "q", ps(cpu="1", **{"example__com/fpga": "1"})))
    harness.cycle()

    if ignores:
        assert harness.admitted() == {"w": {"main/cpu": "default"}}
    else:
        assert harness.told()["w"] == (
            "NoMatchingFlavor",
            "couldn't assign flavors to pod set main: "
            "resource example.com/fpga unavailable in ClusterQueue",
        )


def variants(last: str | None = None) -> Harness:
    policy = ConcurrentAdmissionPolicy(
        last_acceptable_flavor=FlavorName(last) if last is not None else None
    )
    quota = {name: {"cpu": "1"} for name in ("best", "good", "poor")}
    harness = Harness(
        *(flavor(name) for name in quota),
        *queues(cq("q", flavors=quota, concurrent_admission=policy)),
        options=gated(concurrent_admission=True),
    )
    harness.victims_stop = False
    return harness


def variant(name: str, created_s: int = 0) -> object:
    return wl(
        name,
        "q",
        cpu="1",
        created_s=created_s,
        allowed_flavors=(FlavorName(name),),
        variant_of=key("parent"),
    )


def test_4_10_a_variant_takes_only_its_flavor_and_yields_to_a_better_one() -> None:
    harness = variants()
    harness.observe(variant("best"), variant("good", 1))  # type: ignore[arg-type]
    harness.cycle()
    assert harness.admitted() == {"best": {"main/cpu": "best"}}

    harness.cycle()
    assert harness.holding() == {"best"}
    assert harness.told()["good"][0] == "PendingEvaluation"


def test_4_10_a_better_variant_has_the_admitted_one_migrate() -> None:
    harness = variants()
    harness.observe(variant("poor"))  # type: ignore[arg-type]
    harness.cycle()
    harness.observe(variant("best"))  # type: ignore[arg-type]
    harness.cycle()
    assert harness.evicted() == {"poor": "FlavorMigration"}
    assert harness.holding() == {"poor"}


def test_4_10_migration_stops_at_the_last_acceptable_flavor() -> None:
    harness = variants(last="best")
    harness.observe(variant("poor"))  # type: ignore[arg-type]
    harness.cycle()
    harness.observe(variant("good"))  # type: ignore[arg-type]
    harness.cycle()

    assert harness.evicted() == {}
    assert harness.holding() == {"poor"}


def test_3_7_3_5_a_closed_preemption_gate_holds_a_preemptor_back() -> None:
    harness = Harness(
        *queues(cq("q", cpu="1", within="LowerPriority")),
        options=gated(orchestrated_preemption=True),
    )
    harness.observe(wl("low", "q", cpu="1"))
    harness.cycle()
    harness.observe(
        wl("high", "q", cpu="1", priority=1, closed_gates=("kueue.x-k8s.io/multikueue",))
    )
    (command,) = harness.cycle()

    assert command.blocked_on_gates  # type: ignore[union-attr]
    assert harness.told()["high"] == (
        "AdmissionGated",
        "Workload requires preemption, but it's gated",
    )


def test_prioritized_preemptors_go_before_lower_borrow_levels() -> None:
    harness = Harness(
        *queues(
            cq("a", "R", cpu="2", within="LowerPriority", reclaim="Any", borrow="LowerPriority"),
            cq("b", "R", cpu="2"),
        ),
        options=gated(prioritize_preemptors=True),
    )
    harness.victims_stop = False
    harness.observe(wl("a1", "a", cpu="4"))
    harness.cycle()
    harness.observe(wl("a2", "a", cpu="4", priority=1))
    harness.cycle()
    assert harness.evicted().keys() == {"a1"}
    harness.stopped("a1")
    harness.observe(wl("b1", "b", cpu="2"))
    harness.cycle()

    assert harness.admitted().keys() == {"a2"}


def test_4_2_messages_say_how_much_is_missing() -> None:
    harness = Harness(*queues(cq("a", "R", cpu=("4", "1")), cq("b", "R", cpu="1")))
    harness.observe(wl("w", "a", cpu="3500m"))
    harness.cycle()
    harness.observe(wl("big", "a", cpu="6"), wl("waits", "a", cpu="2"))
    harness.run()
    told = {
        w.name: w.conditions[ConditionType.QUOTA_RESERVED].message
        for w in harness.workloads.values()
        if w.admission is None
    }

    assert told == {
        "big": "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor "
        "default, previously considered podsets requests (0) + current podset request (6) > "
        "maximum capacity (5)",
        "waits": "couldn't assign flavors to pod set main: insufficient unused quota for cpu in "
        "flavor default, 500m more needed",
    }


def test_4_6_a_victim_is_told_who_took_its_place() -> None:
    harness = Harness(*queues(cq("q", "R", cpu="1", within="LowerPriority")))
    harness.observe(wl("low", "q", cpu="1"))
    harness.cycle()
    harness.observe(wl("high", "q", cpu="1", priority=1, job_uid="job-7"))
    command = harness.cycle()[0]

    assert command.message == (  # type: ignore[union-attr]
        "Preempted to accommodate a workload (UID: uid-high, JobUID: job-7) due to prioritization "
        "in the ClusterQueue; preemptor path: /R/q; preemptee path: /R/q"
    )
    assert "Pending the preemption of 1 workload(s)" in harness.told()["high"][1]


def test_explain_tells_place_position_and_each_reason() -> None:
    harness = Harness(
        flavor("spot", taints=(("kind", "spot", "NoSchedule"),)),
        *queues(cq("q", flavors={"spot": {"cpu": "9"}, "default": {"cpu": "1"}})),
    )
    harness.observe(wl("a", "q", cpu="1"))
    harness.cycle()
    harness.observe(wl("b", "q", cpu="1"), wl("c", "q", cpu="1", created_s=1))
    harness.run()
    first, second = harness.engine.explain(key("a")), harness.engine.explain(key("c"))
    assert first is not None
    assert second is not None

    assert (first.place, first.reason, first.position) == (Place.RESERVED, "QuotaReserved", None)
    assert (second.place, second.position) == (Place.INADMISSIBLE, 1)
    assert second.details == (
        "pod set main: untolerated taint kind=spot:NoSchedule in flavor spot",
        "pod set main: insufficient unused quota for cpu in flavor default, 1 more needed",
    )
    assert harness.engine.explain(key("nobody")) is None


def test_legacy_reasons_without_the_granular_gate() -> None:
    harness = Harness(*queues(cq("q", cpu="1")), options=gated(granular_reasons=False))
    harness.observe(wl("w", "q", cpu="2"))
    harness.cycle()

    assert harness.told()["w"][0] == "Pending"


def test_a_message_is_written_once_and_again_when_somebody_changed_it() -> None:
    harness = Harness(*queues(cq("q", cpu="1", strict=True)))
    harness.observe(wl("w", "q", cpu="2"))
    harness.cycle()
    assert "w" in harness.told()
    harness.cycle()
    assert harness.told() == {}

    harness.change("w", {ConditionType.QUOTA_RESERVED: condition(False, "PendingEvaluation")})
    harness.cycle()
    assert "w" in harness.told()


def test_requests_are_told_with_the_message() -> None:
    harness = Harness(*queues(cq("q", cpu="1")))
    record = wl("w", "q", ps("one", 2, cpu="1"), ps("two", cpu="500m"))
    harness.observe(replace(record))
    (command,) = harness.cycle()
    cpu = ResourceName("cpu")

    assert command.requests == (("one", ((cpu, 2000),)), ("two", ((cpu, 500),)))  # type: ignore[union-attr]
