"""Kubeconfigs: every way of logging in, and a clear sentence for every way of being wrong."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.unit.kube.wire_server import Fault, WireServer

from sluice.api.errors import ConfigError
from sluice.clock import ManualClock, SystemClock
from sluice.kube import config
from sluice.kube.client import Client
from sluice.kube.pki import make_ca

PLUGIN = """#!/bin/sh
echo run >> {folder}/runs
expiry=$(date -u -d '+{lifetime_s} seconds' +%Y-%m-%dT%H:%M:%SZ)
printf '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
number=$(wc -l < {folder}/runs)
printf '"status":{{"token":"token-%s","expirationTimestamp":"%s"}}}}' $number $expiry
"""


def kubeconfig(folder: Path, server: str, user: dict[str, Any], **cluster: Any) -> str:
    path = folder / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
    }
    path.write_text(json.dumps(content))
    return str(path)


def plugin(folder: Path, lifetime_s: int) -> dict[str, Any]:
    path = folder / "plugin.sh"
    path.write_text(PLUGIN.format(folder=folder, lifetime_s=lifetime_s))
    path.chmod(0o755)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path)}}


async def test_a_token_and_the_namespace_of_the_context(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1/", {"token": "secret"})
    access = await config.load(kubeconfig=path, environ={})
    assert access.host == "http://127.0.0.1:1"
    assert access.namespace == "team"
    assert await access.credentials.authorization() == "Bearer secret"


async def test_the_environment_names_the_file(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", {"token": "secret"})
    access = await config.load(kubeconfig=None, environ={"KUBECONFIG": path})
    assert access.source == f"kubeconfig {path}"


@pytest.mark.slow
async def test_an_exec_plugin_runs_again_before_its_token_expires(
    tmp_path: Path, server: WireServer
) -> None:
    clock = ManualClock(SystemClock().now_ms())
    path = kubeconfig(tmp_path, server.url, plugin(tmp_path, 100))
    access = await config.load(kubeconfig=path, environ={}, clock=clock)
    assert await access.credentials.authorization() == "Bearer token-1"
    clock.advance(70_000)
    assert await access.credentials.authorization() == "Bearer token-1"
    clock.advance(12_000)
    assert await access.credentials.authorization() == "Bearer token-2"


@pytest.mark.slow
async def test_a_plugin_whose_tokens_are_short_lived_is_not_run_for_each_request(
    tmp_path: Path, server: WireServer
) -> None:
    clock = ManualClock(SystemClock().now_ms())
    path = kubeconfig(tmp_path, server.url, plugin(tmp_path, 1))
    access = await config.load(kubeconfig=path, environ={}, clock=clock)
    for _ in range(20):
        clock.advance(1_000)
        await access.credentials.authorization()
    assert len((tmp_path / "runs").read_text().split()) == 3


@pytest.mark.slow
async def test_a_refused_token_is_fetched_anew(tmp_path: Path, server: WireServer) -> None:
    clock = ManualClock(SystemClock().now_ms())
    path = kubeconfig(tmp_path, server.url, plugin(tmp_path, 3600))
    access = await config.load(kubeconfig=path, environ={}, clock=clock)
    clock.advance(60_000)
    server.faults.append(Fault("GET", "/version", status=401))
    async with Client(access, clock=clock) as client:
        assert await config.require_reachable(client) == "v1.36.0"
    assert server.requests[-1][2]["Authorization"] == "Bearer token-2"


async def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    clock = ManualClock()
    file = tmp_path / "token"
    file.write_text("one")
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", {"tokenFile": str(file)})
    access = await config.load(kubeconfig=path, environ={}, clock=clock)
    file.write_text("two")
    assert await access.credentials.authorization() == "Bearer one"
    clock.advance(61_000)
    assert await access.credentials.authorization() == "Bearer two"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("a: [", "cannot be read: ParserError", id="no YAML"),
        pytest.param("[]", "cannot be read", id="a list"),
        pytest.param("", "cannot be read", id="empty"),
        pytest.param("apiVersion: v1", "Expected", id="no contexts"),
    ],
)
async def test_a_malformed_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)
    with pytest.raises(ConfigError, match=f"kubeconfig {path}.*{message}"):
        await config.load(kubeconfig=str(path), environ={})


async def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"kubeconfig /nowhere does not exist; pass --kubeconfig"):
        await config.load(kubeconfig="/nowhere", environ={})


async def test_without_any_configuration_the_ways_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="pass --kubeconfig FILE or set KUBECONFIG"):
        await config.load(kubeconfig=None, environ={})


async def test_a_context_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", {})
    with pytest.raises(ConfigError, match=r"object with name other in .*contexts list"):
        await config.load(kubeconfig=path, environ={}, context="other")


async def test_a_plugin_that_fails_tells_why(tmp_path: Path) -> None:
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "sh",
            "args": ["-c", "echo log in first >&2; exit 3"],
        }
    }
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", user)
    with pytest.raises(ConfigError, match=r"process returned 3.*log in first"):
        await config.load(kubeconfig=path, environ={})


async def test_a_plugin_that_is_not_installed_is_named(tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin"}}
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", user)
    with pytest.raises(ConfigError, match="no-such-plugin"):
        await config.load(kubeconfig=path, environ={})


async def test_a_certificate_authority_that_is_none_is_named(tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_text("nonsense")
    path = kubeconfig(
        tmp_path, "https://127.0.0.1:1", {}, **{"certificate-authority": str(authority)}
    )
    with pytest.raises(ConfigError, match="certificate authority or client certificate"):
        await config.load(kubeconfig=path, environ={})


async def test_a_cluster_that_does_not_answer_is_named_with_the_fix(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    path = kubeconfig(tmp_path, f"http://127.0.0.1:{port}", {"token": "t"})
    async with Client(await config.load(kubeconfig=path, environ={})) as client:
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}.*kubeconfig.*check that it runs"):
            await config.require_reachable(client)


async def test_credentials_that_are_refused_are_named_with_the_fix(
    tmp_path: Path, server: WireServer
) -> None:
    server.faults.append(Fault("GET", "/version", status=401, times=9))
    path = kubeconfig(tmp_path, server.url, {"token": "t"})
    async with Client(await config.load(kubeconfig=path, environ={})) as client:
        with pytest.raises(ConfigError, match=r"refuses these credentials.*log in again"):
            await config.require_reachable(client)


async def test_in_a_pod_the_token_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = make_ca("test", SystemClock().now_ms())
    (tmp_path / "ca.crt").write_bytes(authority.certificate_pem)
    token = tmp_path / "token"
    token.write_text("one")
    library = "kubernetes.aio.config.incluster_config"
    monkeypatch.setattr(f"{library}.SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(f"{library}.SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    access = await config.load(kubeconfig=None, environ=environ)
    assert access.host == "https://10.0.0.1:443"
    assert access.source == "the pod's service account"
    assert await access.credentials.authorization() == "bearer one"
    token.write_text("two")
    assert await access.credentials.renew()
    assert await access.credentials.authorization() == "bearer two"
    assert not await access.credentials.renew(), "the same token would be refused again"


async def test_a_pod_without_a_token_is_told_how_to_get_one() -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConfigError, match="automountServiceAccountToken: true"):
        await config.load(kubeconfig=None, environ=environ)
