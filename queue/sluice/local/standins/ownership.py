"""The graph of owners and dependents that the garbage collector keeps. Pure.

Nodes are objects of any kind, by uid; edges are owner references. Called by `garbage`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluice.kube.resources import Resource

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One owner reference."""

    api_version: str
    kind: str
    name: str
    uid: str
    is_blocked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One object, as far as ownership is concerned."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    owners: tuple[Owner, ...]
    finalizers: tuple[str, ...]
    is_deleting: bool

    @property
    def waits_for_dependents(self) -> bool:
        """Tell whether its deletion goes through its dependents first."""
        return self.is_deleting and FOREGROUND in self.finalizers

    @property
    def orphans_dependents(self) -> bool:
        """Tell whether its deletion leaves its dependents."""
        return self.is_deleting and ORPHAN in self.finalizers


def item(resource: Resource, body: Mapping[str, Any]) -> Item:
    """Return the node of an object."""
    metadata = body["metadata"]
    return Item(
        resource=resource,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata["uid"],
        owners=tuple(
            Owner(
                api_version=str(reference.get("apiVersion", "")),
                kind=str(reference.get("kind", "")),
                name=str(reference.get("name", "")),
                uid=str(reference.get("uid", "")),
                is_blocked=bool(reference.get("blockOwnerDeletion")),
            )
            for reference in metadata.get("ownerReferences") or ()
        ),
        finalizers=tuple(metadata.get("finalizers") or ()),
        is_deleting=metadata.get("deletionTimestamp") is not None,
    )


class Graph:
    """Objects by uid, and who depends on whom."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._dependents: dict[str, set[str]] = {}

    def get(self, uid: str) -> Item | None:
        """Return an object, None when it isn't known."""
        return self._items.get(uid)

    def put(self, new: Item) -> None:
        """Add an object or its new version."""
        self._unlink(self._items.get(new.uid))
        self._items[new.uid] = new
        for owner in new.owners:
            self._dependents.setdefault(owner.uid, set()).add(new.uid)

    def remove(self, uid: str) -> None:
        """Forget an object; its dependents still name it."""
        self._unlink(self._items.pop(uid, None))

    def _unlink(self, old: Item | None) -> None:
        for owner in old.owners if old is not None else ():
            dependents = self._dependents.get(owner.uid)
            if dependents is not None:
                dependents.discard(old.uid if old is not None else "")
                if not dependents:
                    del self._dependents[owner.uid]

    def dependents(self, uid: str) -> tuple[Item, ...]:
        """Return the objects that name an owner, sorted by uid."""
        return tuple(self._items[uid] for uid in sorted(self._dependents.get(uid, ())))

    def has_blocking_dependents(self, uid: str) -> bool:
        """Tell whether a dependent keeps a foreground deletion of its owner waiting."""
        return any(
            owner.uid == uid and owner.is_blocked
            for dependent in self.dependents(uid)
            for owner in dependent.owners
        )
