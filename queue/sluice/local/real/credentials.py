"""Credentials of a control plane: a kubeconfig, the keys of ServiceAccount tokens, is it ready?

Used only by `sluice.local.real.plane`. Certificates are made by `sluice.kube.pki`, and all else
that is asked of the API server goes through `sluice.kube.client`.
"""

from __future__ import annotations

import base64

import aiohttp
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sluice.kube.access import ClusterAccess
from sluice.kube.pki import KeyPair
from sluice.local.kubeconfigs import CONTEXT

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
                    "name": CONTEXT,
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
                        "client-certificate-data": _base64(credentials.certificate_pem),
                        "client-key-data": _base64(credentials.key_pem),
                    },
                }
            ],
            "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": user}}],
            "current-context": CONTEXT,
        },
        sort_keys=False,
    )


def signing_key() -> tuple[bytes, bytes]:
    """Return a private and a public key, PEM, for ServiceAccount tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    # Kubernetes wants EC keys that sign tokens in the traditional form.
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private, public


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
