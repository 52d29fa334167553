"""What the engine learns of nodes and pods, and when."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.support.managers import until
from tests.support.topology_server import NAMESPACE, Place, place

from sluice.api import names
from sluice.api.names import ClusterQueueName
from sluice.kube.resources import NODES, PODS

pytestmark = pytest.mark.slow


@pytest_asyncio.fixture
async def here(tmp_path: Path) -> AsyncIterator[Place]:
    async with place(tmp_path) as made:
        levels = [{"nodeLabel": names.HOSTNAME_LABEL}]
        made.put(made.caches.topologies, "t", {"spec": {"levels": levels}})
        quota = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": "9"}]}
        groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
        spec = {"namespaceSelector": {}, "resourceGroups": groups}
        made.put(made.caches.cluster_queues, "cq", {"spec": spec})
        yield made


def activity(here: Place) -> tuple[bool, str]:
    status = here.engine.cluster_queue_status(ClusterQueueName("cq"))
    assert status is not None
    return status.is_active, status.reason


def node(name: str) -> dict[str, Any]:
    body = NODES.skeleton("", name)
    body["metadata"]["labels"] = {names.HOSTNAME_LABEL: name, "pool": "p"}
    return body


async def test_a_queue_waits_until_all_nodes_and_pods_are_listed(here: Place) -> None:
    here.client.lists_pods.clear()
    here.flavor()
    await until(lambda: here.caches.nodes.synced.is_set(), "nodes are listed")
    assert activity(here) == (False, "TopologyNotFound")
    assert not here.feed.is_open
    here.client.lists_pods.set()
    async with asyncio.timeout(10):
        await here.feed.settled.wait()
    assert activity(here) == (True, "Ready")


async def test_without_a_topology_nothing_is_waited_for(here: Place) -> None:
    here.client.lists_pods.clear()
    here.flavor(topology=None)
    assert here.feed.settled.is_set()
    assert activity(here) == (True, "Ready")
    assert not here.caches.uses_topology
    assert [i.resource.plural for i in here.caches.all() if not i.synced.is_set()] == []


async def test_it_ends_with_the_last_flavor_and_may_begin_again(here: Place) -> None:
    await here.client.create(NODES, "", node("n1"))
    for _ in range(2):
        here.flavor()
        await until(lambda: here.feed.is_open, "all is listed")
        assert len(here.caches.nodes.store) == 1
        assert activity(here) == (True, "Ready")
        here.flavor(topology=None)
        await until(lambda: not here.feed.is_open, "nothing is watched")
        await until(lambda: len(here.caches.nodes.store) == 0, "all is forgotten")
    assert here.feed.settled.is_set()


async def test_back_at_once_it_goes_on(here: Place) -> None:
    here.flavor()
    await until(lambda: here.feed.is_open, "all is listed")
    here.flavor(topology=None)
    here.flavor()
    here.put(here.caches.topologies, "t", {"spec": {"levels": [{"nodeLabel": "rack"}]}})
    await here.client.create(NODES, "", node("n2"))
    await until(lambda: "n2" in here.caches.nodes.store, "a new node is seen")
    assert here.feed.is_open
    assert activity(here) == (True, "Ready")


async def test_pods_come_and_go_with_what_they_take(here: Place) -> None:
    here.flavor()
    await until(lambda: here.feed.is_open, "all is listed")
    store = here.caches.pods.store
    body = PODS.skeleton(NAMESPACE, "other")
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    body["spec"] = {"containers": [container]}
    await here.client.create(PODS, NAMESPACE, body)
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "other", "namespace": NAMESPACE},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }
    await here.client.create(PODS, NAMESPACE, binding, name="other", subresource="binding")
    await until(lambda: f"{NAMESPACE}/other" in store, "it is on a node")
    ended = {"status": {"phase": "Succeeded"}}
    await here.client.patch(PODS, NAMESPACE, "other", ended, subresource="status")
    await until(lambda: f"{NAMESPACE}/other" not in store, "it has ended")
