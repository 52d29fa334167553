"""``sluice up`` and ``sluice demo`` as a person runs them: start, use, end, nothing left."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.support.kubectl import Kubectl, find_kubectl

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

LINE_S_MAX = 60.0
END_S_MAX = 150.0
PLAIN_WIDTH = 120
BOTH = [
    pytest.param((), id="embedded"),
    pytest.param(("--real",), id="real", marks=pytest.mark.real),
]


@asynccontextmanager
async def sluice(temporary: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a command with a temporary folder and home of its own; kill it if it is still there."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "sluice.cli.main",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**_binaries(), "TMPDIR": str(temporary), "HOME": str(temporary)},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        # The pipe's transport must be closed before its loop is.
        process._transport.close()  # type: ignore[attr-defined]


def _binaries() -> dict[str, str]:
    """Return the environment with the cache of the real programs named, since HOME changes."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return {**os.environ, "XDG_CACHE_HOME": cache}


async def line_with(process: asyncio.subprocess.Process, text: str) -> str:
    """Return the first line of the output that contains a text."""
    assert process.stdout is not None
    seen: list[str] = []
    async with asyncio.timeout(LINE_S_MAX):
        while data := await process.stdout.readline():
            line = data.decode()
            seen.append(line)
            if text in line:
                return line
    pytest.fail(f"no line with {text!r}:\n{''.join(seen)}")


async def rest_of(process: asyncio.subprocess.Process) -> str:
    """Return the rest of the output of a program that ends by itself."""
    async with asyncio.timeout(END_S_MAX):
        output, _ = await process.communicate()
    return output.decode()


def left(temporary: Path) -> set[str]:
    """Return what a command left in its temporary folder and home, kubectl's cache apart."""
    return {path.name for path in temporary.iterdir()} - {"kubectl", "mine"}


@pytest.mark.parametrize("flags", BOTH)
async def test_the_demo_ends_by_itself_with_a_summary(tmp_path: Path, flags: tuple[str]) -> None:
    async with sluice(tmp_path, "demo", "--plain", *flags) as process:
        output = await rest_of(process)
    assert process.returncode == 0, output
    summary = " ".join(output.partition("What happened:")[2].split())
    assert "gave its borrowed GPUs back" in summary
    assert "products/too-big (20 GPUs) waits, and says why: ExceedsMaxQuota" in summary
    assert 'admission webhook "vjob.kb.io" denied the request' in summary
    assert "(20) > maximum capacity (16)" in summary, "a reason is shown in full once"
    assert max(map(len, output.splitlines())) <= PLAIN_WIDTH
    assert left(tmp_path) == set()


@pytest.mark.parametrize("flags", BOTH)
async def test_the_demo_cleans_up_when_interrupted(tmp_path: Path, flags: tuple[str]) -> None:
    async with sluice(tmp_path, "demo", *flags) as process:
        await line_with(process, "running")
        process.send_signal(signal.SIGINT)
        output = await rest_of(process)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert left(tmp_path) == set()


@pytest.mark.parametrize("flags", BOTH)
async def test_up_serves_until_it_is_ended(tmp_path: Path, flags: tuple[str]) -> None:
    kubeconfig = tmp_path / "mine" / "kubeconfig"
    arguments = ("up", "--kubeconfig", str(kubeconfig), "--nodes", "3", *flags)
    async with sluice(tmp_path, *arguments) as process:
        assert str(kubeconfig) in await line_with(process, "kubeconfig")
        await line_with(process, "Ctrl-C")
        assert kubeconfig.stat().st_mode & 0o077 == 0, "others may not read the credentials"
        home = tmp_path / "kubectl"
        kubectl = Kubectl(program=find_kubectl(), kubeconfig=kubeconfig, home=home)
        nodes = await kubectl("get", "nodes", "-o", "name")
        assert nodes.split() == ["node/node-0", "node/node-1", "node/node-2"]
        process.send_signal(signal.SIGTERM)
        output = await rest_of(process)
    assert process.returncode == 0, output
    assert left(tmp_path) == set()


async def test_a_taken_port_is_named(tmp_path: Path) -> None:
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, sluice(tmp_path, "up", "--port", str(port)) as process:
        output = await rest_of(process)
    assert process.returncode == 2
    assert f"error: --port {port}: " in output


async def test_a_kubeconfig_of_the_user_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / ".kube" / "config"
    async with sluice(tmp_path, "up", "--kubeconfig", str(path)) as process:
        output = await rest_of(process)
    assert process.returncode == 2, output
    assert ".kube" in output
    assert not path.exists()
