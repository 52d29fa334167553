"""The old version of a value while the new one is walked.

Validation needs it twice: rules over `oldSelf` compare corresponding values, and errors of values
that an update left alone are not held against it (ratcheting). Properties and granular maps
correspond by name, list-type map items by their keys; items of other lists do not correspond.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sluice.local.schema.structural import MISSING, Node


@dataclass(frozen=True, slots=True)
class Old:
    """What stood in a value's place before.

    Attributes:
        value: The old value, or MISSING when nothing corresponds.
        is_unchanged: The value, or one above it, is what it was.
    """

    value: Any = MISSING
    is_unchanged: bool = False

    def field(self, name: str, new: Any, node: Node) -> Old:
        """Return the old value of a field or map entry of an object of this node."""
        if not isinstance(self.value, dict) or node.map_type == "atomic":
            return Old(MISSING, self.is_unchanged)
        return self._below(self.value.get(name, MISSING), new)

    def item(self, new: Any, node: Node) -> Old:
        """Return the old item of a list of this node that has the same keys."""
        if not isinstance(self.value, list) or node.list_type != "map":
            return Old(MISSING, self.is_unchanged)
        key = item_key(new, node)
        for candidate in self.value:
            if item_key(candidate, node) == key:
                return self._below(candidate, new)
        return Old(MISSING, self.is_unchanged)

    def _below(self, value: Any, new: Any) -> Old:
        is_unchanged = self.is_unchanged or (value is not MISSING and same(value, new))
        return Old(value, is_unchanged)


def compare(old: Any, new: Any) -> Old:
    """Return the starting point for two whole objects; None for no old object."""
    return Old() if old is None else Old(old, same(old, new))


def item_key(item: Any, node: Node) -> tuple[Any, ...]:
    """Return what identifies an item of a list-type map; absent keys count with their default."""
    if not isinstance(item, dict):
        return (repr(item),)
    properties = node.items.properties if node.items is not None else {}
    key = []
    for name in node.map_keys:
        default = properties[name].default if name in properties else MISSING
        key.append(item.get(name, default))
    return tuple(key)


def same(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are equal; unlike Python's, True is not 1."""
    return left is right or (left == right and _same_types(left, right))


def _same_types(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return all(_same_types(item, right[name]) for name, item in left.items())
    if isinstance(left, list):
        return all(map(_same_types, left, right))
    return isinstance(left, bool) == isinstance(right, bool)
