"""Both versions of the five kinds that convert, through a real API server and our webhook.

The control plane is the module's own: its definitions name a webhook that only lives here.
"""

import base64
import copy
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.support.crd_schemas import crds
from tests.support.samples import samples
from tests.support.waiting import wait_for
from tests.support.webhook import HOST, Served, served

from sluice.api.conversion import CONVERTED_KINDS
from sluice.api.models.kinds import KINDS
from sluice.kube.client import Client
from sluice.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from sluice.local.real import API_SERVER_PROGRAMS, PlaneOptions, RealControlPlane, find

Object = dict[str, Any]
MODEL = {(k.kind, v.name): v.model for k in KINDS for v in k.versions}
VERSIONS = ("v1beta1", "v1beta2")


pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[Client]:
    """A client of an API server whose definitions convert through a webhook of this module."""
    # The API server ends first, so that no connection of its is left when the webhook ends.
    async with served() as webhook:
        plane = RealControlPlane(
            find(os.environ, API_SERVER_PROGRAMS), PlaneOptions(runs_pods=False)
        )
        await plane.start()
        try:
            async with Client(plane.access()) as client:
                for kind in sorted(CONVERTED_KINDS):
                    await install(client, definition(kind, webhook))
                yield client
        finally:
            await plane.stop()


def definition(kind: str, webhook: Served) -> Object:
    """Return a generated definition that names a webhook by its address."""
    out = copy.deepcopy(crds()[kind])
    bundle = base64.b64encode(webhook.ca.certificate_pem).decode()
    url = f"https://{HOST}:{webhook.server.port}/convert"
    out["spec"]["conversion"]["webhook"]["clientConfig"] = {"url": url, "caBundle": bundle}
    return out


async def install(client: Client, wanted: Object) -> None:
    """Create a definition and wait until it is served."""
    name = wanted["metadata"]["name"]
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, "", wanted)
    await wait_for(client, CUSTOM_RESOURCE_DEFINITIONS, "", is_established, name=name)


def is_established(obj: Object) -> bool:
    """Say whether a definition is served; at first its conditions are null."""
    conditions = obj.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def resource_of(kind: str, version: str) -> Resource:
    """Return how to address a kind in a version."""
    spec = crds()[kind]["spec"]
    return Resource(
        group="kueue.x-k8s.io",
        version=version,
        plural=spec["names"]["plural"],
        kind=kind,
        namespaced=spec["scope"] == "Namespaced",
    )


def content(obj: Object) -> Object:
    """Return what users wrote: spec and status."""
    return {part: obj[part] for part in ("spec", "status") if part in obj}


@pytest.mark.parametrize("written", VERSIONS)
@pytest.mark.parametrize("kind", sorted(CONVERTED_KINDS))
async def test_an_object_can_be_used_in_both_versions(
    kind: str, written: str, client: Client
) -> None:
    (read,) = set(VERSIONS) - {written}
    here, there = resource_of(kind, written), resource_of(kind, read)
    for sample in samples(kind, written):
        namespace = "default" if here.namespaced else ""
        name = f"{sample['metadata']['name']}-{written}"
        sample["metadata"] = {"name": name}
        created = await client.create(here, namespace, sample)
        if "status" in sample:
            body = {**created, "status": sample["status"]}
            created = await client.replace(here, namespace, name, body, subresource="status")

        converted = await client.get(there, namespace, name)
        assert converted["metadata"]["uid"] == created["metadata"]["uid"]
        model = MODEL[kind, read].model_validate(converted)
        assert content(model.to_wire()) == content(converted)

        # Written back unchanged, it passes the other version's rules, and nothing is lost.
        await client.replace(there, namespace, name, converted)
        if "status" in converted:
            latest = await client.get(there, namespace, name)
            body = {**latest, "status": converted["status"]}
            await client.replace(there, namespace, name, body, subresource="status")
        assert content(await client.get(there, namespace, name)) == content(converted)
        listed = await client.list(here, namespace, field_selector=f"metadata.name={name}")
        assert [item["metadata"]["name"] for item in listed["items"]] == [name]
