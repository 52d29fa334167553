"""Drops what Kubernetes' typed objects don't write: empty lists and maps of optional fields.

A built-in object, and the metadata of any object, passes through a Go struct whose optional fields
are left out when empty; `labels: {}` is gone after a write. Called by `compiler` with the defaults.
"""

from __future__ import annotations

from typing import Any

from sluice.local.schema.structural import Node


def drop_empty(value: Any, node: Node) -> None:
    """Drop empty lists and maps, and nulls, from optional fields in place, at any depth."""
    if isinstance(value, dict):
        for name in list(value):
            child = node.properties.get(name, node.additional)
            if child is None:
                continue
            below = value[name]
            drop_empty(below, child)
            is_collection = child.items is not None or child.additional is not None
            is_optional = name in node.properties and name not in node.required
            if is_optional and is_collection and not below:
                del value[name]
    elif isinstance(value, list) and node.items is not None:
        for below in value:
            drop_empty(below, node.items)
