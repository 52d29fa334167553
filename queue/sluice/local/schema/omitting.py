"""Writes built-in objects as Kubernetes' typed objects do.

A built-in object, and the metadata of any object, passes through a Go struct: optional fields are
left out when empty (`labels: {}` is gone after a write), and quantities take their canonical form
(`0.5` cpu is stored as `500m`). Called by `compiler` with the defaults.
"""

from __future__ import annotations

from typing import Any

from sluice.local.schema.quantities import canonical_text
from sluice.local.schema.structural import Node


def normalize(value: Any, node: Node) -> None:
    """Bring what is below a value into its typed form, in place.

    Empty lists and maps go from optional fields, and quantities are rewritten.
    """
    if isinstance(value, dict):
        for name in list(value):
            child = node.properties.get(name, node.additional)
            if child is None:
                continue
            below = value[name]
            if child.is_quantity:
                # Lists of resources are rounded up to thousandths.
                is_listed = name not in node.properties
                value[name] = canonical_text(below, finest=-3 if is_listed else -9)
                continue
            normalize(below, child)
            is_collection = child.items is not None or child.additional is not None
            is_optional = name in node.properties and name not in node.required
            if is_optional and is_collection and not below:
                del value[name]
    elif isinstance(value, list) and node.items is not None:
        for below in value:
            normalize(below, node.items)
