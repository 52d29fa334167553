"""The embedded API server as a process sees it: start, serve HTTPS, stop.

Several can run in one process; each has its own storage, certificates and port. `sluice.cli` and
tests start it; everything else is its client.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson
from aiohttp import web
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

from sluice.clock import Clock, SystemClock
from sluice.local.apiserver.backend import Backend
from sluice.local.apiserver.calls import BODY_BYTES_MAX, Answer
from sluice.local.apiserver.crds import CrdBehaviour
from sluice.local.apiserver.credentials import Credentials
from sluice.local.apiserver.lifecycle import Lifecycle, system_object
from sluice.local.apiserver.router import HEALTH_PATHS, Router
from sluice.local.apiserver.seams import Json, Parts, UserInfo
from sluice.local.apiserver.status import ApiError, Reason
from sluice.local.apiserver.store import HISTORY_CHANGES_MAX
from sluice.local.apiserver.watching import BOOKMARK_S, Watch
from sluice.log import get_logger

STOP_S_MAX = 2.0
"""How long open requests may take to end when the server stops."""

KEEPALIVE_S = 120.0
"""How long an idle connection is kept; longer than clients wait between requests."""

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How a server is started.

    Attributes:
        host: Address to listen on.
        port: 0 takes a free one.
        kubeconfig: Where the administrator's kubeconfig is written; None writes none.
        changes_max: Watch history kept for each resource.
        bookmark_s: Seconds of silence after which a watch gets a bookmark.
    """

    host: str = "127.0.0.1"
    port: int = 0
    kubeconfig: Path | None = None
    changes_max: int = HISTORY_CHANGES_MAX
    bookmark_s: float = BOOKMARK_S


class Server:
    """An API server in memory.

    Args:
        parts: Schemas, merges, admission and conversion.
        options: Address and files.
        clock: The machine's by default.

    Usage::

        async with Server(parts, ServerOptions(kubeconfig=path)) as server:
            ...  # server.url, server.credentials.admin_token
    """

    def __init__(
        self, parts: Parts, options: ServerOptions | None = None, clock: Clock | None = None
    ) -> None:
        self.options = options or ServerOptions()
        clock = clock or SystemClock()
        self.backend = Backend(parts, clock, self.options.changes_max, self.options.bookmark_s)
        self.credentials = Credentials(clock, (self.options.host,))
        self.url = ""
        self._router = Router(self.backend, self.credentials)
        self._log = get_logger("sluice.local.apiserver")
        self._runner: web.ServerRunner | None = None
        self._port = self.options.port
        self._lifecycle = Lifecycle(self.backend)
        self._task: asyncio.Task[None] | None = None
        self.backend.registry.set_behaviour(
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            CrdBehaviour(self.backend.registry),
        )
        self._seed()

    def _seed(self) -> None:
        """Make the objects that every cluster has."""
        registry = self.backend.registry
        namespaces = registry.resource("", "namespaces")
        classes = registry.resource("scheduling.k8s.io", "priorityclasses")
        if namespaces is None or classes is None:
            raise RuntimeError("the built-in kinds lack Namespace or PriorityClass")
        for name in _NAMESPACES:
            obj = system_object(self.backend, namespaces, name)
            namespaces.behaviour.default(obj)
            namespaces.behaviour.prepare_create(obj)
            self.backend.put(namespaces, obj)
        for name, value in _PRIORITIES.items():
            obj = system_object(self.backend, classes, name)
            obj |= {"value": value, "preemptionPolicy": "PreemptLowerPriority"}
            self.backend.put(classes, obj)

    async def start(self) -> None:
        """Listen, and write the kubeconfig.

        After `stop` a second start serves the same objects on the same port.

        Raises:
            OSError: The port is taken.
            ConfigError: The kubeconfig's path is inside ~/.kube.
        """
        self.backend.is_stopping = False
        server = web.Server(
            self._serve,
            request_factory=self._request,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=KEEPALIVE_S,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=STOP_S_MAX)
        await self._runner.setup()
        site = web.TCPSite(
            self._runner,
            self.options.host,
            self._port,
            ssl_context=self.credentials.ssl_context(),
        )
        await site.start()
        self._port = int(self._runner.addresses[0][1])
        host = f"[{self.options.host}]" if ":" in self.options.host else self.options.host
        self.url = f"https://{host}:{self._port}"
        if self.options.kubeconfig is not None:
            self.credentials.write_kubeconfig(self.options.kubeconfig, self.url)
        self._task = asyncio.create_task(self._lifecycle.run(), name="apiserver-lifecycle")

    async def stop(self) -> None:
        """End all requests and watches; storage stays."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self.backend.end_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def close(self) -> None:
        """Stop for good: also close the connections to webhooks."""
        await self.stop()
        await self.backend.admission.close()
        await self.backend.converter.close()

    async def __aenter__(self) -> Server:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @staticmethod
    def _request(
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: RequestHandler,
        writer: Any,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        return web.BaseRequest(
            message,
            payload,
            protocol,
            writer,
            task,
            asyncio.get_running_loop(),
            client_max_size=BODY_BYTES_MAX,
        )

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._dispatch(request)
        except ApiError as error:
            return _error_response(error)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:
            # A defect of ours must not leave the client without an answer.
            self._log.exception(
                "request failed inside the embedded API server",
                fields={"method": request.method, "path": request.path},
            )
            return _error_response(
                ApiError(Reason.INTERNAL_ERROR, f"Internal error occurred: {error!r}")
            )

    async def _dispatch(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        # Probes carry no credentials.
        is_open = path in HEALTH_PATHS or path == "/version"
        user = None if is_open else self._user(request)
        if request.method in ("GET", "HEAD"):
            general = await self._router.general(
                path, request.headers.get("Accept", ""), request.host or ""
            )
            if general is not None:
                return _response(general[0], 200, (), general[1])
        if user is None:
            raise ApiError(Reason.METHOD_NOT_ALLOWED, "only GET is served here", details={})
        body = await self._body(request)
        call = self._router.call(request.method, path, request.query, request.headers, body, user)
        try:
            answer = await self._router.handle(call)
        except ApiError as error:
            return _error_response(error, tuple(call.warnings))
        if isinstance(answer, Answer):
            return _response(answer.body, answer.code, answer.warnings)
        return await self._stream(request, answer)

    def _user(self, request: web.BaseRequest) -> UserInfo:
        certificate = None
        if request.transport is not None:
            tls = request.transport.get_extra_info("ssl_object")
            if isinstance(tls, ssl.SSLObject):
                certificate = tls.getpeercert()
        return self.credentials.authenticate(request.headers.get("Authorization", ""), certificate)

    @staticmethod
    async def _body(request: web.BaseRequest) -> bytes:
        if not request.can_read_body:
            return b""
        too_large = ApiError(
            Reason.REQUEST_ENTITY_TOO_LARGE,
            f"Request entity too large: limit is {BODY_BYTES_MAX}",
            details={},
        )
        if request.content_length is not None and request.content_length > BODY_BYTES_MAX:
            raise too_large
        try:
            return await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise too_large from None

    @staticmethod
    async def _stream(request: web.BaseRequest, watch: Watch) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
        )
        response.enable_chunked_encoding()
        try:
            await response.prepare(request)
            async for piece in watch.events():
                await response.write(piece)
            await response.write_eof()
        except ConnectionError:
            # The client has gone, as watchers do; there is nobody to tell.
            pass
        return response


def _response(
    body: bytes,
    code: int,
    warnings: tuple[str, ...],
    content_type: str = "application/json",
) -> web.Response:
    response = web.Response(
        body=body,
        status=code,
        headers={"Content-Type": content_type, "Cache-Control": "no-cache, private"},
    )
    for warning in dict.fromkeys(warnings):
        text = warning.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        response.headers.add("Warning", f'299 - "{text}"')
    return response


def _error_response(error: ApiError, warnings: tuple[str, ...] = ()) -> web.Response:
    status: Json = error.to_status()
    response = _response(orjson.dumps(status), error.code, warnings)
    retry_s = (error.details or {}).get("retryAfterSeconds")
    if retry_s:
        response.headers["Retry-After"] = str(retry_s)
    return response
