"""Value keywords of strings and numbers. Called by `validation`."""

from __future__ import annotations

import math
from typing import Any

from sluice.local.apiserver.status import Cause
from sluice.local.schema import causes
from sluice.local.schema.patterns import matcher


def string_causes(value: str, keywords: dict[str, Any], path: str) -> list[Cause]:
    """Return the first of maxLength, minLength and pattern that the text breaks, as Kubernetes."""
    most, least = keywords.get("maxLength"), keywords.get("minLength")
    if most is not None and len(value) > most:
        return [causes.too_long(path, most)]
    if least is not None and len(value) < least:
        detail = f"{path} in body should be at least {least} chars long"
        return [causes.invalid(path, value, detail)]
    pattern = keywords.get("pattern")
    if pattern and not matcher(pattern)(value):
        return [causes.invalid(path, value, f"{path} in body should match '{pattern}'")]
    return []


def number_causes(value: float, keywords: dict[str, Any], path: str) -> list[Cause]:
    """Return what multipleOf and the bounds refuse."""
    found: list[Cause] = []
    factor = keywords.get("multipleOf")
    if factor and not math.isclose((value / factor) % 1, 0, abs_tol=1e-9):
        found.append(
            causes.invalid(path, value, f"{path} in body should be a multiple of {factor}")
        )
    least, most = keywords.get("minimum"), keywords.get("maximum")
    if least is not None:
        is_exclusive = bool(keywords.get("exclusiveMinimum"))
        if value < least or (is_exclusive and value == least):
            words = "greater than" if is_exclusive else "greater than or equal to"
            found.append(causes.invalid(path, value, f"{path} in body should be {words} {least}"))
    if most is not None:
        is_exclusive = bool(keywords.get("exclusiveMaximum"))
        if value > most or (is_exclusive and value == most):
            words = "less than" if is_exclusive else "less than or equal to"
            found.append(causes.invalid(path, value, f"{path} in body should be {words} {most}"))
    return found
