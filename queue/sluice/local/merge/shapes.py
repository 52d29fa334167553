"""Whether an object has the shape its schema says, which ownership of fields presupposes.

An apply of a misshapen configuration fails before anything is merged; after an update to such an
object (its status may be, when it is not taken) ownership is unknown. Called by `ownership`.
"""

from __future__ import annotations

from typing import Any

from sluice.local.merge import paths
from sluice.local.merge.paths import Path
from sluice.local.merge.typed import DEDUCED, child_of, is_granular_list
from sluice.local.schema.structural import METADATA, Node

_GO_TYPES = {
    str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}",
    dict: "map[string]interface {}",
}  # fmt: skip


def misshapen(value: Any, node: Node, *, allows_duplicates: bool = False) -> list[str]:
    """Return what of an object does not fit its schema, in Kubernetes' words.

    Args:
        value: A whole object.
        node: Its schema.
        allows_duplicates: Whether one item may be named twice, as in stored objects.
    """
    found: list[str] = []
    _check(value, node, (), found, allows_duplicates)
    return found


def _check(value: Any, node: Node, path: Path, found: list[str], allows_duplicates: bool) -> None:
    if value is None:
        return
    problem = _type_problem(value, node)
    if problem:
        found.append(f"{paths.show(path)}: {problem}")
    elif isinstance(value, dict):
        is_closed = bool(node.properties) and node.additional is None and not node.is_open
        for name, below in value.items():
            step = (*path, paths.field(name))
            if is_closed and name not in node.properties and not _is_resource(node, name):
                found.append(f"{paths.show(step)}: field not declared in schema")
                continue
            _check(below, child_of(node, name), step, found, allows_duplicates)
    elif isinstance(value, list) and is_granular_list(node):
        _check_items(value, node, path, found, allows_duplicates)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            step = (*path, f"i:{index}")
            _check(below, node.items or DEDUCED, step, found, allows_duplicates)


def _is_resource(node: Node, name: str) -> bool:
    return node.is_embedded and name in METADATA


def _check_items(
    value: list[Any], node: Node, path: Path, found: list[str], allows_duplicates: bool
) -> None:
    seen: set[str] = set()
    for index, below in enumerate(value):
        problem = _item_problem(below, node)
        if problem:
            found.append(f"{paths.show(path)}: element {index}: {problem}")
            continue
        element = paths.item(below, node) or ""
        if element in seen and not allows_duplicates:
            key = paths.show((element,))
            found.append(f"{paths.show(path)}: duplicate entries for key {key}")
        seen.add(element)
        _check(below, node.items or DEDUCED, (*path, element), found, allows_duplicates)


def _item_problem(value: Any, node: Node) -> str:
    if node.list_type == "set":
        if isinstance(value, dict):
            return "associative list without keys has an element that's a map type"
        if isinstance(value, list):
            return "not supported: associative list with lists as elements"
        if value is None:
            return "associative list without keys has an element that's an explicit null"
        return ""
    if value is None:
        return "associative list with keys may not have a null element"
    if not isinstance(value, dict):
        return "associative list with keys may not have non-map elements"
    if paths.item(value, node) is None:
        keys = " ".join(paths.compact(name) for name in node.map_keys)
        return (
            f"associative list with keys has an element that omits all key fields [{keys}] "
            "(and doesn't have default values for any key fields)"
        )
    return ""


def _type_problem(value: Any, node: Node) -> str:
    kind = type(value)
    if node.properties or node.additional is not None or node.type == "object":
        return "" if kind is dict else f"expected map, got &{{{go_text(value)}}}"
    if node.items is not None or node.type == "array":
        return "" if kind is list else f"expected list, got &{{{go_text(value)}}}"
    if node.type == "string" and node.value.get("format") == "date-time":
        # The typed form of a time takes any scalar.
        is_scalar = kind not in (dict, list)
        return "" if is_scalar else f"expected any scalar, got &{{{go_text(value)}}}"
    if node.type == "string" and kind is not str:
        return f"expected string, got &value.valueUnstructured{{Value:{_syntax(value)}}}"
    if node.type in ("integer", "number") and kind not in (int, float):
        return f"expected numeric (int or float), got {_GO_TYPES[kind]}"
    if node.type == "boolean" and kind is not bool:
        return f"expected boolean, got &{{{go_text(value)}}}"
    return ""


def go_text(value: Any) -> str:
    """Return a value as Go prints it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{k}:{go_text(v)}" for k, v in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)


def _syntax(value: Any) -> str:
    """Return a value as Go writes it in source code."""
    if isinstance(value, dict):
        listed = ", ".join(f"{paths.compact(k)}:{_syntax(v)}" for k, v in sorted(value.items()))
        return f"{_GO_TYPES[dict]}{{{listed}}}"
    if isinstance(value, list):
        return f"{_GO_TYPES[list]}{{{', '.join(map(_syntax, value))}}}"
    if value is None:
        return "interface {}(nil)"
    return paths.compact(value)
