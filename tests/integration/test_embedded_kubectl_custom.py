"""kubectl and custom resources, namespaces and pods: the same on every control plane."""

import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.support.controlplane import ControlPlane, KubectlFactory
from tests.support.kubectl import Kubectl

pytestmark = pytest.mark.slow

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "description": "What is wanted.",
            "properties": {
                "size": {"type": "integer", "minimum": 1, "default": 2},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
                    },
                },
            },
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    },
}


def crd(group: str) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
        ],
    }
    names = {"plural": "boxes", "singular": "box", "kind": "Box", "shortNames": ["bx"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"boxes.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


@pytest_asyncio.fixture
async def kubectl(
    control_plane: ControlPlane, namespace: str, kubectl_of: KubectlFactory
) -> Kubectl:
    """kubectl within a fresh namespace."""
    return kubectl_of(control_plane).within(namespace)


@pytest_asyncio.fixture
async def group(kubectl: Kubectl) -> AsyncIterator[str]:
    """The API group of a CRD that exists for one test."""
    name = f"g{uuid.uuid4().hex[:8]}.example.com"
    await kubectl.apply(crd(name))
    established = "--for=condition=Established"
    await kubectl("wait", established, f"crd/boxes.{name}", "--timeout=30s")
    yield name
    await kubectl("delete", "crd", f"boxes.{name}", "--timeout=60s", "--ignore-not-found")


def box(group: str, name: str = "a", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": f"{group}/v1", "kind": "Box", "metadata": metadata, "spec": spec}


async def test_custom_objects_are_applied_shown_and_explained(kubectl: Kubectl, group: str) -> None:
    boxes = f"boxes.{group}"
    assert await kubectl.apply(box(group)) == f"box.{group}/a created\n"
    assert await kubectl.apply(box(group)) == f"box.{group}/a unchanged\n"
    assert await kubectl.apply(box(group, size=3)) == f"box.{group}/a configured\n"
    header, row = (await kubectl("get", boxes)).splitlines()
    assert header.split() == ["NAME", "SIZE", "PHASE"]
    assert row.split() == ["a", "3"]
    await kubectl.apply(box(group))
    assert (await kubectl.get(boxes, "a"))["spec"] == {"size": 2}
    assert "What is wanted." in await kubectl("explain", f"{boxes}.spec")
    assert "Size:" in await kubectl("describe", boxes, "a")
    refused = await kubectl.run("apply", "-f", "-", stdin=json.dumps(box(group, size=0)))
    assert "spec.size: Invalid value: 0" in refused.err
    unknown = await kubectl.run("apply", "-f", "-", stdin=json.dumps(box(group, sise=1)))
    assert 'unknown field "spec.sise"' in unknown.err


async def test_a_status_is_patched_and_waited_for(kubectl: Kubectl, group: str) -> None:
    await kubectl.apply(box(group))
    boxes, patch = f"boxes.{group}", json.dumps({"status": {"phase": "Up"}, "spec": {"size": 9}})
    await kubectl("patch", boxes, "a", "--subresource=status", "--type=merge", "-p", patch)
    await kubectl("wait", "--for=jsonpath={.status.phase}=Up", f"{boxes}/a", "--timeout=20s")
    found = await kubectl.get(boxes, "a")
    assert (found["spec"], found["status"]) == ({"size": 2}, {"phase": "Up"})


async def test_lists_with_keys_are_owned_by_element(kubectl: Kubectl, group: str) -> None:
    for manager, number in (("one", 1), ("two", 2)):
        text = json.dumps(box(group, parts=[{"name": manager, "n": number}]))
        flags = ("--server-side", f"--field-manager={manager}")
        await kubectl("apply", *flags, "-f", "-", stdin=text)
    found = await kubectl.get(f"boxes.{group}", "a")
    assert {part["name"] for part in found["spec"]["parts"]} == {"one", "two"}
    flags = ("--server-side", "--field-manager=one")
    await kubectl("apply", *flags, "-f", "-", stdin=json.dumps(box(group)))
    found = await kubectl.get(f"boxes.{group}", "a")
    assert found["spec"]["parts"] == [{"name": "two", "n": 2}]


async def test_a_strategic_patch_of_a_custom_object_is_refused(
    kubectl: Kubectl, group: str
) -> None:
    await kubectl.apply(box(group))
    patch = json.dumps({"spec": {"size": 4}})
    result = await kubectl.run("patch", f"boxes.{group}", "a", "--type=strategic", "-p", patch)
    assert "UnsupportedMediaType" in result.err or "not supported" in result.err


async def test_deleting_a_crd_takes_its_objects_along(kubectl: Kubectl, group: str) -> None:
    await kubectl.apply(box(group))
    await kubectl("delete", "crd", f"boxes.{group}", "--timeout=60s")
    assert (await kubectl.run("get", f"boxes.{group}")).code == 1


async def test_a_namespace_is_made_and_deleted_with_its_content(kubectl: Kubectl) -> None:
    name = f"team-{uuid.uuid4().hex[:8]}"
    await kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    inside = kubectl.within(name)
    await inside.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    assert (await kubectl("get", "namespace", name, "--no-headers")).split()[1] == "Active"
    await kubectl("delete", "namespace", name, "--timeout=60s")
    assert (await inside.run("get", "configmap", "a")).code == 1


async def test_secrets_and_services_are_shown(kubectl: Kubectl) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    await kubectl.apply({**secret, "stringData": {"k": "v"}})
    row = (await kubectl("get", "secret", "a", "--no-headers")).split()
    assert row[:3] == ["a", "Opaque", "1"]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}
    await kubectl.apply({**service, "spec": {"selector": {"x": "y"}, "ports": [{"port": 80}]}})
    row = (await kubectl("get", "service", "a", "-o", "wide", "--no-headers")).split()
    assert (row[1], row[4], row[-1]) == ("ClusterIP", "80/TCP", "x=y")
    assert "Selector:" in await kubectl("describe", "service", "a")


async def test_several_objects_in_one_file(kubectl: Kubectl) -> None:
    first = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    second = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}
    told = await kubectl.apply(first, second)
    assert told == "configmap/a created\nconfigmap/b created\n"
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": [first, second]})
    assert await kubectl("apply", "-f", "-", stdin=listed) == (
        "configmap/a unchanged\nconfigmap/b unchanged\n"
    )
    await kubectl("delete", "-f", "-", "--timeout=30s", stdin=listed)
