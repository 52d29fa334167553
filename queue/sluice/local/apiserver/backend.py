"""What all handlers share: storage, registry, and the parts that know schemas and webhooks.

A `Backend` is one server's state. Its two writing methods are the only way into the store, so
that whoever depends on a write (the registry on CRDs) hears of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import orjson

from sluice.clock import Clock
from sluice.local.apiserver.ages import format_time
from sluice.local.apiserver.registry import Registry
from sluice.local.apiserver.resources import Resource
from sluice.local.apiserver.seams import (
    Admission,
    Converter,
    Json,
    JsonView,
    Merger,
    Parts,
    UserInfo,
)
from sluice.local.apiserver.store import Collection, Key, Store, Stored

Listener = Callable[[Resource, Stored, bool], None]
"""Called after each write with the resource, the state and whether it is a deletion."""

SYSTEM_USER = UserInfo(
    username="system:apiserver", groups=("system:masters", "system:authenticated")
)


class Backend:
    """State of one server, and conversion between the versions of an object.

    Args:
        parts: Implementations of the seams.
        clock: Wall time of objects; monotonic time of history and watches.
        changes_max: Watch history kept for each collection.
        bookmark_s: Seconds of silence after which a watch gets a bookmark.
    """

    def __init__(self, parts: Parts, clock: Clock, changes_max: int, bookmark_s: float) -> None:
        self.clock = clock
        self.bookmark_s = bookmark_s
        self.is_stopping = False
        self.store = Store(clock, changes_max)
        self.registry = Registry(parts.schemas)
        self.merger: Merger = parts.merger
        self.admission: Admission = parts.admission(self)
        self.converter: Converter = parts.converter(self)
        self._listeners: list[Listener] = []
        self._configurations: dict[str, tuple[int, Sequence[JsonView]]] = {}
        self._namespaces: dict[str, tuple[int, JsonView]] = {}

    @property
    def now_s(self) -> float:
        """The time, seconds since 1970."""
        return self.clock.now_ms() / 1000

    def now(self) -> str:
        """Return the time as Kubernetes writes it."""
        return format_time(self.now_s)

    def listen(self, listener: Listener) -> None:
        """Call a listener after each write."""
        self._listeners.append(listener)

    def collection(self, resource: Resource) -> Collection:
        """Return the store's collection of a resource."""
        return self.store.collection(*resource.collection)

    def end_watches(self) -> None:
        """Let all watches end by themselves, so that stopping need not wait for them."""
        self.is_stopping = True
        self.store.wake()

    def find(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        """Return the stored state of an object, or None."""
        key = Key(namespace if resource.namespaced else "", name)
        return self.collection(resource).objects.get(key)

    def put(self, resource: Resource, obj: Json) -> Stored:
        """Store an object that is in the storage version."""
        metadata = obj["metadata"]
        # These two lead, so that a list can leave them out of its items without parsing them.
        obj = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **obj}
        key = Key(metadata["namespace"] if resource.namespaced else "", metadata["name"])
        stored = self.store.put(self.collection(resource), key, obj, resource.fields(obj))
        for listener in self._listeners:
            listener(resource, stored, False)
        return stored

    def remove(self, resource: Resource, key: Key, last: Json | None = None) -> Stored:
        """Remove an object; `last` is its final state in the storage version."""
        stored = self.store.remove(self.collection(resource), key, last)
        for listener in self._listeners:
            listener(resource, stored, True)
        return stored

    async def convert(
        self, resource: Resource, objects: Sequence[Json], api_version: str
    ) -> list[Json]:
        """Return objects of a resource in another of its versions (they may be changed).

        Raises:
            ApiError: 500 when a conversion webhook fails.
        """
        if all(obj["apiVersion"] == api_version for obj in objects):
            return list(objects)
        if resource.conversion.get("strategy") == "Webhook":
            return await self.converter.convert(resource.conversion, objects, api_version)
        for obj in objects:
            obj["apiVersion"] = api_version
        return list(objects)

    async def show(self, resource: Resource, version: str, states: Sequence[Stored]) -> list[Json]:
        """Return fresh copies of stored objects in a version."""
        objects = [state.load() for state in states]
        if resource.codec is not None:
            return [resource.codec.decode(obj) for obj in objects]
        return await self.convert(resource, objects, resource.api_version(version))

    async def show_raw(
        self, resource: Resource, version: str, states: Sequence[Stored]
    ) -> list[bytes]:
        """Return stored objects in a version as JSON; without a conversion nothing is parsed."""
        wanted = resource.api_version(version)
        if resource.codec is None and all(state.api_version == wanted for state in states):
            return [state.raw for state in states]
        return [orjson.dumps(obj) for obj in await self.show(resource, version, states)]

    async def to_storage(self, resource: Resource, obj: Json) -> Json:
        """Return an object in the version that is stored."""
        if resource.codec is not None:
            return resource.codec.encode(obj)
        api_version = resource.api_version(resource.storage_version)
        return (await self.convert(resource, [obj], api_version))[0]

    def webhook_configurations(self, plural: str) -> tuple[int, Sequence[JsonView]]:
        """Return webhook configurations for admission; see `seams.Cluster`."""
        collection = self.store.collection("admissionregistration.k8s.io", plural)
        newest = max((s.revision for s in collection.objects.values()), default=0)
        newest = newest * 1_000_003 + len(collection.objects)
        cached = self._configurations.get(plural)
        if cached is None or cached[0] != newest:
            objects = [state.load() for state in collection.objects.values()]
            cached = self._configurations[plural] = (newest, objects)
        return cached

    def namespace(self, name: str) -> JsonView | None:
        """Return a Namespace, or None; see `seams.Cluster`."""
        state = self.store.collection("", "namespaces").objects.get(Key("", name))
        if state is None:
            self._namespaces.pop(name, None)
            return None
        cached = self._namespaces.get(name)
        if cached is None or cached[0] != state.revision:
            cached = self._namespaces[name] = (state.revision, state.load())
        return cached[1]
