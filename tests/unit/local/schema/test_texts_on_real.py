"""The texts that our tests expect of validation and CEL rules, asked of a real API server."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.support.waiting import wait_for
from tests.unit.local.schema import test_rules, test_validation

from sluice.api.errors import KubeError
from sluice.kube.client import Client
from sluice.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from sluice.local.real import RealControlPlane

pytestmark = pytest.mark.real
GROUP = "texts.example.com"
THINGS = Resource(group=GROUP, version="v1", plural="things", kind="Thing")
Json = dict[str, Any]
LEFT_OUT = {
    # Needs a stored object that its own rule refuses.
    "unchanged values are let pass",
    # A real server checks types when a CRD is stored, and so refuses these expressions there.
    "failing message expression",
    "missing key",
    "optional oldSelf on create",
    "optional oldSelf on update",
}
RULES = [case for case in test_rules.CASES if case[0] not in LEFT_OUT]
NULLS = {"null", "nullable"}


def properties() -> Json:
    """Return one object property for each case."""
    found: Json = {}
    for number, (_, node, _, _) in enumerate(test_validation.CASES):
        found[f"v{number}"] = {"type": "object", "properties": {"f": node}}
    for number, (_, nodes, *_) in enumerate(RULES):
        found[f"r{number}"] = {"type": "object", "properties": nodes}
    return found


@pytest_asyncio.fixture
async def client(real_apiserver: RealControlPlane) -> AsyncIterator[Client]:
    spec = {"type": "object", "properties": properties()}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{GROUP}"},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}],
        },
    }  # fmt: skip
    async with Client(real_apiserver.access()) as opened:
        await opened.create(CUSTOM_RESOURCE_DEFINITIONS, "", definition)
        await wait_for(
            opened, CUSTOM_RESOURCE_DEFINITIONS, "", is_established, name=f"things.{GROUP}"
        )
        yield opened
        await opened.delete(CUSTOM_RESOURCE_DEFINITIONS, "", f"things.{GROUP}")


def is_established(definition: Json) -> bool:
    conditions = definition["status"].get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


async def texts(client: Client, name: str, prefix: str, new: Any, old: Any) -> list[str]:
    """Return what the server says about an object, in the words of a schema of one case."""
    body: Json = {
        "apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": name.lower()},
        "spec": {prefix: old if old is not None else new},
    }  # fmt: skip
    try:
        stored = await client.create(THINGS, "default", body)
        if old is None:
            return []
        stored["spec"] = {prefix: new}
        await client.replace(THINGS, "default", stored["metadata"]["name"], stored)
    except KubeError as error:
        details: Any = error.body
        causes = details["details"]["causes"]
        found = [f"{cause['field']}: {cause['message']}" for cause in causes]
        return sorted(text.replace(f"spec.{prefix}.", "spec.") for text in found)
    return []


async def value_differences(client: Client) -> list[Any]:
    wrong = []
    for number, (name, _, value, expected) in enumerate(test_validation.CASES):
        if name in NULLS:
            # Nulls never reach validation here: decoding has dropped them.
            continue
        found = await texts(client, f"v{number}", f"v{number}", {"f": value}, None)
        # This CRD has rules, those of the cases have none.
        found = [text for text in found if "some validation rules were not checked" not in text]
        if found != sorted(expected):
            wrong.append((name, found, expected))
    return wrong


async def rule_differences(client: Client) -> list[Any]:
    wrong = []
    for number, (name, _, new, old, expected) in enumerate(RULES):
        found = await texts(client, f"r{number}", f"r{number}", new, old)
        if found != sorted(expected):
            wrong.append((name, found, expected))
    return wrong


async def test_texts(client: Client) -> None:
    assert await value_differences(client) == []
    assert await rule_differences(client) == []
