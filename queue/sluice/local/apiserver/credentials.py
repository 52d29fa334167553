"""Who may call the embedded API server: its CA, client certificates, tokens, the kubeconfig.

Everybody with a certificate of the server's CA or a token that it gave out may do everything:
roles are stored but not enforced (docs/embedded.md).
"""

from __future__ import annotations

import base64
import secrets
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from sluice.clock import Clock
from sluice.kube.pki import KeyPair, make_ca, make_client, make_serving
from sluice.local import kubeconfigs
from sluice.local.apiserver.seams import UserInfo
from sluice.local.apiserver.status import ApiError, Reason

ADMIN = UserInfo(username="kubernetes-admin", groups=("system:masters", "system:authenticated"))
TOKEN_S_MAX = 24 * 3600
"""Longest life of a ServiceAccount token, seconds."""

SERVING_HOSTS = ("127.0.0.1", "localhost", "::1", "kubernetes.default.svc")


def _unauthorized() -> ApiError:
    return ApiError(Reason.UNAUTHORIZED, "Unauthorized")


class Credentials:
    """The secrets of one server; all of them end with it.

    Args:
        clock: For the validity of certificates and tokens.
        hosts: Names and addresses that the serving certificate is for, beside the local ones.
    """

    def __init__(self, clock: Clock, hosts: tuple[str, ...] = ()) -> None:
        self._clock = clock
        now_ms = clock.now_ms()
        self.ca: KeyPair = make_ca("sluice-embedded-ca", now_ms)
        names = tuple(dict.fromkeys((*SERVING_HOSTS, *hosts)))
        self._serving = make_serving(self.ca, names, now_ms)
        self._admin = make_client(self.ca, ADMIN.username, now_ms, groups=("system:masters",))
        self.admin_token = secrets.token_urlsafe(32)
        self._tokens: dict[str, tuple[UserInfo, float]] = {self.admin_token: (ADMIN, float("inf"))}

    def ssl_context(self) -> ssl.SSLContext:
        """Return the context to serve with; client certificates are optional."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # The ssl module reads certificates from files only.
        with tempfile.TemporaryDirectory(prefix="sluice-tls-") as folder:
            certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
            certificate.write_bytes(self._serving.certificate_pem)
            key.touch(mode=0o600)
            key.write_bytes(self._serving.key_pem)
            context.load_cert_chain(certificate, key)
        context.load_verify_locations(cadata=self.ca.certificate_pem.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def issue_token(self, user: UserInfo, life_s: int) -> tuple[str, float]:
        """Return a new bearer token for a user and when it ends (seconds since 1970)."""
        now_s = self._clock.now_ms() / 1000
        for token in [t for t, (_, end_s) in self._tokens.items() if end_s < now_s]:
            del self._tokens[token]
        token = secrets.token_urlsafe(32)
        end_s = now_s + min(life_s, TOKEN_S_MAX)
        self._tokens[token] = (user, end_s)
        return token, end_s

    def user_of_token(self, token: str) -> UserInfo | None:
        """Return whose token it is, or None for one that is unknown or over."""
        found = self._tokens.get(token)
        if found is None or found[1] <= self._clock.now_ms() / 1000:
            return None
        return found[0]

    def authenticate(self, authorization: str, certificate: Mapping[str, Any] | None) -> UserInfo:
        """Return who sends a request.

        Args:
            authorization: The Authorization header.
            certificate: The verified client certificate, in `ssl.getpeercert`'s form.

        Raises:
            ApiError: 401.
        """
        if certificate:
            return _user_of_certificate(certificate)
        if authorization:
            scheme, _, token = authorization.partition(" ")
            user = self.user_of_token(token.strip()) if scheme.lower() == "bearer" else None
            if user is None:
                raise _unauthorized()
            return user
        raise _unauthorized()

    def kubeconfig(self, url: str) -> bytes:
        """Return an administrator's kubeconfig (JSON, which is YAML too)."""
        encode = _base64
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": kubeconfigs.CONTEXT,
                    "cluster": {
                        "server": url,
                        "certificate-authority-data": encode(self.ca.certificate_pem),
                    },
                }
            ],
            "users": [
                {
                    "name": "admin",
                    "user": {
                        "client-certificate-data": encode(self._admin.certificate_pem),
                        "client-key-data": encode(self._admin.key_pem),
                    },
                }
            ],
            "contexts": [
                {
                    "name": kubeconfigs.CONTEXT,
                    "context": {
                        "cluster": kubeconfigs.CONTEXT,
                        "user": "admin",
                        "namespace": "default",
                    },
                }
            ],
            "current-context": kubeconfigs.CONTEXT,
        }
        return orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n"

    def write_kubeconfig(self, path: Path, url: str) -> None:
        """Write the kubeconfig, readable by its owner only.

        Raises:
            ConfigError: The path is for another file; see `kubeconfigs.write`.
        """
        kubeconfigs.write(path, self.kubeconfig(url))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _user_of_certificate(certificate: Mapping[str, Any]) -> UserInfo:
    name, groups = "", ["system:authenticated"]
    for attribute in certificate.get("subject", ()):
        for key, value in attribute:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    if not name:
        raise _unauthorized()
    return UserInfo(username=name, groups=tuple(sorted(groups)))
