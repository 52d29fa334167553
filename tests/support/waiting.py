"""Waiting for objects on a control plane: a list, then a watch, until a deadline. No sleeping."""

import asyncio
from collections.abc import Callable
from typing import Any

from sluice.api.errors import Gone, Transient
from sluice.kube.client import Client
from sluice.kube.resources import Resource

DEADLINE_S = 30.0
_RETRY_INTERVAL_S = 0.1

Json = dict[str, Any]
Check = Callable[[Json], bool]


async def wait_for(
    client: Client,
    resource: Resource,
    namespace: str,
    is_wanted: Check,
    *,
    name: str = "",
    deadline_s: float = DEADLINE_S,
) -> Json:
    """Return the first object that is as wanted.

    Args:
        client: Where to look.
        resource: Kind of the object.
        namespace: Empty for cluster-scoped kinds and for all namespaces.
        is_wanted: Says whether an object is the one.
        name: Look at this object only.
        deadline_s: Seconds until it must be there.

    Raises:
        AssertionError: It did not come; the message shows what was there last.
    """
    selector = f"metadata.name={name}" if name else ""
    last: list[Json] = []
    try:
        async with asyncio.timeout(deadline_s):
            while True:
                found = await _list_and_watch(
                    client, resource, namespace, selector, is_wanted, last
                )
                if found is not None:
                    return found
    except TimeoutError as error:
        shown = last[-1] if last else "nothing"
        raise AssertionError(f"no such {resource.kind} after {deadline_s} s; last: {shown}") from (
            error
        )


async def wait_until_deleted(
    client: Client,
    resource: Resource,
    namespace: str,
    name: str,
    *,
    deadline_s: float = DEADLINE_S,
) -> None:
    """Wait until an object is gone."""
    async with asyncio.timeout(deadline_s):
        while True:
            listed = await client.list(resource, namespace, field_selector=f"metadata.name={name}")
            if not listed["items"]:
                return
            async for event in client.watch(
                resource,
                namespace,
                resource_version=listed["metadata"]["resourceVersion"],
                field_selector=f"metadata.name={name}",
            ):
                if event.kind == "DELETED":
                    return


def has_condition(kind: str, status: str = "True", reason: str = "") -> Check:
    """Return a check for a condition of this type, status and, if given, reason."""

    def check(item: Json) -> bool:
        # A controller may leave null where it has nothing to say.
        conditions = (item.get("status") or {}).get("conditions") or ()
        return any(
            c["type"] == kind and c["status"] == status and reason in ("", c.get("reason"))
            for c in conditions
        )

    return check


def has_phase(phase: str) -> Check:
    """Return a check for a Pod's or Namespace's phase."""
    return lambda item: (item.get("status") or {}).get("phase") == phase


async def _list_and_watch(
    client: Client,
    resource: Resource,
    namespace: str,
    selector: str,
    is_wanted: Check,
    last: list[Json],
) -> Json | None:
    """Return the object, or None when the watch broke and the list must be read again."""
    try:
        listed = await client.list(resource, namespace, field_selector=selector)
        last[:] = listed["items"]
        for item in listed["items"]:
            if is_wanted(item):
                return dict(item)
        async for event in client.watch(
            resource,
            namespace,
            resource_version=listed["metadata"]["resourceVersion"],
            field_selector=selector,
        ):
            if event.kind in ("ADDED", "MODIFIED"):
                last[:] = [event.body]
                if is_wanted(event.body):
                    return event.body
    except Gone:
        pass
    except Transient:
        await asyncio.sleep(_RETRY_INTERVAL_S)
    return None
