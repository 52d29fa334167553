"""From flags, files and environment to settings."""

from pathlib import Path

import pytest
from tests.unit.kube.wire_server import WireServer

from sluice.api.errors import ConfigError
from sluice.cli.flags import ServeFlags
from sluice.cli.settings import prepare, read_file, settings_of

HEAD = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"


def config(folder: Path, text: str) -> str:
    path = folder / "configuration.yaml"
    path.write_text(HEAD + text)
    return str(path)


async def test_outside_a_pod_it_serves_kueues_namespace_where_there_is_one(
    server: WireServer, kubeconfig: str
) -> None:
    server.put("/api/v1/namespaces/kueue-system", {"metadata": {"name": "kueue-system"}})
    start = await prepare(ServeFlags(kubeconfig=kubeconfig), {})
    assert start.settings.configuration.namespace == "kueue-system"
    assert not start.is_in_pod


async def test_outside_a_pod_it_serves_our_own_namespace_otherwise(kubeconfig: str) -> None:
    start = await prepare(ServeFlags(kubeconfig=kubeconfig), {})
    assert start.settings.configuration.namespace == "sluice-system"


async def test_the_file_names_the_namespace(
    server: WireServer, kubeconfig: str, tmp_path: Path
) -> None:
    path = config(tmp_path, "namespace: here")
    start = await prepare(ServeFlags(kubeconfig=kubeconfig, config=path), {})
    assert start.settings.configuration.namespace == "here"
    assert server.requests == [], "nothing had to be asked"


async def test_each_process_has_an_identity_of_its_own(kubeconfig: str) -> None:
    first = await prepare(ServeFlags(kubeconfig=kubeconfig), {})
    second = await prepare(ServeFlags(kubeconfig=kubeconfig), {})
    assert first.identity != second.identity


def test_flags_win_over_the_file() -> None:
    flags = ServeFlags(webhook_host="127.0.0.1", webhook_port=0, cert_dir="/certs")
    text = HEAD + "webhook: {host: 10.0.0.1, port: 9443, certDir: /other}"
    webhook = settings_of(text, flags, "ns").configuration.webhook
    assert (webhook.host, webhook.port, webhook.cert_dir) == ("127.0.0.1", 0, "/certs")


def test_without_flags_the_file_holds() -> None:
    webhook = settings_of(HEAD + "webhook: {port: 1}", ServeFlags(), "ns").configuration.webhook
    assert webhook.port == 1


def test_gates_of_the_flag() -> None:
    flags = ServeFlags(feature_gates="PriorityBoost=true")
    assert settings_of(None, flags, "ns").gates.enabled("PriorityBoost")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="--config /nowhere: No such file"):
        read_file("/nowhere")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=f"--config {path}: not UTF-8"):
        read_file(str(path))


def test_a_file_of_another_kind_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"a" * (1024 * 1024 + 1))
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        read_file(str(path))
