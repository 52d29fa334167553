"""Quantities of built-in kinds in canonical form: `1000m` becomes `1`, the number 1 the text `1`.

A real API server does so when it decodes an object: the suffix's family stays (binary, decimal,
exponent), the suffix becomes the largest that leaves no fraction, and what is finer than a
thousandth is rounded up. Where quantities stand is read off the schema definitions once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sluice.api import quantity
from sluice.local.apiserver.seams import JsonView, TypeSchema

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"

_DECIMAL = ((18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k"), (0, ""), (-3, "m"))
_BINARY = ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"))


@lru_cache(maxsize=4096)
def canonical(value: str | int | float) -> str:
    """Return a quantity's canonical text.

    Raises:
        ValueError: It is none.
    """
    number = quantity.parse(value)
    milli = quantity.round_away(number * 1000)
    if milli == 0:
        return "0"
    text = str(value)
    if text.endswith("i") and milli % 1000 == 0:
        whole = milli // 1000
        for power, suffix in _BINARY:
            if whole % (1 << power) == 0:
                return f"{whole >> power}{suffix}"
        return str(whole)
    is_exponent = isinstance(value, str) and "e" in text.lower() and not text.endswith("E")
    for power, suffix in _DECIMAL:
        if milli % 10 ** (power + 3) == 0:
            digits = milli // 10 ** (power + 3)
            if is_exponent:
                return f"{digits}e{power}" if power else str(digits)
            return f"{digits}{suffix}"
    return text


class _Plan:
    """Where quantities are below one schema node; None instead of a plan means nowhere."""

    def __init__(self) -> None:
        self.is_quantity = False
        self.fields: dict[str, _Plan] = {}
        self.entries: _Plan | None = None


def _compile(
    node: JsonView, definitions: Mapping[str, JsonView], open_names: tuple[str, ...]
) -> _Plan | None:
    reference = node.get("$ref")
    if isinstance(reference, str):
        if reference == QUANTITY:
            plan = _Plan()
            plan.is_quantity = True
            return plan
        if reference in open_names:
            # No definition that refers to itself holds quantities (schemas, owner trees).
            return None
        return _compile(definitions[reference], definitions, (*open_names, reference))
    plan = _Plan()
    for name, child in (node.get("properties") or {}).items():
        below = _compile(child, definitions, open_names)
        if below is not None:
            plan.fields[name] = below
    more = node.get("items") or node.get("additionalProperties")
    if isinstance(more, Mapping):
        plan.entries = _compile(more, definitions, open_names)
    return plan if plan.fields or plan.entries else None


_plans: dict[tuple[str, str, str], _Plan | None] = {}
"""By group, version and kind; built-in kinds do not change while a process lives."""


def canonicalize(obj: dict[str, Any], schema: TypeSchema) -> None:
    """Write all quantities of a built-in object in canonical form, in place.

    What is no quantity is left for validation to refuse.
    """
    key = (schema.group, schema.version, schema.kind)
    if key not in _plans:
        _plans[key] = _compile(schema.root, schema.definitions, ())
    plan = _plans[key]
    if plan is not None:
        _walk(obj, plan)


def _walk(value: Any, plan: _Plan) -> Any:
    if plan.is_quantity:
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            try:
                return canonical(value)
            except ValueError:
                return value
        return value
    if isinstance(value, dict):
        for name, below in plan.fields.items():
            if name in value:
                value[name] = _walk(value[name], below)
        if plan.entries is not None:
            for name, child in value.items():
                value[name] = _walk(child, plan.entries)
    elif isinstance(value, list) and plan.entries is not None:
        value[:] = [_walk(child, plan.entries) for child in value]
    return value
