"""Validation of metav1.Condition lists, with Kubernetes' rules and texts. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sluice.api.errors import (
    FieldError,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
)
from sluice.api.validate.node import Node
from sluice.api.validate.syntax import check, qualified_name

_STATUSES: Final = ("False", "True", "Unknown")
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_TEXT: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' "
    "(e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', "
    f"regex used for validation is '{_REASON}')"
)
_REASON_BYTES_MAX: Final = 1024
_MESSAGE_BYTES_MAX: Final = 32 * 1024
_is_reason = re.compile(_REASON).fullmatch


def condition_list(path: str, conditions: Sequence[Node]) -> list[FieldError]:
    """Return the errors of a list of conditions.

    Args:
        path: Path of the list.
        conditions: Its items.
    """
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        kind = condition.text("type")
        if kind in seen:
            errors.append(duplicate(f"{path}[{i}].type", kind))
        seen.add(kind)
        errors += _condition(condition, kind)
    return errors


def _condition(condition: Node, kind: str) -> list[FieldError]:
    errors = check(condition.at("type"), kind, qualified_name)
    status = condition.text("status")
    if status not in _STATUSES:
        errors.append(not_supported(condition.at("status"), status, _STATUSES))
    generation = condition.integer("observedGeneration") or 0
    if generation < 0:
        detail = "must be greater than or equal to zero"
        errors.append(invalid(condition.at("observedGeneration"), generation, detail))
    if not condition.text("lastTransitionTime"):
        errors.append(required(condition.at("lastTransitionTime")))
    reason = condition.text("reason")
    if not reason:
        errors.append(required(condition.at("reason")))
    elif not _is_reason(reason):
        errors.append(invalid(condition.at("reason"), reason, _REASON_TEXT))
    if len(reason.encode()) > _REASON_BYTES_MAX:
        errors.append(too_long(condition.at("reason"), _REASON_BYTES_MAX))
    if len(condition.text("message").encode()) > _MESSAGE_BYTES_MAX:
        errors.append(too_long(condition.at("message"), _MESSAGE_BYTES_MAX))
    return errors
