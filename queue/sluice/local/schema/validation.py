"""Validates an object against a structural schema, with Kubernetes' texts and field paths.

Errors of values that an update left alone are dropped (ratcheting). CEL rules are separate
(`cel.rules`), as are the rules of built-in kinds (`builtin`). Called by `compiler`.
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


def validate(value: Any, node: Node, old: Old) -> list[Cause]:
    """Return what the value keywords of a schema refuse in an object, in the schema's order."""
    return _check(value, node, "", old)


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
        expected = "integer,string" if node.is_int_or_string else node.type
        actual = type_name(value)
        detail = f"{path} in body must be of type {expected}: {causes.show(actual)}"
        found.append(causes.type_invalid(path, actual, detail))
        found += _enum(value, node, path)
        return found
    if value is None:
        return _enum(value, node, path)
    keywords = node.value
    if keywords:
        found += _composites(value, keywords, path)
        found += _own(value, node, path)
    if isinstance(value, dict):
        found += _object(value, node, path, old)
    elif isinstance(value, list):
        found += _list(value, node, path, old)
    return found


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
        bound = INTEGER_BOUNDS.get(keywords.get("format", "")) if node.type == "integer" else None
        if bound is not None and not -bound <= value < bound:
            detail = (
                f"Checked value must be of type integer with format {keywords['format']} in {path}"
            )
            found.append(causes.invalid("", "", detail))
        found += number_causes(value, keywords, path)
    return found + _enum(value, node, path)


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
    if node.list_type in ("set", "map"):
        found += _duplicates(value, node, path)
    return found


def _duplicates(value: list[Any], node: Node, path: str) -> list[Cause]:
    seen: set[str] = set()
    reported: set[str] = set()
    found: list[Cause] = []
    for index, item in enumerate(value):
        shown = item
        if node.list_type == "map":
            if not isinstance(item, dict):
                continue
            shown = {name: item[name] for name in node.map_keys if name in item}
        key = causes.show(shown)
        if key in seen and key not in reported:
            found.append(causes.duplicate(f"{path}[{index}]", shown))
            reported.add(key)
        seen.add(key)
    return found


def _composites(value: Any, keywords: dict[str, Any], path: str) -> list[Cause]:
    """Return what `allOf`, `anyOf`, `oneOf` and `not` refuse, with the best failed alternative."""
    found: list[Cause] = []
    if "anyOf" in keywords:
        results = [_check(value, item, path, Old()) for item in keywords["anyOf"]]
        if all(results):
            found.append(_composite(path, "must validate at least one schema (anyOf)"))
            found += _shortest(results)
    if "oneOf" in keywords:
        results = [_check(value, item, path, Old()) for item in keywords["oneOf"]]
        valid = sum(not result for result in results)
        if valid != 1:
            what = f"Found {valid} valid alternatives" if valid else "Found none valid"
            text = f"must validate one and only one schema (oneOf). {what}"
            found.append(_composite(path, text))
            if not valid:
                found += _shortest(results)
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


def _shortest(results: list[list[Cause]]) -> list[Cause]:
    return min(results, key=lambda result: len(result))


def _composite(path: str, text: str) -> Cause:
    return causes.invalid("", "", f"{causes.show(path)} {text}")
