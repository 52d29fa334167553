"""Is a CRD's schema structural? What every CRD must obey before its schema is compiled.

Rules: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources (structural schemas).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sluice.local.apiserver.seams import JsonView
from sluice.local.apiserver.status import Cause

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_REFUSED = ("$ref", "definitions", "dependencies", "deprecated", "discriminator", "id",
            "patternProperties", "readOnly", "writeOnly", "xml")  # fmt: skip
_LIST_TYPES = ("atomic", "map", "set")


_SHAPES: dict[str, tuple[type, ...]] = {
    "properties": (dict,),
    "items": (dict,),
    "additionalProperties": (dict, bool),
    "not": (dict,),
    **dict.fromkeys(("required", "enum", "allOf", "anyOf", "oneOf"), (list,)),
    **dict.fromkeys(("x-kubernetes-validations", "x-kubernetes-list-map-keys"), (list,)),
    **dict.fromkeys(("type", "format", "pattern", "description", "title"), (str,)),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), (int, float)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), (int,)),
    **dict.fromkeys(("minProperties", "maxProperties"), (int,)),
    **dict.fromkeys(("nullable", "exclusiveMinimum", "exclusiveMaximum"), (bool,)),
    "x-kubernetes-preserve-unknown-fields": (bool,),
    "x-kubernetes-int-or-string": (bool,),
    "x-kubernetes-embedded-resource": (bool,),
}
"""JSON types of a schema's keywords; the CRD's own type leaves them open below `items`."""

_ENTRIES: dict[str, type] = {
    "required": str,
    "x-kubernetes-list-map-keys": str,
    "allOf": dict,
    "anyOf": dict,
    "oneOf": dict,
    "x-kubernetes-validations": dict,
}


def _check_shapes(node: JsonView, path: str) -> Iterator[Cause]:
    """Yield the keywords whose values have the wrong JSON type."""
    for key, shapes in _SHAPES.items():
        if key not in node:
            continue
        value = node[key]
        fits = isinstance(value, shapes) and not (isinstance(value, bool) and bool not in shapes)
        if fits and key in _ENTRIES:
            fits = all(isinstance(entry, _ENTRIES[key]) for entry in value)
        if fits and key == "x-kubernetes-validations":
            fits = all(isinstance(rule.get("rule"), str) for rule in value)
        if fits and key in ("allOf", "anyOf", "oneOf"):
            for i, entry in enumerate(value):
                yield from _check_shapes(entry, f"{path}.{key}[{i}]")
        if not fits:
            message = "Invalid value: wrong type for this keyword"
            yield _cause("FieldValueTypeInvalid", message, f"{path}.{key}")


def _cause(reason: str, message: str, path: str) -> Cause:
    return Cause(reason=reason, message=message, field=path)


def _required(path: str, message: str) -> Cause:
    return _cause("FieldValueRequired", f"Required value: {message}", path)


def _forbidden(path: str, message: str) -> Cause:
    return _cause("FieldValueForbidden", f"Forbidden: {message}", path)


def check_structural(schema: Any, path: str) -> Iterator[Cause]:
    """Yield what keeps a schema from being structural.

    Args:
        schema: `openAPIV3Schema`.
        path: Where it stands in the CRD.
    """
    if not isinstance(schema, dict):
        yield _cause("FieldValueInvalid", "Invalid value: must be an object", path)
        return
    if schema.get("type") != "object":
        shown = schema.get("type", "")
        message = f'Invalid value: "{shown}": must be object at the root'
        yield _cause("FieldValueInvalid", message, f"{path}.type")
        return
    yield from _check(schema, path, "must not be empty at the root")


def _check(node: JsonView, path: str, empty: str) -> Iterator[Cause]:
    wrong = list(_check_shapes(node, path))
    if wrong:
        yield from wrong
        return
    yield from _check_type(node, path, empty)
    for key in _REFUSED:
        if key in node:
            yield _forbidden(f"{path}.{key}", f"{key} is not supported")
    if node.get("uniqueItems"):
        yield _forbidden(f"{path}.uniqueItems", "uniqueItems cannot be set to true since the "
                         "runtime complexity becomes quadratic")  # fmt: skip
    properties, more = node.get("properties"), node.get("additionalProperties")
    if properties and more not in (None, False):
        message = "additionalProperties and properties are mutual exclusive"
        yield _forbidden(f"{path}.additionalProperties", message)
    if node.get("type") == "array" and not isinstance(node.get("items"), dict):
        yield _required(f"{path}.items", "must be specified")
    yield from _check_list(node, path)
    for name, child in (properties or {}).items():
        below = f"{path}.properties[{name}]"
        yield from _check_child(child, below, "must not be empty for specified object fields")
    if isinstance(node.get("items"), dict):
        empty = "must not be empty for specified array items"
        yield from _check_child(node["items"], f"{path}.items", empty)
    if isinstance(more, dict):
        empty = "must not be empty for specified object fields"
        yield from _check_child(more, f"{path}.additionalProperties", empty)


def _check_child(node: Any, path: str, empty: str) -> Iterator[Cause]:
    if not isinstance(node, dict):
        yield _cause("FieldValueInvalid", "Invalid value: must be an object", path)
        return
    yield from _check(node, path, empty)


def _check_type(node: JsonView, path: str, empty: str) -> Iterator[Cause]:
    kind = node.get("type", "")
    is_free = node.get("x-kubernetes-int-or-string") or node.get(
        "x-kubernetes-preserve-unknown-fields"
    )
    if kind == "" and not is_free:
        yield _required(f"{path}.type", empty)
    elif kind != "" and kind not in _TYPES:
        listed = ", ".join(f'"{name}"' for name in _TYPES)
        message = f'Unsupported value: "{kind}": supported values: {listed}'
        yield _cause("FieldValueNotSupported", message, f"{path}.type")


def _check_list(node: JsonView, path: str) -> Iterator[Cause]:
    kind, keys = node.get("x-kubernetes-list-type"), node.get("x-kubernetes-list-map-keys") or ()
    if kind is not None and kind not in _LIST_TYPES:
        message = f'Unsupported value: "{kind}": supported values: "atomic", "map", "set"'
        yield _cause("FieldValueNotSupported", message, f"{path}.x-kubernetes-list-type")
    if kind == "map" and not keys:
        message = "must not be empty if x-kubernetes-list-type is map"
        yield _required(f"{path}.x-kubernetes-list-map-keys", message)
    known = (node.get("items") or {}).get("properties") or {}
    for i, key in enumerate(keys):
        if key not in known:
            message = f'Invalid value: "{key}": entries must all be names of item properties'
            where = f"{path}.x-kubernetes-list-map-keys[{i}]"
            yield _cause("FieldValueInvalid", message, where)
