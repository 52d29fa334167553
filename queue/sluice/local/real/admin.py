"""Credentials of a control plane as a kubeconfig, and the question whether it is ready.

Used only by `sluice.local.real.plane`; everything else that is asked of the API server goes through
`sluice.kube.client`.
"""

from __future__ import annotations

import base64

import aiohttp
import yaml

from sluice.kube.access import ClusterAccess
from sluice.local.real.certificates import KeyPair

_READY_TIMEOUT_S = 5.0


async def is_ready(access: ClusterAccess) -> bool:
    """Return whether every check of the API server passes; no answer counts as not ready."""
    timeout = aiohttp.ClientTimeout(total=_READY_TIMEOUT_S)
    # Plain text is answered, which the client for objects does not take.
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{access.host}/readyz", ssl=access.tls or True) as response,
        ):
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


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
