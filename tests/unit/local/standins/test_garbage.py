"""The garbage collector: background, foreground and orphaning deletion, over any kinds."""

import asyncio
from typing import Any

import pytest
from tests.support.waiting import wait_for, wait_until_deleted
from tests.unit.local.standins.conftest import NAMESPACE, Cluster, standing_in

from sluice.kube.client import PatchType
from sluice.kube.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, Resource

pytestmark = pytest.mark.slow
THINGS = Resource(group="example.com", version="v1", plural="things", kind="Thing")


def reference(owner: dict[str, Any], *, is_blocking: bool = False) -> dict[str, Any]:
    return {
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "uid": owner["metadata"]["uid"],
        "name": owner["metadata"]["name"], "blockOwnerDeletion": is_blocking,
    }  # fmt: skip


async def config_map(
    cluster: Cluster, name: str, *owners: dict[str, Any], **metadata: Any
) -> dict[str, Any]:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": name, "ownerReferences": list(owners), **metadata}}  # fmt: skip
    return await cluster.client.create(CONFIG_MAPS, NAMESPACE, body)


async def gone(cluster: Cluster, name: str) -> None:
    await wait_until_deleted(cluster.client, CONFIG_MAPS, NAMESPACE, name, deadline_s=15)


async def test_dependents_follow_their_owner(cluster: Cluster) -> None:
    owner = await config_map(cluster, "owner")
    child = await config_map(cluster, "child", reference(owner))
    await config_map(cluster, "grandchild", reference(child))
    await cluster.client.delete(CONFIG_MAPS, NAMESPACE, "owner", propagation="Background")
    await gone(cluster, "child")
    await gone(cluster, "grandchild")


async def test_one_owner_that_is_left_keeps_it(cluster: Cluster) -> None:
    first, second = await config_map(cluster, "first"), await config_map(cluster, "second")
    await config_map(cluster, "child", reference(first), reference(second))
    await cluster.client.delete(CONFIG_MAPS, NAMESPACE, "first")
    child = await wait_for(
        cluster.client, CONFIG_MAPS, NAMESPACE,
        lambda item: len(item["metadata"].get("ownerReferences") or ()) == 1,
        name="child", deadline_s=15,
    )  # fmt: skip
    assert child["metadata"]["ownerReferences"][0]["name"] == "second"


async def test_an_owner_that_never_was(cluster: Cluster) -> None:
    absent = {"apiVersion": "v1", "kind": "ConfigMap", "name": "absent", "uid": "no-such-uid"}
    await config_map(cluster, "child", absent)
    await gone(cluster, "child")


async def test_foreground_deletion_waits_for_blocking_dependents(cluster: Cluster) -> None:
    owner = await config_map(cluster, "owner")
    await config_map(
        cluster, "child", reference(owner, is_blocking=True), finalizers=["example.com/wait"]
    )
    await cluster.client.delete(CONFIG_MAPS, NAMESPACE, "owner", propagation="Foreground")
    await wait_for(
        cluster.client, CONFIG_MAPS, NAMESPACE,
        lambda item: item["metadata"].get("deletionTimestamp") is not None,
        name="child", deadline_s=15,
    )  # fmt: skip
    kept = await cluster.client.get(CONFIG_MAPS, NAMESPACE, "owner")
    assert kept["metadata"]["finalizers"] == ["foregroundDeletion"]
    free = {"metadata": {"finalizers": None}}
    await cluster.client.patch(CONFIG_MAPS, NAMESPACE, "child", free, patch_type=PatchType.MERGE)
    await gone(cluster, "owner")


async def test_foreground_deletion_does_not_wait_for_the_others(cluster: Cluster) -> None:
    owner = await config_map(cluster, "owner")
    await config_map(cluster, "child", reference(owner), finalizers=["example.com/wait"])
    await cluster.client.delete(CONFIG_MAPS, NAMESPACE, "owner", propagation="Foreground")
    await gone(cluster, "owner")


async def test_orphans_stay_without_the_reference(cluster: Cluster) -> None:
    owner = await config_map(cluster, "owner")
    await config_map(cluster, "child", reference(owner))
    await cluster.client.delete(CONFIG_MAPS, NAMESPACE, "owner", propagation="Orphan")
    await gone(cluster, "owner")
    child = await cluster.client.get(CONFIG_MAPS, NAMESPACE, "child")
    assert "ownerReferences" not in child["metadata"]


async def test_kinds_of_a_crd_that_comes_later(cluster: Cluster) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True,
                          "schema": {"openAPIV3Schema": schema}}],
        },
    }  # fmt: skip
    await cluster.client.create(CUSTOM_RESOURCE_DEFINITIONS, "", definition)
    owner = await cluster.client.create(
        THINGS, NAMESPACE, {"apiVersion": "example.com/v1", "kind": "Thing",
                            "metadata": {"name": "owner"}},
    )  # fmt: skip
    await config_map(cluster, "child", reference(owner))
    await cluster.client.delete(THINGS, NAMESPACE, "owner", propagation="Background")
    await gone(cluster, "child")


async def test_what_happened_while_nobody_collected(bare: Cluster) -> None:
    owner = await config_map(bare, "owner")
    await config_map(bare, "child", reference(owner))
    await bare.client.delete(CONFIG_MAPS, NAMESPACE, "owner", propagation="Background")
    async with standing_in(bare.client):
        await gone(bare, "child")


async def test_many_dependents(cluster: Cluster) -> None:
    owner = await config_map(cluster, "owner")
    names = [f"child-{number}" for number in range(30)]
    await asyncio.gather(*(config_map(cluster, name, reference(owner)) for name in names))
    await cluster.client.delete(CONFIG_MAPS, NAMESPACE, "owner", propagation="Foreground")
    await gone(cluster, "owner")
    for name in names:
        await gone(cluster, name)
