"""The TLS context of the server, whose certificate can be exchanged while it serves.

New connections get the new certificate at once; running ones keep the old. Called by ``server``,
``directory`` and whoever makes certificates.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sluice.api.errors import ConfigError, SluiceError

_VERSIONS: Final = {
    "": ssl.TLSVersion.TLSv1_2,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
_CIPHERS: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
"""Suites of TLS 1.2 by the names of the configuration file; those of 1.3 are always on."""


class CertificateRejected(SluiceError):
    """A certificate and key that cannot be served; the message says what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificatePair:
    """A serving certificate, with its chain, and its key, both PEM."""

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """``tls`` of the configuration file (docs/spec/api.md section 6).

    Attributes:
        version_min: ``VersionTLS12``, ``VersionTLS13`` or empty for the default, 1.2.
        cipher_suites: Suites of TLS 1.2; empty for the default.
    """

    version_min: str = ""
    cipher_suites: Sequence[str] = ()


class LiveTls:
    """A server context that serves the pair given to it last.

    Raises:
        CertificateRejected: The first pair cannot be served.
        ConfigError: A version or cipher suite is not known.
    """

    def __init__(self, pair: CertificatePair, options: TlsOptions | None = None) -> None:
        self._options = options or TlsOptions()
        self.context = _context(self._options)
        self._pair: CertificatePair | None = None
        self.swap(pair)

    def swap(self, pair: CertificatePair) -> bool:
        """Serve another pair from the next connection on; returns whether it differs.

        Raises:
            CertificateRejected: The pair cannot be served; the one before stays.
        """
        if pair == self._pair:
            return False
        # Loading into the live context first drops the old pair, so a bad one is caught before.
        _load(_context(self._options), pair)
        _load(self.context, pair)
        self._pair = pair
        return True


def _context(options: TlsOptions) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if options.version_min not in _VERSIONS:
        raise ConfigError(
            f"tls.minVersion: {options.version_min!r} is not one of VersionTLS12, VersionTLS13"
        )
    context.minimum_version = _VERSIONS[options.version_min]
    context.set_alpn_protocols(["http/1.1"])
    if unknown := [name for name in options.cipher_suites if name not in _CIPHERS]:
        raise ConfigError(
            f"tls.cipherSuites: {', '.join(unknown)} not among {', '.join(sorted(_CIPHERS))}"
        )
    if options.cipher_suites:
        context.set_ciphers(":".join(_CIPHERS[name] for name in options.cipher_suites))
    return context


def _load(context: ssl.SSLContext, pair: CertificatePair) -> None:
    try:
        with _as_file(pair.certificate_pem) as certificate, _as_file(pair.key_pem) as key:
            context.load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise CertificateRejected(f"certificate and key cannot be served: {error}") from error


def _no_password() -> str:
    # Without this, OpenSSL would ask for it on the terminal and wait.
    raise ValueError("the key is encrypted; store it without a password")


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Give content a path for as long as it is needed: ``ssl`` reads keys from files only.

    In memory where the system can (Linux), so that keys reach no disk and a read-only root works.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("sluice-tls")
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "pem"
        path.touch(mode=0o600)
        path.write_bytes(content)
        yield str(path)
