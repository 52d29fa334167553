"""Probes and the metrics endpoint: who gets an answer, and which."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from tests.unit.kube.wire_server import Fault, WireServer, serving

from sluice.api.errors import ConfigError
from sluice.clock import ManualClock
from sluice.controllers.metrics import Metrics
from sluice.controllers.telemetry import (
    Address,
    ApiServerAuthorizer,
    HttpServer,
    metrics_app,
    parse_address,
    probes,
)
from sluice.kube.client import Client

HOST = "127.0.0.1"


@asynccontextmanager
async def served(app: web.Application) -> AsyncIterator[str]:
    server = HttpServer("test", app, Address(host=HOST, port=0))
    await server.start()
    try:
        yield f"http://{HOST}:{server.port}"
    finally:
        await server.stop()


async def get(url: str, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status, await answer.text()


async def test_readiness_names_every_reason_and_liveness_does_not_care() -> None:
    reasons = ["caches are empty", "the webhook does not serve yet"]
    async with served(probes(lambda: reasons)) as url:
        assert await get(f"{url}/healthz") == (200, "ok")
        assert await get(f"{url}/readyz") == (503, "\n".join(reasons))
        reasons.clear()
        assert await get(f"{url}/readyz") == (200, "ok")


async def test_probes_have_the_names_of_the_configuration() -> None:
    async with served(probes(lambda: [], liveness="live", readiness="ready")) as url:
        assert (await get(f"{url}/live"))[0] == 200
        assert (await get(f"{url}/ready"))[0] == 200
        assert (await get(f"{url}/healthz"))[0] == 404


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":8081", Address(host="", port=8081)),
        ("127.0.0.1:0", Address(host="127.0.0.1", port=0)),
        ("[::1]:1", Address(host="::1", port=1)),
        ("0", None),
        ("", None),
    ],
)
def test_addresses(text: str, expected: Address | None) -> None:
    assert parse_address("x", text) == expected


@pytest.mark.parametrize("text", ["8081", ":", ":port", ":70000"])
def test_what_is_no_address_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match=r"metrics.bindAddress: .* must be host:port"):
        parse_address("metrics.bindAddress", text)


def review(server: WireServer, *, authenticated: bool, allowed: bool) -> None:
    """Answer reviews from now on, as an API server does."""
    user = {"authenticated": authenticated, "user": {"username": "u"}}
    server.faults[:] = [
        Fault("POST", "tokenreviews", times=99, status=201, body={"status": user}),
        Fault("POST", "accessreviews", times=99, status=201, body={"status": {"allowed": allowed}}),
    ]


@pytest.mark.parametrize(
    ("authenticated", "allowed", "status"),
    [(True, True, 200), (True, False, 403), (False, True, 401)],
)
async def test_metrics_are_for_whom_the_api_server_lets(
    authenticated: bool, allowed: bool, status: int
) -> None:
    async with serving() as server, Client(server.access) as client:
        review(server, authenticated=authenticated, allowed=allowed)
        clock = ManualClock()
        authorizer = ApiServerAuthorizer(client, clock)
        async with served(metrics_app(Metrics(clock=clock), authorizer)) as url:
            assert (await get(f"{url}/metrics"))[0] == 401
            code, text = await get(f"{url}/metrics", "t")
            assert code == status
            assert ("kueue_build_info" in text) is (status == 200)
            before = len(server.requests)
            await get(f"{url}/metrics", "t")
            assert len(server.requests) == before, "the verdict is remembered"
            clock.advance(61_000)
            await get(f"{url}/metrics", "t")
            assert len(server.requests) > before, "for a minute"


async def test_an_api_server_that_does_not_answer_is_no_verdict() -> None:
    async with serving() as server, Client(server.access) as client:
        server.faults.append(Fault("POST", "tokenreviews", status=500, times=9))
        authorizer = ApiServerAuthorizer(client, ManualClock())
        assert await authorizer.refusal("Bearer t") == 503
        review(server, authenticated=True, allowed=True)
        assert await authorizer.refusal("Bearer t") is None
