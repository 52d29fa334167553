"""Validates values of an object against a structural schema, with Kubernetes' texts and paths.

Errors of values that an update left alone are dropped (ratcheting). Uniqueness in lists is
separate (`uniqueness`), as are CEL rules (`cel.rules`) and the rules of built-in kinds
(`builtin`). Called by `compiler`.
"""

from __future__ import annotations

from typing import Any

from sluice.local.apiserver.status import Cause
from sluice.local.schema import causes
from sluice.local.schema.correlation import Old
from sluice.local.schema.formats import CHECKS, INTEGER_BOUNDS
from sluice.local.schema.keywords import number_causes, string_causes
from sluice.local.schema.structural import Node

_JSON_TYPES = {
    str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object",
    type(None): "null",
}  # fmt: skip


_FORMATS = {int: "int64", float: "float64"}
"""Formats by which Kubernetes names the types of numbers that a format forbids."""


def validate(value: Any, node: Node, old: Old) -> list[Cause]:
    """Return what the value keywords of a schema refuse in an object, in the schema's order."""
    return _check(value, node, "", old)


def validate_part(name: str, value: Any, node: Node, old: Old) -> list[Cause]:
    """Return the same for one field of an object, as a status write is validated.

    The API server then names fields in its texts from that field on, but in causes from the root.
    """
    found = []
    for cause in _check(value, node, "", old):
        below = "" if cause.field == causes.ROOT else cause.field
        joint = "." if below and not below.startswith("[") else ""
        found.append(
            Cause(reason=cause.reason, message=cause.message, field=f"{name}{joint}{below}")
        )
    return found


def type_name(value: Any) -> str:
    """Return the JSON type of a value."""
    return _JSON_TYPES.get(type(value), "object")


def has_type(value: Any, node: Node) -> bool:
    """Tell whether a value has the JSON type that a node asks for."""
    if value is None:
        return node.is_nullable or not (node.type or node.is_int_or_string)
    actual = type_name(value)
    if node.is_int_or_string:
        return actual in ("integer", "string")
    if node.is_quantity:
        return actual in ("integer", "number", "string")
    if node.type == "integer":
        return actual == "integer" or (actual == "number" and float(value).is_integer())
    return not node.type or actual == node.type or (node.type == "number" and actual == "integer")


def _check(value: Any, node: Node, path: str, old: Old) -> list[Cause]:
    if old.is_unchanged:
        return []
    found: list[Cause] = []
    if not has_type(value, node):
        found += _wrong_type(value, node, path)
    if value is None:
        return found + _enum(value, node, path)
    keywords = node.value
    if keywords:
        found += _composites(value, keywords, path)
        found += _own(value, node, path)
    if isinstance(value, dict):
        found += _object(value, node, path, old)
    elif isinstance(value, list):
        found += _list(value, node, path, old)
    return found


def _wrong_type(value: Any, node: Node, path: str) -> list[Cause]:
    """Return the type error; where a format is given, Kubernetes names formats instead."""
    form = node.value.get("format")
    expected = "integer,string" if node.is_int_or_string else node.type
    actual = type_name(value)
    if form and value is not None:
        if isinstance(value, list) and node.type == "string":
            return []
        if not isinstance(value, str | list):
            expected, actual = form, _FORMATS.get(type(value), "")
    detail = f"{path} in body must be of type {expected}: {causes.show(actual)}"
    return [causes.type_invalid(path, actual, detail)]


def _own(value: Any, node: Node, path: str) -> list[Cause]:
    """Return what the keywords about the value itself refuse."""
    keywords = node.value
    found: list[Cause] = []
    if isinstance(value, str):
        found += string_causes(value, keywords, path)
        check = CHECKS.get(keywords.get("format", ""))
        if check is not None and not check(value):
            detail = f"{path} in body must be of type {keywords['format']}: {causes.show(value)}"
            found.append(causes.type_invalid(path, value, detail))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if node.type == "integer" and not _is_in_range(value, keywords.get("format", "")):
            form = keywords.get("format")
            what = f"with format {form}" if form in INTEGER_BOUNDS else "(default format)"
            detail = f"Checked value must be of type integer {what} in {path}"
            found.append(causes.invalid("", "", detail))
        found += number_causes(value, keywords, path)
    return found + _enum(value, node, path)


def _is_in_range(value: float, form: str) -> bool:
    bound = INTEGER_BOUNDS.get(form, INTEGER_BOUNDS["int64"])
    return float(value).is_integer() and -bound <= value < bound


def _enum(value: Any, node: Node, path: str) -> list[Cause]:
    allowed = node.value.get("enum")
    if allowed is None or any(
        value == item and isinstance(value, bool) == isinstance(item, bool) for item in allowed
    ):
        return []
    return [causes.not_supported(path, value, allowed)]


def _object(value: dict[str, Any], node: Node, path: str, old: Old) -> list[Cause]:
    keywords = node.value
    found: list[Cause] = []
    least, most = keywords.get("minProperties"), keywords.get("maxProperties")
    if least is not None and len(value) < least:
        detail = f"{path} in body should have at least {least} properties"
        found.append(causes.invalid(path, len(value), detail))
    if most is not None and len(value) > most:
        found.append(causes.too_many(path, len(value), most))
    for name, item in value.items():
        child = node.properties.get(name, node.additional)
        if child is not None:
            below = f"{path}.{name}" if path else name
            found += _check(item, child, below, old.field(name, item, node))
    for name in keywords.get("required") or ():
        if name not in value:
            found.append(causes.required(f"{path}.{name}" if path else name))
    return found


def _list(value: list[Any], node: Node, path: str, old: Old) -> list[Cause]:
    keywords = node.value
    found: list[Cause] = []
    least, most = keywords.get("minItems"), keywords.get("maxItems")
    if least is not None and len(value) < least:
        detail = f"{path} in body should have at least {least} items"
        found.append(causes.invalid(path, len(value), detail))
    if most is not None and len(value) > most:
        found.append(causes.too_many(path, len(value), most))
    if node.items is not None:
        for index, item in enumerate(value):
            found += _check(item, node.items, f"{path}[{index}]", old.item(item, node))
    return found


def _composites(value: Any, keywords: dict[str, Any], path: str) -> list[Cause]:
    """Return what the combining keywords refuse; for alternatives also how the first failed."""
    found: list[Cause] = []
    if "anyOf" in keywords:
        results = [_check(value, item, path, Old()) for item in keywords["anyOf"]]
        if all(results):
            found.append(_composite(path, "must validate at least one schema (anyOf)"))
            found += results[0]
    if "oneOf" in keywords:
        results = [_check(value, item, path, Old()) for item in keywords["oneOf"]]
        valid = sum(not result for result in results)
        if valid != 1:
            what = f"Found {valid} valid alternatives" if valid else "Found none valid"
            text = f"must validate one and only one schema (oneOf). {what}"
            found.append(_composite(path, text))
            if not valid:
                found += results[0]
    if "allOf" in keywords:
        results = [_check(value, item, path, Old()) for item in keywords["allOf"]]
        for result in results:
            found += result
        if any(results):
            what = ". None validated" if all(results) else ""
            found.append(_composite(path, f"must validate all the schemas (allOf){what}"))
    if "not" in keywords and not _check(value, keywords["not"], path, Old()):
        found.append(_composite(path, "must not validate the schema (not)"))
    return found


def _composite(path: str, text: str) -> Cause:
    return causes.invalid("", "", f"{causes.show(path)} {text}")
