"""What every test of both control planes builds on: an administrator, namespaces, kubectl."""

import pytest
from tests.support.controlplane import ControlPlane, KubectlFactory

from sluice.api.errors import AlreadyExists, Conflict, NotFound
from sluice.kube.client import Client
from sluice.kube.resources import CONFIG_MAPS, NAMESPACES

pytestmark = pytest.mark.slow


async def test_a_fresh_namespace_is_there_and_empty(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with Client(control_plane.access) as client:
        found = await client.get(NAMESPACES, "", namespace)
        assert found["status"]["phase"] == "Active"
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAPS, namespace, "a")


async def test_writes_are_guarded(control_plane: ControlPlane, namespace: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}}
    async with Client(control_plane.access) as client:
        first = await client.create(CONFIG_MAPS, namespace, body)
        with pytest.raises(AlreadyExists):
            await client.create(CONFIG_MAPS, namespace, body)
        await client.replace(CONFIG_MAPS, namespace, "a", {**first, "data": {"k": "2"}})
        with pytest.raises(Conflict):
            await client.replace(CONFIG_MAPS, namespace, "a", {**first, "data": {"k": "3"}})
        assert (await client.get(CONFIG_MAPS, namespace, "a"))["data"] == {"k": "2"}


async def test_kubectl_works(
    control_plane: ControlPlane, namespace: str, kubectl_of: KubectlFactory
) -> None:
    kubectl = kubectl_of(control_plane).within(namespace)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}}
    assert await kubectl.apply(body) == "configmap/a created\n"
    assert await kubectl.apply(body) == "configmap/a unchanged\n"
    assert (await kubectl.get("configmap", "a"))["data"] == {"k": "1"}
