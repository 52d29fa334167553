"""A replica put together as the commands do: ready when it should be, gone when it should be."""

import asyncio
import json
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.support.controlplane import ControlPlane
from tests.support.managers import install_crds, until
from tests.support.webhook import HOST, now_ms, serving_pair

from sluice.api.configuration import Settings, parse
from sluice.api.errors import ConfigError, NotFound
from sluice.api.times import micro_from_ms
from sluice.cli.replica import Replica, ReplicaOptions
from sluice.kube.access import ClusterAccess
from sluice.kube.client import Client
from sluice.kube.pki import make_ca
from sluice.kube.resources import LEASES

DEADLINE_S = 30.0
KUEUE_LEASE = "c1f6bfd2.kueue.x-k8s.io"


def settings(folder: Path, **changes: Any) -> Settings:
    """Return settings on free ports with a certificate of our own."""
    pair = serving_pair(make_ca("test", now_ms()))
    (folder / "tls.crt").write_bytes(pair.certificate_pem)
    (folder / "tls.key").write_bytes(pair.key_pem)
    content = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "webhook": {"host": HOST, "port": 0, "certDir": str(folder)},
        "health": {"healthProbeBindAddress": f"{HOST}:0"},
        "metrics": {"bindAddress": f"{HOST}:0"},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        **changes,
    }
    return parse(json.dumps(content))


@asynccontextmanager
async def running(
    access: ClusterAccess, found: Settings, **options: Any
) -> AsyncIterator[tuple[Replica, asyncio.Event]]:
    """Run a replica until the block ends or sets the event."""
    options = {"identity": "test", "owns_process": False, **options}
    replica, stop = Replica(access, ReplicaOptions(settings=found, **options)), asyncio.Event()
    task = asyncio.create_task(replica.run(stop))
    serving = asyncio.create_task(replica.serving.wait())
    await asyncio.wait({task, serving}, return_when=asyncio.FIRST_COMPLETED, timeout=DEADLINE_S)
    serving.cancel()
    try:
        if not task.done():
            yield replica, stop
    finally:
        stop.set()
        await asyncio.wait_for(task, DEADLINE_S)


@pytest.fixture
async def access(control_plane: ControlPlane) -> ClusterAccess:
    async with Client(control_plane.access) as client:
        await install_crds(client)
    return control_plane.access


async def get(url: str) -> tuple[int, str]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as answer:
        return answer.status, await answer.text()


async def test_it_becomes_ready_and_stops(access: ClusterAccess, tmp_path: Path) -> None:
    async with running(access, settings(tmp_path)) as (replica, stop):
        health = f"http://{HOST}:{replica.health_port}"
        assert await get(f"{health}/healthz") == (200, "ok")
        await until(lambda: not replica.unready_reasons(), "ready")
        assert await get(f"{health}/readyz") == (200, "ok")
        assert await get(f"https://{HOST}:{replica.webhook_port}/readyz") == (200, "ok")
        status, _ = await get(f"https://{HOST}:{replica.metrics_port}/metrics")
        assert status == 401
        text = (await replica.metrics.render()).decode()
        assert 'workqueue_depth{name="workload"}' in text
        assert 'leader_election_master_status{name="none"} 1.0' in text
        assert 'sluice_cache_objects{resource="namespaces"}' in text
        assert replica.manager is not None
        assert replica.manager.is_leading
        stop.set()
        await until(lambda: replica.unready_reasons() == ["shutting down"], "stopping")
    with pytest.raises(aiohttp.ClientError):
        await get(f"{health}/healthz")


async def test_the_webhook_alone_is_ready_with_its_caches(
    access: ClusterAccess, tmp_path: Path
) -> None:
    async with running(access, settings(tmp_path), runs_manager=False) as (replica, _):
        await until(lambda: not replica.unready_reasons(), "ready")
        assert replica.manager is None
        assert (await get(f"https://{HOST}:{replica.webhook_port}/healthz"))[0] == 200


async def test_the_manager_alone_serves_no_webhook(access: ClusterAccess, tmp_path: Path) -> None:
    found = settings(tmp_path, webhook={"certDir": "/nowhere"})
    async with running(access, found, runs_webhook=False) as (replica, _):
        await until(lambda: not replica.unready_reasons(), "ready")
        assert replica.webhook_port == 0


@pytest.mark.slow
async def test_while_a_kueue_runs_here_it_stays_unready_and_says_so(
    access: ClusterAccess, tmp_path: Path
) -> None:
    body = {
        **LEASES.skeleton("default", KUEUE_LEASE),
        "spec": {
            "holderIdentity": "kueue-0",
            "leaseDurationSeconds": 3600,
            "renewTime": micro_from_ms(now_ms()),
        },
    }
    async with Client(access) as client:
        await client.create(LEASES, "default", body)
        try:
            async with running(access, settings(tmp_path)) as (replica, _):
                await until(
                    lambda: any("kueue-0" in text for text in replica.unready_reasons()),
                    "the other decider is named",
                )
                assert replica.manager is not None
                assert not replica.manager.is_leading
                await client.delete(LEASES, "default", KUEUE_LEASE)
                await until(lambda: not replica.unready_reasons(), "ready")
                await until(lambda: replica.manager and replica.manager.is_leading, "leading")
        finally:
            with suppress(NotFound):
                await client.delete(LEASES, "default", KUEUE_LEASE)


@pytest.mark.parametrize(
    ("setting", "section"),
    [
        ("health.healthProbeBindAddress", "health"),
        ("metrics.bindAddress", "metrics"),
        ("webhook", "webhook"),
    ],
)
async def test_a_port_in_use_is_named(
    access: ClusterAccess, tmp_path: Path, setting: str, section: str
) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        changes: dict[str, Any] = {
            "health": {"healthProbeBindAddress": f"{HOST}:{port}"},
            "metrics": {"bindAddress": f"{HOST}:{port}"},
            "webhook": {"host": HOST, "port": port, "certDir": str(tmp_path)},
        }
        found = settings(tmp_path, **{section: changes[section]})
        with pytest.raises(ConfigError, match=f"{setting}: cannot listen on {HOST}, port {port}"):
            await Replica(access, ReplicaOptions(settings=found, identity="x")).run(asyncio.Event())


async def test_a_missing_certificate_is_named(access: ClusterAccess, tmp_path: Path) -> None:
    found = settings(tmp_path)
    (tmp_path / "tls.key").unlink()
    with pytest.raises(ConfigError, match=r"webhook.certDir: .*tls.key"):
        await Replica(access, ReplicaOptions(settings=found, identity="x")).run(asyncio.Event())


async def test_a_secret_in_a_namespace_that_is_not_there_is_named(
    access: ClusterAccess, tmp_path: Path
) -> None:
    found = settings(tmp_path, namespace="absent", internalCertManagement={"enable": True})
    with pytest.raises(
        ConfigError, match=r"Secret absent/kueue-webhook-server-cert cannot be made"
    ):
        await Replica(access, ReplicaOptions(settings=found, identity="x")).run(asyncio.Event())


async def test_settings_without_effect_are_named_once(
    access: ClusterAccess, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = settings(tmp_path, pprofBindAddress=":6060", visibilityServer={"bindPort": 1})
    with caplog.at_level(logging.WARNING, logger="sluice.cli.replica"):
        async with running(access, found, runs_webhook=False):
            pass
    (record,) = [r for r in caplog.records if r.message == "settings without effect yet"]
    assert record.__dict__["fields"] == {"settings": ["pprofBindAddress", "visibilityServer"]}
