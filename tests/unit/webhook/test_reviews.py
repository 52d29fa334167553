"""Reviews over HTTPS: what is patched, allowed and denied, on which path."""

from typing import Any

import pytest
import pytest_asyncio
from tests.support.lookups import StaticLookups
from tests.support.objects import Json, changed
from tests.support.webhook import Served, patched, served

from sluice.jobs.admission.context import Options
from sluice.jobs.admission.kinds import ALL_KINDS
from sluice_webhook.review import ReviewedKind
from sluice_webhook.routes import path_of, routes

pytestmark = pytest.mark.slow
QUEUE = "kueue.x-k8s.io/queue-name"
KUEUE = ("kueue.x-k8s.io", "v1beta2")
JOB: Json = {
    "metadata": {"name": "sample", "labels": {QUEUE: "main"}},
    "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}},
}
CLUSTER_QUEUE: Json = {"metadata": {"name": "cq"}, "spec": {"namespaceSelector": {}}}
MUTATE_JOB = "/mutate-batch-v1-job"
VALIDATE_JOB = "/validate-batch-v1-job"
FINALIZERS = {"metadata.finalizers": ["kueue.x-k8s.io/resource-in-use"]}


@pytest_asyncio.fixture
async def webhook() -> Any:
    async with served() as running:
        yield running


async def test_a_queued_job_is_patched(webhook: Served) -> None:
    response = await webhook.review(MUTATE_JOB, obj=JOB)
    assert response["allowed"]
    assert patched(JOB, response) == changed(JOB, {"spec.suspend": True})


async def test_an_allowed_review_without_changes_has_no_patch(webhook: Served) -> None:
    assert await webhook.review(MUTATE_JOB, obj={"metadata": {}, "spec": {}}) == {
        "uid": "u-1",
        "allowed": True,
    }


async def test_a_denial_has_kueues_form(webhook: Served) -> None:
    bad = changed(
        JOB,
        {
            "metadata.labels.[kueue.x-k8s.io/max-exec-time-seconds]": "0",
            "metadata.annotations.[kueue.x-k8s.io/job-min-parallelism]": "x",
        },
    )
    assert await webhook.review(VALIDATE_JOB, obj=bad) == {
        "uid": "u-1",
        "allowed": False,
        "status": {
            "status": "Failure",
            "code": 403,
            "reason": "Forbidden",
            "message": "[metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]: "
            'Invalid value: "0": must be greater than 0, '
            "metadata.annotations[kueue.x-k8s.io/job-min-parallelism]: "
            'Invalid value: "x": must be an integer]',
        },
    }


async def test_one_error_stands_alone(webhook: Served) -> None:
    response = await webhook.review(
        VALIDATE_JOB,
        operation="UPDATE",
        old=JOB,
        obj=changed(JOB, {f"metadata.labels.[{QUEUE}]": "other"}),
    )
    assert response["status"]["message"] == (
        f'metadata.labels[{QUEUE}]: Invalid value: "other": field is immutable'
    )


@pytest.mark.parametrize(
    ("kind", "obj", "changes"),
    [
        ("ClusterQueue", CLUSTER_QUEUE, FINALIZERS),
        ("ResourceFlavor", {"metadata": {"name": "f"}}, FINALIZERS),
        ("Workload", {"metadata": {"name": "w"}, "spec": {"podSets": [{"minCount": 1}]}}, {}),
    ],
)
async def test_kueue_kinds_get_defaults(
    webhook: Served, kind: str, obj: Json, changes: Json
) -> None:
    path = f"/mutate-kueue-x-k8s-io-v1beta2-{kind.lower()}"
    response = await webhook.review(path, kind=(*KUEUE, kind), obj=obj)
    assert patched(obj, response) == changed(obj, changes)


@pytest.mark.parametrize(
    ("kind", "obj", "path"),
    [
        ("ClusterQueue", {"spec": {"fairSharing": {"weight": "-1"}}}, "spec.fairSharing"),
        ("Cohort", {"spec": {"fairSharing": {"weight": "-1"}}}, "spec.fairSharing"),
        ("ResourceFlavor", {"spec": {"nodeLabels": {"a b": ""}}}, "spec.nodeLabels"),
        (
            "Workload",
            {"status": {"reclaimablePods": [{"name": "x", "count": 1}]}},
            "status.reclaimablePods[x].name",
        ),
    ],
)
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
async def test_kueue_kinds_are_validated(
    webhook: Served, kind: str, obj: Json, path: str, operation: str
) -> None:
    response = await webhook.review(
        f"/validate-kueue-x-k8s-io-v1beta2-{kind.lower()}",
        kind=(*KUEUE, kind),
        operation=operation,
        obj=obj,
        old={"metadata": {"name": "x"}} if operation == "UPDATE" else None,
    )
    assert not response["allowed"]
    assert response["status"]["message"].startswith(f"{path}: ")


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
@pytest.mark.parametrize("path", [MUTATE_JOB, VALIDATE_JOB])
async def test_other_operations_are_allowed(webhook: Served, operation: str, path: str) -> None:
    response = await webhook.review(path, operation=operation, obj=None, old=JOB)
    assert response == {"uid": "u-1", "allowed": True}


@pytest.mark.parametrize("direction", ["mutate", "validate"])
async def test_every_path_of_kueue_answers(webhook: Served, direction: str) -> None:
    for job_kind in ALL_KINDS:
        kind = ReviewedKind(group=job_kind.group, version=job_kind.version, kind=job_kind.kind)
        obj = {"metadata": {"labels": {QUEUE: "Not Valid"}}}
        response = await webhook.review(
            path_of(direction, kind), kind=(kind.group, kind.version, kind.kind), obj=obj
        )
        is_enabled = job_kind.framework == "batch/job"
        assert response["allowed"] is not (is_enabled and direction == "validate"), kind


def test_the_paths_are_those_of_kueue() -> None:
    found = {route.path for route in routes(Options(), StaticLookups())}
    assert {
        "/mutate-kueue-x-k8s-io-v1beta2-clusterqueue",
        "/validate-kueue-x-k8s-io-v1beta2-cohort",
        "/mutate--v1-pod",
        "/validate--v1-pod",
        "/mutate-apps-v1-statefulset",
        "/mutate-jobset-x-k8s-io-v1alpha2-jobset",
        "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
        "/mutate-kubeflow-org-v2beta1-mpijob",
        "/validate-workload-codeflare-dev-v1beta2-appwrapper",
    } <= found
    assert "/validate-sluicegate-io-v1alpha1-creditpolicy" in found
    assert len(found) == 8 + 2 * len(ALL_KINDS)


async def test_a_job_kind_that_is_not_enabled_is_left_alone() -> None:
    async with served(options=Options(frameworks=frozenset())) as webhook:
        assert await webhook.review(MUTATE_JOB, obj=JOB) == {"uid": "u-1", "allowed": True}


@pytest.mark.parametrize(
    ("lookups", "code", "message"),
    [
        (StaticLookups(broken={"owner"}), 503, "owner could not be read; try again"),
        (StaticLookups(), 403, "the owner Job team-a/up does not exist"),
    ],
)
async def test_why_there_is_no_decision(lookups: StaticLookups, code: int, message: str) -> None:
    reference = {
        "apiVersion": "batch/v1", "kind": "Job", "name": "up", "uid": "u", "controller": True
    }  # fmt: skip
    owned = changed(JOB, {"metadata.ownerReferences": [reference]})
    async with served(lookups=lookups) as webhook:
        response = await webhook.review(MUTATE_JOB, obj=owned)
    assert not response["allowed"]
    assert (response["status"]["code"], response["status"]["message"]) == (code, message)
