"""Runs ``sluice`` as a person does: a process with a folder and home of its own, lines read."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.support.kubectl import Kubectl, find_kubectl

LINE_S_MAX = 90.0
END_S_MAX = 150.0


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
        env=environment(temporary),
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        # The pipe's transport must be closed before its loop is.
        process._transport.close()  # type: ignore[attr-defined]


def environment(temporary: Path, **more: str) -> dict[str, str]:
    """Return the environment with the cache of the real programs named, since HOME changes."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    changed = {"XDG_CACHE_HOME": cache, "TMPDIR": str(temporary), "HOME": str(temporary)}
    return {**os.environ, **changed, **more}


async def lines_until(process: asyncio.subprocess.Process, text: str) -> list[str]:
    """Return the lines of the output up to the first that contains a text."""
    assert process.stdout is not None
    seen: list[str] = []
    async with asyncio.timeout(LINE_S_MAX):
        while data := await process.stdout.readline():
            seen.append(data.decode())
            if text in seen[-1]:
                return seen
    pytest.fail(f"no line with {text!r}:\n{''.join(seen)}")


async def line_with(process: asyncio.subprocess.Process, text: str) -> str:
    """Return the first line of the output that contains a text."""
    return (await lines_until(process, text))[-1]


async def rest_of(process: asyncio.subprocess.Process) -> str:
    """Return the rest of the output of a program that ends by itself."""
    async with asyncio.timeout(END_S_MAX):
        output, _ = await process.communicate()
    return output.decode()


def left(temporary: Path) -> set[str]:
    """Return what a command left in its temporary folder and home, kubectl's cache apart."""
    return {path.name for path in temporary.iterdir()} - {"kubectl", "mine"}


def kubectl_for(kubeconfig: Path, temporary: Path) -> Kubectl:
    """Return kubectl with a kubeconfig that a command has written."""
    return Kubectl(program=find_kubectl(), kubeconfig=kubeconfig, home=temporary / "kubectl")
