"""An embedded API server and a plain HTTP client for tests of what it answers."""

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from sluice.clock import Clock
from sluice.local.apiserver.compose import parts_without_webhooks
from sluice.local.apiserver.server import Server, ServerOptions

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
EVENT_TIMEOUT_S = 10.0

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
NAMESPACES = "/api/v1/namespaces"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the server answered; `body` is {} when it wasn't JSON."""

    code: int
    body: Any
    text: str
    warnings: tuple[str, ...]
    headers: Mapping[str, str]

    @property
    def reason(self) -> str:
        """Return `reason` of a failing Status."""
        return str(self.body.get("reason", ""))

    @property
    def message(self) -> str:
        """Return `message` of a Status."""
        return str(self.body.get("message", ""))

    @property
    def names(self) -> list[str]:
        """Return the names of a list's items."""
        return [item["metadata"]["name"] for item in self.body["items"]]


class WatchStream:
    """Events of one watch, in the order they come."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.code = response.status

    async def next(self) -> Any:
        """Return the next event; None at the stream's end."""
        async with asyncio.timeout(EVENT_TIMEOUT_S):
            line = await self._response.content.readline()
        return json.loads(line) if line else None

    async def take(self, count: int) -> list[tuple[str, str]]:
        """Return type and object name of the next events."""
        events = [await self.next() for _ in range(count)]
        return [(e["type"], e["object"]["metadata"].get("name", "")) for e in events]


class Http:
    """Sends requests as administrator and reads whole answers."""

    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.session = session

    async def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        kind: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Return the answer to a request; bytes are sent as they are, all else as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"User-Agent": "tester/1", **(headers or {})}
        if body is not None:
            sent["Content-Type"] = kind
        async with self.session.request(
            method, path, data=None if body is None else io.BytesIO(data), headers=sent
        ) as response:
            text = await response.text()
            is_json = response.content_type.endswith("json")
            return Reply(
                code=response.status,
                body=json.loads(text) if is_json and text else {},
                text=text,
                warnings=tuple(response.headers.getall("Warning", [])),
                headers=response.headers,
            )

    async def ok(self, method: str, path: str, body: object = None, *, kind: str = "") -> Any:
        """Return the JSON of an answer that must be a success."""
        reply = await self(method, path, body, kind=kind or "application/json")
        assert reply.code < 300, f"{method} {path}: {reply.code} {reply.text}"
        return reply.body

    async def until_gone(self, collection: str, name: str) -> None:
        """Wait until an object is deleted for good."""
        selector = f"metadata.name={name}"
        found = await self.ok("GET", f"{collection}?fieldSelector={selector}")
        if not found["items"]:
            return
        since = found["metadata"]["resourceVersion"]
        async with self.watch(collection, fieldSelector=selector, resourceVersion=since) as events:
            while (await events.next())["type"] != "DELETED":
                pass

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[WatchStream]:
        """Watch a collection."""
        async with self.session.get(path, params={"watch": "1", **query}) as response:
            yield WatchStream(response)


@asynccontextmanager
async def serving(
    options: ServerOptions | None = None, clock: Clock | None = None
) -> AsyncIterator[Http]:
    """Run a server without webhooks and lend out a client of it."""
    async with (
        Server(parts_without_webhooks(), options, clock) as server,
        client_of(server) as session,
    ):
        yield Http(server, session)


@asynccontextmanager
async def client_of(server: Server, token: str = "") -> AsyncIterator[aiohttp.ClientSession]:
    """Open a session that trusts the server and has its administrator's token, or another."""
    trust = ssl.create_default_context(cadata=server.credentials.ca.certificate_pem.decode())
    headers = {"Authorization": f"Bearer {token or server.credentials.admin_token}"}
    connector = aiohttp.TCPConnector(ssl=trust)
    async with aiohttp.ClientSession(
        server.url, headers=headers, connector=connector, trust_env=False
    ) as session:
        yield session


def config_map(name: str, **labels: str) -> dict[str, Any]:
    """Return a ConfigMap with labels."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels},
        "data": {"k": "v"},
    }


def namespace(name: str) -> dict[str, Any]:
    """Return a Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def job(name: str, **spec: Any) -> dict[str, Any]:
    """Return a suspended Job."""
    container = {"name": "c", "image": "busybox"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"suspend": True, "template": template, **spec},
    }


def pod(name: str, **spec: Any) -> dict[str, Any]:
    """Return a Pod with one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "busybox:1"}], **spec},
    }


def binding(name: str, node: str) -> dict[str, Any]:
    """Return the Binding of a pod to a node."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"kind": "Node", "name": node},
    }


def widget(name: str, *, version: str = "v1", **spec: Any) -> dict[str, Any]:
    """Return an object of `widget_crd`."""
    return {
        "apiVersion": f"example.com/{version}",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 3, **spec},
    }


def widget_version(name: str, *, is_stored: bool, **more: Any) -> dict[str, Any]:
    """Return one version of `widget_crd`."""
    spec = {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1},
            "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        },
        "x-kubernetes-validations": [{"rule": "self.size < 10", "message": "too big"}],
    }
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    return {
        "name": name,
        "served": True,
        "storage": is_stored,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1},
        ],
        "selectableFields": [{"jsonPath": ".spec.color"}],
        **more,
    }


def widget_crd(**spec: Any) -> dict[str, Any]:
    """Return a CRD with versions v1 (stored) and v1beta1 (deprecated)."""
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]}
    versions = [
        widget_version("v1beta1", is_stored=False, deprecated=True),
        widget_version("v1", is_stored=True),
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": versions,
            **spec,
        },
    }
