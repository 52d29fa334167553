"""The annotation ``kueue.x-k8s.io/admission-gated-by`` of Workloads and jobs.

A comma-separated list of gates that hold back admission; it may only shrink. Pure.
Source: docs/spec/api.md 2.3.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sluice.api import names
from sluice.api.errors import FieldError, forbidden, invalid, too_long
from sluice.api.validate.node import key
from sluice.api.validate.syntax import domain_prefixed_path

PATH: Final = key("metadata.annotations", names.ADMISSION_GATED_BY)
_GATE_BYTES_MAX: Final = 63


def gates_of(annotations: Mapping[str, str]) -> list[str]:
    """Return the gates that annotations name, trimmed; a blank value is an empty list."""
    text = annotations.get(names.ADMISSION_GATED_BY, "")
    return [gate.strip() for gate in text.split(",")] if text.strip() else []


def on_create(annotations: Mapping[str, str]) -> list[FieldError]:
    """Return the errors of a new object's gates."""
    text = annotations.get(names.ADMISSION_GATED_BY, "")
    errors: list[FieldError] = []
    seen: set[str] = set()
    for gate in gates_of(annotations):
        if not gate:
            errors.append(invalid(PATH, text, "cannot contain empty gate names"))
            continue
        if gate in seen:
            errors.append(invalid(PATH, text, f"duplicate gate name: {gate}"))
        seen.add(gate)
        errors += domain_prefixed_path(PATH, gate)
        if len(gate.encode()) > _GATE_BYTES_MAX:
            errors.append(too_long(PATH, _GATE_BYTES_MAX))
    return errors


def on_update(old: Mapping[str, str], new: Mapping[str, str]) -> list[FieldError]:
    """Return the errors of a change of gates: they may be taken away, never added."""
    before, after = gates_of(old), gates_of(new)
    errors: list[FieldError] = []
    if after and not before:
        errors.append(forbidden(PATH, "cannot add admission gate after creation"))
    elif not set(after) <= set(before):
        errors.append(forbidden(PATH, "can only remove gates, not add new ones"))
    return errors + on_create(new)
