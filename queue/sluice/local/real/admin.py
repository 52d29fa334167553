"""The few API calls that a control plane makes to itself: ready? create this node, is it ready?

Not a client for others: it opens a connection for each call, so that it belongs to no event loop.
Used only by `sluice.local.real.plane`.
"""

from __future__ import annotations

import base64
import ssl
from typing import Any

import aiohttp
import orjson
import yaml

from sluice.local.real.certificates import KeyPair
from sluice.local.real.errors import ControlPlaneError

_CALL_TIMEOUT_S = 10.0


class Admin:
    """Calls the API server with the administrator's certificate.

    Args:
        server: Base URL, ``https://127.0.0.1:PORT``.
        context: Trusts the server and holds the client certificate.
    """

    def __init__(self, server: str, context: ssl.SSLContext) -> None:
        self._server = server
        self._context = context

    async def is_ready(self) -> bool:
        """Return whether every check of the API server passes; no answer counts as not ready."""
        try:
            status, _ = await self._call("GET", "/readyz", None)
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False
        return status == 200

    async def get(self, path: str) -> dict[str, Any] | None:
        """Return an object, or None when it does not exist."""
        status, answer = await self._call("GET", path, None)
        if status == 404:
            return None
        return _object("GET", path, status, answer)

    async def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object below a collection's path and return it."""
        status, answer = await self._call("POST", path, body)
        return _object("POST", path, status, answer)

    async def delete(self, path: str) -> None:
        """Delete an object; it is fine if it does not exist."""
        status, answer = await self._call("DELETE", path, None)
        if status != 404:
            _object("DELETE", path, status, answer)

    async def _call(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, bytes]:
        timeout = aiohttp.ClientTimeout(total=_CALL_TIMEOUT_S)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            data = None if body is None else orjson.dumps(body)
            async with session.request(
                method,
                self._server + path,
                data=data,
                headers={"Content-Type": "application/json"},
                ssl=self._context,
            ) as response:
                return response.status, await response.read()


def _object(method: str, path: str, status: int, answer: bytes) -> dict[str, Any]:
    if status >= 400:
        raise ControlPlaneError(
            f"{method} {path}: {status} {answer[:256].decode(errors='replace')}"
        )
    decoded: dict[str, Any] = orjson.loads(answer)
    return decoded


def kubeconfig(server: str, authority: bytes, user: str, credentials: KeyPair) -> str:
    """Return a kubeconfig that carries its credentials in itself, YAML."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "sluice",
                    "cluster": {
                        "server": server,
                        "certificate-authority-data": _base64(authority),
                    },
                }
            ],
            "users": [
                {
                    "name": user,
                    "user": {
                        "client-certificate-data": _base64(credentials.certificate),
                        "client-key-data": _base64(credentials.key),
                    },
                }
            ],
            "contexts": [{"name": "sluice", "context": {"cluster": "sluice", "user": user}}],
            "current-context": "sluice",
        },
        sort_keys=False,
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
