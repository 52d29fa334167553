"""The conversion webhook over HTTPS, a list of 500 large Workloads included."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.support.objects import Json
from tests.support.webhook import Served, served

pytestmark = pytest.mark.slow
OLD, NEW = "kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2"
QUEUE: Json = {
    "apiVersion": OLD,
    "kind": "ClusterQueue",
    "metadata": {"name": "cq"},
    "spec": {"cohort": "all"},
}


@pytest_asyncio.fixture
async def webhook() -> AsyncIterator[Served]:
    async with served() as running:
        yield running


def review(objects: Any, version: Any = NEW) -> bytes:
    request = {"uid": "u-1", "desiredAPIVersion": version, "objects": objects}
    return json.dumps(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "ConversionReview",
            "request": request,
        }
    ).encode()


async def test_objects_are_converted(webhook: Served) -> None:
    status, answer = await webhook.post("/convert", review([QUEUE]))
    assert status == 200
    assert answer == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "response": {
            "uid": "u-1",
            "result": {"status": "Success"},
            "convertedObjects": [
                {
                    "apiVersion": NEW,
                    "kind": "ClusterQueue",
                    "metadata": {"name": "cq"},
                    "spec": {"cohortName": "all"},
                }
            ],
        },
    }


@pytest.mark.parametrize(
    ("objects", "version", "message"),
    [
        ([{**QUEUE, "kind": "Pod"}], NEW, 'kind: Unsupported value: "Pod": supported values: '),
        ([QUEUE], "kueue.x-k8s.io/v9", "desiredAPIVersion: Unsupported value: "),
        ([QUEUE, {**QUEUE, "spec": 5}], NEW, "spec: Invalid value: 5: must be an object"),
    ],
)
async def test_what_cannot_be_converted_fails_the_review(
    webhook: Served, objects: list[Json], version: str, message: str
) -> None:
    status, answer = await webhook.post("/convert", review(objects, version))
    assert status == 200
    result = answer["response"]["result"]
    assert result["status"] == "Failure"
    assert result["message"].startswith(message)
    assert "convertedObjects" not in answer["response"]


@pytest.mark.parametrize(
    "sent",
    [
        b"nope",
        b"{}",
        review("x"),
        review([5]),
        review([QUEUE], 5),
        review([QUEUE], ""),
        json.dumps({"apiVersion": "v1", "kind": "ConversionReview", "request": {}}).encode(),
    ],
)
async def test_malformed(webhook: Served, sent: bytes) -> None:
    status, answer = await webhook.post("/convert", sent)
    assert (status, answer["kind"], answer["reason"]) == (400, "Status", "BadRequest")
    assert answer["message"]


def large_workload(number: int, pods: int = 800) -> Json:
    """Return a Workload of about 100 KB: many containers, a topology with many nodes."""
    container = {
        "name": "c",
        "image": "registry.example.com/team/training:2026-11",
        "args": [f"--option-{i}=value-{i}" for i in range(40)],
        "env": [{"name": f"VARIABLE_{i}", "value": "x" * 40} for i in range(60)],
        "resources": {"requests": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}},
    }
    template = {"metadata": {"labels": {"app": "train"}}, "spec": {"containers": [container] * 6}}
    return {
        "apiVersion": OLD,
        "kind": "Workload",
        "metadata": {"name": f"job-{number}", "namespace": "team-a", "uid": f"u-{number}"},
        "spec": {
            "queueName": "main",
            "priorityClassName": "high",
            "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass",
            "priority": 10,
            "podSets": [{"name": "main", "count": pods, "template": template}],
        },
        "status": {
            "admission": {
                "clusterQueue": "cq",
                "podSetAssignments": [
                    {
                        "name": "main",
                        "count": pods,
                        "topologyAssignment": {
                            "levels": ["example.com/rack", "kubernetes.io/hostname"],
                            "domains": [
                                {"values": [f"rack-{i // 32}", f"node-{i:05d}"], "count": 1}
                                for i in range(pods)
                            ],
                        },
                    }
                ],
            }
        },
    }


async def test_a_list_of_500_large_workloads(webhook: Served) -> None:
    sent = review([large_workload(i) for i in range(500)])
    assert 30 * 2**20 < len(sent) < 64 * 2**20, "near the limit"
    status, answer = await webhook.post("/convert", sent)
    assert status == 200
    response = answer["response"]
    assert response["result"] == {"status": "Success"}
    converted = response["convertedObjects"]
    assert [w["metadata"]["name"] for w in converted] == [f"job-{i}" for i in range(500)]
    assert all(w["apiVersion"] == NEW for w in converted)
    assert converted[7]["spec"]["priorityClassRef"] == {
        "group": "kueue.x-k8s.io",
        "kind": "WorkloadPriorityClass",
        "name": "high",
    }
    slices = converted[7]["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"]
    assert sum(s["domainCount"] for s in slices["slices"]) == 800
