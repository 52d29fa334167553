"""An API server that enforces the schemas of our CRDs, for tests of the schemas alone.

Each version of a kind is installed as a definition of its own, in a group of its own, stored in
that version and without conversion. So v1beta1 can be tested with objects as old as itself, and
webhooks that other tests register for `kueue.x-k8s.io` stay out of the way.
"""

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.crd_schemas import crds

from sluice.api.errors import AlreadyExists, Invalid, KubeError, NotFound
from sluice.kube.access import ClusterAccess
from sluice.kube.client import Client
from sluice.kube.requests import Verb, build
from sluice.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource

Object = dict[str, Any]
NAMESPACE = "default"
_READY_TIMEOUT_S = 60.0
_installed: set[str] = set()
"""Addresses of servers that have the definitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One reason for a refusal: the field, the kind of violation, the text."""

    field: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the server said: the object as it would be stored, or the causes of its refusal."""

    stored: Object | None = None
    causes: tuple[Cause, ...] = ()


def group_of(version: str) -> str:
    """Return the group that holds the kinds of a version."""
    return f"{version}.schemas.test"


def resource_of(kind: str, version: str) -> Resource:
    """Return how to address a kind in the group of its version."""
    spec = crds()[kind]["spec"]
    return Resource(
        group=group_of(version),
        version=version,
        plural=spec["names"]["plural"],
        kind=kind,
        namespaced=spec["scope"] == "Namespaced",
    )


def standalone_definitions(version: str) -> list[Object]:
    """Return the definitions of all kinds with one version only, in the group of that version."""
    definitions = []
    for definition in crds().values():
        spec = {k: v for k, v in definition["spec"].items() if k != "conversion"}
        (kept,) = (v for v in spec["versions"] if v["name"] == version)
        kept = {k: v for k, v in kept.items() if not k.startswith("deprecat")} | {"storage": True}
        names = {k: v for k, v in spec["names"].items() if k != "shortNames"}
        group = group_of(version)
        definitions.append(
            {
                **definition,
                "metadata": {"name": f"{names['plural']}.{group}"},
                "spec": {**spec, "group": group, "names": names, "versions": [kept]},
            }
        )
    return definitions


class SchemaServer:
    """Tries objects on the server and tells what it said."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def install(self) -> None:
        """Create all standalone definitions, unless they are there, and wait until served."""
        for version in ("v1beta1", "v1beta2"):
            for definition in standalone_definitions(version):
                try:
                    await self._client.create(CUSTOM_RESOURCE_DEFINITIONS, "", definition)
                except AlreadyExists:
                    continue
        async with asyncio.timeout(_READY_TIMEOUT_S):
            for version in ("v1beta1", "v1beta2"):
                for kind in crds():
                    await self._wait_served(resource_of(kind, version))

    async def _wait_served(self, resource: Resource) -> None:
        # Discovery can't be watched; the server answers 404 until the handler is there.
        while True:
            try:
                await self._client.list(resource, limit=1)
            except NotFound:
                await asyncio.sleep(0.05)
            else:
                return

    async def create(self, obj: Object, *, dry_run: bool = True) -> Outcome:
        """Create an object of any version, by default without storing it."""
        resource, body = _addressed(obj)
        namespace = NAMESPACE if resource.namespaced else ""
        return await self._outcome(Verb.CREATE, resource, namespace, "", body=body, dry_run=dry_run)

    async def update(self, obj: Object, *, subresource: str = "", dry_run: bool = True) -> Outcome:
        """Replace an object or its status, by default without storing it."""
        resource, body = _addressed(obj)
        namespace = NAMESPACE if resource.namespaced else ""
        return await self._outcome(
            Verb.UPDATE,
            resource,
            namespace,
            obj["metadata"]["name"],
            body=body,
            subresource=subresource,
            dry_run=dry_run,
        )

    async def store(self, obj: Object) -> Object:
        """Create an object with its status, and return it as stored."""
        created = (await self.create(obj, dry_run=False)).stored
        assert created is not None, f"{obj['kind']} {obj['metadata']['name']} is refused"
        if "status" not in obj:
            return created
        outcome = await self.update(
            {**created, "status": obj["status"]}, subresource="status", dry_run=False
        )
        assert outcome.stored is not None, outcome.causes
        return outcome.stored

    async def _outcome(
        self,
        verb: Verb,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        body: Object,
        dry_run: bool,
        subresource: str = "",
    ) -> Outcome:
        query = {"dryRun": "All"} if dry_run else {}
        request = build(
            verb, resource, namespace, name, subresource=subresource, query=query, body=body
        )
        try:
            return Outcome(stored=await self._client.send(request))
        except Invalid as error:
            return Outcome(causes=_causes(error))


def _addressed(obj: Object) -> tuple[Resource, Object]:
    """Move an object to the group of its version."""
    version = obj["apiVersion"].rpartition("/")[2]
    resource = resource_of(obj["kind"], version)
    return resource, {**copy.deepcopy(obj), "apiVersion": resource.api_version}


def _causes(error: KubeError) -> tuple[Cause, ...]:
    if error.status != 422 or not isinstance(error.body, dict):
        raise error
    causes = error.body.get("details", {}).get("causes", ())
    return tuple(
        Cause(
            field=cause.get("field", "").removeprefix("<nil>"),
            reason=cause.get("reason", ""),
            message=cause.get("message", ""),
        )
        for cause in causes
    )


@asynccontextmanager
async def schema_server(access: ClusterAccess) -> AsyncIterator[SchemaServer]:
    """Lend a `SchemaServer` with all definitions installed."""
    async with Client(access) as client:
        server = SchemaServer(client)
        if access.host not in _installed:
            await server.install()
            _installed.add(access.host)
        yield server
