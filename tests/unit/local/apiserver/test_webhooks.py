"""What webhooks do to requests: admission in the order of steps, conversion where versions meet."""

import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from tests.support.apiserver import (
    CONFIG_MAPS,
    CRDS,
    MERGE,
    NAMESPACES,
    WIDGETS,
    Http,
    client_of,
    config_map,
    namespace,
    widget,
    widget_crd,
)

from sluice.clock import SystemClock
from sluice.kube.pki import make_ca, make_serving
from sluice.local.apiserver.compose import Services, parts
from sluice.local.apiserver.server import Server

OLD_WIDGETS = WIDGETS.replace("v1", "v1beta1")
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"

Answer = Callable[[dict[str, Any]], dict[str, Any]]


class Hook:
    """A webhook over TLS whose answers the test sets; it remembers what it was asked."""

    def __init__(self, folder: Path) -> None:
        now_ms = SystemClock().now_ms()
        ca = make_ca("hook-ca", now_ms)
        pair = make_serving(ca, ["hook.system.svc"], now_ms)
        (folder / "tls.crt").write_bytes(pair.certificate_pem)
        (folder / "tls.key").write_bytes(pair.key_pem)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        self.bundle = base64.b64encode(ca.certificate_pem).decode()
        self.answer: Answer = lambda request: {"allowed": True}
        self.asked: list[dict[str, Any]] = []

    async def handle(self, request: web.BaseRequest) -> web.Response:
        review = json.loads(await request.read())
        self.asked.append(review["request"])
        response = {"uid": review["request"]["uid"], **self.answer(review["request"])}
        body = {"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response}
        return web.json_response(body)

    @property
    def client_config(self) -> dict[str, Any]:
        service = {"namespace": "system", "name": "hook", "path": "/x"}
        return {"service": service, "caBundle": self.bundle}


@asynccontextmanager
async def listening(hook: Hook) -> AsyncIterator[int]:
    """Serve a webhook and say on which port."""
    runner = web.ServerRunner(web.Server(hook.handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=hook.context).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@pytest_asyncio.fixture
async def hook(tmp_path: Path) -> Hook:
    """A webhook that allows everything, until a test says otherwise."""
    return Hook(tmp_path)


@pytest_asyncio.fixture
async def http(hook: Hook) -> AsyncIterator[Http]:
    """A client of a server that finds the webhook behind Service system/hook."""
    services = Services()
    async with (
        listening(hook) as port,
        Server(parts(services)) as server,
        client_of(server) as session,
    ):
        services.lead("system", "hook", "127.0.0.1", port)
        yield Http(server, session)


async def register(http: Http, hook: Hook, kind: str, **webhook: Any) -> None:
    entry = {
        "name": "a.b.c",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": hook.client_config,
        "rules": [
            {
                "apiGroups": ["*"],
                "apiVersions": ["*"],
                "operations": ["*"],
                "resources": ["configmaps", "widgets"],
            }
        ],
        **webhook,
    }
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": "a"},
        "webhooks": [entry],
    }
    await http.ok("POST", f"{CONFIGURATIONS}/{kind.lower()}webhookconfigurations", body)


def patching(*operations: dict[str, Any]) -> Answer:
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": patch}


async def test_a_mutation_is_stored_and_brought_into_the_schema(http: Http, hook: Hook) -> None:
    await http.ok("POST", CRDS, widget_crd())
    await register(http, hook, "Mutating")
    hook.answer = patching(
        {"op": "remove", "path": "/spec/color"},
        {"op": "add", "path": "/spec/unknown", "value": 1},
        {"op": "add", "path": "/metadata/labels", "value": {"by": "hook"}},
    )
    made = await http.ok("POST", WIDGETS, widget("a", color="blue"))
    assert made["spec"] == {"size": 3, "color": "red"}
    assert made["metadata"]["labels"] == {"by": "hook"}
    assert await http.ok("GET", f"{WIDGETS}/a") == made
    hook.answer = patching({"op": "replace", "path": "/spec/size", "value": 99})
    assert (await http("POST", WIDGETS, widget("b"))).code == 422


async def test_webhooks_see_defaults_and_the_old_object(http: Http, hook: Hook) -> None:
    await http.ok("POST", CRDS, widget_crd())
    await register(http, hook, "Mutating")
    await http.ok("POST", WIDGETS, widget("a"))
    await http.ok("PATCH", f"{WIDGETS}/a/status", {"status": {"phase": "Up"}}, kind=MERGE)
    await http.ok("PATCH", f"{WIDGETS}/a", {"spec": {"size": 4}}, kind=MERGE)
    await http.ok("DELETE", f"{WIDGETS}/a")
    create, update, delete = hook.asked
    assert create["object"]["spec"]["color"] == "red"
    assert (create["operation"], create["oldObject"]) == ("CREATE", None)
    assert (update["operation"], update["object"]["spec"]["size"]) == ("UPDATE", 4)
    assert update["oldObject"]["spec"]["size"] == 3
    assert (delete["operation"], delete["object"]) == ("DELETE", None)
    assert delete["oldObject"]["metadata"]["name"] == "a"
    assert create["userInfo"]["username"] == "kubernetes-admin"


async def test_a_denial_stops_every_verb(http: Http, hook: Hook) -> None:
    await http.ok("POST", CONFIG_MAPS, config_map("a"))
    await register(http, hook, "Validating")
    status = {"code": 403, "message": "no, thanks"}
    hook.answer = lambda request: {"allowed": False, "status": status}
    replies = [
        await http("POST", CONFIG_MAPS, config_map("b")),
        await http("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("b")),
        await http("PATCH", f"{CONFIG_MAPS}/a", {"data": {"x": "y"}}, kind=MERGE),
        await http("DELETE", f"{CONFIG_MAPS}/a"),
    ]
    for reply in replies:
        assert reply.code == 403
        assert reply.message == 'admission webhook "a.b.c" denied the request: no, thanks'
    assert (await http("GET", CONFIG_MAPS)).names == ["a"]
    assert [request["dryRun"] for request in hook.asked] == [False, True, False, False]


async def test_a_webhooks_warning_reaches_the_client(http: Http, hook: Hook) -> None:
    await register(http, hook, "Validating")
    hook.answer = lambda request: {"allowed": True, "warnings": ["mind the gap"]}
    reply = await http("POST", CONFIG_MAPS, config_map("a"))
    assert reply.warnings == ('299 - "mind the gap"',)


async def test_an_object_that_changes_while_a_webhook_thinks_is_written_again(
    http: Http, hook: Hook
) -> None:
    await http.ok("POST", CONFIG_MAPS, config_map("a"))
    await register(http, hook, "Mutating")
    resource = http.server.backend.registry.resource("", "configmaps")
    assert resource is not None

    def interfere(request: dict[str, Any]) -> dict[str, Any]:
        if len(hook.asked) == 1:
            state = http.server.backend.find(resource, "default", "a")
            assert state is not None
            other = state.load()
            other["data"]["other"] = "writer"
            http.server.backend.put(resource, other)
        return {"allowed": True}

    hook.answer = interfere
    after = await http.ok("PATCH", f"{CONFIG_MAPS}/a", {"data": {"x": "y"}}, kind=MERGE)
    assert after["data"] == {"k": "v", "other": "writer", "x": "y"}
    assert len(hook.asked) == 2


@pytest.mark.slow
async def test_a_namespace_stays_until_a_refused_deletion_is_allowed(
    http: Http, hook: Hook
) -> None:
    await http.ok("POST", NAMESPACES, namespace("team"))
    await http.ok("POST", f"{NAMESPACES}/team/configmaps", config_map("a"))
    await register(http, hook, "Validating")
    refusals = [False, False]
    hook.answer = lambda request: {"allowed": not refusals or refusals.pop()}
    await http.ok("DELETE", f"{NAMESPACES}/team")
    await http.until_gone(NAMESPACES, "team")
    assert len(hook.asked) == 3


def converting(request: dict[str, Any]) -> dict[str, Any]:
    """Keep the size under another name in v1beta1: `amount`, as text."""
    wanted = request["desiredAPIVersion"]
    for obj in request["objects"]:
        spec = obj["spec"]
        if wanted.endswith("v1beta1"):
            spec["amount"] = str(spec.pop("size"))
        else:
            spec["size"] = int(spec.pop("amount"))
        obj["apiVersion"] = wanted
    return {"result": {"status": "Success"}, "convertedObjects": request["objects"]}


async def install_converted_crd(http: Http, hook: Hook) -> None:
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": hook.client_config}
    body = widget_crd(conversion={"strategy": "Webhook", "webhook": webhook})
    for version in body["spec"]["versions"]:
        if version["name"] == "v1beta1":
            spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
            spec["properties"]["amount"] = {"type": "string"}
            del spec["properties"]["size"], spec["required"], spec["x-kubernetes-validations"]
    await http.ok("POST", CRDS, body)
    hook.answer = converting


async def test_versions_are_converted_by_the_webhook(http: Http, hook: Hook) -> None:
    await install_converted_crd(http, hook)
    old = widget("a", version="v1beta1", amount="7")
    del old["spec"]["size"]
    assert (await http.ok("POST", OLD_WIDGETS, old))["spec"]["amount"] == "7"
    assert (await http.ok("GET", f"{WIDGETS}/a"))["spec"]["size"] == 7
    await http.ok("POST", WIDGETS, widget("b", size=5))
    listed = (await http.ok("GET", OLD_WIDGETS))["items"]
    assert [item["spec"]["amount"] for item in listed] == ["7", "5"]
    await http.ok("PATCH", f"{OLD_WIDGETS}/b", {"spec": {"amount": "6"}}, kind=MERGE)
    assert (await http.ok("GET", f"{WIDGETS}/b"))["spec"] == {"size": 6, "color": "red"}
    async with http.watch(OLD_WIDGETS) as events:
        first = await events.next()
    assert first["object"]["spec"]["amount"] == "7"


async def test_the_stored_version_needs_no_conversion(http: Http, hook: Hook) -> None:
    await install_converted_crd(http, hook)
    hook.answer = lambda request: {"result": {"status": "Failure", "message": "broken"}}
    await http.ok("POST", WIDGETS, widget("a"))
    assert (await http("GET", WIDGETS)).names == ["a"]
    reply = await http("GET", OLD_WIDGETS)
    assert reply.code == 500
    assert "broken" in reply.message
    async with http.watch(OLD_WIDGETS) as events:
        assert (await events.next())["type"] == "ERROR"
