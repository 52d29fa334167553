"""Names, construction and comparison of a job's Workload."""

import hashlib
from typing import Any

import pytest

from sluice.api import names
from sluice.jobs import workload as workloads
from sluice.jobs.batch import BatchJob
from sluice.jobs.catalogue import all_integrations
from sluice.jobs.integration import JobKind, Registry, prebuilt_workload_name, select
from sluice.jobs.priority import (
    Priority,
    PriorityClasses,
    PriorityClassMissing,
    default_of,
    resolve,
    workload_class_reference,
)

BATCH = BatchJob()
OPTIONS = workloads.WorkloadOptions(label_keys_to_copy=("team",))


def job(**spec: Any) -> dict[str, Any]:
    resources = spec.pop("resources", {"requests": {"cpu": "1"}})
    labels = spec.pop("labels", {names.QUEUE_LABEL: "lq"})
    container = {"name": "c", "image": "i", "resources": resources}
    pod = {"containers": [container], **spec.pop("pod", {})}
    return {
        "metadata": {
            "name": "sample",
            "namespace": "ns",
            "uid": "uid-1",
            "labels": labels,
            "annotations": spec.pop("annotations", {}),
        },
        "spec": {"suspend": True, "parallelism": 3, "template": {"spec": pod}, **spec},
    }


def build(source: dict[str, Any], priority: Priority | None = None) -> dict[str, Any]:
    return workloads.construct(
        BATCH,
        source,
        pod_sets=workloads.pod_sets_of(BATCH, source, OPTIONS),
        priority=priority or Priority(value=0),
        options=OPTIONS,
    )


def reserved(wl: dict[str, Any], count: int = 3) -> dict[str, Any]:
    admission = {"clusterQueue": "cq", "podSetAssignments": [{"name": "main", "count": count}]}
    condition = {"type": "QuotaReserved", "status": "True"}
    return {**wl, "status": {"admission": admission, "conditions": [condition]}}


def test_name_is_the_documented_hash() -> None:
    digest = hashlib.sha1(b"Job\nbatch\nsample\nuid-1").hexdigest()[:5]
    assert workloads.name_of(BATCH, job(), OPTIONS) == f"job-sample-{digest}"


def test_long_names_are_cut_before_the_hash() -> None:
    common = {"kind": "Job", "group": "batch", "owner_name": "n" * 300, "owner_uid": "u"}
    assert len(workloads.workload_name(**common)) == 253
    assert len(workloads.workload_name(**common, short=True)) == 63


def test_construct_copies_what_the_job_says() -> None:
    labels = {
        names.QUEUE_LABEL: "lq",
        names.MAX_EXEC_TIME_LABEL: "60",
        "team": "red",
        "other": "x",
    }
    annotations = {names.ADMISSION_GATED_BY: "example.com/gate", "provreq.kueue.x-k8s.io/a": "b"}
    reference = workload_class_reference("high")
    wl = build(
        job(labels=labels, annotations={**annotations, "mine": "y"}),
        Priority(value=7, reference=reference),
    )
    assert wl["metadata"]["labels"] == {"team": "red", names.JOB_UID_LABEL: "uid-1"}
    assert wl["metadata"]["annotations"] == annotations
    assert wl["metadata"]["finalizers"] == [names.IN_USE_FINALIZER]
    assert wl["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    spec = wl["spec"]
    assert (spec["queueName"], spec["active"], spec["priority"]) == ("lq", True, 7)
    assert spec["priorityClassRef"] == reference
    assert spec["maximumExecutionTimeSeconds"] == 60
    assert spec["podSets"][0]["count"] == 3


@pytest.mark.parametrize(
    ("changed", "suspended", "holds", "equal"),
    [
        pytest.param({}, True, False, True, id="nothing changed"),
        pytest.param({"parallelism": 4}, True, False, False, id="another count"),
        pytest.param({"parallelism": 2}, False, True, True, id="the admitted count, running"),
        pytest.param({"parallelism": 4}, False, True, False, id="scaled while running"),
        pytest.param({"pod": {"nodeSelector": {"a": "b"}}}, True, False, False, id="a selector"),
        pytest.param(
            {"pod": {"nodeSelector": {"a": "b"}}}, False, True, True, id="an injected one"
        ),
        pytest.param({"resources": {"limits": {"cpu": "1"}}}, True, False, False, id="requests"),
        pytest.param({"resources": {"limits": {"cpu": "1"}}}, False, True, False, id="and running"),
        pytest.param(
            {"annotations": {names.MIN_PARALLELISM: "1"}}, True, False, False, id="a minimum"
        ),
    ],
)
def test_matches(changed: dict[str, Any], suspended: bool, holds: bool, equal: bool) -> None:
    wl = build(job())
    wl = reserved(wl, count=2) if holds else wl
    pod_sets = BATCH.pod_sets(job(**changed))
    assert workloads.matches(wl, pod_sets, suspended=suspended) is equal


def test_synced_follows_a_suspended_job() -> None:
    wl = build(job())
    other = job(parallelism=5, labels={names.QUEUE_LABEL: "other", names.MAX_EXEC_TIME_LABEL: "9"})
    high = Priority(value=9, reference=workload_class_reference("high"))
    after = workloads.synced(wl, other, pod_sets=BATCH.pod_sets(other), priority=high)
    assert after["spec"]["queueName"] == "other"
    assert after["spec"]["podSets"][0]["count"] == 5
    assert after["spec"]["maximumExecutionTimeSeconds"] == 9
    assert after["spec"]["priority"] == 9
    assert workloads.synced(after, other, pod_sets=BATCH.pod_sets(other), priority=high) is after


def test_synced_leaves_a_reserved_workload_alone() -> None:
    wl = reserved(build(job()))
    other = job(parallelism=5, labels={names.QUEUE_LABEL: "other"})
    assert workloads.synced(wl, other, pod_sets=BATCH.pod_sets(other), priority=None) is wl


def test_synced_drops_a_gate_that_the_job_dropped() -> None:
    wl = build(job(annotations={names.ADMISSION_GATED_BY: "example.com/gate"}))
    after = workloads.synced(wl, job(), pod_sets=BATCH.pod_sets(job()), priority=None)
    assert after["metadata"]["annotations"] == {}


CLASSES = PriorityClasses(
    workload_class={"high": 100}.get, pod_class={"pods": 5}.get, default_class=lambda: ("std", 3)
)


@pytest.mark.parametrize(
    ("source", "value", "name"),
    [
        pytest.param(job(labels={names.PRIORITY_CLASS_LABEL: "high"}), 100, "high", id="label"),
        pytest.param(job(pod={"priorityClassName": "pods"}), 5, "pods", id="pod template"),
        pytest.param(job(), 3, "std", id="default"),
    ],
)
def test_priority(source: dict[str, Any], value: int, name: str) -> None:
    priority = resolve(BATCH, source, BATCH.pod_sets(source), CLASSES)
    assert priority.value == value
    assert priority.reference is not None
    assert priority.reference["name"] == name


def test_priority_of_a_missing_class_is_an_error_with_its_name() -> None:
    source = job(labels={names.PRIORITY_CLASS_LABEL: "none"})
    with pytest.raises(PriorityClassMissing, match='WorkloadPriorityClass "none" not found'):
        resolve(BATCH, source, BATCH.pod_sets(source), CLASSES)


def test_the_lowest_default_class_counts() -> None:
    def priority_class(name: str, value: int, default: bool) -> dict[str, Any]:
        return {"metadata": {"name": name}, "value": value, "globalDefault": default}

    classes = [
        priority_class("a", 9, True),
        priority_class("b", 2, True),
        priority_class("c", 1, False),
    ]
    assert default_of(classes) == ("b", 2)
    assert default_of(classes[2:]) is None


def test_registry_finds_kinds_and_owners() -> None:
    registry = Registry(all_integrations())
    assert registry.find("batch/v1", "Job") is not None
    assert registry.find("v1", "Pod") is None
    owner = registry.owner_of(build(job()))
    assert owner is not None
    assert owner[1]["name"] == "sample"


def test_frameworks_that_we_lack_are_named() -> None:
    registry, lacking = select(all_integrations(), ["batch/job", "example.com/none", "batch/job"])
    assert [integration.kind.framework for integration in registry] == ["batch/job"]
    assert lacking == ("example.com/none",)


def test_priority_without_any_class_is_zero() -> None:
    none = PriorityClasses(workload_class={}.get, pod_class={}.get, default_class=lambda: None)
    assert resolve(BATCH, job(), BATCH.pod_sets(job()), none) == Priority(value=0)


def test_a_missing_pod_class_is_named() -> None:
    source = job(pod={"priorityClassName": "gone"})
    with pytest.raises(PriorityClassMissing, match='PriorityClass "gone" not found'):
        resolve(BATCH, source, BATCH.pod_sets(source), CLASSES)


def test_construct_without_queue_or_readable_uid() -> None:
    source = job(labels={})
    source["metadata"]["uid"] = "not/a/label"
    wl = build(source)
    assert "queueName" not in wl["spec"]
    assert names.JOB_UID_LABEL not in wl["metadata"]["labels"]
    assert "maximumExecutionTimeSeconds" not in wl["spec"]
    assert "annotations" not in wl["metadata"]


def test_partial_admission_switched_off_drops_the_minimum() -> None:
    source = job(annotations={names.MIN_PARALLELISM: "1"})
    options = workloads.WorkloadOptions(partial_admission=False)
    (pod_set,) = workloads.pod_sets_of(BATCH, source, options)
    assert pod_set.count_min is None
    assert pod_set.count == 3


@pytest.mark.parametrize("other", ["podSets", "name", "containers"])
def test_another_shape_never_matches(other: str) -> None:
    wl = build(job())
    (pod_set,) = wl["spec"]["podSets"]
    if other == "podSets":
        wl["spec"]["podSets"] = [pod_set, pod_set]
    elif other == "name":
        pod_set["name"] = "else"
    else:
        pod_set["template"]["spec"]["containers"] *= 2
    assert not workloads.matches(wl, BATCH.pod_sets(job()), suspended=True)


def test_another_topology_request_does_not_match() -> None:
    wl = build(job())
    wl["spec"]["podSets"][0]["topologyRequest"] = {"required": "rack"}
    assert not workloads.matches(wl, BATCH.pod_sets(job()), suspended=True)


def test_state_is_read_from_conditions() -> None:
    wl = reserved(build(job()))
    wl["status"]["conditions"] += [
        {"type": kind, "status": "True"} for kind in ("Admitted", "Finished", "Evicted")
    ]
    assert workloads.is_reserved(wl)
    assert workloads.is_admitted(wl)
    assert workloads.is_finished(wl)
    assert workloads.is_evicted(wl)
    assert not workloads.is_admitted(build(job()))
    assert workloads.is_owned_by(wl, job())


@pytest.mark.parametrize(
    ("old", "new", "follows"),
    [
        pytest.param("low", "high", True, id="from class to class"),
        pytest.param("low", "low", False, id="the same class"),
        pytest.param(None, "high", False, id="a class that was not there"),
    ],
)
def test_priority_class_of_a_reserved_workload(old: str | None, new: str, follows: bool) -> None:
    before = None if old is None else workload_class_reference(old)
    wl = reserved(build(job(), Priority(value=1, reference=before)))
    wanted = Priority(value=9, reference=workload_class_reference(new))
    after = workloads.synced(wl, job(), pod_sets=BATCH.pod_sets(job()), priority=wanted)
    assert (after is not wl) is follows
    assert after["spec"]["priority"] == (9 if follows else 1)


def test_restored_pod_sets() -> None:
    wl = build(job())
    assert workloads.restored_pod_sets(wl) == wl["spec"]["podSets"]
    assert workloads.restored_pod_sets(None) is None


def test_prebuilt_name_prefers_the_annotation() -> None:
    labelled = job(labels={names.PREBUILT_WORKLOAD: "l"})
    both = job(labels={names.PREBUILT_WORKLOAD: "l"}, annotations={names.PREBUILT_WORKLOAD: "a"})
    assert prebuilt_workload_name(labelled) == "l"
    assert prebuilt_workload_name(both) == "a"
    assert prebuilt_workload_name(job()) == ""


def test_owner_of_something_without_a_controller() -> None:
    registry = Registry(all_integrations())
    assert registry.owner_of({"metadata": {}}) is None
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "controller": True}
    other = {"metadata": {"ownerReferences": [{"kind": "X"}, reference]}}
    assert registry.owner_of(other) is None


def test_api_version_of_the_core_group() -> None:
    kind = JobKind(framework="pod", group="", version="v1", kind="Pod", plural="pods")
    assert kind.api_version == "v1"
