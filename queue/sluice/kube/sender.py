"""Sends requests over one aiohttp session: limits, credentials, retries, errors.

What is sent again by itself, and what is not:

* any request the server cannot have seen (no connection), or refused with 429 after the wait it
  asked for, or refused with 401 once credentials were renewed;
* reads, after any passing failure.

A write whose outcome is unknown is not repeated: the caller reads and decides. Used by ``client``.
"""

from __future__ import annotations

import asyncio
import socket
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import orjson
from yarl import URL

from sluice.api.errors import Forbidden, KubeError, Throttled, Transient
from sluice.clock import Clock, SystemClock
from sluice.kube.access import ClusterAccess
from sluice.kube.backoff import DICE
from sluice.kube.limits import RequestLimits
from sluice.kube.requests import METHODS, Request, Verb
from sluice.kube.resources import LEASES
from sluice.kube.responses import NotSent, error_of_exception, error_of_response

TIMEOUT_S: Final = 10.0
_READ_ATTEMPTS: Final = 4
_THROTTLED_ATTEMPTS: Final = 8
_BACKOFF_S: Final = 0.1
_THROTTLED_WAIT_S_MAX: Final = 30.0
_CLOSING_POLLS_MAX: Final = 1000
_CLOSING_POLL_S: Final = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """Settings of a client.

    Attributes:
        qps: Requests a second and kind; 0 for no limit (docs/spec/api.md 6, clientConnection).
        burst: Requests of a kind at once.
        connections_max: Open connections; HTTP/1.1 needs one for each request in flight and watch.
        user_agent: What audit logs show.
    """

    qps: float = 300.0
    burst: int = 500
    connections_max: int = 100
    user_agent: str = "sluice"


RequestObserver = Callable[[Verb, str, int, float], None]
"""Called after each request with verb, ``plural.group[/subresource]``, status or 0, seconds."""


class Sender:
    """Sends requests to one API server and owns the connections."""

    def __init__(
        self,
        access: ClusterAccess,
        *,
        options: ClientOptions | None = None,
        clock: Clock | None = None,
        observer: RequestObserver | None = None,
    ) -> None:
        self.access = access
        self.options = options or ClientOptions()
        self._clock = clock or SystemClock()
        self._observer = observer
        self._limits = RequestLimits(
            qps=self.options.qps, burst=self.options.burst, clock=self._clock
        )
        self._session: aiohttp.ClientSession | None = None
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    async def close(self) -> None:
        """Close every connection; running requests fail."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()
            # Connections that were still being opened go away a little later; a loop that ends
            # right after this would leak them.
            for _ in range(_CLOSING_POLLS_MAX):
                if all(opened.fileno() < 0 for opened in tuple(self._sockets)):
                    break
                await asyncio.sleep(_CLOSING_POLL_S)

    async def send(
        self, request: Request, *, timeout_s: float = TIMEOUT_S, retry: bool = True
    ) -> dict[str, Any]:
        """Send a request, again where that is safe, and return the JSON object of the answer.

        Args:
            request: What to send.
            timeout_s: Seconds for one attempt, connecting and reading included.
            retry: False for callers with a deadline of their own, such as leader election.

        Raises:
            KubeError: The class says what to do; see the module's docstring for what was tried.
        """
        attempt = 0
        while True:
            try:
                return await self._attempt(request, timeout_s)
            except KubeError as error:
                attempt += 1
                wait_s = _wait_before_retry_s(request, error, attempt) if retry else None
                if wait_s is None:
                    raise
            await asyncio.sleep(wait_s)

    async def _attempt(self, request: Request, timeout_s: float) -> dict[str, Any]:
        async with await self.open(request, aiohttp.ClientTimeout(total=timeout_s)) as response:
            try:
                data = await response.read()
            except (aiohttp.ClientError, TimeoutError) as error:
                raise error_of_exception(error, str(request)) from error
        try:
            value = orjson.loads(data) if data else {}
        except orjson.JSONDecodeError as error:
            raise Transient(f"{request}: the answer is not JSON", reason="BadAnswer") from error
        if not isinstance(value, dict):
            raise Transient(f"{request}: the answer is not a JSON object", reason="BadAnswer")
        return value

    async def open(self, request: Request, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Send a request and return its answer when the status is 2xx; else raise its error.

        Credentials that the server refuses are renewed once.
        """
        try:
            return await self._open_once(request, limits)
        except Forbidden as error:
            if error.status != 401 or not await self.access.credentials.renew():
                raise
        return await self._open_once(request, limits)

    async def _open_once(
        self, request: Request, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        kind = request.resource.partition("/")[0]
        if kind != LEASES.full_name:  # leadership must not wait behind the work it protects
            await self._limits.acquire(kind)
        started_s = self._clock.monotonic_s()
        status = 0
        try:
            response = await self._exchange(request, limits)
            status = response.status
            if status < 300:
                return response
            async with response:
                data = await response.read()
                raise error_of_response(status, response.headers, data)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise error_of_exception(error, str(request)) from error
        finally:
            if self._observer is not None:
                seconds = self._clock.monotonic_s() - started_s
                self._observer(request.verb, request.resource, status, seconds)

    async def _exchange(
        self, request: Request, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": "application/json"}
        authorization = await self.access.credentials.authorization()
        if authorization:
            headers["Authorization"] = authorization
        data = None
        if request.body is not None:
            data = orjson.dumps(request.body)
            headers["Content-Type"] = request.content_type
        return await self._open_session().request(
            METHODS[request.verb],
            URL(self.access.host + request.target, encoded=True),
            data=data,
            headers=headers,
            timeout=limits,
            proxy=self.access.proxy,
            server_hostname=self.access.tls_server_name,
            allow_redirects=False,
        )

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            context = self.access.tls
            connector = aiohttp.TCPConnector(
                limit=self.options.connections_max,
                ssl=context if context is not None else True,
                socket_factory=self._open_socket,
                keepalive_timeout=60,
            )
            # trust_env costs 0.4 ms a request in aiohttp; the proxy was resolved once instead.
            # Compressing answers would cost the API server more CPU than the network saves.
            self._session = aiohttp.ClientSession(
                connector=connector,
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": self.options.user_agent, "Accept-Encoding": "identity"},
            )
        return self._session

    def _open_socket(self, info: Any) -> socket.socket:
        opened = _keepalive_socket(info)
        self._sockets.add(opened)
        return opened


def _wait_before_retry_s(request: Request, error: KubeError, attempt: int) -> float | None:
    jitter = DICE.uniform(0.8, 1.2)
    if isinstance(error, Throttled):
        if attempt >= _THROTTLED_ATTEMPTS:
            return None
        return min(error.retry_after_s, _THROTTLED_WAIT_S_MAX) * jitter
    if isinstance(error, NotSent) or (isinstance(error, Transient) and request.is_read):
        return _BACKOFF_S * 2 ** (attempt - 1) * jitter if attempt < _READ_ATTEMPTS else None
    return None


def _keepalive_socket(info: Any) -> socket.socket:
    """Return a socket that notices within a minute that its peer is gone."""
    family, kind, protocol, _, _ = info
    result = socket.socket(family=family, type=kind, proto=protocol)
    result.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            result.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return result
