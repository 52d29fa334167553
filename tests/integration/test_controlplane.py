"""The real control plane itself: ready, several at once, restarted, left behind by nobody."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.controlplane import KubectlFactory

from sluice.api.errors import Forbidden, NotFound, Transient
from sluice.kube.client import Client
from sluice.kube.config import load, require_reachable
from sluice.kube.resources import CONFIG_MAPS
from sluice.local.real import (
    API_SERVER_PROGRAMS,
    PlaneOptions,
    RealControlPlane,
    StartFailed,
    find,
    versions,
)

pytestmark = [pytest.mark.real, pytest.mark.slow]

DEADLINE_S = 30.0
TICK_S = 0.05
LEAVES_A_PLANE_BEHIND = """
import asyncio, os, signal
from sluice.local.real import API_SERVER_PROGRAMS, RealControlPlane, find

async def main():
    plane = RealControlPlane(find(os.environ, API_SERVER_PROGRAMS))
    await plane.start()
    print(plane.folder, *plane.pids().values(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_the_pinned_release_answers_the_administrator(
    real_apiserver: RealControlPlane,
) -> None:
    access = await load(kubeconfig=str(real_apiserver.kubeconfig), environ={})
    async with Client(access) as client:
        assert await require_reachable(client) == versions.KUBERNETES


async def test_kubectl_of_the_tests_works(
    real_apiserver: RealControlPlane, real_namespace: str, kubectl_of: KubectlFactory
) -> None:
    kubectl = kubectl_of(real_apiserver).within(real_namespace)
    await kubectl.apply(config_map("a", key="value"))
    assert (await kubectl.get("configmap", "a"))["data"] == {"key": "value"}


async def test_rbac_refuses_a_user_without_roles(
    real_apiserver: RealControlPlane, real_namespace: str
) -> None:
    path = real_apiserver.kubeconfig_for("alice", ["team-a"])
    assert path.stat().st_mode & 0o077 == 0
    access = await load(kubeconfig=str(path), environ={})
    async with Client(access) as client:
        with pytest.raises(Forbidden, match='User "alice" cannot get'):
            await client.get(CONFIG_MAPS, real_namespace, "a")


async def test_two_at_once_share_nothing() -> None:
    programs = find(os.environ, API_SERVER_PROGRAMS)
    first, second = RealControlPlane(programs), RealControlPlane(programs)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(first.start(), name="first")
            group.create_task(second.start(), name="second")
        assert first.server != second.server
        async with Client(first.access()) as one, Client(second.access()) as two:
            await one.create(CONFIG_MAPS, "default", config_map("a"))
            with pytest.raises(NotFound):
                await two.get(CONFIG_MAPS, "default", "a")
    finally:
        folders = [first.folder, second.folder]
        await first.stop()
        await second.stop()
    assert not any(folder.exists() for folder in folders)


@pytest.mark.parametrize("is_crash", [False, True], ids=["in order", "crash"])
async def test_a_restarted_api_server_keeps_address_and_data(is_crash: bool) -> None:
    async with RealControlPlane(find(os.environ, API_SERVER_PROGRAMS)) as plane:
        before = plane.pids()
        async with Client(plane.access()) as client:
            await client.create(CONFIG_MAPS, "default", config_map("kept", key="value"))
            await plane.stop_api_server(is_crash=is_crash)
            with pytest.raises(Transient):
                await client.get(CONFIG_MAPS, "default", "kept", retry=False)
            await plane.start_api_server()
            kept = await client.get(CONFIG_MAPS, "default", "kept")
        assert kept["data"] == {"key": "value"}
        after = plane.pids()
        assert after["etcd"] == before["etcd"]
        assert after["kube-apiserver"] != before["kube-apiserver"]


async def test_a_program_that_ends_is_reported_with_its_log(tmp_path: Path) -> None:
    options = PlaneOptions(api_server_flags={"no-such-flag": "1"}, parent=tmp_path)
    plane = RealControlPlane(find(os.environ, API_SERVER_PROGRAMS), options)
    with pytest.raises(StartFailed, match=r"(?s)kube-apiserver ended.*unknown flag"):
        await plane.start()
    assert entries(tmp_path) == []


async def test_one_that_is_not_ready_in_time_is_reported_and_removed(tmp_path: Path) -> None:
    options = PlaneOptions(ready_timeout_s=0.2, parent=tmp_path)
    plane = RealControlPlane(find(os.environ, API_SERVER_PROGRAMS), options)
    with pytest.raises(StartFailed, match="not ready after"):
        await plane.start()
    assert entries(tmp_path) == []
    with pytest.raises(StartFailed, match="not running"):
        _ = plane.kubeconfig


def test_nothing_outlives_an_owner_that_is_killed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEAVES_A_PLANE_BEHIND],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    folder, *pids = done.stdout.split()
    wait_until(lambda: not Path(folder).exists())
    wait_until(lambda: not any(is_running(int(pid)) for pid in pids))


def entries(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def is_running(pid: int) -> bool:
    """Whether a process exists and isn't merely waiting to be collected by its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(is_done: Callable[[], bool]) -> None:
    """Look again and again until the deadline; there is nothing to be told by here."""
    tick = threading.Event()
    for _ in range(int(DEADLINE_S / TICK_S)):
        if is_done():
            return
        tick.wait(TICK_S)
    raise AssertionError("deadline")
