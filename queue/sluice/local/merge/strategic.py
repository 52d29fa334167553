"""Strategic merge patch, which kubectl sends for built-in kinds.

Like a JSON merge patch, but lists with a merge key merge by it, and directives (`$patch`,
`$retainKeys`, `$setElementOrder/F`, `$deleteFromPrimitiveList/F`) say what a merge alone can't.
Which lists merge is in the schema (`x-kubernetes-patch-strategy`). Called by `merger`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice.local.merge.documents import PatchMalformed, PatchRefused
from sluice.local.merge.paths import compact
from sluice.local.merge.shapes import go_text
from sluice.local.schema.defaulting import copy_json
from sluice.local.schema.structural import Node

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE_FROM: Final = "$deleteFromPrimitiveList/"
_ANY: Final = Node()


def apply_strategic_patch(document: Mapping[str, Any], patch: Any, root: Node) -> dict[str, Any]:
    """Return the document with the patch applied; inputs stay as they are.

    Raises:
        PatchMalformed: The patch is no object, or a directive in it can't be understood.
        PatchRefused: An item of a list lacks the key by which the list merges.
    """
    if not isinstance(patch, Mapping):
        raise PatchMalformed("a strategic merge patch is an object")
    merged = _merge_map(copy_json(dict(document)), copy_json(dict(patch)), root)
    return merged if merged is not None else {}


def _merge_map(
    original: dict[str, Any], patch: dict[str, Any], node: Node
) -> dict[str, Any] | None:
    """Return the merged map; None when the patch deletes it."""
    directive = patch.pop(_DIRECTIVE, None)
    if directive == "replace":
        return patch
    if directive == "delete":
        return None
    if directive not in (None, "merge"):
        raise PatchMalformed(f"unknown patch type {directive!r}: use replace, delete or merge")
    retained = patch.pop(_RETAIN, None)
    if retained is not None:
        _retain(original, patch, retained)
    orders: dict[str, list[Any]] = {}
    for name in [name for name in patch if name.startswith(_ORDER)]:
        orders[name.removeprefix(_ORDER)] = _listed(name, patch.pop(name))
    for name in [name for name in patch if name.startswith(_DELETE_FROM)]:
        field, gone = name.removeprefix(_DELETE_FROM), _listed(name, patch.pop(name))
        if isinstance(original.get(field), list):
            original[field] = [item for item in original[field] if item not in gone]
    for name, value in patch.items():
        child = node.properties.get(name) or node.additional or _ANY
        if value is None:
            original.pop(name, None)
        elif isinstance(value, dict):
            _merge_field(original, name, value, child)
        elif isinstance(value, list) and "merge" in child.patch_strategies:
            before = original.get(name)
            before = before if isinstance(before, list) else []
            original[name] = _merge_list(before, value, child, orders.pop(name, None))
        else:
            original[name] = value
    for name, order in orders.items():
        child = node.properties.get(name) or _ANY
        if isinstance(original.get(name), list):
            original[name] = _merge_list(original[name], [], child, order)
    return original


def _listed(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise PatchMalformed(f"{name} must be a list")
    return value


def _retain(original: dict[str, Any], patch: dict[str, Any], retained: Any) -> None:
    retained = _listed(_RETAIN, retained)
    extra = sorted(name for name in patch if name not in retained and not name.startswith("$"))
    if extra:
        raise PatchMalformed(f"{_RETAIN} must contain the patched field {extra[0]!r}")
    for name in [name for name in original if name not in retained]:
        del original[name]


def _merge_field(original: dict[str, Any], name: str, value: dict[str, Any], child: Node) -> None:
    before = original.get(name)
    if "replace" in child.patch_strategies or not isinstance(before, dict):
        before = {}
    merged = _merge_map(before, value, child)
    if merged is None:
        original.pop(name, None)
    else:
        original[name] = merged


def _merge_list(
    original: list[Any], patch: list[Any], node: Node, order: list[Any] | None
) -> list[Any]:
    key = node.patch_merge_key
    if not key:
        merged = _unique([*original, *patch])
        return _ordered(merged, original, patch if order is None else order, compact)
    if any(isinstance(item, dict) and item.get(_DIRECTIVE) == "replace" for item in patch):
        return [
            item
            for item in patch
            if not (isinstance(item, dict) and item.get(_DIRECTIVE) == "replace")
        ]
    merged = [item for item in original if isinstance(item, dict)]
    # Without an order of its own, what a patch names keeps the order of the patch.
    wanted = order if order is not None else copy_json(patch)
    if not all(isinstance(item, dict) for item in wanted):
        raise PatchMalformed(f"{_ORDER}... must be a list of objects with their {key}")
    for item in patch:
        if key not in item:
            raise PatchRefused(f"map: {go_text(item)} does not contain declared merge key: {key}")
        at = next((i for i, old in enumerate(merged) if old.get(key) == item[key]), None)
        result = _merge_map(merged[at] if at is not None else {}, item, node.items or _ANY)
        if at is None:
            if result is not None:
                merged.append(result)
        elif result is None:
            del merged[at]
        else:
            merged[at] = result
    return _ordered(merged, original, wanted, lambda item: compact(item.get(key)))


def _unique(items: list[Any]) -> list[Any]:
    return list({compact(item): item for item in items}.values())


def _ordered(merged: list[Any], original: list[Any], order: list[Any], identify: Any) -> list[Any]:
    """Return the items in the order a patch asks for; those it doesn't name stay between them."""
    wanted: dict[str, int] = {}
    for position, item in enumerate(order):
        wanted.setdefault(identify(item), position)
    standing = {identify(item): position for position, item in enumerate(original)}
    named = sorted((i for i in merged if identify(i) in wanted), key=lambda i: wanted[identify(i)])
    others = [item for item in merged if identify(item) not in wanted]
    out: list[Any] = []
    while named and others:
        left, right = standing.get(identify(named[0])), standing.get(identify(others[0]))
        is_right_first = left is not None and right is not None and right < left
        out.append(others.pop(0) if is_right_first else named.pop(0))
    return [*out, *named, *others]
