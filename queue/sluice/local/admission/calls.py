"""HTTPS calls of webhooks: where they live, whom to trust, how failures are told.

The texts follow those of Kubernetes (and so of Go's HTTP client), because people search for them.
Called by `dispatcher` and `conversion`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import orjson
from yarl import URL

JsonView = Mapping[str, Any]

ServiceResolver = Callable[[str, str, int], tuple[str, int] | None]
"""Return host and port for (namespace, service name, service port), None if there is none."""

_REPLY_BYTES_MAX: Final = 64 * 1024 * 1024
_CONNECTIONS_MAX: Final = 64
_TRUST_STORES_MAX: Final = 64
"""So many CA bundles are kept parsed; more mean that certificates rotate often."""


class CallFailed(Exception):
    """A webhook that could not be asked, or whose reply makes no sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Address:
    """Where a webhook is: what is shown, where to connect, and whose certificate to expect."""

    shown: str
    connect: URL
    server_name: str
    host_header: str


class WebhookCaller:
    """Posts JSON to webhooks; keeps connections open between calls.

    Args:
        resolve: Finds the address of a Service, since no proxy routes here.
    """

    def __init__(self, resolve: ServiceResolver) -> None:
        self._resolve = resolve
        self._session: aiohttp.ClientSession | None = None
        self._trusted: dict[bytes, ssl.SSLContext] = {}

    async def close(self) -> None:
        """Close connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(self, config: JsonView, body: bytes, timeout_s: int) -> Any:
        """Return the JSON reply of a webhook.

        Args:
            config: Its clientConfig.
            body: The review to send.
            timeout_s: Seconds until the call counts as failed.

        Raises:
            CallFailed: No connection, an untrusted certificate, an error status, no JSON, too late.
        """
        address = self._address(config, timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._exchange(address, self._trust(config), body)
        except TimeoutError as error:
            raise CallFailed(f'Post "{address.shown}": context deadline exceeded') from error
        except aiohttp.ClientError as error:
            raise CallFailed(f'Post "{address.shown}": {_explain(error)}') from error

    async def _exchange(self, address: _Address, trust: ssl.SSLContext, body: bytes) -> Any:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=_CONNECTIONS_MAX)
            self._session = aiohttp.ClientSession(connector=connector, trust_env=False)
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Host": address.host_header,
        }
        async with self._session.post(
            address.connect,
            data=body,
            headers=headers,
            ssl=trust,
            server_hostname=address.server_name,
            allow_redirects=False,
        ) as reply:
            content = await reply.content.read(_REPLY_BYTES_MAX + 1)
            while not reply.content.at_eof() and len(content) <= _REPLY_BYTES_MAX:
                content += await reply.content.read(_REPLY_BYTES_MAX + 1 - len(content))
            if len(content) > _REPLY_BYTES_MAX:
                raise CallFailed(f"the reply has more than {_REPLY_BYTES_MAX} bytes")
            _refuse_status(reply.status, content)
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError as error:
            raise CallFailed(f"couldn't decode the reply as JSON: {error}") from error

    def _address(self, config: JsonView, timeout_s: int) -> _Address:
        query = {"timeout": f"{timeout_s}s"}
        service = config.get("service")
        if service is None:
            url = URL(str(config.get("url") or ""))
            host_name = url.host
            if url.scheme != "https" or not host_name:
                raise CallFailed("webhook configuration must have either service or URL")
            url = url.update_query(query)
            header = url.authority
            return _Address(shown=str(url), connect=url, server_name=host_name, host_header=header)
        name, namespace = service["name"], service["namespace"]
        port = int(service.get("port") or 443)
        server_name = f"{name}.{namespace}.svc"
        path = str(service.get("path") or "/")
        shown = URL(f"https://{server_name}:{port}{path}").update_query(query)
        text = f"https://{server_name}:{port}{shown.raw_path_qs}"
        found = self._resolve(namespace, name, port)
        if found is None:
            raise CallFailed(f'Post "{text}": service "{name}" not found')
        host, real_port = found
        connect = shown.with_host(host).with_port(real_port)
        return _Address(
            shown=text,
            connect=connect,
            server_name=server_name,
            host_header=f"{server_name}:{port}",
        )

    def _trust(self, config: JsonView) -> ssl.SSLContext:
        bundle = str(config.get("caBundle") or "")
        key = hashlib.sha256(bundle.encode()).digest()
        known = self._trusted.get(key)
        if known is not None:
            return known
        try:
            # An absent bundle means the machine's own trust store, as in Kubernetes.
            pem = base64.b64decode(bundle, validate=True).decode("ascii") if bundle else None
            context = ssl.create_default_context(cadata=pem)
        except (binascii.Error, ValueError, ssl.SSLError) as error:
            raise CallFailed(f"unable to load root certificates: {error}") from error
        if len(self._trusted) >= _TRUST_STORES_MAX:
            self._trusted.clear()
        self._trusted[key] = context
        return context


def _refuse_status(status: int, content: bytes) -> None:
    if 200 <= status < 300:
        return
    text = content[:256].decode(errors="replace").strip()
    if status == 404:
        raise CallFailed("the server could not find the requested resource")
    if status >= 500:
        shown = text or "unknown"
        raise CallFailed(
            f'an error on the server ("{shown}") has prevented the request from succeeding'
        )
    raise CallFailed(f"the server rejected our request for an unknown reason ({status}: {text})")


def _explain(error: aiohttp.ClientError) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"tls: failed to verify certificate: x509: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        target = f"{error.host}:{error.port}"
        if isinstance(error.os_error, ConnectionRefusedError):
            return f"dial tcp {target}: connect: connection refused"
        return f"dial tcp {target}: {error.os_error}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    return str(error) or type(error).__name__
