"""Objects of the configuration that come, change and go while Workloads wait."""

import pytest
from tests.support.builders import check, cq, flavor, lq, namespace, ps, wl
from tests.support.harness import Harness, queues

from sluice.api.names import ClusterQueueName, LocalQueueKey, ResourceName
from sluice.api.records import Kind, LimitRange, LimitRangeItem, RuntimeClass

CPU = ResourceName("cpu")


def reason(harness: Harness, name: str) -> str:
    status = harness.engine.cluster_queue_status(ClusterQueueName(name))
    assert status is not None
    return status.reason


def limit_range(name: str, **bounds: str) -> LimitRange:
    given = {field: ((CPU, value),) for field, value in bounds.items()}
    item = LimitRangeItem(type="Container", **given)  # type: ignore[arg-type]
    return LimitRange(namespace="ns", name=name, items=(item,))


def test_a_flavor_that_goes_makes_its_queues_inactive() -> None:
    harness = Harness(*queues(cq("q", cpu="1")))
    harness.gone(Kind.RESOURCE_FLAVOR, "default")
    harness.gone(Kind.RESOURCE_FLAVOR, "default")
    harness.observe(wl("w", "q", cpu="1"))
    harness.cycle()
    assert (harness.holding(), reason(harness, "q")) == (set(), "FlavorNotFound")

    harness.observe(flavor())
    harness.run()
    assert harness.holding() == {"w"}


def test_a_check_that_goes_makes_its_queues_inactive() -> None:
    harness = Harness(check("c"), *queues(cq("q", cpu="1", checks={"c": []})))
    assert reason(harness, "q") == "Ready"
    harness.gone(Kind.ADMISSION_CHECK, "c")
    harness.gone(Kind.ADMISSION_CHECK, "c")

    assert reason(harness, "q") == "AdmissionCheckNotFound"


def test_without_its_namespace_a_workload_waits() -> None:
    harness = Harness(*queues(cq("q", cpu="1")))
    harness.gone(Kind.NAMESPACE, "ns")
    harness.observe(wl("w", "q", cpu="1"))
    harness.cycle()
    assert harness.told()["w"][0] == "Misconfigured"

    harness.observe(namespace())
    harness.run()
    assert harness.holding() == {"w"}


def test_a_limit_range_that_goes_frees_those_it_forbade() -> None:
    harness = Harness(limit_range("l", max="1"), *queues(cq("q", cpu="4")))
    harness.observe(wl("w", "q", cpu="2"))
    harness.cycle()
    assert "LimitRange constraints" in harness.told()["w"][1]
    assert harness.parked("q") == ["w"]

    harness.gone(Kind.LIMIT_RANGE, "ns/l")
    harness.run()
    assert harness.holding() == {"w"}


def test_a_limit_range_of_another_namespace_changes_nothing() -> None:
    harness = Harness(*queues(cq("q", cpu="1")))
    harness.observe(wl("w", "q", cpu="2"))
    harness.cycle()
    harness.observe(LimitRange(namespace="other", name="l"))

    assert harness.parked("q") == ["w"]


def test_a_runtime_class_adds_its_overhead_to_pending_workloads() -> None:
    harness = Harness(*queues(cq("q", cpu="2", stop="Hold")))
    harness.observe(wl("w", "q", ps(cpu="2", spec={"runtimeClassName": "vm"})))
    harness.observe(RuntimeClass(name="vm", overhead=((CPU, "1"),)))
    harness.observe(cq("q", cpu="2"))
    harness.cycle()
    assert harness.told()["w"][0] == "ExceedsMaxQuota"

    harness.gone(Kind.RUNTIME_CLASS, "vm")
    harness.run()
    assert harness.holding() == {"w"}


def test_a_local_queue_that_goes_takes_its_workloads_out() -> None:
    harness = Harness(*queues(cq("q", cpu="1", stop="Hold")))
    harness.observe(wl("w", "q", cpu="1"))
    harness.gone(Kind.LOCAL_QUEUE, "ns/q")
    harness.gone(Kind.LOCAL_QUEUE, "ns/q")
    assert harness.pending("q") == []
    assert harness.engine.local_queue_status(LocalQueueKey("ns/q")) is None

    harness.observe(lq("q"))
    assert harness.pending("q") == ["w"]


def test_a_local_queue_may_point_elsewhere() -> None:
    harness = Harness(*queues(cq("a", cpu="1", stop="Hold"), cq("b", cpu="1", stop="Hold")))
    harness.observe(wl("w", "a", cpu="1"))
    harness.observe(lq("b", "a"))

    assert (harness.pending("a"), harness.pending("b")) == ([], ["w"])


@pytest.mark.parametrize("stop", ["Hold", "HoldAndDrain"])
def test_local_queue_status_tells_why_nothing_can_be_submitted(stop: str) -> None:
    harness = Harness(lq("q"))
    status = harness.engine.local_queue_status(LocalQueueKey("ns/q"))
    assert status is not None
    assert (status.is_active, status.reason) == (False, "ClusterQueueDoesNotExist")

    harness.observe(cq("q", cpu="1"), lq("q", stop=stop))
    status = harness.engine.local_queue_status(LocalQueueKey("ns/q"))
    assert status is not None
    assert (status.is_active, status.reason) == (False, "Stopped")


def test_a_queue_that_is_being_deleted_takes_no_part() -> None:
    harness = Harness(*queues(cq("q", cpu="1")))
    harness.observe(cq("q", cpu="1", is_terminating=True), wl("w", "q", cpu="1"))
    harness.cycle()

    assert (harness.holding(), reason(harness, "q")) == (set(), "Terminating")


def test_status_lists_every_flavor_and_what_is_borrowed() -> None:
    own = {"default": {"cpu": "1", "gpu": "1"}}
    harness = Harness(*queues(cq("a", "R", flavors=own), cq("b", "R", cpu="2")))
    harness.observe(wl("w", "a", cpu="2"))
    harness.cycle()
    status = harness.engine.cluster_queue_status(ClusterQueueName("a"))
    assert status is not None
    (usage,) = status.reservation

    assert [(r.name, r.total, r.borrowed) for r in usage.resources] == [
        ("cpu", 2000, 1000),
        ("gpu", 0, 0),
    ]
    assert status.usage == status.reservation
    assert (status.pending, status.reserving, status.admitted) == (0, 1, 1)


def test_unknown_objects_are_forgotten_without_a_fuss() -> None:
    harness = Harness()
    for kind in Kind:
        harness.gone(kind, "ns/nothing")

    assert harness.engine.next_deadline_ms() is None
