"""The Kubernetes client: raw JSON over one aiohttp session.

Objects go in and come out as plain dicts: typed models cost several times the CPU on the hot path
(docs/adr). Errors are those of ``sluice.api.errors``; ``sender`` says what is retried. Anyone above
the pure layers may use it; it is made once by the composition root and shared.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from sluice.clock import Clock
from sluice.kube.access import ClusterAccess
from sluice.kube.backoff import DICE
from sluice.kube.requests import PatchType, Request, Verb, build, delete_options
from sluice.kube.resources import Resource
from sluice.kube.sender import TIMEOUT_S, ClientOptions, RequestObserver, Sender
from sluice.kube.watch import WatchEvent, read_events, watch_query

__all__ = ["Client", "ClientOptions", "PatchType", "RequestObserver", "WatchEvent"]

_LIST_TIMEOUT_S: Final = 60.0
_WATCH_GRACE_S: Final = 30.0
_WATCH_IDLE_S: Final = 150.0
"""Bookmarks come about once a minute; silence for longer than two means a dead connection."""


class Client:
    """Sends requests to one API server. Use as an async context manager, or call ``close``."""

    def __init__(
        self,
        access: ClusterAccess,
        *,
        options: ClientOptions | None = None,
        clock: Clock | None = None,
        observer: RequestObserver | None = None,
    ) -> None:
        self.access = access
        self._sender = Sender(access, options=options, clock=clock, observer=observer)

    async def __aenter__(self) -> Self:
        """Return itself; connections are opened on demand."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close every connection."""
        await self.close()

    async def close(self) -> None:
        """Close every connection; running requests fail."""
        await self._sender.close()

    async def get(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        subresource: str = "",
        timeout_s: float = TIMEOUT_S,
        retry: bool = True,
    ) -> dict[str, Any]:
        """Return one object; the namespace is empty for cluster-scoped kinds."""
        request = build(Verb.GET, resource, namespace, name, subresource=subresource)
        return await self.send(request, timeout_s=timeout_s, retry=retry)

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
        timeout_s: float = _LIST_TIMEOUT_S,
        retry: bool = True,
    ) -> dict[str, Any]:
        """Return one page of a list, as the List object the server sent.

        Args:
            resource: The kind.
            namespace: Empty for all namespaces.
            label_selector: Label selector text.
            field_selector: Field selector text.
            limit: Objects in a page; 0 for all at once.
            continue_token: ``metadata.continue`` of the page before.
            resource_version: ``0`` takes any version from the server's cache.
            timeout_s: Seconds until it is given up.
            retry: Whether to try again where that is safe.
        """
        query = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "limit": str(limit) if limit else "",
            "continue": continue_token,
            "resourceVersion": resource_version,
        }
        request = build(Verb.LIST, resource, namespace, query=query)
        return await self.send(request, timeout_s=timeout_s, retry=retry)

    async def create(
        self,
        resource: Resource,
        namespace: str,
        body: Mapping[str, Any],
        *,
        name: str = "",
        subresource: str = "",
        field_manager: str = "",
        dry_run: bool = False,
        timeout_s: float = TIMEOUT_S,
        retry: bool = True,
    ) -> dict[str, Any]:
        """Create an object and return it as stored; with ``name``, POST to its subresource."""
        query = {"fieldManager": field_manager, "dryRun": "All" if dry_run else ""}
        request = build(
            Verb.CREATE,
            resource,
            namespace,
            name,
            subresource=subresource,
            query=query,
            body=body,
        )
        return await self.send(request, timeout_s=timeout_s, retry=retry)

    async def replace(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Mapping[str, Any],
        *,
        subresource: str = "",
        field_manager: str = "",
        timeout_s: float = TIMEOUT_S,
        retry: bool = True,
    ) -> dict[str, Any]:
        """PUT an object; with its resourceVersion inside, a changed object gives Conflict."""
        query = {"fieldManager": field_manager}
        request = build(
            Verb.UPDATE, resource, namespace, name, subresource=subresource, query=query, body=body
        )
        return await self.send(request, timeout_s=timeout_s, retry=retry)

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: object,
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        timeout_s: float = TIMEOUT_S,
        retry: bool = True,
    ) -> dict[str, Any]:
        """Patch an object and return it as stored; ``force`` takes fields over (APPLY only)."""
        query = {"fieldManager": field_manager}
        if patch_type is PatchType.APPLY:
            query["force"] = "true" if force else "false"
        request = build(
            Verb.PATCH,
            resource,
            namespace,
            name,
            subresource=subresource,
            query=query,
            body=body,
            content_type=patch_type.value,
        )
        return await self.send(request, timeout_s=timeout_s, retry=retry)

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        propagation: str = "",
        uid: str = "",
        resource_version: str = "",
        grace_period_s: int | None = None,
        timeout_s: float = TIMEOUT_S,
        retry: bool = True,
    ) -> dict[str, Any]:
        """Delete an object; returns the Status, or the object while finalizers hold it."""
        body = delete_options(
            propagation=propagation,
            uid=uid,
            resource_version=resource_version,
            grace_period_s=grace_period_s,
        )
        request = build(Verb.DELETE, resource, namespace, name, body=body)
        return await self.send(request, timeout_s=timeout_s, retry=retry)

    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        duration_s: int = 0,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield changes after a version until the server ends the watch; nothing is retried.

        Args:
            resource: The kind.
            namespace: Empty for all namespaces.
            resource_version: Version to go on from.
            label_selector: Label selector text.
            field_selector: Field selector text.
            duration_s: Seconds until the server ends it; 0 picks four to eight minutes at random,
                so that many watches don't end together.

        Raises:
            Gone: The version is too old; list again.
            KubeError: Any other failure, an ERROR event included.
        """
        seconds = duration_s or DICE.randint(240, 480)
        query = watch_query(resource_version, label_selector, field_selector, seconds)
        request = build(Verb.WATCH, resource, namespace, query=query)
        limits = aiohttp.ClientTimeout(
            total=seconds + _WATCH_GRACE_S, sock_connect=TIMEOUT_S, sock_read=_WATCH_IDLE_S
        )
        async with await self._sender.open(request, limits) as response:
            async for event in read_events(response, str(request)):
                yield event

    async def call(
        self, path: str, *, timeout_s: float = TIMEOUT_S, retry: bool = True
    ) -> dict[str, Any]:
        """GET a path that belongs to no kind, such as ``/version``; its JSON object is returned."""
        request = Request(verb=Verb.GET, resource=path, path=path)
        return await self.send(request, timeout_s=timeout_s, retry=retry)

    async def send(
        self, request: Request, *, timeout_s: float = TIMEOUT_S, retry: bool = True
    ) -> dict[str, Any]:
        """Send a request built by ``requests.build``; see ``Sender.send``."""
        return await self._sender.send(request, timeout_s=timeout_s, retry=retry)
