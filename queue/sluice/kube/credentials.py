"""Credentials that stay valid: tokens are read again before they expire or when they are refused.

``kubernetes.aio.config`` reads them once. Made by ``config``.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from kubernetes.aio import config as kube_config
from kubernetes.aio.client import Configuration

from sluice.api.errors import ConfigError
from sluice.clock import Clock
from sluice.log import get_logger

log = get_logger(__name__)

_library: Any = kube_config  # untyped

LOGIN_INTERVAL_S: Final = 10.0
"""Least seconds between two logins: a plugin is a process, and may ask a slow service."""
LOGIN_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """What reading a kubeconfig gave.

    Attributes:
        configuration: Address and TLS files.
        header: Authorization header, None when a certificate is used.
        refresh_after_s: Seconds until it should be read again; None: only when refused.
        namespace: Namespace of the context; may be empty.
    """

    configuration: Configuration
    header: str | None
    refresh_after_s: float | None
    namespace: str


class KubeconfigCredentials:
    """Credentials of a kubeconfig; the file is read and its plugin run again when needed."""

    def __init__(
        self,
        login: Login,
        log_in: Callable[[], Awaitable[Login]],
        tls: ssl.SSLContext | None,
        clock: Clock,
    ) -> None:
        self._header = login.header
        self._log_in = log_in
        self._tls = tls
        self._clock = clock
        self._lock = asyncio.Lock()
        self._logged_in_at_s = clock.monotonic_s()
        self._refresh_at_s = self._due(login)

    async def authorization(self) -> str | None:
        """Return the header, renewed first when its time has come.

        While renewing fails the old one is sent: the server decides.
        """
        if self._refresh_at_s is not None and self._clock.monotonic_s() >= self._refresh_at_s:
            await self.renew()
        return self._header

    async def renew(self) -> bool:
        """Log in again, at most every ten seconds; True when there is something new to try."""
        asked_at_s = self._clock.monotonic_s()
        async with self._lock:
            if self._logged_in_at_s > asked_at_s:
                return True  # another request renewed them while this one waited
            if asked_at_s - self._logged_in_at_s < LOGIN_INTERVAL_S:
                return False
            self._logged_in_at_s = self._clock.monotonic_s()
            try:
                async with asyncio.timeout(LOGIN_TIMEOUT_S):
                    login = await self._log_in()
                self._load_certificate(login.configuration)
            except (ConfigError, OSError, TimeoutError) as error:
                log.warning("credentials were not renewed", fields={"error": str(error)})
                if self._refresh_at_s is not None:
                    self._refresh_at_s = self._clock.monotonic_s() + LOGIN_INTERVAL_S
                return False
            self._header = login.header
            self._refresh_at_s = self._due(login)
            return True

    def _load_certificate(self, configuration: Configuration) -> None:
        """Load the client certificate into the live context: new connections use it."""
        if self._tls is not None and configuration.cert_file:
            self._tls.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)

    def _due(self, login: Login) -> float | None:
        if login.refresh_after_s is None:
            return None
        wait_s = max(login.refresh_after_s, LOGIN_INTERVAL_S)
        return self._clock.monotonic_s() + wait_s


class InClusterCredentials:
    """The token of the pod's service account, which the kubelet replaces about once an hour."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    async def authorization(self) -> str | None:
        """Return the header; the library reads the file again each minute."""
        header = await self._configuration.get_api_key_with_prefix(
            "BearerToken", alias="authorization"
        )
        return str(header) if header else None

    async def renew(self) -> bool:
        """Read the file now; True when it holds another token than before."""
        before = self._configuration.api_key.get("BearerToken")
        try:
            _library.load_incluster_config(client_configuration=self._configuration)
        except kube_config.ConfigException as error:
            log.warning("credentials were not renewed", fields={"error": str(error)})
            return False
        return bool(self._configuration.api_key.get("BearerToken") != before)
