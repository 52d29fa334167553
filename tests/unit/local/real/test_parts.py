"""Certificates, ports and the watch over programs."""

import socket
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509 import verification

from sluice.local.real.certificates import Authority
from sluice.local.real.ports import LOOPBACK, ReservedPort
from sluice.local.real.reaper import Reaper
from sluice.local.real.simulation import SimulatedNode

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
DEADLINE_S = 10.0


def verifier(authority: Authority, at: datetime) -> verification.PolicyBuilder:
    root = x509.load_pem_x509_certificate(authority.certificate)
    return verification.PolicyBuilder().store(verification.Store([root])).time(at)


def test_the_server_is_trusted_for_the_names_it_was_made_for() -> None:
    authority = Authority(NOW)
    pair = authority.issue_server([LOOPBACK, "localhost"])
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    policy = verifier(authority, NOW)
    policy.build_server_verifier(x509.DNSName("localhost")).verify(certificate, [])
    with pytest.raises(verification.VerificationError):
        policy.build_server_verifier(x509.DNSName("other")).verify(certificate, [])


def test_a_client_is_its_subject_and_trusted_by_its_own_authority_only() -> None:
    authority = Authority(NOW)
    pair = authority.issue_client("alice", ["team-a", "team-b"])
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    assert certificate.subject.rfc4514_string() == "O=team-b,O=team-a,CN=alice"
    with pytest.raises(verification.VerificationError):
        verifier(Authority(NOW), NOW).build_client_verifier().verify(certificate, [])


def test_certificates_end() -> None:
    authority = Authority(NOW)
    certificate = x509.load_pem_x509_certificate(authority.issue_server(["a.b"]).certificate)
    late = verifier(authority, NOW + timedelta(days=366))
    with pytest.raises(verification.VerificationError):
        late.build_server_verifier(x509.DNSName("a.b")).verify(certificate, [])


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
