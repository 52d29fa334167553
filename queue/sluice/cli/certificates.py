"""Where the webhook's certificate comes from: the Secret we keep, or a directory others keep.

Used by ``webhook_server``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol

from sluice.api.configuration_models import Configuration
from sluice.api.errors import ConfigError, Forbidden, KubeError, NotFound
from sluice.cli.options import certificate_options, tls_options
from sluice.clock import Clock
from sluice.controllers.certificates import CertificateKeeper
from sluice.controllers.webhookconfigs import ConfigurationInformer
from sluice.kube.client import Client
from sluice.kube.pki import KeyPair, make_ca, make_serving
from sluice_webhook.directory import follow, read_pair
from sluice_webhook.tls import CertificatePair, CertificateRejected, LiveTls


class CertificateSource(Protocol):
    """Gives the first certificate, then every later one."""

    async def open(self) -> LiveTls:
        """Return a TLS context with the certificate to serve.

        Raises:
            ConfigError: There is none and none can be made; the message names the fix.
        """
        ...

    async def run(self) -> None:
        """Keep the context current until cancelled."""
        ...

    def unready(self) -> str:
        """Return why the webhook cannot be trusted yet; empty when it can."""
        ...


class KeptSecret:
    """The Secret of ``internalCertManagement``, made and rotated by ourselves."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        config: Configuration,
        configurations: Sequence[ConfigurationInformer],
    ) -> None:
        self._config = config
        self._tls: LiveTls | None = None
        self._keeper = CertificateKeeper(
            client,
            clock,
            configurations,
            options=certificate_options(config),
            serve=self._serve,
        )

    async def open(self) -> LiveTls:
        """Return a TLS context with the Secret's certificate, which is made if need be."""
        secret = self._config.internal_cert_management.webhook_secret_name
        place = f"Secret {self._config.namespace}/{secret}"
        try:
            pair = await self._keeper.load()
        except NotFound as error:
            raise ConfigError(
                f"the webhook's {place} cannot be made: {error}; create the namespace or set"
                " 'namespace' in the configuration file"
            ) from error
        except Forbidden as error:
            raise ConfigError(
                f"the webhook's {place} cannot be read or made: {error}; grant it, or set"
                " internalCertManagement.enable: false and webhook.certDir"
            ) from error
        except KubeError as error:
            raise ConfigError(f"the webhook's {place} cannot be read: {error}") from error
        self._tls = _open(_as_pair(pair), self._config, place)
        return self._tls

    async def run(self) -> None:
        """Rotate, and write who is to be trusted, until cancelled."""
        await self._keeper.run()

    def unready(self) -> str:
        """Return that the CA bundles are not written yet, while they are not."""
        if self._keeper.published.is_set():
            return ""
        return "the webhook's CA is not in the webhook configurations and CRDs yet"

    def _serve(self, pair: KeyPair) -> None:
        if self._tls is not None:
            self._tls.swap(_as_pair(pair))


class FollowedDirectory:
    """The files of ``webhook.certDir``, kept by somebody else."""

    def __init__(self, config: Configuration) -> None:
        self._config = config
        self._directory = Path(config.webhook.cert_dir)
        self._follow: Callable[[], Awaitable[None]] | None = None

    async def open(self) -> LiveTls:
        """Return a TLS context with the directory's certificate."""
        tls = _open(read_pair(self._directory), self._config, str(self._directory))
        self._follow = lambda: follow(self._directory, tls)
        return tls

    async def run(self) -> None:
        """Serve what the directory holds until cancelled."""
        if self._follow is not None:
            await self._follow()

    def unready(self) -> str:
        """Return nothing: whoever keeps the files also says who trusts them."""
        return ""


def self_signed(config: Configuration, clock: Clock, host: str) -> LiveTls:
    """Return a TLS context with a certificate of its own, for a process without webhook.

    It lives as long as the process; a CA of ten years and a leaf of one would outlive any.
    """
    ca = make_ca("sluice-metrics", clock.now_ms())
    pair = make_serving(ca, [host, "localhost"], clock.now_ms())
    return LiveTls(_as_pair(pair), tls_options(config))


def _as_pair(pair: KeyPair) -> CertificatePair:
    return CertificatePair(certificate_pem=pair.certificate_pem, key_pem=pair.key_pem)


def _open(pair: CertificatePair, config: Configuration, where: str) -> LiveTls:
    try:
        return LiveTls(pair, tls_options(config))
    except CertificateRejected as error:
        raise ConfigError(f"{where}: {error}") from error
