"""Defaults of a structural schema, and the nulls they replace. Called through `compiler`."""

from __future__ import annotations

from typing import Any

import orjson

from sluice.local.schema.structural import MISSING, Node


def apply_defaults(value: Any, node: Node) -> None:
    """Fill in defaults in place, also inside lists and maps.

    A null where the schema takes none counts as absent: it is dropped, or replaced by the default.
    """
    if isinstance(value, dict):
        for name, child in node.properties.items():
            if child.default is not MISSING and (
                name not in value or (value[name] is None and not child.is_nullable)
            ):
                value[name] = copy_json(child.default)
        for name in list(value):
            known = node.properties.get(name, node.additional)
            if known is None:
                continue
            if value[name] is None and not known.is_nullable:
                if known.default is MISSING:
                    del value[name]
                    continue
                value[name] = copy_json(known.default)
            apply_defaults(value[name], known)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            if item is None and not node.items.is_nullable and node.items.default is not MISSING:
                value[index] = item = copy_json(node.items.default)
            apply_defaults(item, node.items)


def copy_json(value: Any) -> Any:
    """Return a deep copy of a JSON value."""
    return orjson.loads(orjson.dumps(value)) if isinstance(value, dict | list) else value
