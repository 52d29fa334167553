"""Uniqueness in lists of type set and map. Called by `compiler`."""

from __future__ import annotations

from typing import Any

from sluice.local.apiserver.status import Cause
from sluice.local.schema import causes
from sluice.local.schema.structural import Node


def validate_lists(value: Any, node: Node, path: str = "") -> list[Cause]:
    """Return doubled items of sets and doubled keys of list-type maps, at any depth."""
    found: list[Cause] = []
    if isinstance(value, dict):
        for name, item in value.items():
            if name in node.properties:
                below = f"{path}.{name}" if path else name
                found += validate_lists(item, node.properties[name], below)
            elif node.additional is not None:
                found += validate_lists(item, node.additional, f"{path}[{name}]")
    elif isinstance(value, list):
        if node.list_type in ("set", "map"):
            found += _doubled(value, node, path)
        for index, item in enumerate(value) if node.items is not None else ():
            found += validate_lists(item, node.items or Node(), f"{path}[{index}]")
    return found


def _doubled(value: list[Any], node: Node, path: str) -> list[Cause]:
    if node.list_type == "map":
        for index, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                detail = "must be an object for an array of list-type map"
                return [causes.invalid(f"{path}[{index}]", item, detail)]
    counts: dict[str, int] = {}
    found: list[Cause] = []
    for index, item in enumerate(value):
        shown = item
        if node.list_type == "map":
            shown = {name: item[name] for name in node.map_keys if name in (item or {})}
        key = causes.show(shown)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] == 2:
            found.append(causes.duplicate(f"{path}[{index}]", shown))
    return found
