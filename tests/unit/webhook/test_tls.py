"""Certificates: exchanged while serving, followed in a directory, and refused when unusable."""

import asyncio
import os
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from tests.support.webhook import (
    HOST,
    Served,
    now_ms,
    served,
    serving_pair,
    trusting,
)

from sluice.api.errors import ConfigError
from sluice.kube import pki
from sluice_webhook import directory
from sluice_webhook.tls import CertificatePair, CertificateRejected, LiveTls, TlsOptions

pytestmark = pytest.mark.slow


async def served_serial(webhook: Served, context: ssl.SSLContext) -> int:
    """Return the serial number of the certificate that a new connection is shown."""
    _, writer = await asyncio.open_connection(HOST, webhook.server.port, ssl=context)
    shown = writer.get_extra_info("ssl_object").getpeercert(True)
    writer.close()
    await writer.wait_closed()
    return x509.load_der_x509_certificate(shown).serial_number


def serial(pair: CertificatePair) -> int:
    return pki.facts(pair.certificate_pem).serial


def write(folder: Path, pair: CertificatePair) -> None:
    """Replace the files as a mounted Secret does: a new folder, then one rename."""
    version = folder / f"..{serial(pair)}"
    version.mkdir()
    (version / "tls.crt").write_bytes(pair.certificate_pem)
    (version / "tls.key").write_bytes(pair.key_pem)
    link = folder / "..data_tmp"
    link.symlink_to(version.name)
    os.replace(link, folder / "..data")
    for name in ("tls.crt", "tls.key"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")


async def test_a_swap_serves_the_new_certificate_and_drops_no_connection() -> None:
    async with served() as webhook:
        await webhook.review("/mutate-batch-v1-job", obj={"metadata": {}, "spec": {}})
        new = serving_pair(webhook.ca)
        assert await served_serial(webhook, trusting(webhook.ca)) != serial(new)
        assert webhook.tls.swap(new)
        assert not webhook.tls.swap(new), "the same pair again is no change"
        assert await served_serial(webhook, trusting(webhook.ca)) == serial(new)
        # The session's connection was made under the old certificate and goes on.
        await webhook.review("/mutate-batch-v1-job", obj={"metadata": {}, "spec": {}})


async def test_no_call_is_refused_while_the_ca_is_exchanged() -> None:
    """The order of the exchange: trust both, serve the new, trust only the new."""
    async with served() as webhook:
        old_ca, new_ca = webhook.ca, pki.make_ca("test", now_ms(), days=1)
        calls = 0
        for trusted, pair in (
            (trusting(old_ca), None),
            (trusting(old_ca, new_ca), None),
            (trusting(old_ca, new_ca), serving_pair(new_ca)),
            (trusting(new_ca), None),
        ):
            if pair is not None:
                webhook.tls.swap(pair)
            await served_serial(webhook, trusted)
            calls += 1
        with pytest.raises(ssl.SSLCertVerificationError):
            await served_serial(webhook, trusting(old_ca))
    assert calls == 4


async def test_a_directory_is_followed(tmp_path: Path) -> None:
    async with served() as webhook:
        first, second = serving_pair(webhook.ca), serving_pair(webhook.ca)
        write(tmp_path, first)
        webhook.tls.swap(directory.read_pair(tmp_path))
        follower = asyncio.create_task(directory.follow(tmp_path, webhook.tls, poll_s=0.01))
        context = trusting(webhook.ca)
        assert await served_serial(webhook, context) == serial(first)
        # Half written: the certificate without its key keeps the old pair.
        (tmp_path / "tls.key").unlink()
        (tmp_path / "tls.key").write_bytes(second.key_pem)
        await asyncio.sleep(0.05)
        assert await served_serial(webhook, context) == serial(first)
        (tmp_path / "tls.crt").unlink()
        (tmp_path / "tls.crt").write_bytes(second.certificate_pem)
        async with asyncio.timeout(5):
            while await served_serial(webhook, context) != serial(second):
                pass
        follower.cancel()
        with pytest.raises(asyncio.CancelledError):
            await follower


async def test_a_mounted_secret_is_followed(tmp_path: Path) -> None:
    async with served() as webhook:
        first, second = serving_pair(webhook.ca), serving_pair(webhook.ca)
        write(tmp_path, first)
        async with asyncio.TaskGroup() as tasks:
            follower = tasks.create_task(
                directory.follow(tmp_path, webhook.tls, poll_s=0.01), name="follow"
            )
            write(tmp_path, second)
            async with asyncio.timeout(5):
                while await served_serial(webhook, trusting(webhook.ca)) != serial(second):
                    pass
            follower.cancel()


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"webhook\.certDir: No such file or directory .*tls\.crt"
    ):
        directory.read_pair(tmp_path)


def encrypted(pair: CertificatePair) -> CertificatePair:
    key = serialization.load_pem_private_key(pair.key_pem, None)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    return CertificatePair(certificate_pem=pair.certificate_pem, key_pem=pem)


def test_what_cannot_be_served_is_refused_and_the_old_pair_stays() -> None:
    ca = pki.make_ca("test", now_ms(), days=1)
    good, other = serving_pair(ca), serving_pair(ca)
    tls = LiveTls(good)
    for bad in (
        CertificatePair(certificate_pem=good.certificate_pem, key_pem=other.key_pem),
        CertificatePair(certificate_pem=b"", key_pem=good.key_pem),
        CertificatePair(certificate_pem=b"nonsense", key_pem=b"nonsense"),
        encrypted(good),
    ):
        with pytest.raises(CertificateRejected, match="certificate and key cannot be served"):
            tls.swap(bad)
        assert not tls.swap(good), "still serving it"


def test_keys_stay_out_of_texts() -> None:
    pair = serving_pair(pki.make_ca("test", now_ms(), days=1))
    assert "PRIVATE" not in repr(pair)


async def test_versions_and_suites_of_the_configuration() -> None:
    pair = serving_pair(pki.make_ca("test", now_ms(), days=1))
    assert LiveTls(pair).context.minimum_version == ssl.TLSVersion.TLSv1_2
    strict = LiveTls(pair, TlsOptions(version_min="VersionTLS13"))
    assert strict.context.minimum_version == ssl.TLSVersion.TLSv1_3
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    ciphers = LiveTls(pair, TlsOptions(cipher_suites=(suite,))).context.get_ciphers()
    assert {c["name"] for c in ciphers if c["protocol"] == "TLSv1.2"} == {
        "ECDHE-ECDSA-AES256-GCM-SHA384"
    }
    with pytest.raises(ConfigError, match=r"tls\.minVersion: 'SSL3' is not one of"):
        LiveTls(pair, TlsOptions(version_min="SSL3"))
    with pytest.raises(ConfigError, match=r"tls\.cipherSuites: TLS_NO not among"):
        LiveTls(pair, TlsOptions(cipher_suites=("TLS_NO",)))


async def test_tls_1_2_is_served_too() -> None:
    async with served() as webhook:
        context = trusting(webhook.ca)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        await served_serial(webhook, context)
