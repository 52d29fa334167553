"""Informers: a cache of one kind, kept current by list and watch, that calls handlers on changes.

The loop lists in pages, then watches with bookmarks from the version of the list. A watch that
ends is resumed from the last version seen; a version that is too old (410) means listing again and
telling handlers the difference. Handlers are plain functions that must return at once (file a key,
observe an event); they run inside the event loop, in the order of the changes. Used by controllers
and the CLI.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import orjson

from sluice.api.errors import Forbidden, Gone, InvalidObject, KubeError, NotFound, Throttled
from sluice.api.names import key as object_key
from sluice.clock import Clock, SystemClock
from sluice.kube.backoff import Backoff
from sluice.kube.client import Client
from sluice.kube.resources import Resource
from sluice.kube.store import Entry, Index, Store
from sluice.kube.watch import BOOKMARK, DELETED
from sluice.log import get_logger

R = TypeVar("R")

log = get_logger(__name__)

PAGE_SIZE: Final = 500
_BACKOFF_S: Final = 0.2
_BACKOFF_S_MAX: Final = 30.0
_HEALTHY_WATCH_S: Final = 1.0
"""A watch that ends sooner without an event counts as a failure, so that a server which closes
every watch at once is not asked thousands of times a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers(Generic[R]):
    """What to call on changes; None for what does not matter."""

    added: Callable[[str, R], None] | None = None
    updated: Callable[[str, R, R], None] | None = None
    deleted: Callable[[str, R], None] | None = None


class Informer(Generic[R]):
    """Cache of one kind. ``run`` keeps it current; everything else reads it.

    Attributes:
        resource: The kind.
        store: The cached records.
        synced: Set once the first list is in the cache and handlers have seen it.
        last_error: Why the last list or watch failed; empty after one that worked.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        transform: Callable[[dict[str, Any]], R | None],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        keep_raw: bool = False,
        indexes: Mapping[str, Index[R]] | None = None,
        page_size: int = PAGE_SIZE,
        is_optional: bool = False,
        clock: Clock | None = None,
    ) -> None:
        """Make an informer; nothing is requested before ``run``.

        Args:
            client: Where to list and watch.
            resource: The kind.
            transform: Makes the record of an object. None, or InvalidObject or ValueError raised,
                keeps the object out of the cache.
            namespace: Only objects of this namespace; empty for all.
            label_selector: Only objects it selects.
            field_selector: Only objects it selects.
            keep_raw: Keep each object's JSON (without managedFields) next to its record.
            indexes: Functions by index name.
            page_size: Objects in one page of a list.
            is_optional: A kind that is not served counts as one without objects; it is asked for
                again now and then.
            clock: For judging how long a watch lasted.
        """
        self.resource = resource
        self.store: Store[R] = Store(indexes or {})
        self.synced = asyncio.Event()
        self.last_error = ""
        self._client = client
        self._transform = transform
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._keep_raw = keep_raw
        self._page_size = page_size
        self._is_optional = is_optional
        self._clock = clock or SystemClock()
        self._handlers: list[Handlers[R]] = []
        self._version = ""
        self._event_count = 0

    @property
    def resource_version(self) -> str:
        """Return the version up to which the cache is current; empty before the first list."""
        return self._version

    def add_handlers(self, handlers: Handlers[R]) -> None:
        """Call these from now on; ``added`` is called at once for what is cached already."""
        self._handlers.append(handlers)
        if handlers.added is not None:
            for key, record in tuple(self.store.items()):
                handlers.added(key, record)

    async def wait_synced(self, timeout_s: float) -> None:
        """Wait for the first list.

        Raises:
            TimeoutError: It did not come in time; the message names the kind.
        """
        try:
            # Not wait_for: in Python 3.11 it loses a cancellation that comes with the result.
            async with asyncio.timeout(timeout_s):
                await self.synced.wait()
        except TimeoutError:
            message = f"no list of {self.resource.full_name} within {timeout_s:g}s"
            raise TimeoutError(message) from None

    def observe_write(self, body: dict[str, Any]) -> None:
        """Take the answer to our own write into the cache before the watch brings it.

        It is ignored when the watch is ahead of it already: then the object may be gone by now.
        Versions of one kind are comparable integers.
        """
        version = _version_number(body["metadata"].get("resourceVersion", ""))
        if self.synced.is_set() and version > _version_number(self._version):
            self._apply(body)

    def clear(self) -> None:
        """Forget everything, as if newly made: nobody needs this kind now. Never while it runs.

        Handlers are told that each object is gone.
        """
        self.synced.clear()
        self._version = ""
        self.last_error = ""
        for key in self.store.all_keys():
            self._remove(key)

    async def run(self) -> None:
        """Keep the cache current until cancelled."""
        backoff = Backoff(base_s=_BACKOFF_S, max_s=_BACKOFF_S_MAX)
        while True:
            started_s, count = self._clock.monotonic_s(), self._event_count
            try:
                if not self._version:
                    await self._list()
                await self._watch()
                lasted_s = self._clock.monotonic_s() - started_s
                if lasted_s >= _HEALTHY_WATCH_S or self._event_count > count:
                    backoff.reset()
                    continue
            except Gone:
                self._version = ""
                log.debug("listing again", fields={"kind": self.resource.full_name})
            except KubeError as error:
                self._report(error)
            if self._event_count > count:
                backoff.reset()
            await asyncio.sleep(backoff.next_s())

    def _report(self, error: KubeError) -> None:
        if self._is_optional and isinstance(error, NotFound):
            for key in self.store.all_keys():
                self._remove(key)
            self._version = ""
            self.synced.set()
            return
        if self._is_optional and isinstance(error, Forbidden):
            self.synced.set()  # with rights that somebody else wrote it is refused instead
        self.last_error = str(error)
        fields = {"kind": self.resource.full_name, "error": self.last_error}
        if isinstance(error, NotFound):
            log.error("kind is not served; install its CRD", fields=fields)
        elif isinstance(error, Throttled):
            # For example while a CRD was just changed: nothing is wrong.
            log.info("asked to wait before the next list or watch", fields=fields)
        else:
            log.warning("list or watch failed; trying again", fields=fields)

    async def _list(self) -> None:
        """List everything and tell handlers what differs from the cache."""
        try:
            found, version = await self._pages(self._page_size)
        except Gone:  # a page's continue token expired: all at once does not need one
            found, version = await self._pages(0)
        number = _version_number(version)
        for key in self.store.all_keys():
            entry = self.store.entry(key)
            if key in found or entry is None:
                continue
            # An entry newer than the list is our own write, made while listing.
            if _version_number(entry.resource_version) <= number:
                self._remove(key)
        for key, entry in found.items():
            self._put(key, entry)
        self._version = version
        self._event_count += 1
        self.last_error = ""
        self.synced.set()

    async def _pages(self, limit: int) -> tuple[dict[str, Entry[R]], str]:
        found: dict[str, Entry[R]] = {}
        token = ""
        while True:
            page = await self._client.list(
                self.resource,
                self._namespace,
                label_selector=self._label_selector,
                field_selector=self._field_selector,
                limit=limit,
                continue_token=token,
            )
            for body in page.get("items") or ():
                self._collect(body, found)
            token = page["metadata"].get("continue") or ""
            if not token:
                return found, page["metadata"]["resourceVersion"]

    def _collect(self, body: dict[str, Any], found: dict[str, Entry[R]]) -> None:
        metadata = body["metadata"]
        key = object_key(metadata.get("namespace", ""), metadata["name"])
        known = self.store.entry(key)
        if known is not None and known.resource_version == metadata["resourceVersion"]:
            found[key] = known
            return
        # Items of a list carry neither; the record and the raw JSON must look as in a watch.
        body.setdefault("apiVersion", self.resource.api_version)
        body.setdefault("kind", self.resource.kind)
        entry = self._entry(key, body)
        if entry is not None:
            found[key] = entry

    async def _watch(self) -> None:
        events = self._client.watch(
            self.resource,
            self._namespace,
            resource_version=self._version,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
        )
        async with aclosing(events):
            async for event in events:
                metadata = event.body["metadata"]
                if event.kind == DELETED:
                    self._remove(object_key(metadata.get("namespace", ""), metadata["name"]))
                elif event.kind != BOOKMARK:
                    self._apply(event.body)
                self._version = metadata["resourceVersion"]
                self._event_count += 1

    def _apply(self, body: dict[str, Any]) -> None:
        metadata = body["metadata"]
        key = object_key(metadata.get("namespace", ""), metadata["name"])
        known = self.store.entry(key)
        if known is not None and known.resource_version == metadata["resourceVersion"]:
            return
        entry = self._entry(key, body)
        if entry is None:
            self._remove(key)
        else:
            self._put(key, entry)

    def _entry(self, key: str, body: dict[str, Any]) -> Entry[R] | None:
        try:
            record = self._transform(body)
        except (InvalidObject, ValueError) as error:
            fields = {"kind": self.resource.full_name, "key": key, "error": str(error)}
            log.error("object left out: it cannot be read", fields=fields)
            return None
        if record is None:
            return None
        metadata = body["metadata"]
        raw = None
        if self._keep_raw:
            metadata.pop("managedFields", None)
            raw = orjson.dumps(body)
        return Entry(record, metadata["resourceVersion"], raw)

    def _put(self, key: str, entry: Entry[R]) -> None:
        known = self.store.entry(key)
        if known is not None and _is_older(entry.resource_version, known.resource_version):
            return
        old = self.store.put(key, entry)
        if old is None:
            for handlers in self._handlers:
                if handlers.added is not None:
                    handlers.added(key, entry.record)
        elif old.resource_version != entry.resource_version:
            for handlers in self._handlers:
                if handlers.updated is not None:
                    handlers.updated(key, old.record, entry.record)

    def _remove(self, key: str) -> None:
        old = self.store.remove(key)
        if old is not None:
            for handlers in self._handlers:
                if handlers.deleted is not None:
                    handlers.deleted(key, old.record)


def _version_number(version: str) -> int:
    return int(version) if version.isdecimal() else 0


def _is_older(version: str, than: str) -> bool:
    return 0 < _version_number(version) < _version_number(than)
