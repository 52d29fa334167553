"""Ports, nodes, and the watch over programs."""

import socket
import subprocess
from pathlib import Path

import pytest

from sluice.local.real.ports import LOOPBACK, ReservedPort
from sluice.local.real.reaper import Reaper
from sluice.local.real.simulation import SimulatedNode

DEADLINE_S = 10.0


def test_a_reserved_port_can_be_shared_but_not_taken() -> None:
    port = ReservedPort()
    try:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((LOOPBACK, port.number))
        with socket.socket() as sharing:
            sharing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sharing.bind((LOOPBACK, port.number))
            sharing.listen()
            socket.create_connection((LOOPBACK, port.number), DEADLINE_S).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, port.number), DEADLINE_S)
    finally:
        port.release()


def test_dismissed_the_reaper_touches_nothing(tmp_path: Path) -> None:
    reaper = Reaper(tmp_path)
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as program:
        reaper.watch(program.pid)
        reaper.dismiss()
        assert program.poll() is None
        assert tmp_path.is_dir()
        program.kill()


def test_when_its_owner_dies_the_reaper_kills_what_it_watches_and_no_more(tmp_path: Path) -> None:
    folder = tmp_path / "plane"
    folder.mkdir()
    reaper = Reaper(folder)
    with (
        subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as watched,
        subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as forgotten,
    ):
        reaper.watch(forgotten.pid)
        reaper.watch(watched.pid)
        reaper.forget(forgotten.pid)
        reaper.abandon()
        assert watched.wait(DEADLINE_S) == -9
        assert forgotten.poll() is None
        forgotten.kill()
    assert not folder.exists()


def test_a_simulated_node_names_its_resources() -> None:
    node = SimulatedNode(name="a", cpu="8", memory="1Gi", gpus=2, labels={"pool": "x"}).to_object()
    assert node["status"]["capacity"] == {
        "cpu": "8",
        "memory": "1Gi",
        "pods": "1000",
        "nvidia.com/gpu": "2",
    }
    assert node["metadata"]["labels"]["pool"] == "x"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "a"
    assert "nvidia.com/gpu" not in SimulatedNode(name="b").to_object()["status"]["capacity"]
