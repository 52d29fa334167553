"""A webhook that answers as a test says, and a cluster that knows about it."""

import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from sluice.clock import SystemClock
from sluice.kube import pki
from sluice.local.admission import WebhookAdmission, WebhookConverter
from sluice.local.apiserver.seams import AdmissionRequest, Gvk, Gvr, JsonView, Operation, UserInfo

HOST = "hooks.sluice.svc"
Answer = Callable[[dict[str, Any]], Any]


class Webhook:
    """A TLS server with one behaviour for each path; remembers the requests it was sent."""

    def __init__(self, bundle: str) -> None:
        self.bundle = bundle
        self.port = 0
        self.answers: dict[str, Answer] = {}
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.timeouts: list[str] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        self.seen.append((request.path, body["request"]))
        self.timeouts.append(request.query.get("timeout", ""))
        answer = self.answers[request.path](body["request"])
        if isinstance(answer, web.StreamResponse):
            return answer
        review = {
            "kind": body["kind"], "apiVersion": body["apiVersion"],
            "response": {"uid": body["request"]["uid"], **answer},
        }  # fmt: skip
        return web.json_response(review)

    def client_config(self, path: str) -> dict[str, Any]:
        service = {"name": "hooks", "namespace": "sluice", "port": 443, "path": path}
        return {"service": service, "caBundle": self.bundle}

    def resolve(self, namespace: str, name: str, port: int) -> tuple[str, int] | None:
        return ("127.0.0.1", self.port) if (namespace, name) == ("sluice", "hooks") else None

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.seen]


@pytest_asyncio.fixture
async def webhook(tmp_path: Path) -> AsyncIterator[Webhook]:
    now_ms = SystemClock().now_ms()
    ca = pki.make_ca("test-ca", now_ms)
    leaf = pki.make_serving(ca, [HOST], now_ms)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(leaf.certificate_pem)
    key.write_bytes(leaf.key_pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    hook = Webhook(base64.b64encode(ca.certificate_pem).decode())
    app = web.Application()
    app.router.add_post("/{path:.*}", hook.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    hook.port = runner.addresses[0][1]
    yield hook
    await runner.cleanup()


class Cluster:
    """Storage with configurations and namespaces."""

    def __init__(self) -> None:
        self.configurations: dict[str, list[JsonView]] = {}
        self.namespaces: dict[str, JsonView] = {"ns": {"metadata": {"name": "ns", "labels": {}}}}
        self.version = 1

    def webhook_configurations(self, plural: str) -> tuple[int, Sequence[JsonView]]:
        return self.version, self.configurations.get(plural, [])

    def namespace(self, name: str) -> JsonView | None:
        return self.namespaces.get(name)

    def add(self, kind: str, *webhooks: dict[str, Any], name: str = "configuration") -> None:
        listed = self.configurations.setdefault(f"{kind}webhookconfigurations", [])
        listed.append({"metadata": {"name": name}, "webhooks": list(webhooks)})
        self.version += 1


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest_asyncio.fixture
async def admission(cluster: Cluster, webhook: Webhook) -> AsyncIterator[WebhookAdmission]:
    caller = WebhookAdmission(cluster, webhook.resolve)
    yield caller
    await caller.close()


@pytest_asyncio.fixture
async def converter(webhook: Webhook) -> AsyncIterator[WebhookConverter]:
    caller = WebhookConverter(webhook.resolve)
    yield caller
    await caller.close()


def entry(webhook: Webhook, path: str = "/a", **fields: Any) -> dict[str, Any]:
    """Return one webhook of a configuration, for writes of Jobs."""
    rule = {
        "operations": ["CREATE", "UPDATE"], "apiGroups": ["batch"], "apiVersions": ["v1"],
        "resources": ["jobs"], "scope": "*",
    }  # fmt: skip
    return {
        "name": f"w{path.replace('/', '.')}.example.com", "rules": [rule], "sideEffects": "None",
        "clientConfig": webhook.client_config(path), "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail", "timeoutSeconds": 5, **fields,
    }  # fmt: skip


def job(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1", "kind": "Job", "spec": {"suspend": False},
        "metadata": {"name": "j", "namespace": "ns", **metadata},
    }  # fmt: skip


def create(*objects: dict[str, Any] | None, **fields: Any) -> AdmissionRequest:
    """Return the request that creates a Job, or the given object."""
    obj = objects[0] if objects else job()
    values: dict[str, Any] = {
        "operation": Operation.CREATE, "kind": Gvk(group="batch", version="v1", kind="Job"),
        "resource": Gvr(group="batch", version="v1", resource="jobs"), "subresource": "",
        "namespace": "ns", "name": "j", "obj": obj, "old_obj": None,
        "options": {"kind": "CreateOptions"}, "dry_run": False,
        "user": UserInfo(username="alice", groups=("dev",)), **fields,
    }  # fmt: skip
    return AdmissionRequest(**values)


def patched(*operations: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a mutating webhook."""
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patch": text, "patchType": "JSONPatch"}
