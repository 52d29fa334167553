"""How an API server is reached: address, TLS, proxy and credentials, as values.

``config`` makes one from a kubeconfig or from inside a pod; tests and the embedded control plane
make their own. Used by ``client``.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Protocol


class Credentials(Protocol):
    """What proves who is asking, beyond a client certificate."""

    async def authorization(self) -> str | None:
        """Return the Authorization header's value now, or None to send none."""
        ...

    async def renew(self) -> bool:
        """Get new credentials because the server refused these; False when there are none."""
        ...


class NoCredentials:
    """Sends no Authorization header: a client certificate, or nothing, suffices."""

    async def authorization(self) -> str | None:
        """Return None."""
        return None

    async def renew(self) -> bool:
        """Return False: there is nothing to renew."""
        return False


@dataclass(frozen=True, slots=True)
class StaticToken:
    """A token, or user and password, that stays the same."""

    header: str

    async def authorization(self) -> str | None:
        """Return the fixed header value."""
        return self.header

    async def renew(self) -> bool:
        """Return False: there is no other one."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAccess:
    """Everything needed to open connections to one API server.

    Attributes:
        host: URL without a path's trailing slash, such as ``https://10.0.0.1:6443``.
        tls: Context with CA and client certificate; None for plain HTTP or system defaults.
        credentials: Source of the Authorization header.
        tls_server_name: Name to check the server's certificate against, if not the host's.
        proxy: URL of an HTTP proxy.
        namespace: Namespace of the kubeconfig's context or of the pod; may be empty.
        source: Where this came from, for messages.
    """

    host: str
    tls: ssl.SSLContext | None = None
    credentials: Credentials = field(default_factory=NoCredentials)
    tls_server_name: str | None = None
    proxy: str | None = None
    namespace: str = ""
    source: str = "given"
