"""Watch: a stream of changes from a revision on, with bookmarks and initial events.

A watch keeps only a cursor into the collection's history, so a slow client costs nothing; when
history has moved past its cursor it is told 410 and lists again, as with a real API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import orjson

from sluice.kube.backoff import DICE
from sluice.local.apiserver.backend import Backend
from sluice.local.apiserver.calls import Call, Shape, is_true, parse_integer, parse_revision
from sluice.local.apiserver.reading import Filter
from sluice.local.apiserver.seams import Json
from sluice.local.apiserver.status import ApiError, Cause, Reason, bad_request, invalid_options
from sluice.local.apiserver.store import Change, ChangeType, Collection, Stored
from sluice.local.apiserver.tables import partial, table

TIMEOUT_S_MIN, TIMEOUT_S_MAX = 1800.0, 3600.0
"""A watch without timeoutSeconds ends after a random time between these."""

BOOKMARK_S = 60.0
"""Seconds of silence after which a watch gets a bookmark, when the client allows them."""

BATCH_MAX = 500
"""Changes that are sent in one piece."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Watch:
    """One watch request.

    Raises:
        ApiError: 400 or 422 for parameters that don't fit together.
    """

    def __init__(self, backend: Backend, call: Call) -> None:
        self._backend = backend
        self._call = call
        self._filter = Filter(call)
        self._collection: Collection = backend.collection(call.resource)
        self._bookmarks = is_true(call.query.get("allowWatchBookmarks"))
        self._sends_initial = is_true(call.query.get("sendInitialEvents"))
        self._revision = parse_revision(call.query.get("resourceVersion", ""))
        self._check_match(call.query.get("resourceVersionMatch", ""))
        asked_s = parse_integer(call.query, "timeoutSeconds")
        self.timeout_s = float(asked_s) if asked_s else DICE.uniform(TIMEOUT_S_MIN, TIMEOUT_S_MAX)
        self._end_s = self._backend.clock.monotonic_s() + self.timeout_s
        self._sent_revision = 0

    def _check_match(self, match: str) -> None:
        sends = self._call.query.get("sendInitialEvents")
        message = ""
        if sends is not None and match != "NotOlderThan":
            message = "resourceVersionMatch must be NotOlderThan when sendInitialEvents is given"
        elif sends is None and match:
            message = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is set"
        elif self._sends_initial and not self._bookmarks:
            message = "sendInitialEvents needs allowWatchBookmarks"
        if message:
            cause = Cause(
                reason="FieldValueForbidden",
                message=f"Forbidden: {message}",
                field="resourceVersionMatch",
            )
            raise invalid_options("ListOptions", [cause])

    async def events(self) -> AsyncIterator[bytes]:
        """Yield pieces of the stream, each of one or more whole lines."""
        waiter = self._collection.subscribe()
        try:
            async for piece in self._stream(waiter):
                yield piece
        except ApiError as error:
            yield _line("ERROR", error.to_status())
        finally:
            self._collection.unsubscribe(waiter)

    async def _stream(self, waiter: asyncio.Event) -> AsyncIterator[bytes]:
        if self._revision:
            self._backend.store.check_reached(self._revision)
        position: int | None
        if self._sends_initial or not self._revision:
            position = self._collection.position
            self._sent_revision = self._backend.store.revision
            asked_not_to = self._call.query.get("sendInitialEvents") is not None
            if self._sends_initial or not asked_not_to:
                states = [
                    state
                    for state in list(self._collection.select(self._call.namespace))
                    if self._filter.takes(state)
                ]
                for start in range(0, len(states), BATCH_MAX):
                    batch = [("ADDED", state) for state in states[start : start + BATCH_MAX]]
                    yield await self._lines(batch)
            if self._sends_initial:
                yield self._bookmark(is_initial_end=True)
        else:
            self._sent_revision = self._revision
            position = self._collection.position_after(self._revision)
        while True:
            changes = None if position is None else self._collection.since(position)
            if changes is None or position is None:
                raise self._too_old()
            if changes:
                batch_changes = changes[:BATCH_MAX]
                position += len(batch_changes)
                piece = await self._lines(self._seen(batch_changes))
                if piece:
                    yield piece
                continue
            left_s = self._end_s - self._backend.clock.monotonic_s()
            if left_s <= 0 or not self._is_served():
                return
            timed_out = await self._wait(waiter, min(left_s, self._backend.bookmark_s))
            at_end = self._end_s - self._backend.clock.monotonic_s() <= 0
            is_idle = timed_out and not self._collection.since(position)
            if is_idle and self._bookmarks and self._call.shape is not Shape.TABLE:
                yield self._bookmark(is_initial_end=False)
            if at_end:
                return

    def _is_served(self) -> bool:
        if self._backend.is_stopping:
            return False
        resource = self._call.resource
        found = self._backend.registry.find(
            resource.group, self._call.version.name, resource.plural
        )
        return found is not None

    @staticmethod
    async def _wait(waiter: asyncio.Event, timeout_s: float) -> bool:
        """Wait for a change; return True when none came in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await waiter.wait()
        except TimeoutError:
            return True
        waiter.clear()
        return False

    def _too_old(self) -> ApiError:
        return ApiError(
            Reason.EXPIRED,
            f"too old resource version: {self._revision or self._sent_revision} "
            f"({self._collection.oldest_revision})",
        )

    def _seen(self, changes: Sequence[Change]) -> list[tuple[str, Stored]]:
        """Return the events of changes as this watch's selectors see them."""
        events: list[tuple[str, Stored]] = []
        for change in changes:
            was = change.old is not None and self._filter.takes(change.old)
            self._sent_revision = change.revision
            if change.type is ChangeType.DELETED:
                if was:
                    events.append(("DELETED", change.new))
                continue
            is_now = self._filter.takes(change.new)
            if is_now:
                events.append(("MODIFIED" if was else "ADDED", change.new))
            elif was:
                events.append(("DELETED", change.new))
        return events

    async def _lines(self, events: Sequence[tuple[str, Stored]]) -> bytes:
        if not events:
            return b""
        call, states = self._call, [state for _, state in events]
        if call.shape is Shape.WHOLE:
            raw = await self._backend.show_raw(call.resource, call.version.name, states)
            return b"".join(
                b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n"
                for (kind, _), body in zip(events, raw, strict=True)
            )
        objects = await self._backend.show(call.resource, call.version.name, states)
        lines = []
        for (kind, _), obj in zip(events, objects, strict=True):
            if call.shape is Shape.METADATA:
                lines.append(_line(kind, partial(obj)))
            else:
                list_metadata = {"resourceVersion": obj["metadata"]["resourceVersion"]}
                include = call.query.get("includeObject", "")
                lines.append(
                    _line(
                        kind,
                        table(call.version, [obj], list_metadata, include, self._backend.now_s),
                    )
                )
        return b"".join(lines)

    def _bookmark(self, *, is_initial_end: bool) -> bytes:
        call = self._call
        # Nothing of this collection is newer than what was sent, so the store's revision holds.
        metadata: Json = {"resourceVersion": str(self._backend.store.revision)}
        if is_initial_end:
            metadata["resourceVersion"] = str(self._sent_revision)
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        if call.shape is Shape.METADATA:
            return _line("BOOKMARK", partial({"metadata": metadata}))
        obj: Json = {
            "kind": call.resource.kind,
            "apiVersion": call.api_version,
            "metadata": metadata,
        }
        if call.shape is Shape.TABLE:
            empty: Json = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
            return _line("BOOKMARK", {**empty, "columnDefinitions": [], "rows": []})
        return _line("BOOKMARK", obj)


def _line(kind: str, obj: Json) -> bytes:
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


def check_watchable(call: Call) -> None:
    """Refuse a watch of what can't be watched.

    Raises:
        ApiError: 400 when paging is asked of a watch.
    """
    if call.query.get("continue"):
        raise bad_request("continue is not allowed for watch")
