"""What an API server's answer means: the error of a status code, the wait it asks for.

Library exceptions and HTTP codes end here; above this package only the tree of
``sluice.api.errors`` exists. Used by ``client`` and ``watch``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import aiohttp
import orjson

from sluice.api.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    Throttled,
    Transient,
)

RETRY_AFTER_DEFAULT_S: Final = 1.0
_TEXT_LENGTH_MAX: Final = 256


class NotSent(Transient):
    """No connection came about, so the server did nothing: any request may be sent again."""


def error_of_response(status: int, headers: Mapping[str, str], data: bytes) -> KubeError:
    """Return the error of an HTTP answer with a status of 300 or more.

    Args:
        status: HTTP status code.
        headers: Response headers, by case-insensitive name.
        data: The body: a Status object, or any text from a proxy in between.
    """
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict) or body.get("kind") != "Status":
        text = data[:_TEXT_LENGTH_MAX].decode(errors="replace").strip()
        body = {"kind": "Status", "code": status, "reason": "", "message": text}
    return error_of_status(status, body, retry_after_s=retry_after_s(headers))


def error_of_status(
    status: int, body: dict[str, Any], *, retry_after_s: float | None = None
) -> KubeError:
    """Return the error of a Status object, from an answer or from an ERROR event of a watch.

    Args:
        status: HTTP status code, or the Status's own code.
        body: The Status object.
        retry_after_s: The wait the server asked for, in seconds, if it did.
    """
    reason = str(body.get("reason") or "")
    message = str(body.get("message") or "").strip() or reason or f"HTTP status {status}"
    if status == 429 or reason == "TooManyRequests":
        wait_s = retry_after_s if retry_after_s is not None else _details_wait_s(body)
        return Throttled(message, retry_after_s=wait_s, body=body)
    kind = _error_class(status, reason)
    return kind(message, status=status, reason=reason, body=body)


def _error_class(status: int, reason: str) -> type[KubeError]:
    if status == 409:
        return AlreadyExists if reason == "AlreadyExists" else Conflict
    if status == 410 or reason in ("Expired", "Gone"):
        return Gone
    if status == 404:
        return NotFound
    if status in (401, 403):
        return Forbidden
    if status == 408 or status >= 500:
        return Transient
    return Invalid


def _details_wait_s(body: Mapping[str, Any]) -> float:
    details = body.get("details")
    seconds = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    return float(seconds) if isinstance(seconds, int) and seconds > 0 else RETRY_AFTER_DEFAULT_S


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header; None without one or when it is a date."""
    text = headers.get("Retry-After")
    if text is None:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        return None


def error_of_exception(error: Exception, what: str) -> KubeError:
    """Return the error of a failure below HTTP; ``what`` names the request in its message."""
    if isinstance(error, TimeoutError):
        kind: type[Transient] = (
            NotSent if isinstance(error, aiohttp.ConnectionTimeoutError) else Transient
        )
        return kind(f"{what}: no answer in time", reason="Timeout")
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return NotSent(
            f"{what}: the server's certificate is not trusted: {error.certificate_error}",
            reason="CertificateError",
        )
    kind = NotSent if isinstance(error, aiohttp.ClientConnectorError) else Transient
    text = str(error) or type(error).__name__
    return kind(f"{what}: {text}", reason="ConnectionError")
