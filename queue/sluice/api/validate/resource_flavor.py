"""Validation of ResourceFlavors beyond their schema. Pure. Source: docs/spec/api.md 2.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice.api.errors import FieldError, FieldErrorKind
from sluice.api.validate.gates import Gates
from sluice.api.validate.node import Node
from sluice.api.validate.syntax import check, label_map, label_value, qualified_name


def on_create(new: Mapping[str, Any], gates: Gates) -> list[FieldError]:
    """Return what is wrong with a new ResourceFlavor.

    Raises:
        InvalidObject: A value has the wrong JSON type.
    """
    del gates  # No rule of ResourceFlavors depends on one.
    spec = Node(new).map("spec")
    errors = label_map(spec.at("nodeLabels"), spec.strings("nodeLabels"))
    errors += _taints(spec.items("nodeTaints"))
    for toleration in spec.items("tolerations"):
        if key := toleration.text("key"):
            errors += check(toleration.at("key"), key, qualified_name)
    return errors


def on_update(old: Mapping[str, Any], new: Mapping[str, Any], gates: Gates) -> list[FieldError]:
    """Return what is wrong with a changed ResourceFlavor.

    Raises:
        InvalidObject: A value has the wrong JSON type.
    """
    del old
    return on_create(new, gates)


def _taints(taints: list[Node]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for taint in taints:
        name = taint.text("key")
        errors += check(taint.at("key"), name, qualified_name)
        if value := taint.text("value"):
            errors += check(taint.at("value"), value, label_value)
        identity = (name, taint.text("effect"))
        if identity in seen:
            detail = "taints must be unique by key and effect pair"
            errors.append(
                FieldError(FieldErrorKind.DUPLICATE, taint.path, detail, dict(taint.value))
            )
        seen.add(identity)
    return errors
