"""Objects beside their schema: which fields they set, how two differ, how one merges into another.

The four operations that ownership of fields is made of, after Kubernetes' definition of server-side
apply: structs and granular maps by field, list-type maps by key, sets by value; atomic lists and
maps, and lists a schema says nothing about, as one. Called by `ownership`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from sluice.local.merge import paths
from sluice.local.merge.paths import FieldSet, Path, Tree
from sluice.local.schema.correlation import same
from sluice.local.schema.structural import MISSING, Node

DEDUCED: Final = Node()
"""Schema of what has none: maps by field, lists as one."""

_VALUE_STRUCTS: Final = frozenset({"spec", "status", "metadata", "template", "strategy"})
"""Fields of built-in kinds that Go holds by value: they exist, empty, before anybody sets them."""


_ZEROS: Final = {"string": "", "integer": 0, "number": 0, "boolean": False}


def child_of(node: Node, name: str) -> Node:
    """Return the schema of a field or map value."""
    return node.properties.get(name) or node.additional or DEDUCED


def is_granular_list(node: Node) -> bool:
    """Tell whether items of a list have owners of their own."""
    return node.list_type in ("set", "map")


def field_set(value: Any, node: Node) -> FieldSet:
    """Return the fields that an applied configuration sets."""
    found: set[Path] = set()
    _collect(value, node, (), found)
    return frozenset(found)


def _collect(value: Any, node: Node, path: Path, found: set[Path]) -> None:
    if isinstance(value, dict) and node.map_type != "atomic":
        for name, below in value.items():
            step = (*path, paths.field(name))
            _collect(below, child_of(node, name), step, found)
            if below is None or below == {} or name not in node.properties:
                found.add(step)
    elif isinstance(value, list) and is_granular_list(node):
        for below in value:
            element = paths.item(below, node)
            if element is not None:
                _collect(below, node.items or DEDUCED, (*path, element), found)
                found.add((*path, element))
    else:
        found.add(path)


@dataclass(slots=True, kw_only=True)
class Difference:
    """How a new object differs from an old one, in fields."""

    added: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)

    def without(self, prefixes: FieldSet) -> Difference:
        """Return the difference apart from what lies at or below the prefixes."""
        return Difference(
            added=set(paths.without_prefixes(frozenset(self.added), prefixes)),
            modified=set(paths.without_prefixes(frozenset(self.modified), prefixes)),
            removed=set(paths.without_prefixes(frozenset(self.removed), prefixes)),
        )


def compare(old: Any, new: Any, node: Node, *, is_builtin: bool) -> Difference:
    """Return the difference between two whole objects."""
    walk = _Comparison(is_builtin)
    walk.value(old, new, node, ())
    return walk.found


class _Comparison:
    def __init__(self, is_builtin: bool) -> None:
        self._is_builtin = is_builtin
        self.found = Difference()

    def value(self, old: Any, new: Any, node: Node, path: Path) -> None:
        """Compare two values of which at most one is MISSING."""
        if old is new:
            return
        is_map = _is_kind(old, new, dict) and node.map_type != "atomic"
        is_list = _is_kind(old, new, list) and is_granular_list(node)
        if (not is_map and not is_list) or (_is_empty(old) and _is_empty(new)):
            self._leaf(old, new, path)
            if old is not MISSING and new is not MISSING and type(old) is not type(new):
                # Only where a schema leaves the type open: what was below is gone, or new.
                self._below(old, MISSING, node, path)
                self._below(MISSING, new, node, path)
            return
        self._below(old, new, node, path)
        if old is MISSING:
            self.found.added.add(path)
        elif new is MISSING:
            self.found.removed.add(path)

    def _below(self, old: Any, new: Any, node: Node, path: Path) -> None:
        if _is_kind(old, new, dict) and node.map_type != "atomic":
            self._fields(old, new, node, path)
        elif _is_kind(old, new, list) and is_granular_list(node):
            self._items(_as_list(old), _as_list(new), node, path)

    def _leaf(self, old: Any, new: Any, path: Path) -> None:
        if old is MISSING:
            self.found.added.add(path)
        elif new is MISSING:
            self.found.removed.add(path)
        elif not same(old, new):
            self.found.modified.add(path)

    def _fields(self, old: Any, new: Any, node: Node, path: Path) -> None:
        first, second = _as_dict(old), _as_dict(new)
        for name in (*first, *(name for name in second if name not in first)):
            step, child = (*path, paths.field(name)), child_of(node, name)
            before, after = first.get(name, MISSING), second.get(name, MISSING)
            if self._is_builtin and before is MISSING and old is not MISSING:
                before = _zero(name, node, child)
            self.value(before, after, child, step)

    def _items(self, old: list[Any], new: list[Any], node: Node, path: Path) -> None:
        before, after = _by_element(old, node), _by_element(new, node)
        for element in (*before, *(element for element in after if element not in before)):
            one, other = before.get(element, MISSING), after.get(element, MISSING)
            self.value(one, other, node.items or DEDUCED, (*path, element))


def _zero(name: str, parent: Node, child: Node) -> Any:
    """Return what a typed object has in a field that nobody set, MISSING for an optional one."""
    if name in _VALUE_STRUCTS and child.properties:
        return {}
    if name not in parent.required:
        return MISSING
    if child.properties:
        return {}
    return _ZEROS.get(child.type)


def _is_kind(old: Any, new: Any, kind: type) -> bool:
    """Tell whether one side is of the kind, and the other too unless it is absent or null."""
    present = [side for side in (old, new) if side is not MISSING and side is not None]
    return bool(present) and all(isinstance(side, kind) for side in present)


def _is_empty(value: Any) -> bool:
    return value is MISSING or value is None or value == {} or value == []


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _by_element(items: list[Any], node: Node) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for index, value in enumerate(items):
        # An item without its keys belongs to nobody but must not get lost.
        found.setdefault(paths.item(value, node) or f"i:{index}", value)
    return found


def merge(live: Any, applied: Any, node: Node) -> Any:
    """Return the live value with an applied configuration merged in; inputs stay as they are."""
    if applied is MISSING:
        return live
    if live is MISSING:
        return applied
    if applied is None and live and isinstance(live, dict | list) and _is_granular(node):
        # Saying nothing about the parts of a map or list leaves them to their owners.
        return live
    if isinstance(live, dict) and isinstance(applied, dict) and node.map_type != "atomic":
        return {
            name: merge(live.get(name, MISSING), applied.get(name, MISSING), child_of(node, name))
            for name in (*live, *(name for name in applied if name not in live))
        }
    if isinstance(live, list) and isinstance(applied, list) and is_granular_list(node):
        return _merge_lists(live, applied, node)
    return applied


def _is_granular(node: Node) -> bool:
    is_map = bool(node.properties) or node.additional is not None or node.type == "object"
    return (is_map and node.map_type != "atomic") or is_granular_list(node)


def _merge_lists(live: list[Any], applied: list[Any], node: Node) -> list[Any]:
    """Merge by element: applied items in their order, the others where they stood among them."""
    before, after = _by_element(live, node), _by_element(applied, node)
    left, right = list(before), list(after)
    shared = [element for element in right if element in before]
    out: list[str] = []
    done: set[str] = set()
    at_left = at_right = at_shared = 0

    def take(element: str) -> None:
        nonlocal at_shared
        out.append(element)
        done.add(element)
        if at_shared < len(shared) and shared[at_shared] == element:
            at_shared += 1

    while at_left < len(left) or at_right < len(right):
        if at_left < len(left) and at_right < len(right):
            if left[at_left] == right[at_right]:
                take(left[at_left])
                at_left += 1
                at_right += 1
                continue
            wanted = shared[at_shared] if at_shared < len(shared) else None
            if left[at_left] in after and wanted is not None and wanted != left[at_left]:
                at_left += 1
                continue
        if at_left < len(left):
            if left[at_left] not in after:
                out.append(left[at_left])
                at_left += 1
                continue
            if left[at_left] in done:
                at_left += 1
        if at_right < len(right):
            take(right[at_right])
            at_right += 1
    child = node.items or DEDUCED
    return [
        merge(before.get(element, MISSING), after.get(element, MISSING), child) for element in out
    ]


def remove(value: Any, tree: Tree, node: Node) -> Any:
    """Return the value without the fields in a set; MISSING when nothing is left of it."""
    if isinstance(value, dict):
        if not value or node.map_type == "atomic":
            return MISSING
        kept: dict[str, Any] = {}
        for name, below in value.items():
            step = tree.children.get(paths.field(name))
            if step is None:
                kept[name] = below
            elif not step.is_member:
                rest = remove(below, step, child_of(node, name))
                kept[name] = None if rest is MISSING else rest
        return kept or MISSING
    if isinstance(value, list):
        if not value or not is_granular_list(node):
            return MISSING
        items = []
        for below in value:
            element = paths.item(below, node)
            step = tree.children.get(element) if element is not None else None
            if step is None:
                items.append(below)
            elif not step.is_member:
                rest = remove(below, step, node.items or DEDUCED)
                items.append(None if rest is MISSING else rest)
        return items or MISSING
    return value


def nulls(value: Any, node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Yield where a null stands that its schema neither takes nor replaces by a default."""
    if value is None:
        if path and node.type and not node.is_nullable and node.default is MISSING:
            yield path, node
    elif isinstance(value, dict):
        for name, below in value.items():
            yield from nulls(below, child_of(node, name), f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from nulls(below, node.items or DEDUCED, f"{path}[{index}]")


def with_named_fields(found: FieldSet, node: Node) -> FieldSet:
    """Return the set with every struct field on the way to a member as a member itself."""
    out: set[Path] = set(found)
    for path in found:
        at: Node = node
        for length, element in enumerate(path[:-1], start=1):
            if element.startswith("f:"):
                name = element[2:]
                if name in at.properties:
                    out.add(path[:length])
                at = child_of(at, name)
            else:
                at = at.items or DEDUCED
    return frozenset(out)
