"""Turns the Configuration file into the options of client, webhook and certificates.

Those of the manager come from ``sluice.controllers.settings``. Used by ``replica``.
"""

from __future__ import annotations

from typing import Final

from sluice import __version__
from sluice.api.configuration_models import Configuration
from sluice.controllers.certificates import CertificateOptions
from sluice.kube.client import ClientOptions
from sluice_webhook.server import ServerOptions
from sluice_webhook.tls import TlsOptions

DRAIN_S: Final = 5.0
"""Time for a Service's endpoints to forget a pod that stops."""


def client_options(config: Configuration) -> ClientOptions:
    """Return the client's options."""
    connection = config.client_connection
    return ClientOptions(
        qps=connection.qps, burst=connection.burst, user_agent=f"sluice/{__version__}"
    )


def certificate_options(config: Configuration) -> CertificateOptions:
    """Return which Secret and Service the webhook's certificates belong to."""
    management = config.internal_cert_management
    return CertificateOptions(
        namespace=config.namespace,
        secret=management.webhook_secret_name,
        service=management.webhook_service_name,
    )


def server_options(config: Configuration, *, is_in_pod: bool) -> ServerOptions:
    """Return where the webhook listens, and how long it drains."""
    return ServerOptions(
        host=config.webhook.host,
        port=config.webhook.port,
        drain_s=DRAIN_S if is_in_pod else 0.0,
    )


def tls_options(config: Configuration) -> TlsOptions:
    """Return the limits on TLS."""
    return TlsOptions(version_min=config.tls.min_version, cipher_suites=config.tls.cipher_suites)
