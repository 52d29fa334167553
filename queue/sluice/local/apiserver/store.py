"""The database of the embedded API server: versioned objects in memory, and their history.

Objects are kept as serialized JSON with the few values that selectors look at, so that nobody can
change a stored object and a watch event costs no serialization. One revision counter numbers all
writes, as in etcd. Each collection keeps its latest changes: watches read them, and a list at an
older revision is answered by walking them backwards. Only the server's own modules use this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import orjson
from sortedcontainers import SortedDict

from sluice.clock import Clock
from sluice.local.apiserver.seams import Json
from sluice.local.apiserver.status import ApiError, Reason, expired

HISTORY_CHANGES_MAX = 10_000
"""Changes kept for each collection; older ones answer 410, which clients must expect anyway."""

HISTORY_AGE_S_MAX = 300.0
"""Seconds that a change is kept; Kubernetes compacts etcd every five minutes."""


class Key(NamedTuple):
    """Namespace ("" for cluster-scoped objects) and name; the order is the order of lists."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One state of one object.

    Attributes:
        raw: JSON in the storage version, with `metadata.resourceVersion` of this state.
        revision: That resourceVersion.
        api_version: The version that `raw` is in; an older one after the storage version moved.
        labels: `metadata.labels`.
        fields: Values of the resource's selectable fields.
    """

    key: Key
    uid: str
    revision: int
    api_version: str
    raw: bytes
    labels: Mapping[str, str]
    fields: Mapping[str, str]

    def load(self) -> Json:
        """Return a fresh copy that the caller may change."""
        obj: Json = orjson.loads(self.raw)
        return obj


class ChangeType(StrEnum):
    """Wire values of a watch event's type."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One write: `old` is None for ADDED; `new` of DELETED is the last state at that revision."""

    type: ChangeType
    revision: int
    new: Stored
    old: Stored | None
    at_s: float


class Collection:
    """All objects of one resource, with the latest changes and those who wait for more."""

    def __init__(self, changes_max: int) -> None:
        self.objects: SortedDict[Key, Stored] = SortedDict()
        self._changes: list[Change] = []
        self._trimmed = 0
        self._changes_max = changes_max
        self.oldest_revision = 0
        """A watch from this revision or a later one misses nothing."""
        self._waiters: set[asyncio.Event] = set()

    @property
    def position(self) -> int:
        """Where the next change will be: a cursor for `since`."""
        return self._trimmed + len(self._changes)

    def since(self, position: int) -> Sequence[Change] | None:
        """Return the changes from a cursor on, or None when some of them are gone."""
        if position < self._trimmed:
            return None
        return self._changes[position - self._trimmed :]

    def position_after(self, revision: int) -> int | None:
        """Return the cursor of the first change after a revision, or None when it is gone."""
        if revision < self.oldest_revision:
            return None
        low, high = 0, len(self._changes)
        while low < high:
            middle = (low + high) // 2
            if self._changes[middle].revision <= revision:
                low = middle + 1
            else:
                high = middle
        return self._trimmed + low

    def append(self, change: Change) -> None:
        """Record a change and wake the watches."""
        self._changes.append(change)
        if len(self._changes) > self._changes_max * 5 // 4:
            self.trim(len(self._changes) - self._changes_max)
        elif self._changes[0].at_s < change.at_s - 2 * HISTORY_AGE_S_MAX:
            horizon = change.at_s - HISTORY_AGE_S_MAX
            self.trim(next(i for i, c in enumerate(self._changes) if c.at_s >= horizon))
        for waiter in self._waiters:
            waiter.set()

    def trim(self, count: int) -> None:
        """Forget the oldest changes."""
        count = min(count, len(self._changes))
        if count > 0:
            self.oldest_revision = self._changes[count - 1].revision
            del self._changes[:count]
            self._trimmed += count

    def subscribe(self) -> asyncio.Event:
        """Return an event that is set at each change until `unsubscribe`."""
        waiter = asyncio.Event()
        self._waiters.add(waiter)
        return waiter

    def unsubscribe(self, waiter: asyncio.Event) -> None:
        """Stop setting an event."""
        self._waiters.discard(waiter)

    def wake(self) -> None:
        """Wake all watches although nothing changed, e.g. because the resource went away."""
        for waiter in self._waiters:
            waiter.set()

    def select(self, namespace: str) -> Iterator[Stored]:
        """Yield the current objects of a namespace ("" for all) in key order."""
        if not namespace:
            yield from self.objects.values()
            return
        for key in self.objects.irange(Key(namespace, ""), Key(namespace + "\0", "")):
            if key.namespace == namespace:
                yield self.objects[key]

    def snapshot(self, revision: int) -> dict[Key, Stored]:
        """Return the objects as they were at a revision.

        Raises:
            ApiError: 410 when history does not reach back that far.
        """
        position = self.position_after(revision)
        later = None if position is None else self.since(position)
        if later is None:
            raise expired(
                f"too old resource version: {revision} ({self.oldest_revision}); list again"
            )
        state: dict[Key, Stored] = dict(self.objects)
        for change in reversed(later):
            if change.old is None:
                state.pop(change.new.key, None)
            else:
                state[change.new.key] = change.old
        return state


class Store:
    """All collections, by `(group, plural)`, under one revision counter.

    Args:
        clock: Tells how old a change is.
        changes_max: Changes kept for each collection.
    """

    def __init__(self, clock: Clock, changes_max: int = HISTORY_CHANGES_MAX) -> None:
        self._clock = clock
        self._collections: dict[tuple[str, str], Collection] = {}
        self._changes_max = changes_max
        self.revision = 1

    def collection(self, group: str, plural: str) -> Collection:
        """Return a collection, made at its first use."""
        found = self._collections.get((group, plural))
        if found is None:
            found = self._collections[group, plural] = Collection(self._changes_max)
        return found

    def put(self, collection: Collection, key: Key, obj: Json, fields: Mapping[str, str]) -> Stored:
        """Store a new state of an object under the next revision.

        Args:
            obj: In the storage version; its resourceVersion is set here.
            fields: Values of the selectable fields.
        """
        self.revision += 1
        stored = self._state(key, obj, fields)
        old = collection.objects.get(key)
        collection.objects[key] = stored
        collection.append(
            Change(
                type=ChangeType.ADDED if old is None else ChangeType.MODIFIED,
                revision=self.revision,
                new=stored,
                old=old,
                at_s=self._clock.monotonic_s(),
            )
        )
        return stored

    def remove(self, collection: Collection, key: Key, last: Json | None = None) -> Stored:
        """Remove an object and return its last state, which carries the deletion's revision.

        Args:
            last: What the object would have become, when the deletion is the effect of an update
                that took the last finalizer away; the stored state otherwise.
        """
        self.revision += 1
        old = collection.objects.pop(key)
        state = self._state(key, old.load() if last is None else last, old.fields)
        collection.append(
            Change(
                type=ChangeType.DELETED,
                revision=self.revision,
                new=state,
                old=old,
                at_s=self._clock.monotonic_s(),
            )
        )
        return state

    def wake(self) -> None:
        """Wake all watches of all collections."""
        for collection in self._collections.values():
            collection.wake()

    def compact(self) -> None:
        """Forget all history: each watch or continue token from before is answered 410."""
        for collection in self._collections.values():
            collection.trim(collection.position)
            collection.oldest_revision = self.revision

    def check_reached(self, revision: int) -> None:
        """Refuse a revision that this server has not given out yet.

        Raises:
            ApiError: 504 `Timeout` with cause ResourceVersionTooLarge; clients then list again.
        """
        if revision > self.revision:
            raise ApiError(
                Reason.TIMEOUT,
                f"Too large resource version: {revision}, current: {self.revision}",
                details={
                    "causes": [
                        {
                            "reason": "ResourceVersionTooLarge",
                            "message": "Too large resource version",
                        }
                    ],
                    "retryAfterSeconds": 1,
                },
            )

    def _state(self, key: Key, obj: Json, fields: Mapping[str, str]) -> Stored:
        metadata: dict[str, Any] = obj["metadata"]
        metadata["resourceVersion"] = str(self.revision)
        return Stored(
            key=key,
            uid=metadata["uid"],
            revision=self.revision,
            api_version=obj["apiVersion"],
            raw=orjson.dumps(obj),
            labels=metadata.get("labels") or {},
            fields=fields,
        )
