"""LimitRanges: defaults and bounds of new pods, with the texts of a real API server."""

from typing import Any

import pytest_asyncio
from tests.support.apiserver import PODS, Http, pod

LIMIT_RANGE = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "a"},
    "spec": {
        "limits": [
            {
                "type": "Container",
                "default": {"cpu": "1", "memory": "1Gi"},
                "defaultRequest": {"cpu": "500m"},
                "max": {"cpu": "2"},
                "min": {"cpu": "100m"},
            }
        ]
    },
}


@pytest_asyncio.fixture(autouse=True)
async def limit_range(http: Http) -> None:
    """A LimitRange in namespace default."""
    await http.ok("POST", "/api/v1/namespaces/default/limitranges", LIMIT_RANGE)


def containers(*resources: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": f"c{i}", "image": "i:1", "resources": needed} for i, needed in enumerate(resources)
    ]


async def test_a_pod_without_requests_gets_them(http: Http) -> None:
    made = await http.ok("POST", PODS, pod("a", containers=containers({})))
    (container,) = made["spec"]["containers"]
    assert container["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "500m", "memory": "1Gi"},
    }
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container c0; "
        "cpu, memory limit for container c0"
    )


async def test_what_a_pod_says_itself_stays(http: Http) -> None:
    needed = {"requests": {"cpu": "200m", "memory": "1Mi"}, "limits": {"cpu": "2", "memory": "2Mi"}}
    made = await http.ok("POST", PODS, pod("a", containers=containers(needed)))
    assert made["spec"]["containers"][0]["resources"] == needed
    assert "annotations" not in made["metadata"]


async def test_a_pod_outside_the_range_is_refused(http: Http) -> None:
    outside = containers({"requests": {"cpu": "50m"}}, {"limits": {"cpu": "3"}})
    reply = await http("POST", PODS, pod("a", containers=outside))
    assert reply.code == 403
    assert reply.message == (
        'pods "a" is forbidden: [minimum cpu usage per Container is 100m, but request is 50m, '
        "maximum cpu usage per Container is 2, but limit is 3]"
    )
