"""Paths of fields and sets of them, as `fieldsV1` of managedFields writes them.

A path is a tuple of elements in wire form: `f:NAME` a field, `k:{...}` an item of a list-type map
by its keys, `v:...` an item of a set by its value. A set is a frozenset of paths. Called by the
other modules of this package.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sluice.local.schema.structural import MISSING, Node

Path = tuple[str, ...]
FieldSet = frozenset[Path]

EMPTY: FieldSet = frozenset()
_SELF = "."


def compact(value: Any) -> str:
    """Return JSON text without spaces and with sorted keys."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def field(name: str) -> str:
    """Return the element of a field."""
    return f"f:{name}"


def item(value: Any, node: Node) -> str | None:
    """Return the element of a list item, or None when the item lacks every key."""
    if node.list_type == "set":
        return f"v:{compact(value)}"
    if not isinstance(value, dict):
        return None
    properties = node.items.properties if node.items is not None else {}
    keys: dict[str, Any] = {}
    for name in node.map_keys:
        default = properties[name].default if name in properties else MISSING
        key = value.get(name, default)
        if key is not MISSING:
            keys[name] = key
    return f"k:{compact(keys)}" if keys else None


def show(path: Path) -> str:
    """Return a path as conflicts name it, e.g. `.spec.containers[name="a"].image`."""
    out = []
    for element in path:
        kind, _, rest = element.partition(":")
        if kind == "f":
            out.append(f".{rest}")
        elif kind == "k":
            keys = json.loads(rest)
            out.append("[" + ",".join(f"{k}={compact(keys[k])}" for k in sorted(keys)) + "]")
        elif kind == "v":
            out.append(f"[={rest}]")
        else:
            out.append(f"[{rest}]")
    return "".join(out)


def decode(fields: Any) -> FieldSet:
    """Return the set that a `fieldsV1` object states.

    Raises:
        ValueError: It is no such object.
    """
    found: set[Path] = set()
    _decode(fields, (), found)
    return frozenset(found)


def _decode(fields: Any, path: Path, found: set[Path]) -> None:
    if not isinstance(fields, Mapping):
        raise ValueError("fieldsV1 must be an object of objects")
    for element, below in fields.items():
        if element == _SELF:
            found.add(path)
            continue
        step = (*path, _normalized(element))
        if below:
            _decode(below, step, found)
        else:
            found.add(step)


def _normalized(element: str) -> str:
    kind, _, rest = element.partition(":")
    return f"{kind}:{compact(json.loads(rest))}" if kind in ("k", "v") else element


def encode(paths: Iterable[Path]) -> dict[str, Any]:
    """Return the `fieldsV1` object of a set."""
    tree = Tree.of(paths)
    return tree.to_json()


class Tree:
    """A set of paths as nested steps, for walking it beside an object."""

    __slots__ = ("children", "is_member")

    def __init__(self) -> None:
        self.children: dict[str, Tree] = {}
        self.is_member = False

    @staticmethod
    def of(paths: Iterable[Path]) -> Tree:
        """Return the tree of a set."""
        root = Tree()
        for path in paths:
            node = root
            for element in path:
                node = node.children.setdefault(element, Tree())
            node.is_member = True
        return root

    def to_json(self) -> dict[str, Any]:
        """Return the wire form of what is below this step."""
        out: dict[str, Any] = {}
        for element in sorted(self.children):
            child = self.children[element]
            below = child.to_json()
            if below and child.is_member:
                below = {_SELF: {}, **below}
            out[element] = below
        return out


def without_prefixes(paths: FieldSet, prefixes: FieldSet) -> FieldSet:
    """Return the set without what lies at or below any of the prefixes."""
    if not prefixes:
        return paths
    return frozenset(
        path
        for path in paths
        if not any(path[:length] in prefixes for length in range(1, len(path) + 1))
    )
