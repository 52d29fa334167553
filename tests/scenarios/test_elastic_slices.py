"""Elastic jobs: a newer slice takes over from an older one (docs/spec/algorithm.md 3.5.1, 4.11)."""

from dataclasses import replace

from tests.support.builders import cq, flavor, key, ps, wl
from tests.support.harness import Harness, queues

from sluice.engine.commands import FinishSlice, ReserveQuota
from sluice.engine.events import Observed
from sluice.engine.options import EngineOptions, Gates

TWO_FLAVORS = {"default": {"cpu": "4"}, "f1": {"cpu": "8"}}


def slices(
    old: int, new: int, *, quota: str = "4", options: EngineOptions | None = None
) -> Harness:
    """Return a world where a slice of ``old`` pods runs and one of ``new`` pods is pending."""
    harness = Harness(
        *queues(cq("q", cpu=quota)), options=options or EngineOptions(wake_up_batch_ms=0)
    )
    harness.observe(wl("old", "q", ps(count=old, cpu="1"), is_elastic=True))
    harness.cycle()
    harness.observe(
        wl("new", "q", ps(count=new, cpu="1"), is_elastic=True, replaces=key("old"), created_s=1)
    )
    return harness


def test_only_the_difference_has_to_fit() -> None:
    harness = slices(3, 4)
    reserve, finish = harness.cycle()

    assert isinstance(reserve, ReserveQuota)
    assert reserve.admission.pod_sets[0].usage == (("cpu", 4000),)
    assert isinstance(finish, FinishSlice)
    assert (finish.workload, finish.replaced_by) == (key("old"), key("new"))
    assert harness.usage("q") == {"default/cpu": 4000}
    assert harness.holding() == {"new"}


def test_a_difference_that_does_not_fit_leaves_the_old_slice_alone() -> None:
    harness = slices(3, 5)
    harness.cycle()

    assert harness.holding() == {"old"}
    assert harness.told()["new"][0] == "WaitingForQuota"


def test_a_slice_stays_on_the_flavor_of_the_one_it_replaces() -> None:
    harness = Harness(flavor("f1"), *queues(cq("q", flavors=TWO_FLAVORS)))
    harness.observe(wl("old", "q", ps(count=3, cpu="1"), is_elastic=True))
    harness.cycle()
    assert harness.admitted() == {"old": {"main/cpu": "default"}}

    harness.observe(wl("new", "q", ps(count=6, cpu="1"), replaces=key("old")))
    harness.cycle()
    harness.cycle()
    assert harness.holding() == {"old"}
    details = harness.engine.explain(key("new"))
    assert details is not None
    assert any("original workload is assigned: default" in line for line in details.details)


def test_a_slice_may_preempt_others_but_never_the_old_one() -> None:
    harness = Harness(*queues(cq("q", cpu="4", within="LowerPriority")))
    harness.observe(
        wl("old", "q", ps(count=2, cpu="1"), priority=1), wl("low", "q", ps(count=2, cpu="1"))
    )
    harness.run()
    harness.observe(wl("new", "q", ps(count=4, cpu="1"), priority=1, replaces=key("old")))
    harness.cycle()
    assert harness.evicted().keys() == {"low"}

    harness.run()
    assert harness.holding() == {"new"}


def test_an_old_echo_of_the_replaced_slice_books_nothing() -> None:
    harness = slices(3, 4)
    stale = harness.workloads[key("old")]
    harness.echoes = False
    harness.cycle()
    harness.engine.observe(
        Observed(at_ms=harness.now_ms, record=replace(stale, resource_version="", job_uid="x"))
    )

    assert harness.usage("q") == {"default/cpu": 4000}


def test_a_finish_that_failed_books_the_old_slice_again() -> None:
    harness = slices(1, 2)
    commands = harness.engine.cycle(harness.now_ms)
    harness.apply(commands[:1])
    harness.reject_next()
    harness.apply(commands[1:])

    assert harness.usage("q") == {"default/cpu": 3000}


def test_without_the_gate_a_slice_is_a_workload_like_others() -> None:
    options = EngineOptions(wake_up_batch_ms=0, gates=Gates(elastic_slices=False))
    harness = slices(3, 4, options=options)
    harness.cycle()

    assert harness.holding() == {"old"}
