"""docs/spec/api.md 2.3.1 and 2.3.2 on Jobs: queue, priority class, suspension, managedBy."""

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.lookups import StaticLookups
from tests.support.objects import Json, changed

from sluice.api.edits import Edits
from sluice.api.selectors import compile_selector
from sluice.jobs.admission.batch import BatchJobAdmission
from sluice.jobs.admission.context import Context, LookupFailed, Options

QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
ELASTIC = "kueue.x-k8s.io/elastic-job"
JOB: Json = {
    "metadata": {"name": "sample", "namespace": "team-a"},
    "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}},
}
QUEUED = changed(JOB, {f"metadata.labels.[{QUEUE}]": "main"})
DEFAULTED = StaticLookups(local_queues={"team-a/default"})
MANAGES = Options(manages_unqueued=True)
OTHERS = compile_selector({"matchLabels": {"managed": "yes"}})


def owned_by(kind: str, api_version: str) -> dict[str, Any]:
    reference = {
        "apiVersion": api_version,
        "kind": kind,
        "name": "up",
        "uid": "u1",
        "controller": True,
    }
    return {"metadata.ownerReferences": [reference]}


async def default(
    job: Json, lookups: StaticLookups | None = None, options: Options | None = None
) -> tuple[Json, list[Json]]:
    edits = Edits(copy.deepcopy(job))
    context = Context(
        namespace="team-a", options=options or Options(), lookups=lookups or StaticLookups()
    )
    await BatchJobAdmission().default(edits, context)
    return edits.obj, edits.operations


async def test_a_queued_job_is_suspended() -> None:
    _, patch = await default(QUEUED)
    assert patch == [{"op": "add", "path": "/spec/suspend", "value": True}]


async def test_a_job_that_asks_to_run_is_suspended_all_the_same() -> None:
    _, patch = await default(changed(QUEUED, {"spec.suspend": False}))
    assert patch == [{"op": "replace", "path": "/spec/suspend", "value": True}]


async def test_a_suspended_job_stays_as_it_is() -> None:
    assert await default(changed(QUEUED, {"spec.suspend": True})) == (
        changed(QUEUED, {"spec.suspend": True}),
        [],
    )


async def test_a_job_without_a_queue_is_left_alone() -> None:
    assert await default(JOB) == (JOB, [])


async def test_the_default_queue_takes_jobs_without_one() -> None:
    _, patch = await default(JOB, DEFAULTED)
    assert patch == [
        {"op": "add", "path": "/metadata/labels", "value": {QUEUE: "default"}},
        {"op": "add", "path": "/spec/suspend", "value": True},
    ]


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        pytest.param({f"metadata.labels.[{QUEUE}]": "main"}, Options(), id="has a queue"),
        pytest.param(
            owned_by("Job", "batch/v1"), Options(manages_unqueued=False), id="owner is managed"
        ),
        pytest.param(
            owned_by("Flow", "example.com/v1"),
            Options(external=frozenset({("example.com", "Flow")})),
            id="owner is managed by an external framework",
        ),
        pytest.param({}, Options(managed_namespaces=OTHERS), id="namespace is not managed"),
    ],
)
async def test_the_default_queue_leaves(changes: dict[str, Any], options: Options) -> None:
    owner = {"metadata": {"uid": "u1"}}
    lookups = StaticLookups(
        local_queues={"team-a/default"},
        owners={"Job/team-a/up": owner, "Flow/team-a/up": owner},
    )
    job, _ = await default(changed(JOB, changes), lookups, options)
    assert job["metadata"].get("labels", {}).get(QUEUE) == changes.get(f"metadata.labels.[{QUEUE}]")


async def test_the_default_queue_takes_jobs_of_owners_that_are_not_queued() -> None:
    job, _ = await default(changed(JOB, owned_by("CronJob", "batch/v1")), DEFAULTED)
    assert job["metadata"]["labels"] == {QUEUE: "default"}
    assert job["spec"]["suspend"] is True


async def test_the_default_priority_class_goes_to_unqueued_jobs_too() -> None:
    classes = StaticLookups(priority_classes={"default"})
    _, patch = await default(JOB, classes)
    assert patch == [{"op": "add", "path": "/metadata/labels", "value": {PRIORITY: "default"}}]
    off = Options(gates={"WorkloadPriorityClassDefaulting": False})
    assert await default(JOB, classes, off) == (JOB, [])
    named = changed(JOB, {f"metadata.labels.[{PRIORITY}]": "high"})
    assert await default(named, classes) == (named, [])


async def test_jobs_without_a_queue_wait_where_they_are_managed() -> None:
    job, _ = await default(JOB, options=MANAGES)
    assert job["spec"]["suspend"] is True
    elsewhere = Options(manages_unqueued=True, managed_namespaces=OTHERS)
    assert await default(JOB, options=elsewhere) == (JOB, [])


async def test_a_deleted_job_is_left_alone() -> None:
    deleted = changed(QUEUED, {"metadata.deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert (await default(deleted))[1] == []
    gate_off = Options(gates={"SkipAncestorCheckForDeletedWorkloads": False})
    assert (await default(deleted, options=gate_off))[1] != []


@pytest.mark.parametrize(
    ("changes", "controllers", "gates", "expected"),
    [
        ({}, {"kueue.x-k8s.io/multikueue"}, {}, "kueue.x-k8s.io/multikueue"),
        ({}, {"kueue.x-k8s.io/provisioning-request"}, {}, None),
        ({}, set(), {}, None),
        ({}, {"kueue.x-k8s.io/multikueue"}, {"MultiKueue": False}, None),
        (
            {"spec.managedBy": "kubernetes.io/job-controller"},
            {"kueue.x-k8s.io/multikueue"},
            {},
            "kueue.x-k8s.io/multikueue",
        ),
        (
            {"spec.managedBy": "example.com/own"},
            {"kueue.x-k8s.io/multikueue"},
            {},
            "example.com/own",
        ),
    ],
)
async def test_managed_by(
    changes: dict[str, Any], controllers: set[str], gates: dict[str, bool], expected: str | None
) -> None:
    lookups = StaticLookups(controllers={"team-a/main": controllers})
    job, _ = await default(changed(QUEUED, changes), lookups, Options(gates=gates))
    assert job["spec"].get("managedBy") == expected


async def test_pods_of_elastic_jobs_are_gated() -> None:
    elastic = changed(QUEUED, {f"metadata.annotations.[{ELASTIC}]": "true"})
    job, patch = await default(elastic)
    gates = [{"name": "kueue.x-k8s.io/elastic-job"}]
    assert job["spec"]["template"]["spec"]["schedulingGates"] == gates
    assert patch[1:] == [
        {"op": "add", "path": "/spec/template/spec/schedulingGates", "value": gates}
    ]
    assert (await default(job))[1] == []
    off = Options(gates={"ElasticJobsViaWorkloadSlices": False})
    assert len((await default(elastic, options=off))[1]) == 1


@pytest.mark.parametrize("what", ["local queue", "namespace", "priority class"])
async def test_a_failed_lookup_is_told(what: str) -> None:
    lookups = StaticLookups(local_queues={"team-a/default"}, broken={what})
    with pytest.raises(LookupFailed, match=what):
        await default(JOB, lookups, MANAGES)


LABELS = st.dictionaries(
    st.sampled_from([QUEUE, PRIORITY, "app"]), st.sampled_from(["", "main"]), max_size=3
)
JOBS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": st.none() | LABELS,
                "annotations": st.dictionaries(
                    st.just(ELASTIC), st.sampled_from(["true", "false"])
                ),
            },
        ),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "suspend": st.none() | st.booleans(),
                "managedBy": st.sampled_from(["", "kubernetes.io/job-controller", "x.io/y"]),
                "template": st.sampled_from(
                    [{}, {"spec": {}}, {"spec": {"schedulingGates": [{"name": "a"}]}}]
                ),
            },
        ),
    }
)


@settings(deadline=None)
@given(
    JOBS,
    st.booleans(),
    st.sets(st.sampled_from(["team-a/default"])),
    st.sets(st.sampled_from(["default"])),
    st.sets(st.sampled_from(["kueue.x-k8s.io/multikueue"])),
)
async def test_defaulting_is_idempotent_and_its_patch_says_all(
    job: Json, manages: bool, queues: set[str], classes: set[str], controllers: set[str]
) -> None:
    lookups = StaticLookups(
        local_queues=queues,
        priority_classes=classes,
        controllers={"team-a/main": controllers, "team-a/default": controllers},
    )
    options = Options(manages_unqueued=manages)
    once, patch = await default(job, lookups, options)
    assert jsonpatch.apply_patch(job, patch) == once
    assert await default(once, lookups, options) == (once, [])
