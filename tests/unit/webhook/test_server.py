"""The server's life: health, readiness, metrics, the port, and stopping in order."""

import asyncio
from typing import Any

import aiohttp
import pytest
from tests.support.lookups import StaticLookups
from tests.support.objects import Json
from tests.support.webhook import HOST, served, serving_pair, trusting

from sluice.api.errors import ConfigError
from sluice.kube import pki
from sluice_webhook.app import Application
from sluice_webhook.server import ServerOptions, WebhookServer
from sluice_webhook.tls import LiveTls

pytestmark = pytest.mark.slow
MUTATE = "/mutate-batch-v1-job"
JOB: Json = {"metadata": {}, "spec": {}}


class Gate(StaticLookups):
    """Lookups that wait until told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()

    async def priority_class_exists(self, name: str) -> bool:
        self.entered.set()
        await self.opened.wait()
        return True


async def test_running_reviews_are_finished_and_nothing_new_is_taken() -> None:
    gate = Gate()
    async with served(lookups=gate) as webhook, asyncio.TaskGroup() as tasks:
        port = webhook.server.port
        running = tasks.create_task(webhook.review(MUTATE, obj=JOB), name="running")
        async with asyncio.timeout(5):
            await gate.entered.wait()
        stopping = tasks.create_task(webhook.server.stop(), name="stopping")
        async with asyncio.timeout(5):
            while True:
                try:
                    _, writer = await asyncio.open_connection(HOST, port, ssl=trusting(webhook.ca))
                except OSError:
                    break
                writer.close()
        assert not stopping.done(), "it waits for the running review"
        gate.opened.set()
        response = await running
        assert response["allowed"]
        assert "patch" in response


async def test_while_it_drains_it_is_unready_but_answers() -> None:
    options = ServerOptions(host=HOST, port=0, drain_s=0.3)
    async with served(server_options=options) as webhook, asyncio.TaskGroup() as tasks:
        url = webhook.url("/readyz")
        async with webhook.session.get(url) as response:
            assert (response.status, await response.text()) == (200, "ok")
        tasks.create_task(webhook.server.stop(), name="stopping")
        await asyncio.sleep(0)
        async with webhook.session.get(url) as response:
            assert (response.status, await response.text()) == (503, "shutting down")
        async with webhook.session.post(
            webhook.url(MUTATE), data=b"{}", headers={"Content-Type": "application/json"}
        ) as posted:
            assert posted.status == 400
            assert posted.headers["Connection"] == "close", "clients move on"


async def test_readiness_tells_what_is_missing() -> None:
    reasons: list[str | None] = ["caches are not filled", None]
    application = Application([], ready=lambda: reasons[0])
    ca = pki.make_ca("test", 1_800_000_000_000)
    tls = LiveTls(serving_pair(ca))
    options = ServerOptions(host=HOST, port=0)
    async with WebhookServer(application, tls, options) as server, aiohttp.ClientSession() as get:
        base = f"https://{HOST}:{server.port}"
        async with get.get(f"{base}/readyz", ssl=False) as response:
            assert (response.status, await response.text()) == (503, "caches are not filled")
        async with get.get(f"{base}/healthz", ssl=False) as response:
            assert response.status == 200
        reasons.pop(0)
        async with get.get(f"{base}/readyz", ssl=False) as response:
            assert response.status == 200


class Recorder:
    """Notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def started(self, path: str) -> None:
        self.heard.append(path)

    def finished(self, path: str, code: int, allowed: bool | None, duration_s: float) -> None:
        assert 0 <= duration_s < 60
        self.heard.append((path, code, allowed))


async def test_an_observer_hears_of_every_request() -> None:
    recorder = Recorder()
    async with served(observer=recorder) as webhook:
        await webhook.review(MUTATE, obj=JOB)
        await webhook.post("/validate-batch-v1-job", b"{}")
        await webhook.post("/convert", b"{}", "text/plain")
    assert recorder.heard == [
        MUTATE,
        (MUTATE, 200, True),
        "/validate-batch-v1-job",
        ("/validate-batch-v1-job", 400, None),
        "/convert",
        ("/convert", 415, None),
    ]


async def test_a_port_in_use_is_named() -> None:
    async with served() as webhook:
        options = ServerOptions(host=HOST, port=webhook.server.port)
        second = WebhookServer(webhook.application, webhook.tls, options)
        with pytest.raises(ConfigError, match=rf"cannot listen on {HOST}, port {options.port}"):
            await second.start()
        await second.stop()
