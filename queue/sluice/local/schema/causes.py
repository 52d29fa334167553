"""Field errors in Kubernetes' text forms, as causes of a Status.

The texts are those that an API server gives for custom and built-in resources, so that people and
programs see the same words on both control planes. Used by everything below `sluice.local.schema`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from sluice.local.apiserver.status import Cause

INVALID: Final = "FieldValueInvalid"
REQUIRED: Final = "FieldValueRequired"
DUPLICATE: Final = "FieldValueDuplicate"
FORBIDDEN: Final = "FieldValueForbidden"
NOT_SUPPORTED: Final = "FieldValueNotSupported"
TOO_LONG: Final = "FieldValueTooLong"
TOO_MANY: Final = "FieldValueTooMany"
TYPE_INVALID: Final = "FieldValueTypeInvalid"

BLOCKING: Final = frozenset({NOT_SUPPORTED, REQUIRED, TOO_LONG, TOO_MANY, TYPE_INVALID})
"""Reasons after which CEL rules are not evaluated."""

ROOT: Final = "<nil>"
"""What Kubernetes prints for the path of the object itself."""


class _Omitted:
    """Marks a value that is not shown."""


OMITTED: Final = _Omitted()


def show(value: Any) -> str:
    """Return a JSON value as it stands in an error text."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def _with_value(word: str, value: Any, detail: str) -> str:
    text = word if value is OMITTED else f"{word}: {show(value)}"
    return f"{text}: {detail}" if detail else text


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def invalid(path: str, value: Any, detail: str) -> Cause:
    """Return an Invalid error: the value breaks a rule."""
    return Cause(
        reason=INVALID, message=_with_value("Invalid value", value, detail), field=path or ROOT
    )


def type_invalid(path: str, value: Any, detail: str) -> Cause:
    """Return a TypeInvalid error: the value has the wrong JSON type or format."""
    return Cause(
        reason=TYPE_INVALID, message=_with_value("Invalid value", value, detail), field=path or ROOT
    )


def required(path: str, detail: str = "") -> Cause:
    """Return a Required error: the field must be set."""
    return Cause(
        reason=REQUIRED, message=_with_value("Required value", OMITTED, detail), field=path or ROOT
    )


def duplicate(path: str, value: Any) -> Cause:
    """Return a Duplicate error: the value occurs before in the list."""
    return Cause(
        reason=DUPLICATE, message=_with_value("Duplicate value", value, ""), field=path or ROOT
    )


def forbidden(path: str, detail: str) -> Cause:
    """Return a Forbidden error: the field may not be set or changed here."""
    return Cause(
        reason=FORBIDDEN, message=_with_value("Forbidden", OMITTED, detail), field=path or ROOT
    )


def not_supported(path: str, value: Any, supported: Iterable[Any]) -> Cause:
    """Return a NotSupported error: the value is not among those taken."""
    names = [item if isinstance(item, str) else show(item) for item in supported]
    detail = "supported values: " + ", ".join(show(name) for name in names)
    return Cause(
        reason=NOT_SUPPORTED,
        message=_with_value("Unsupported value", value, detail),
        field=path or ROOT,
    )


def too_long(path: str, length_max: int) -> Cause:
    """Return a TooLong error: the text has more than ``length_max`` bytes."""
    detail = f"may not be more than {_plural(length_max, 'byte')}"
    return Cause(reason=TOO_LONG, message=f"Too long: {detail}", field=path or ROOT)


def too_many(path: str, count: int, count_max: int) -> Cause:
    """Return a TooMany error: the list or map has more than ``count_max`` entries."""
    detail = f"must have at most {_plural(count_max, 'item')}"
    return Cause(reason=TOO_MANY, message=f"Too many: {count}: {detail}", field=path or ROOT)
