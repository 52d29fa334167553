"""The exception tree and the field errors of validation.

::

    SluiceError
    ├── ConfigError          bad settings or flags; the program exits with 2
    ├── InvalidObject        an object that breaks a rule: carries FieldErrors
    ├── KubeError            an API server call failed
    │   ├── Conflict         409 on update: stale resourceVersion or field ownership
    │   ├── AlreadyExists    409 on create
    │   ├── Gone             410: the watch window or a continue token has expired
    │   ├── NotFound         404
    │   ├── Invalid          422, 400: the server refused the object
    │   ├── Forbidden        401, 403
    │   ├── Throttled        429, with the time to wait
    │   └── Transient        network trouble, 5xx, time-out: try again
    └── InvariantViolation   our own bug; never caught below the manager

Anyone may import it. `KubeError` is raised only by ``sluice.kube``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class SluiceError(Exception):
    """Root of every error this program raises on purpose."""


class ConfigError(SluiceError):
    """Settings, flags or files that cannot be used; the message names the field and the fix."""


class InvariantViolation(SluiceError):
    """A state that must not exist: a fault of this program, with what led to it."""


class KubeError(SluiceError):
    """An API server call that failed.

    Attributes:
        status: HTTP status code, 0 when no answer came.
        reason: Kubernetes reason such as ``NotFound``, empty when unknown.
        body: The Status object of the answer, if there was one.
    """

    def __init__(
        self, message: str, *, status: int = 0, reason: str = "", body: object | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.body = body


class Conflict(KubeError):
    """The object changed since it was read, or another manager owns the field."""


class AlreadyExists(KubeError):
    """An object of that name exists."""


class Gone(KubeError):
    """The resource version or continue token is too old; list again."""


class NotFound(KubeError):
    """The object or its kind does not exist."""


class Invalid(KubeError):
    """The API server refused the object or request as malformed."""


class Forbidden(KubeError):
    """The credentials do not suffice."""


class Throttled(KubeError):
    """The API server asks to wait.

    Attributes:
        retry_after_s: Seconds to wait, at least 0.
    """

    def __init__(self, message: str, *, retry_after_s: float, body: object | None = None) -> None:
        super().__init__(message, status=429, reason="TooManyRequests", body=body)
        self.retry_after_s = retry_after_s


class Transient(KubeError):
    """A failure that may pass: network, time-out, 5xx."""


class FieldErrorKind(StrEnum):
    """Kinds of field errors, with the text Kubernetes gives each."""

    INVALID = "Invalid value"
    REQUIRED = "Required value"
    DUPLICATE = "Duplicate value"
    FORBIDDEN = "Forbidden"
    NOT_FOUND = "Not found"
    NOT_SUPPORTED = "Unsupported value"
    TOO_LONG = "Too long"
    TOO_MANY = "Too many"


class _NoValue:
    def __repr__(self) -> str:
        return "NO_VALUE"


NO_VALUE = _NoValue()


@dataclass(frozen=True, slots=True)
class FieldError:
    """One broken rule at one field.

    Attributes:
        kind: What is wrong.
        path: Field path such as ``spec.resourceGroups[0].flavors[1].name``.
        value: The offending JSON value, shown for Invalid, Duplicate, NotFound, NotSupported; for
            TooMany how many there are.
        detail: What would be right.
        supported: The values taken, for NotSupported.
    """

    kind: FieldErrorKind
    path: str
    detail: str = ""
    value: object = NO_VALUE
    supported: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the text form of docs/spec/api.md (conventions)."""
        text = f"{self.path}: {self.kind.value}"
        if self.value is not NO_VALUE and self.kind not in _WITHOUT_VALUE:
            text += f": {json.dumps(self.value, separators=(',', ':'), ensure_ascii=False)}"
        detail = self.detail
        if self.supported:
            detail = "supported values: " + ", ".join(json.dumps(s) for s in self.supported)
        return f"{text}: {detail}" if detail else text


_WITHOUT_VALUE = frozenset(
    {
        FieldErrorKind.REQUIRED,
        FieldErrorKind.FORBIDDEN,
        FieldErrorKind.TOO_LONG,
    }
)


def invalid(path: str, value: object, detail: str) -> FieldError:
    """Return an Invalid error: the value breaks a rule."""
    return FieldError(FieldErrorKind.INVALID, path, detail, value)


def required(path: str, detail: str = "") -> FieldError:
    """Return a Required error: the field must be set."""
    return FieldError(FieldErrorKind.REQUIRED, path, detail)


def duplicate(path: str, value: object) -> FieldError:
    """Return a Duplicate error: the value occurs before in the list."""
    return FieldError(FieldErrorKind.DUPLICATE, path, "", value)


def forbidden(path: str, detail: str) -> FieldError:
    """Return a Forbidden error: the field may not be set or changed here."""
    return FieldError(FieldErrorKind.FORBIDDEN, path, detail)


def not_found(path: str, value: object) -> FieldError:
    """Return a NotFound error: the value names something that does not exist."""
    return FieldError(FieldErrorKind.NOT_FOUND, path, "", value)


def not_supported(path: str, value: object, supported: Iterable[str]) -> FieldError:
    """Return a NotSupported error: the value is not among those taken."""
    return FieldError(FieldErrorKind.NOT_SUPPORTED, path, "", value, tuple(supported))


def too_long(path: str, length_max: int) -> FieldError:
    """Return a TooLong error for a string of more than ``length_max`` bytes."""
    return FieldError(FieldErrorKind.TOO_LONG, path, f"may not be more than {length_max} bytes")


def too_many(path: str, count: int, count_max: int) -> FieldError:
    """Return a TooMany error for a list or map of ``count`` entries."""
    items = "item" if count_max == 1 else "items"
    return FieldError(
        FieldErrorKind.TOO_MANY, path, f"must have at most {count_max} {items}", count
    )


def aggregate(errors: Iterable[FieldError]) -> str:
    """Return the text of several field errors as Kubernetes joins them, duplicates left out."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


class InvalidObject(SluiceError):
    """An object that breaks rules.

    Attributes:
        errors: At least one field error.
    """

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__(aggregate(self.errors))
