"""Drops fields that a schema does not specify and tells which they were.

Called through `compiler`; the paths end up in Kubernetes' `unknown field "PATH"` texts.
"""

from __future__ import annotations

from typing import Any

from sluice.local.schema.structural import METADATA, Node

_NOTHING = Node()


def prune(obj: dict[str, Any], root: Node, metadata: Node) -> list[str]:
    """Drop unspecified fields in place.

    Args:
        obj: A whole object.
        root: Its schema.
        metadata: The schema of ObjectMeta, for the object and for those embedded in it.

    Returns:
        The sorted paths of what was dropped.
    """
    dropped: list[str] = []
    pruner = _Pruner(metadata, dropped)
    pruner.embedded(obj, "")
    pruner.fields(obj, root, "", is_resource=True)
    return sorted(dropped)


class _Pruner:
    def __init__(self, metadata: Node, dropped: list[str]) -> None:
        self._metadata = metadata
        self._dropped = dropped

    def embedded(self, obj: dict[str, Any], path: str) -> None:
        """Prune the metadata of an object."""
        if isinstance(obj.get("metadata"), dict):
            self.value(obj["metadata"], self._metadata, _join(path, "metadata"))

    def value(self, value: Any, node: Node, path: str) -> None:
        """Prune below a value."""
        if isinstance(value, dict):
            if node.is_embedded:
                self.embedded(value, path)
            self.fields(value, node, path, is_resource=node.is_embedded)
        elif isinstance(value, list):
            if node.items is None and node.is_open:
                return
            for index, item in enumerate(value):
                self.value(item, node.items or _NOTHING, f"{path}[{index}]")

    def fields(self, value: dict[str, Any], node: Node, path: str, *, is_resource: bool) -> None:
        """Prune the fields of an object or map."""
        for name in list(value):
            if is_resource and name in METADATA:
                continue
            child = node.properties.get(name, node.additional)
            if child is not None:
                self.value(value[name], child, _join(path, name))
            elif not node.is_open:
                self._dropped.append(_join(path, name))
                del value[name]


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
