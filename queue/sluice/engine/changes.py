"""Which queues and cohorts may have another status than before.

Touching an object moves it to the end of an ordered map with the next version, so asking for
changes costs what has changed. Read by the controllers through `Engine.changes_since`.
"""

from sluice.api.records import Kind
from sluice.engine.status import ObjectRef


class ChangeLog:
    """Versions of touched objects, oldest first."""

    __slots__ = ("_touched", "version")

    def __init__(self) -> None:
        self._touched: dict[tuple[Kind, str], int] = {}
        self.version = 0

    def touch(self, kind: Kind, key: str) -> None:
        """Note that the status of an object may differ from now on."""
        self.version += 1
        entry = (kind, key)
        if entry in self._touched:
            del self._touched[entry]
        self._touched[entry] = self.version

    def forget(self, kind: Kind, key: str) -> None:
        """Note that an object is gone."""
        self._touched.pop((kind, key), None)

    def since(self, version: int) -> tuple[int, tuple[ObjectRef, ...]]:
        """Return the present version and what was touched after an earlier one, latest first."""
        found = []
        for (kind, key), at in reversed(self._touched.items()):
            if at <= version:
                break
            found.append(ObjectRef(kind=kind, key=key))
        return self.version, tuple(found)
