"""Certificates from a directory that somebody else keeps: cert-manager, a mounted Secret, a file.

Used with ``internalCertManagement.enable: false``. The files are ``tls.crt`` and ``tls.key``, as in
a Secret of type ``kubernetes.io/tls``; they are read again every few seconds, which works for every
file system and every way of replacing files. Called by the composition root.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from sluice.api.errors import ConfigError
from sluice.log import get_logger
from sluice_webhook.tls import CertificatePair, CertificateRejected, LiveTls

log = get_logger("sluice_webhook.directory")

CERTIFICATE_FILE: Final = "tls.crt"
KEY_FILE: Final = "tls.key"
_POLL_S: Final = 2.0


def read_pair(directory: Path) -> CertificatePair:
    """Return the certificate and key of a directory.

    Raises:
        ConfigError: A file cannot be read.
    """
    try:
        return CertificatePair(
            certificate_pem=(directory / CERTIFICATE_FILE).read_bytes(),
            key_pem=(directory / KEY_FILE).read_bytes(),
        )
    except OSError as error:
        raise ConfigError(
            f"webhook.certDir: {error.strerror or error} ({error.filename}); the directory must "
            f"hold {CERTIFICATE_FILE} and {KEY_FILE}"
        ) from error


async def follow(directory: Path, tls: LiveTls, *, poll_s: float = _POLL_S) -> None:
    """Serve what the directory holds, for ever; what cannot be served leaves the old pair.

    Args:
        directory: Where the files are.
        tls: The context to feed.
        poll_s: Seconds between two looks.
    """
    last_problem = ""
    while True:
        await asyncio.sleep(poll_s)
        try:
            if tls.swap(read_pair(directory)):
                log.info("serving certificate changed", fields={"directory": str(directory)})
            last_problem = ""
        except (ConfigError, CertificateRejected) as error:
            # Files are replaced one by one: a pair that does not match is usually half written.
            if str(error) != last_problem:
                log.warning("serving certificate kept", fields={"error": str(error)})
            last_problem = str(error)
