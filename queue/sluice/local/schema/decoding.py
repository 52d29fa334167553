"""Whether JSON decodes into the typed object of a built-in kind. Called by `compiler`.

A built-in object that doesn't fit Kubernetes' Go types is refused before anything looks at it, with
400 and the decoder's words; the texts here follow them as far as a schema can tell.
"""

from __future__ import annotations

from typing import Any, Final

from sluice.api import quantity
from sluice.local.apiserver.status import ApiError, bad_request
from sluice.local.schema.structural import Node

_JSON_WORDS: Final = {
    str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object",
}  # fmt: skip
_GO_NUMBERS: Final = {"integer": "int64", "number": "float64"}
_BAD_QUANTITY: Final = "unable to parse quantity's suffix"
_BAD_QUANTITY_TEXT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


def refuse_undecodable(obj: Any, root: Node, kind: str, version: str) -> None:
    """Refuse an object that does not decode.

    Raises:
        ApiError: 400, naming the field.
    """
    problem = _problem(obj, root, kind, "")
    if problem:
        raise _refused(kind, version, problem)


def _refused(kind: str, version: str, problem: str) -> ApiError:
    text = f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}'
    return bad_request(text)


def _problem(value: Any, node: Node, owner: str, path: str) -> str:
    if value is None:
        return ""
    wanted = _wanted(value, node)
    if wanted:
        word = _JSON_WORDS[type(value)]
        if isinstance(value, float) and node.type == "integer":
            word = f"{word} {value}"
        return f"json: cannot unmarshal {word} into Go struct field {owner}.{path} of type {wanted}"
    if node.is_quantity:
        return _quantity_problem(value)
    if isinstance(value, dict):
        inner = node.type_name or owner
        for name, below in value.items():
            child = node.properties.get(name, node.additional)
            if child is not None:
                is_field = name in node.properties
                step = f"{path}.{name}" if path and is_field else path or name
                found = _problem(below, child, inner, step)
                if found:
                    return found
    elif isinstance(value, list) and node.items is not None:
        for below in value:
            found = _problem(below, node.items, owner, path)
            if found:
                return found
    return ""


def _quantity_problem(value: Any) -> str:
    if isinstance(value, dict | list | bool):
        return _BAD_QUANTITY_TEXT
    if quantity.is_quantity(value):
        return ""
    is_number = str(value).lstrip("+-")[:1].isdigit()
    return _BAD_QUANTITY if is_number else _BAD_QUANTITY_TEXT


def _wanted(value: Any, node: Node) -> str:
    """Return the Go type that a value should have had, "" when it fits."""
    if node.is_quantity or node.is_int_or_string:
        is_scalar = isinstance(value, str | int | float) and not isinstance(value, bool)
        return "" if is_scalar or node.is_quantity else "int32"
    if node.properties or node.type_name:
        return "" if isinstance(value, dict) or node.is_open else f"v1.{node.type_name or 'Object'}"
    if node.additional is not None:
        of = node.additional.type or "string"
        return "" if isinstance(value, dict) else f"map[string]{of}"
    if node.type == "array":
        return "" if isinstance(value, list) else f"[]{_element(node.items)}"
    if node.type == "string":
        return "" if isinstance(value, str) else "string"
    if node.type == "boolean":
        return "" if isinstance(value, bool) else "bool"
    if node.type in _GO_NUMBERS:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        fits = is_number and (node.type == "number" or float(value).is_integer())
        return "" if fits else str(node.value.get("format") or _GO_NUMBERS[node.type])
    return ""


def _element(node: Node | None) -> str:
    if node is None:
        return "interface {}"
    return f"v1.{node.type_name}" if node.type_name else node.type or "interface {}"
