"""A read-only cursor over raw JSON that knows its field path and checks types as it goes.

Validation rules read objects through it, so that a value of the wrong JSON type becomes a field
error with its path and never an exception of Python's. JSON null counts as absent, as it does for
Kubernetes. Pure. Called by the rules in ``sluice.api.validate`` and ``sluice.jobs.admission``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sluice.api.errors import InvalidObject, invalid

_EMPTY: Final[Mapping[str, Any]] = {}


class WrongType(InvalidObject):
    """A value whose JSON type is not the one its field has: the request is malformed."""

    def __init__(self, path: str, value: object, expected: str) -> None:
        super().__init__([invalid(path or "<root>", _shown(value), f"must be {expected}")])


def _shown(value: object) -> object:
    """Return the value, or what stands for it where it is too large for a message."""
    if isinstance(value, dict):
        return {} if not value else "object"
    return "array" if isinstance(value, list) else value


def key(path: str, name: str) -> str:
    """Return the path of a map's entry: ``metadata.labels[app]``."""
    return f"{path}[{name}]"


class Node:
    """A JSON object and where it stands.

    Attributes:
        value: The object.
        path: Its field path, empty at the root.
    """

    __slots__ = ("path", "value")

    def __init__(self, value: object, path: str = "") -> None:
        if not isinstance(value, Mapping):
            raise WrongType(path, value, "an object")
        self.value: Mapping[str, Any] = value
        self.path = path

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def raw(self, name: str) -> Any:
        """Return a field as it is; None when it is absent."""
        return self.value.get(name)

    def has(self, name: str) -> bool:
        """Tell whether a field is set, and not to null."""
        return self.value.get(name) is not None

    def map(self, *names: str) -> Node:
        """Return the object at a field, or further down; an empty one when it is absent."""
        node = self
        for name in names:
            value = node.value.get(name)
            node = Node(_EMPTY if value is None else value, node.at(name))
        return node

    def optional(self, name: str) -> Node | None:
        """Return the object at a field, or None when it is absent."""
        value = self.value.get(name)
        return None if value is None else Node(value, self.at(name))

    def _list(self, name: str) -> list[Any]:
        value = self.value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise WrongType(self.at(name), value, "a list")
        return value

    def items(self, name: str) -> list[Node]:
        """Return the objects of a list; empty when it is absent."""
        path = self.at(name)
        return [Node(item, f"{path}[{i}]") for i, item in enumerate(self._list(name))]

    def texts(self, name: str) -> list[str]:
        """Return the strings of a list; empty when it is absent."""
        items = self._list(name)
        for i, item in enumerate(items):
            if not isinstance(item, str):
                raise WrongType(f"{self.at(name)}[{i}]", item, "a string")
        return items

    def length(self, name: str) -> int:
        """Return the number of a list's items, 0 when it is absent."""
        return len(self._list(name))

    def text(self, name: str, default: str = "") -> str:
        """Return a string, or the default when it is absent."""
        value = self.value.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise WrongType(self.at(name), value, "a string")
        return value

    def integer(self, name: str) -> int | None:
        """Return an integer, or None when it is absent."""
        value = self.value.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise WrongType(self.at(name), value, "an integer")
        return value

    def boolean(self, name: str) -> bool | None:
        """Return a boolean, or None when it is absent."""
        value = self.value.get(name)
        if value is not None and not isinstance(value, bool):
            raise WrongType(self.at(name), value, "a boolean")
        return value

    def strings(self, name: str) -> Mapping[str, str]:
        """Return a map of strings such as labels; empty when it is absent."""
        node = self.map(name)
        for entry, value in node.value.items():
            if not isinstance(value, str):
                raise WrongType(key(node.path, entry), value, "a string")
        return node.value

    def entries(self, name: str) -> Iterator[tuple[str, Any, str]]:
        """Yield name, value and path of each entry of a map, by name."""
        node = self.map(name)
        for entry in sorted(node.value):
            yield entry, node.value[entry], key(node.path, entry)


def labels_of(obj: Node) -> Mapping[str, str]:
    """Return the labels of an object's metadata."""
    return obj.map("metadata").strings("labels")


def annotations_of(obj: Node) -> Mapping[str, str]:
    """Return the annotations of an object's metadata."""
    return obj.map("metadata").strings("annotations")
