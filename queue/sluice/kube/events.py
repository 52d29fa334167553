"""Records events (events.k8s.io/v1) about objects, without ever making a decision wait.

``record`` only files the event in a bounded queue; ``run`` writes them. Repeats of one event within
six minutes become one Event object with a series, patched at most once a minute, because every
write counts. When the API server is too slow, the newest events are dropped and counted. Used by
controllers.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from sluice.api.errors import AlreadyExists, Forbidden, KubeError, NotFound, Throttled, Transient
from sluice.api.times import micro_from_ms
from sluice.clock import Clock, SystemClock
from sluice.kube.client import Client
from sluice.kube.resources import EVENTS
from sluice.log import get_logger

log = get_logger(__name__)

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
NOTE_BYTES_MAX: Final = 1024
"""Bound of the API on a note, in bytes of UTF-8."""
QUEUE_MAX: Final = 10_000
_SERIES_S: Final = 360.0
"""A repeat later than this starts a new Event, as the API's own recorders do."""
_SERIES_WRITE_S: Final = 60.0
_SERIES_MAX: Final = 4096
_WORKERS: Final = 4
_ATTEMPTS: Final = 3
_RETRY_WAIT_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDraft:
    """What happened to which object.

    Attributes:
        regarding: Object reference: apiVersion, kind, name, and namespace, uid where they exist.
        reason: CamelCase word of docs/spec/api.md 4.11.
        note: A sentence for people; cut to 1024 bytes.
        warning: Type Warning instead of Normal.
        action: What was done; the reason when empty.
        controller: Reporting controller, such as ``kueue-admission``.
        related: A second object, if any.
    """

    regarding: Mapping[str, str]
    reason: str
    note: str
    warning: bool = False
    action: str = ""
    controller: str = "sluice"
    related: Mapping[str, str] | None = None

    @property
    def identity(self) -> tuple[str, ...]:
        """Return what makes two drafts the same event."""
        about = self.regarding
        related = self.related or {}
        return (
            about.get("uid") or f"{about.get('namespace', '')}/{about.get('name', '')}",
            about.get("kind", ""),
            self.reason,
            self.note,
            WARNING if self.warning else NORMAL,
            self.action,
            self.controller,
            related.get("uid") or related.get("name", ""),
        )


@dataclass(slots=True)
class _Series:
    """One event and its repeats: at most one Event object.

    Attributes:
        draft: What happened.
        at_ms: When it happened first, in epoch milliseconds.
        seen_at_s: When it happened last, by the monotonic clock.
        count: How often it happened.
        written_count: The count the API server knows; 0 before the Event object exists.
        name: Name of the Event object.
        is_queued: Whether it waits to be written.
    """

    draft: EventDraft
    at_ms: int
    seen_at_s: float
    name: str
    count: int = 1
    written_count: int = 0
    is_queued: bool = False

    @property
    def namespace(self) -> str:
        """Return where its Event object lives."""
        return self.draft.regarding.get("namespace") or "default"


def reference(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the object reference of a JSON object with apiVersion, kind and metadata."""
    metadata = body["metadata"]
    found = {
        "apiVersion": body.get("apiVersion", ""),
        "kind": body.get("kind", ""),
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "resourceVersion": metadata.get("resourceVersion", ""),
    }
    return {name: value for name, value in found.items() if value}


class EventRecorder:
    """Queue of events and the tasks that write them.

    Attributes:
        dropped_count: Events lost to a full queue or to repeated failure.
        written_count: Event objects created or patched.
    """

    def __init__(
        self,
        client: Client,
        *,
        instance: str,
        clock: Clock | None = None,
        queue_max: int = QUEUE_MAX,
    ) -> None:
        """Make a recorder; nothing is written before ``run``.

        Args:
            client: Where events go.
            instance: Name of this process, such as the pod's name.
            clock: Wall time for what is written, monotonic time for series.
            queue_max: Events that wait at most.
        """
        self._client = client
        self._instance = instance[:128]
        self._clock = clock or SystemClock()
        self._queue: asyncio.Queue[_Series] = asyncio.Queue(queue_max)
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()
        self.dropped_count = 0
        self.written_count = 0

    def record(self, draft: EventDraft) -> None:
        """File an event; returns at once and never fails."""
        now_s = self._clock.monotonic_s()
        known = self._series.get(draft.identity)
        if known is not None and now_s - known.seen_at_s < _SERIES_S:
            known.count += 1
            known.seen_at_s = now_s
            return
        name = f"{draft.regarding.get('name', 'unknown')[:220]}.{uuid.uuid4().hex[:16]}"
        series = _Series(draft, self._clock.now_ms(), now_s, name)
        if self._put(series):
            self._series[draft.identity] = series
            self._series.move_to_end(draft.identity)
            while len(self._series) > _SERIES_MAX:
                self._series.popitem(last=False)

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(_WORKERS):
                group.create_task(self._work(), name=f"events-{number}")
            group.create_task(self._refresh(), name="events-series")

    def file_repeats(self) -> None:
        """Queue every series with repeats that are not written yet; forget those that ended."""
        now_s = self._clock.monotonic_s()
        for identity, series in tuple(self._series.items()):
            if 0 < series.written_count < series.count and not series.is_queued:
                self._put(series)
            elif now_s - series.seen_at_s >= _SERIES_S:
                del self._series[identity]

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(_SERIES_WRITE_S)
            self.file_repeats()

    async def flush(self, timeout_s: float) -> None:
        """Wait until what is filed has been written, at most ``timeout_s``; needs ``run``."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._queue.join()
        except TimeoutError:
            log.warning("events left unwritten", fields={"count": self._queue.qsize()})

    def _put(self, series: _Series) -> bool:
        try:
            self._queue.put_nowait(series)
        except asyncio.QueueFull:
            self.dropped_count += 1
            return False
        series.is_queued = True
        return True

    async def _work(self) -> None:
        while True:
            series = await self._queue.get()
            try:
                await self._write(series)
            finally:
                series.is_queued = False
                self._queue.task_done()

    async def _write(self, series: _Series) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await (self._patch(series) if series.written_count else self._create(series))
            except (Transient, Throttled) as error:
                if attempt < _ATTEMPTS:
                    await asyncio.sleep(_RETRY_WAIT_S * attempt)
                    continue
                self._drop(series, error)
            except KubeError as error:
                self._drop(series, error)
            else:
                self.written_count += 1
            return

    def _drop(self, series: _Series, error: KubeError) -> None:
        self.dropped_count += 1
        self._series.pop(series.draft.identity, None)
        fields = {"reason": series.draft.reason, "error": str(error)}
        if isinstance(error, NotFound | Forbidden):
            # The namespace is gone or terminating, or RBAC lacks events: no retry helps.
            log.debug("event not written", fields=fields)
        else:
            log.warning("event dropped", fields=fields)

    async def _create(self, series: _Series) -> None:
        draft = series.draft
        body = EVENTS.skeleton(series.namespace, series.name)
        body.update(
            eventTime=micro_from_ms(series.at_ms),
            type=WARNING if draft.warning else NORMAL,
            reason=draft.reason[:128],
            action=(draft.action or draft.reason)[:128],
            note=cut_note(draft.note),
            reportingController=draft.controller,
            reportingInstance=self._instance,
            regarding=dict(draft.regarding),
        )
        if draft.related:
            body["related"] = dict(draft.related)
        with suppress(AlreadyExists):  # an earlier attempt arrived, though its answer did not
            await self._client.create(EVENTS, series.namespace, body)
        series.written_count = 1

    async def _patch(self, series: _Series) -> None:
        count = series.count
        observed = micro_from_ms(self._clock.now_ms())
        body = {"series": {"count": count, "lastObservedTime": observed}}
        await self._client.patch(EVENTS, series.namespace, series.name, body)
        series.written_count = count


def cut_note(note: str) -> str:
    """Return a note of at most 1024 bytes, cut between characters and marked with dots."""
    data = note.encode()
    if len(data) <= NOTE_BYTES_MAX:
        return note
    return data[: NOTE_BYTES_MAX - 3].decode(errors="ignore") + "..."
