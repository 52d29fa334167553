"""Watch streams: one JSON object a line, cut out of the chunks as they arrive.

aiohttp's own readline refuses lines longer than its buffer, and objects may be a megabyte; so the
lines are cut here, with a bound. Used by ``client``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import orjson

from sluice.api.errors import Transient
from sluice.kube.responses import error_of_exception, error_of_status

LINE_BYTES_MAX: Final = 16 * 1024 * 1024
"""etcd stores up to 1.5 MiB an object by default; ten times that is no event but a fault."""

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change.

    Attributes:
        kind: ADDED, MODIFIED, DELETED or BOOKMARK.
        body: The object; of a bookmark only kind and resourceVersion are set.
    """

    kind: str
    body: dict[str, Any]


def watch_query(
    resource_version: str, label_selector: str, field_selector: str, duration_s: int
) -> dict[str, str]:
    """Return the query parameters that turn a list into a watch with bookmarks."""
    return {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": resource_version,
        "labelSelector": label_selector,
        "fieldSelector": field_selector,
        "timeoutSeconds": str(duration_s),
    }


async def read_events(response: aiohttp.ClientResponse, what: str) -> AsyncIterator[WatchEvent]:
    """Yield the events of an open watch until the server ends it.

    A connection that falls silent or breaks off ends the stream as well: the caller goes on from
    the last version it saw, which loses nothing.

    Args:
        response: The answer to a watch request.
        what: What error messages call the request.

    Raises:
        KubeError: The server sent an ERROR event, or something that is no watch event.
    """
    parts: list[bytes] = []
    length = 0
    try:
        async for chunk in response.content.iter_any():
            *lines, rest = chunk.split(b"\n")
            if lines:
                parts.append(lines[0])
                lines[0] = b"".join(parts)
                parts, length = [], 0
            for line in lines:
                if line:
                    yield decode_event(line, what)
            if rest:
                parts.append(rest)
                length += len(rest)
                if length > LINE_BYTES_MAX:
                    raise Transient(f"{what}: an event is longer than {LINE_BYTES_MAX} bytes")
    except (aiohttp.ServerTimeoutError, aiohttp.ClientPayloadError):
        return
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise error_of_exception(error, what) from error


def decode_event(line: bytes, what: str) -> WatchEvent:
    """Return the event of one line.

    Raises:
        KubeError: It is an ERROR event, or no event at all.
    """
    try:
        value = orjson.loads(line)
        kind, body = value["type"], value["object"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        message = f"{what}: the stream broke off or is no watch"
        raise Transient(message, reason="BadAnswer") from error
    if kind == "ERROR":
        code = body.get("code")
        raise error_of_status(code if isinstance(code, int) else 500, body)
    return WatchEvent(kind, body)
