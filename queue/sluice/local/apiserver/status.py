"""Kubernetes `Status` errors: what a request of the embedded API server fails with.

Every refusal of the server, of its schemas, merges and admission is an `ApiError`, so that one
place turns it into the JSON body, code and reason that kubectl and controllers look at.
Whoever handles a request inside `sluice.local` may raise these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Reason(StrEnum):
    """Wire values of `Status.reason` that this server gives."""

    UNAUTHORIZED = "Unauthorized"
    FORBIDDEN = "Forbidden"
    NOT_FOUND = "NotFound"
    ALREADY_EXISTS = "AlreadyExists"
    CONFLICT = "Conflict"
    GONE = "Gone"
    EXPIRED = "Expired"
    INVALID = "Invalid"
    BAD_REQUEST = "BadRequest"
    METHOD_NOT_ALLOWED = "MethodNotAllowed"
    NOT_ACCEPTABLE = "NotAcceptable"
    UNSUPPORTED_MEDIA_TYPE = "UnsupportedMediaType"
    REQUEST_ENTITY_TOO_LARGE = "RequestEntityTooLarge"
    TOO_MANY_REQUESTS = "TooManyRequests"
    INTERNAL_ERROR = "InternalError"
    TIMEOUT = "Timeout"
    SERVICE_UNAVAILABLE = "ServiceUnavailable"


CODES: dict[Reason, int] = {
    Reason.UNAUTHORIZED: 401,
    Reason.FORBIDDEN: 403,
    Reason.NOT_FOUND: 404,
    Reason.ALREADY_EXISTS: 409,
    Reason.CONFLICT: 409,
    Reason.GONE: 410,
    Reason.EXPIRED: 410,
    Reason.INVALID: 422,
    Reason.BAD_REQUEST: 400,
    Reason.METHOD_NOT_ALLOWED: 405,
    Reason.NOT_ACCEPTABLE: 406,
    Reason.UNSUPPORTED_MEDIA_TYPE: 415,
    Reason.REQUEST_ENTITY_TOO_LARGE: 413,
    Reason.TOO_MANY_REQUESTS: 429,
    Reason.INTERNAL_ERROR: 500,
    Reason.TIMEOUT: 504,
    Reason.SERVICE_UNAVAILABLE: 503,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One entry of `Status.details.causes`.

    `reason` is a wire value such as `FieldValueInvalid`, `FieldValueRequired` or
    `FieldManagerConflict`; `message` is the text without the field path, e.g.
    `Invalid value: "x": must be no more than 63 bytes`; `field` is its path, e.g.
    `spec.podSets[0].name`.
    """

    reason: str
    message: str
    field: str

    def to_json(self) -> dict[str, str]:
        """Return the wire form."""
        return {"reason": self.reason, "message": self.message, "field": self.field}

    def text(self) -> str:
        """Return the form in which the cause stands in a Status message."""
        return f"{self.field}: {self.message}" if self.field else self.message


class ApiError(Exception):
    """A request that is answered with a failing Status.

    Args:
        reason: The wire reason; it decides the HTTP code unless `code` is given.
        message: What the client shows; it names the object or field.
        details: `Status.details` (name, group, kind, uid, causes, retryAfterSeconds).
        code: HTTP code; only webhooks, which may answer with any, give it.
    """

    def __init__(
        self,
        reason: Reason | str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = str(reason)
        self.message = message
        self.details = details
        self.code = code if code is not None else CODES[Reason(reason)]

    def to_status(self) -> dict[str, Any]:
        """Return the body of the reply."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def qualified(group: str, word: str) -> str:
    """Return `word.group`, or the word alone in the core group, as Kubernetes names a resource."""
    return f"{word}.{group}" if group else word


def _details(name: str, group: str, kind: str) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    return details


def not_found(group: str, plural: str, name: str) -> ApiError:
    """Return the 404 for one missing object."""
    return ApiError(
        Reason.NOT_FOUND,
        f'{qualified(group, plural)} "{name}" not found',
        details=_details(name, group, plural),
    )


def no_such_resource(why: str = "") -> ApiError:
    """Return the 404 for a path that no resource serves.

    Args:
        why: What a person should know who expected it to be served.
    """
    text = "the server could not find the requested resource"
    return ApiError(Reason.NOT_FOUND, f"{text}: {why}" if why else text, details={})


def already_exists(group: str, plural: str, name: str) -> ApiError:
    """Return the 409 for a create of a name that is taken."""
    return ApiError(
        Reason.ALREADY_EXISTS,
        f'{qualified(group, plural)} "{name}" already exists',
        details=_details(name, group, plural),
    )


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    """Return the 409 for a write against another state than the stored one."""
    return ApiError(
        Reason.CONFLICT,
        f'Operation cannot be fulfilled on {qualified(group, plural)} "{name}": {why}',
        details=_details(name, group, plural),
    )


STALE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def forbidden(group: str, plural: str, name: str, why: str) -> ApiError:
    """Return the 403 for an act that the server's own rules refuse."""
    return ApiError(
        Reason.FORBIDDEN,
        f'{qualified(group, plural)} "{name}" is forbidden: {why}',
        details=_details(name, group, plural),
    )


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """Return the 422 that lists field errors in Kubernetes' text form."""
    texts = list(dict.fromkeys(cause.text() for cause in causes))
    listed = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    details = _details(name, group, kind)
    details["causes"] = [cause.to_json() for cause in causes]
    return ApiError(
        Reason.INVALID,
        f'{qualified(group, kind)} "{name}" is invalid: {listed}',
        details=details,
    )


def apply_conflict(causes: Iterable[Cause]) -> ApiError:
    """Return the 409 of a server-side apply that meets fields of other managers."""
    listed = list(causes)
    if len(listed) == 1:
        text = f"Apply failed with 1 conflict: {listed[0].message}: {listed[0].field}"
    else:
        by_manager: dict[str, list[str]] = {}
        for cause in listed:
            by_manager.setdefault(cause.message, []).append(cause.field)
        parts = [
            f"{message.replace('conflict', 'conflicts', 1)}:\n"
            + "\n".join(f"- {path}" for path in paths)
            for message, paths in by_manager.items()
        ]
        text = f"Apply failed with {len(listed)} conflicts: " + "\n".join(parts)
    return ApiError(
        Reason.CONFLICT, text, details={"causes": [cause.to_json() for cause in listed]}
    )


def invalid_options(kind: str, causes: Sequence[Cause]) -> ApiError:
    """Return the 422 for query parameters or options of a request.

    Args:
        kind: `CreateOptions`, `UpdateOptions`, `PatchOptions`, `DeleteOptions` or `ListOptions`.
    """
    return invalid("meta.k8s.io", kind, "", causes)


def bad_request(message: str) -> ApiError:
    """Return the 400 for a request that can't be understood."""
    return ApiError(Reason.BAD_REQUEST, message)


def expired(message: str) -> ApiError:
    """Return the 410 for a resourceVersion or continue token that history no longer holds."""
    return ApiError(Reason.EXPIRED, message)


def method_not_allowed(message: str) -> ApiError:
    """Return the 405 for a verb that a resource does not have."""
    return ApiError(Reason.METHOD_NOT_ALLOWED, message, details={})
