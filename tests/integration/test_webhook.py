"""The webhook registered in a cluster by our manifests: what users see, and who is not asked.

On a control plane of its own, embedded and real: configurations are cluster-wide.
"""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.support.controlplane import require_programs
from tests.support.objects import Json, changed
from tests.support.webhook_world import DEADLINE_S, WebhookWorld, refusal, webhook_world

from sluice.api.errors import KubeError
from sluice.kube.resources import (
    BATCH_JOBS,
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    NAMESPACES,
    RESOURCE_FLAVORS,
    WORKLOADS,
    Resource,
)
from sluice.local.real import API_SERVER_PROGRAMS

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
QUEUE = "kueue.x-k8s.io/queue-name"
QUEUE_STEP = f"metadata.labels.[{QUEUE}]"
JOB: Json = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "sample"},
    "spec": {
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "c", "image": "example.com/x"}],
            }
        }
    },
}
QUEUED = changed(JOB, {QUEUE_STEP: "main"})
UNLABEL = {"metadata": {"labels": {QUEUE: None}}}
CLUSTER_QUEUE: Json = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "spec": {"namespaceSelector": {}},
}
MUTATE_JOB, VALIDATE_JOB = "/mutate-batch-v1-job", "/validate-batch-v1-job"


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=["embedded", pytest.param("real", marks=pytest.mark.real)],
)
async def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[WebhookWorld]:
    if request.param == "real":
        require_programs(API_SERVER_PROGRAMS)
    folder: Path = tmp_path_factory.mktemp("webhook")
    async with webhook_world(request.param, folder) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def namespace(world: WebhookWorld) -> AsyncIterator[str]:
    name = f"test-{uuid.uuid4().hex[:10]}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await world.client.create(NAMESPACES, "", body)
    yield name
    await world.client.delete(NAMESPACES, "", name)


def named(body: Json, name: str = "") -> Json:
    return changed(body, {"metadata.name": name or f"x-{uuid.uuid4().hex[:8]}"})


async def until_taken_up(world: WebhookWorld, namespace: str) -> Json:
    """Return a dry-run unlabelled Job once it is suspended: selectors reach the server by watch."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            job = await world.client.create(BATCH_JOBS, namespace, named(JOB), dry_run=True)
            if job["spec"]["suspend"]:
                return job
            await asyncio.sleep(0.05)


async def test_a_queued_job_is_stored_suspended(world: WebhookWorld, namespace: str) -> None:
    await world.kubectl.within(namespace).apply(QUEUED)
    stored = await world.client.get(BATCH_JOBS, namespace, "sample")
    assert stored["spec"]["suspend"] is True


async def test_a_user_reads_why_a_job_is_refused(world: WebhookWorld, namespace: str) -> None:
    bad = changed(
        QUEUED,
        {
            "metadata.labels.[kueue.x-k8s.io/max-exec-time-seconds]": "0",
            "metadata.annotations.[kueue.x-k8s.io/job-min-parallelism]": "x",
        },
    )
    result = await world.kubectl.within(namespace).run("create", "-f", "-", stdin=json.dumps(bad))
    assert result.code == 1
    assert result.err.strip() == (
        'Error from server (Forbidden): error when creating "STDIN": '
        'admission webhook "vjob.kb.io" denied the request: '
        "[metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]: "
        'Invalid value: "0": must be greater than 0, '
        "metadata.annotations[kueue.x-k8s.io/job-min-parallelism]: "
        'Invalid value: "x": must be an integer]'
    )


async def test_changes_are_checked_even_when_they_take_the_label_off(
    world: WebhookWorld, namespace: str
) -> None:
    await world.client.create(BATCH_JOBS, namespace, QUEUED)
    await world.client.patch(BATCH_JOBS, namespace, "sample", {"spec": {"suspend": False}})
    with pytest.raises(KubeError) as caught:
        await world.client.patch(BATCH_JOBS, namespace, "sample", UNLABEL)
    assert 'admission webhook "vjob.kb.io" denied the request: ' in str(caught.value)
    assert f'metadata.labels[{QUEUE}]: Invalid value: "": field is immutable' in str(caught.value)


async def test_unlabelled_jobs_are_not_even_asked_about(
    world: WebhookWorld, namespace: str
) -> None:
    before = dict(world.calls.by_path)
    await world.client.create(BATCH_JOBS, namespace, JOB)
    labels = {"metadata": {"labels": {"app": "x"}}}
    await world.client.patch(BATCH_JOBS, namespace, "sample", labels)
    assert world.calls.by_path == before
    await world.client.create(BATCH_JOBS, namespace, named(QUEUED))
    assert world.calls.by_path[MUTATE_JOB] == before.get(MUTATE_JOB, 0) + 1


async def test_with_the_webhook_down_only_queued_jobs_are_refused(
    world: WebhookWorld, namespace: str
) -> None:
    port = world.server.port
    await world.server.stop()
    try:
        await world.client.create(BATCH_JOBS, namespace, named(JOB))
        text = await refusal(world.client, BATCH_JOBS, namespace, named(QUEUED))
        assert 'failed calling webhook "mjob.kb.io"' in text
    finally:
        await world.restart_webhook(port)
    assert await refusal(world.client, BATCH_JOBS, namespace, named(QUEUED)) == ""


async def test_a_default_queue_takes_unlabelled_jobs_of_its_namespace(
    world: WebhookWorld, namespace: str
) -> None:
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "default"},
        "spec": {"clusterQueue": "cq"},
    }
    await world.client.create(LOCAL_QUEUES, namespace, queue)
    job = await until_taken_up(world, namespace)
    assert job["metadata"]["labels"][QUEUE] == "default"
    await world.client.create(BATCH_JOBS, namespace, QUEUED)
    with pytest.raises(KubeError, match="not be empty in namespace with default queue"):
        await world.client.patch(BATCH_JOBS, namespace, "sample", UNLABEL)
    await world.client.delete(LOCAL_QUEUES, namespace, "default")
    async with asyncio.timeout(DEADLINE_S):
        while True:
            before = world.calls.by_path.get(MUTATE_JOB, 0)
            await world.client.create(BATCH_JOBS, namespace, named(JOB), dry_run=True)
            if world.calls.by_path.get(MUTATE_JOB, 0) == before:
                break


@pytest.mark.parametrize(
    ("resource", "body"),
    [
        pytest.param(CLUSTER_QUEUES, CLUSTER_QUEUE, id="ClusterQueue"),
        pytest.param(
            RESOURCE_FLAVORS,
            {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor"},
            id="ResourceFlavor",
        ),
    ],
)
async def test_finalizers_are_added(world: WebhookWorld, resource: Resource, body: Json) -> None:
    stored = await world.client.create(resource, "", named(body), dry_run=True)
    assert stored["metadata"]["finalizers"] == ["kueue.x-k8s.io/resource-in-use"]


async def test_an_old_version_is_checked_as_the_new_one(world: WebhookWorld) -> None:
    old = Resource(
        group="kueue.x-k8s.io",
        version="v1beta1",
        plural="clusterqueues",
        kind="ClusterQueue",
        namespaced=False,
    )
    quota = {"name": "cpu", "nominalQuota": "1", "lendingLimit": "2"}
    body = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "ClusterQueue",
        "spec": {
            "cohort": "all",
            "resourceGroups": [
                {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [quota]}]}
            ],
        },
    }
    text = await refusal(world.client, old, "", named(body))
    assert (
        'admission webhook "vclusterqueue.kb.io" denied the request: '
        'spec.resourceGroups[0].flavors[0].resources[0].lendingLimit: Invalid value: "2": '
        "must be less than or equal to the nominalQuota"
    ) in text
    quota["lendingLimit"] = "1"
    stored = await world.client.create(old, "", named(body), dry_run=True)
    assert stored["spec"]["cohort"] == "all"
    assert stored["metadata"]["finalizers"] == ["kueue.x-k8s.io/resource-in-use"]


async def test_the_status_of_workloads_is_checked(world: WebhookWorld, namespace: str) -> None:
    body: dict[str, Any] = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "w"},
        "spec": {"podSets": [{"name": "main", "template": JOB["spec"]["template"], "count": 1}]},
    }
    before = world.calls.by_path.get("/mutate-kueue-x-k8s-io-v1beta2-workload", 0)
    stored = await world.client.create(WORKLOADS, namespace, body)
    assert world.calls.by_path.get("/mutate-kueue-x-k8s-io-v1beta2-workload", 0) == before
    stored["status"] = {"reclaimablePods": [{"name": "main", "count": 2}]}
    with pytest.raises(KubeError) as caught:
        await world.client.replace(WORKLOADS, namespace, "w", stored, subresource="status")
    assert (
        'admission webhook "vworkload.kb.io" denied the request: '
        "status.reclaimablePods[main].count: Invalid value: 2: should be less than or equal to 1"
    ) in str(caught.value)
