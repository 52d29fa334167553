"""A served webhook for tests: real HTTPS with a CA of its own, and reviews to send to it."""

import base64
import io
import json
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import jsonpatch
from tests.support.lookups import StaticLookups

from sluice.jobs.admission.context import Options
from sluice.kube import pki
from sluice_webhook.app import Application, Limits
from sluice_webhook.observer import Observer
from sluice_webhook.routes import routes
from sluice_webhook.server import ServerOptions, WebhookServer
from sluice_webhook.tls import CertificatePair, LiveTls

Json = dict[str, Any]
HOST = "127.0.0.1"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def serving_pair(ca: pki.KeyPair) -> CertificatePair:
    pair = pki.make_serving(ca, ["localhost", HOST], now_ms(), days=1)
    return CertificatePair(certificate_pem=pair.certificate_pem, key_pem=pair.key_pem)


def trusting(*cas: pki.KeyPair) -> ssl.SSLContext:
    bundle = b"".join(ca.certificate_pem for ca in cas)
    return ssl.create_default_context(cadata=bundle.decode())


@dataclass
class Served:
    """A running webhook and a session that trusts it."""

    server: WebhookServer
    application: Application
    tls: LiveTls
    ca: pki.KeyPair
    session: aiohttp.ClientSession

    def url(self, path: str) -> str:
        return f"https://{HOST}:{self.server.port}{path}"

    async def post(
        self, path: str, body: bytes, content_type: str = "application/json"
    ) -> tuple[int, Json]:
        """Return status and JSON of a POST."""
        headers = {"Content-Type": content_type}
        data = io.BytesIO(body)  # aiohttp warns of large bodies in one piece
        async with self.session.post(self.url(path), data=data, headers=headers) as response:
            return response.status, json.loads(await response.read())

    async def review(self, path: str, **request: Any) -> Json:
        """Return the response to a review that must get one."""
        status, answer = await self.post(path, json.dumps(review(**request)).encode())
        assert status == 200, answer
        assert answer["response"]["uid"] == "u-1"
        response: Json = answer["response"]
        return response


@asynccontextmanager
async def served(
    *,
    lookups: StaticLookups | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
    server_options: ServerOptions | None = None,
    observer: Observer | None = None,
) -> AsyncIterator[Served]:
    """Serve a webhook on a free port of this machine."""
    ca = pki.make_ca("test", now_ms(), days=1)
    tls = LiveTls(serving_pair(ca))
    table = routes(options or Options(), lookups or StaticLookups())
    application = Application(table, limits=limits, observer=observer)
    server = WebhookServer(
        application, tls, server_options or ServerOptions(host=HOST, port=0, finish_s=5.0)
    )
    connector = aiohttp.TCPConnector(ssl=trusting(ca))
    async with server, aiohttp.ClientSession(connector=connector) as session:
        yield Served(server, application, tls, ca, session)


def review(
    *,
    kind: tuple[str, str, str] = ("batch", "v1", "Job"),
    operation: str = "CREATE",
    obj: Json | None = None,
    old: Json | None = None,
    namespace: str = "team-a",
    **extra: Any,
) -> Json:
    """Return an AdmissionReview."""
    group, version, name = kind
    request: Json = {
        "uid": "u-1",
        "kind": {"group": group, "version": version, "kind": name},
        "resource": {"group": group, "version": version, "resource": f"{name.lower()}s"},
        "name": "sample",
        "namespace": namespace,
        "operation": operation,
        "userInfo": {"username": "alice"},
        "object": obj,
        "oldObject": old,
        "dryRun": False,
        **extra,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def patched(obj: Json, response: Json) -> Any:
    """Return an object with the patch of a response applied."""
    if "patch" not in response:
        return obj
    assert response["patchType"] == "JSONPatch"
    return jsonpatch.apply_patch(obj, json.loads(base64.b64decode(response["patch"])))
