"""Changes to a JSON object, made at once and kept as a JSON patch (RFC 6902).

Defaulting works through `Edits`, so that the patch of a mutating webhook holds what was meant and
nothing else, and no copy of the object has to be compared. Pure. Called by ``sluice.api.defaults``
and ``sluice.jobs.admission``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sluice.api.errors import InvalidObject, invalid

Json = dict[str, Any]
_MISSING: Final = object()


def pointer(path: Sequence[str | int]) -> str:
    """Return the JSON pointer (RFC 6901) of a path of keys and list positions."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


class Edits:
    """Edits one object in place and remembers them as patch operations.

    An operation on something that an earlier one has added changes that operation's value instead
    of adding another, so that the list stays minimal.

    Args:
        obj: The object; it is changed.
    """

    def __init__(self, obj: Json) -> None:
        self.obj = obj
        self._operations: list[Json] = []
        self._added: set[tuple[str | int, ...]] = set()

    @property
    def operations(self) -> list[Json]:
        """Return the patch so far; empty when nothing differs."""
        return self._operations

    def set(self, path: Sequence[str], value: object) -> None:
        """Set a field of an object; objects missing on the way (or null) are made.

        Nothing happens when the field has this value already.

        Raises:
            InvalidObject: Something on the way is not an object.
        """
        parent, at = self._parent(tuple(path[:-1]))
        key = path[-1]
        old = parent.get(key, _MISSING)
        # 1 == True in Python, not in JSON.
        if old is not _MISSING and old == value and type(old) is type(value):
            return
        parent[key] = value
        self._record("add" if old is _MISSING else "replace", (*at, key), value)

    def append(self, path: Sequence[str], item: object) -> None:
        """Add an item at the end of a list; a missing list (or null) is made.

        Raises:
            InvalidObject: Something on the way is not an object, or the field is not a list.
        """
        parent, at = self._parent(tuple(path[:-1]))
        key = path[-1]
        items = parent.get(key)
        if items is None:
            self.set(path, [item])
        elif isinstance(items, list):
            items.append(item)
            self._record("add", (*at, key, "-"), item)
        else:
            raise _not(".".join(path), items, "a list")

    def remove(self, path: Sequence[str | int]) -> None:
        """Remove a field that is there; the path may lead through lists.

        Raises:
            KeyError: The field is not there.
        """
        here: Any = self.obj
        for step in path[:-1]:
            here = here[step]
        del here[path[-1]]
        self._record("remove", tuple(path), _MISSING)

    def _parent(self, path: tuple[str, ...]) -> tuple[Json, tuple[str, ...]]:
        here = self.obj
        for depth, key in enumerate(path):
            child = here.get(key)
            if child is None:
                new: Json = {}
                operation = "replace" if key in here else "add"
                here[key] = new
                # The value is shared, so that what is put in it later is in the operation too.
                self._record(operation, path[: depth + 1], new)
                child = new
            elif not isinstance(child, dict):
                raise _not(".".join(path[: depth + 1]), child, "an object")
            here = child
        return here, path

    def _record(self, op: str, path: tuple[str | int, ...], value: object) -> None:
        if any(path[:length] in self._added for length in range(1, len(path))):
            return
        entry: Json = {"op": op, "path": pointer(path)}
        if value is not _MISSING:
            entry["value"] = value
            if isinstance(value, dict | list):
                self._added.add(path)
        self._operations.append(entry)


def _not(path: str, value: object, expected: str) -> InvalidObject:
    return InvalidObject([invalid(path, value, f"must be {expected}")])
