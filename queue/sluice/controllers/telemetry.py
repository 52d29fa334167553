"""The two small HTTP servers beside the webhook: probes, and metrics over HTTPS.

Probes (``/healthz``, ``/readyz``) are plain HTTP for the kubelet. Metrics are HTTPS, and only for
whom the API server lets get ``/metrics`` (docs/spec/api.md 5): the token of the caller is reviewed
as for any Kubernetes component. Made by the composition root.
"""

from __future__ import annotations

import hashlib
import ssl
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from aiohttp import web

from sluice.api.errors import ConfigError, KubeError
from sluice.clock import Clock
from sluice.controllers.metrics import CONTENT_TYPE, Metrics
from sluice.kube.client import Client
from sluice.kube.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS
from sluice.log import get_logger

log = get_logger(__name__)

Unready = Callable[[], Iterable[str]]
"""Returns why the process is not ready, one sentence each; empty when it is."""
_VERDICT_S: Final = 60.0
_VERDICTS_MAX: Final = 1024
_REVIEW_TIMEOUT_S: Final = 5.0
_METRICS_PATH: Final = "/metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to listen.

    Attributes:
        host: Address; empty for all.
        port: Port; 0 picks a free one.
    """

    host: str
    port: int


def parse_address(path: str, text: str) -> Address | None:
    """Return the address of ``host:port`` or ``:port``; None when it is empty or ``0``: off.

    Raises:
        ConfigError: It is none; the message names ``path``.
    """
    if text in ("", "0"):
        return None
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f'{path}: {text!r} must be host:port, :port, or "0" to turn it off')
    return Address(host=host.strip("[]"), port=int(port))


class HttpServer:
    """Serves one aiohttp application on one address."""

    def __init__(
        self,
        setting: str,
        app: web.Application,
        address: Address,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Make a server.

        Args:
            setting: Name of the setting that says where it listens, for messages.
            app: What it serves.
            address: Where it listens.
            tls: Context for HTTPS; None for plain HTTP.
        """
        self._setting = setting
        self._app = app
        self._address = address
        self._tls = tls
        self._runner: web.AppRunner | None = None

    @property
    def port(self) -> int:
        """Return the port listened on, once started."""
        if self._runner is None or not self._runner.addresses:
            return self._address.port
        return int(self._runner.addresses[0][1])

    async def start(self) -> None:
        """Listen.

        Raises:
            ConfigError: The address cannot be used.
        """
        runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(
            runner, self._address.host or None, self._address.port, ssl_context=self._tls
        )
        try:
            await site.start()
        except OSError as error:
            await runner.cleanup()
            where = f"{self._address.host or 'all addresses'}, port {self._address.port}"
            message = f"{self._setting}: cannot listen on {where}: {error.strerror or error}"
            raise ConfigError(message) from error
        self._runner = runner

    async def stop(self) -> None:
        """Close the port and every connection."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None


def probes(
    unready: Unready, *, liveness: str = "healthz", readiness: str = "readyz"
) -> web.Application:
    """Return the application of the probes.

    Args:
        unready: Reasons against being ready.
        liveness: Name of the liveness endpoint.
        readiness: Name of the readiness endpoint.
    """

    async def healthz(request: web.Request) -> web.Response:
        del request
        return web.Response(text="ok")

    async def readyz(request: web.Request) -> web.Response:
        del request
        reasons = list(unready())
        if not reasons:
            return web.Response(text="ok")
        return web.Response(status=503, text="\n".join(reasons))

    app = web.Application()
    app.router.add_get(f"/{liveness}", healthz)
    app.router.add_get(f"/{readiness}", readyz)
    return app


class Authorizer(Protocol):
    """Decides who may read metrics."""

    async def refusal(self, authorization: str) -> int | None:
        """Return the status to refuse with (401, 403, 503), or None to answer.

        Args:
            authorization: The Authorization header, empty without one.
        """
        ...


class Everyone:
    """Lets everyone read; for servers on a loopback address."""

    async def refusal(self, authorization: str) -> int | None:
        """Return None."""
        del authorization
        return None


class ApiServerAuthorizer:
    """Asks the API server: TokenReview, then SubjectAccessReview for get on ``/metrics``.

    Verdicts are kept for a minute by the token's digest, so that scraping costs two requests a
    minute.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._verdicts: OrderedDict[bytes, tuple[float, int | None]] = OrderedDict()

    async def refusal(self, authorization: str) -> int | None:
        """Return the status to refuse with, or None to answer."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return 401
        digest = hashlib.sha256(token.encode()).digest()
        known = self._verdicts.get(digest)
        now_s = self._clock.monotonic_s()
        if known is not None and now_s - known[0] < _VERDICT_S:
            return known[1]
        try:
            verdict = await self._ask(token)
        except KubeError as error:
            log.warning("metrics: a token could not be reviewed", fields={"error": str(error)})
            return 503
        self._verdicts[digest] = (now_s, verdict)
        self._verdicts.move_to_end(digest)
        while len(self._verdicts) > _VERDICTS_MAX:
            self._verdicts.popitem(last=False)
        return verdict

    async def _ask(self, token: str) -> int | None:
        review = await self._post(TOKEN_REVIEWS, {"token": token})
        if not review.get("authenticated"):
            return 401
        user = review.get("user") or {}
        access = await self._post(
            SUBJECT_ACCESS_REVIEWS,
            {
                "user": user.get("username", ""),
                "uid": user.get("uid", ""),
                "groups": user.get("groups") or [],
                "extra": user.get("extra") or {},
                "nonResourceAttributes": {"path": _METRICS_PATH, "verb": "get"},
            },
        )
        return None if access.get("allowed") else 403

    async def _post(self, resource: Any, spec: dict[str, Any]) -> dict[str, Any]:
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
        answer = await self._client.create(resource, "", body, timeout_s=_REVIEW_TIMEOUT_S)
        return answer.get("status") or {}


def metrics_app(metrics: Metrics, authorizer: Authorizer) -> web.Application:
    """Return the application that serves ``/metrics``."""

    async def handle(request: web.Request) -> web.Response:
        status = await authorizer.refusal(request.headers.get("Authorization", ""))
        if status is not None:
            text = {401: "Unauthorized", 403: "Forbidden"}.get(status, "try again")
            return web.Response(status=status, text=text)
        body = await metrics.render()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.router.add_get(_METRICS_PATH, handle)
    return app
