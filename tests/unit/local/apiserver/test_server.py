"""Starting and stopping servers, and who they let in."""

import stat
from pathlib import Path

import aiohttp
import pytest
import yaml
from tests.support.apiserver import CONFIG_MAPS, Http, client_of, config_map, serving

from sluice.api.errors import ConfigError
from sluice.kube.client import Client
from sluice.kube.config import load
from sluice.kube.resources import CONFIG_MAPS as CONFIG_MAP_RESOURCE
from sluice.local.apiserver.compose import parts_without_webhooks
from sluice.local.apiserver.server import Server, ServerOptions


async def test_the_kubeconfig_leads_to_the_server(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config"
    async with serving(ServerOptions(kubeconfig=path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert yaml.safe_load(path.read_text())["current-context"] == "sluice"
        access = await load(kubeconfig=str(path), environ={})
        async with Client(access) as client:
            made = await client.create(CONFIG_MAP_RESOURCE, "default", config_map("a"))
    assert made["metadata"]["uid"]


async def test_the_users_own_kubeconfig_is_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    server = Server(
        parts_without_webhooks(), ServerOptions(kubeconfig=tmp_path / ".kube" / "config")
    )
    with pytest.raises(ConfigError, match="which is for real clusters"):
        await server.start()
    await server.close()
    assert not (tmp_path / ".kube").exists()


async def test_nobody_gets_in_without_credentials(http: Http) -> None:
    async with client_of(http.server, "nonsense") as session:
        stranger = Http(http.server, session)
        reply = await stranger("GET", CONFIG_MAPS)
        assert (reply.code, reply.reason) == (401, "Unauthorized")
        assert (await stranger("GET", "/apis")).code == 401
        assert (await stranger("POST", CONFIG_MAPS, config_map("a"))).code == 401
        assert (await stranger("GET", "/healthz")).code == 200
        assert (await stranger("POST", "/healthz", {})).code == 405


async def test_a_certificate_of_another_ca_is_not_trusted(http: Http) -> None:
    async with serving() as other, client_of(other.server) as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(f"{http.server.url}/healthz")


async def test_several_servers_live_apart() -> None:
    async with serving() as one, serving() as two:
        await one.ok("POST", CONFIG_MAPS, config_map("a"))
        assert one.server.url != two.server.url
        assert (await two("GET", f"{CONFIG_MAPS}/a")).code == 404


async def test_a_restart_keeps_objects_address_and_credentials() -> None:
    async with serving() as http:
        await http.ok("POST", CONFIG_MAPS, config_map("a"))
        async with http.watch(CONFIG_MAPS) as events:
            assert await events.take(1) == [("ADDED", "a")]
            await http.server.stop()
            with pytest.raises(aiohttp.ClientError):
                await http("GET", CONFIG_MAPS)
        await http.server.start()
        assert (await http("GET", CONFIG_MAPS)).names == ["a"]


async def test_a_taken_port_is_an_error() -> None:
    async with serving() as http:
        port = int(http.server.url.rsplit(":", 1)[1])
        second = Server(parts_without_webhooks(), ServerOptions(port=port))
        with pytest.raises(OSError, match="address already in use"):
            await second.start()
        await second.close()


async def test_every_cluster_has_some_objects(http: Http) -> None:
    assert (await http("GET", "/api/v1/namespaces")).names == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]
    classes = (await http("GET", "/apis/scheduling.k8s.io/v1/priorityclasses")).names
    assert classes == ["system-cluster-critical", "system-node-critical"]
