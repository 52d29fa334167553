"""The aiohttp application: bodies in, answers out, and nothing but JSON on every path.

It reads a body within its limit and time, hands it to the codec and the handler of the path, and
turns every failure into a Kubernetes Status, so that the API server shows the reason to its client.
Called by ``server`` and by tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import orjson
from aiohttp import web
from aiohttp.http_exceptions import PayloadEncodingError

from sluice.api.errors import InvalidObject
from sluice.clock import Clock, SystemClock
from sluice.log import get_logger
from sluice_webhook import conversion
from sluice_webhook.observer import NoObserver, Observer
from sluice_webhook.review import Allowed, Denied, MalformedReview, Outcome, decode, encode
from sluice_webhook.routes import Route

log = get_logger("sluice_webhook.app")

_MIB: Final = 1024 * 1024
CONVERT_PATH: Final = "/convert"
_IN_THREAD_BYTES_MIN: Final = 64 * 1024
"""Conversions of larger bodies run in a thread, so that reviews are answered meanwhile."""

ReadyCheck = Callable[[], str | None]
"""Returns why the process is not ready, or None when it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one request.

    Attributes:
        review_bytes_max: Size of an AdmissionReview; it carries two objects of up to 3 MiB.
        conversion_bytes_max: Size of a ConversionReview, which carries a whole list.
        review_timeout_s: Time for an AdmissionReview; the API server waits 10 s by default.
        conversion_timeout_s: Time for a ConversionReview; the API server waits 30 s.
        body_timeout_s: Time for a whole body to come; part of the others.
        conversions_max: Conversions at a time, since each may hold several hundred MiB.
    """

    review_bytes_max: int = 8 * _MIB
    conversion_bytes_max: int = 64 * _MIB
    review_timeout_s: float = 8.0
    conversion_timeout_s: float = 28.0
    body_timeout_s: float = 8.0
    conversions_max: int = 2


class Rejected(Exception):
    """A request that gets no review as its answer, but a Status.

    Attributes:
        code: HTTP status.
        reason: Kubernetes' reason for it.
    """

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


Decision = tuple[bytes, bool | None]
"""An answer's body, and whether it allows the object."""


class Application:
    """The webhook's paths.

    Args:
        routes: What is reviewed where.
        limits: Bounds of a request.
        ready: Tells why the process is not ready yet.
        observer: Hears of every request.
        clock: Measures durations.
    """

    def __init__(
        self,
        routes: Sequence[Route],
        *,
        limits: Limits | None = None,
        ready: ReadyCheck = lambda: None,
        observer: Observer | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._ready = ready
        self._observer = observer or NoObserver()
        self._clock = clock or SystemClock()
        self._conversions = asyncio.Semaphore(self._limits.conversions_max)
        self._is_draining = False
        self.web = web.Application(client_max_size=0)
        for route in routes:
            self.web.router.add_post(route.path, self._review_handler(route))
        self.web.router.add_post(CONVERT_PATH, self._handler(CONVERT_PATH, self._convert))
        self.web.router.add_get("/healthz", self._healthz)
        self.web.router.add_get("/readyz", self._readyz)

    def drain(self) -> None:
        """Turn unready and ask clients to connect elsewhere; requests are still answered."""
        self._is_draining = True

    async def _healthz(self, request: web.Request) -> web.Response:
        del request
        return web.Response(text="ok")

    async def _readyz(self, request: web.Request) -> web.Response:
        del request
        reason = "shutting down" if self._is_draining else self._ready()
        return web.Response(text="ok") if reason is None else web.Response(status=503, text=reason)

    def _review_handler(self, route: Route) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def review(request: web.Request) -> Decision:
            return await self._review(route, request)

        return self._handler(route.path, review)

    def _handler(
        self, path: str, decide: Callable[[web.Request], Awaitable[Decision]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            started_s = self._clock.monotonic_s()
            self._observer.started(path)
            code, allowed = 499, None  # What is noted when the client goes away.
            try:
                body, allowed = await decide(request)
                code = 200
            except Rejected as rejected:
                code, body = rejected.code, _status(rejected.code, rejected.reason, str(rejected))
            except MalformedReview as error:
                code, body = 400, _status(400, "BadRequest", str(error))
            except Exception:
                # A fault of ours: the log has the traceback, the client only hears that it is one.
                log.exception("review failed", fields={"path": path})
                code = 500
                body = _status(500, "InternalError", "the webhook failed; its log says why")
            finally:
                duration_s = self._clock.monotonic_s() - started_s
                self._observer.finished(path, code, allowed, duration_s)
            response = web.Response(body=body, status=code, content_type="application/json")
            if self._is_draining or code == 413:
                # After 413 the rest of the body is still on its way: this connection is done.
                response.force_close()
            return response

        return handle

    async def _review(self, route: Route, request: web.Request) -> Decision:
        limits = self._limits
        body = await _read(request, limits.review_bytes_max, limits.body_timeout_s)
        review = decode(body)
        if review.kind != route.kind:
            raise MalformedReview(f"{route.path} reviews {route.kind}, not {review.kind}")
        outcome: Outcome
        try:
            async with asyncio.timeout(limits.review_timeout_s):
                outcome = await route.handler(review)
        except InvalidObject as error:
            raise MalformedReview(f"malformed object: {error}") from error
        except TimeoutError:
            message = f"the review took longer than {limits.review_timeout_s:g} s; try again"
            outcome = Denied(message=message, code=504, reason="Timeout")
        return encode(review.uid, outcome), isinstance(outcome, Allowed)

    async def _convert(self, request: web.Request) -> Decision:
        limits = self._limits
        try:
            async with asyncio.timeout(limits.conversion_timeout_s), self._conversions:
                body = await _read(request, limits.conversion_bytes_max, limits.body_timeout_s)
                if len(body) < _IN_THREAD_BYTES_MIN:
                    return conversion.answer(body), None
                return await asyncio.to_thread(conversion.answer, body), None
        except TimeoutError:
            message = f"the conversion took longer than {limits.conversion_timeout_s:g} s"
            raise Rejected(504, "Timeout", message) from None


async def _read(request: web.Request, bytes_max: int, timeout_s: float) -> bytes:
    """Return the body of a request.

    Raises:
        Rejected: It is not JSON by its header, too large, or does not come in time.
    """
    if request.content_type != "application/json":
        message = f"Content-Type must be application/json, not {request.content_type}"
        raise Rejected(415, "UnsupportedMediaType", message)
    if "Content-Encoding" in request.headers:
        raise Rejected(415, "UnsupportedMediaType", "the body must not be compressed")
    too_large = Rejected(
        413, "RequestEntityTooLarge", f"the body must not be larger than {bytes_max} bytes"
    )
    if (request.content_length or 0) > bytes_max:
        raise too_large
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(timeout_s):
            async for chunk in request.content.iter_any():
                size += len(chunk)
                if size > bytes_max:
                    raise too_large
                chunks.append(chunk)
    except TimeoutError:
        raise Rejected(408, "Timeout", f"no whole body within {timeout_s:g} s") from None
    except (ConnectionError, web.RequestPayloadError, PayloadEncodingError) as error:
        raise Rejected(400, "BadRequest", f"the body broke off: {error}") from error
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _status(code: int, reason: str, message: str) -> bytes:
    return orjson.dumps(
        {
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
        }
    )
