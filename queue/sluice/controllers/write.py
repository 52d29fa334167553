"""Every write of the controllers: fenced by leadership, guarded by a resourceVersion, and echoed.

A write is refused when this process no longer leads, so that a deposed leader can't act late. Each
carries the resourceVersion it was decided on, so the API server refuses it when the object changed.
The answer goes into the informer's cache at once, so that the next decision sees it.

How a status is written (docs/adr/0002-status-writes.md) is decided in `Writer.status` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sluice.api import names
from sluice.api.errors import SluiceError
from sluice.jobs.difference import Json, merge_patch
from sluice.kube.client import Client
from sluice.kube.informer import Informer

_IDENTITY = ("uid", "resourceVersion")


class NotLeading(SluiceError):
    """This process may not write any more; another one decides."""


class Writer:
    """Writes to the API server on behalf of one leader."""

    def __init__(self, client: Client, *, is_leading: Callable[[], bool]) -> None:
        """Make a writer.

        Args:
            client: Where to write.
            is_leading: Asked right before each write.
        """
        self.client = client
        self._is_leading = is_leading

    def check(self) -> None:
        """Raise NotLeading unless this process may write now."""
        if not self._is_leading():
            raise NotLeading("leadership was lost; the new leader decides")

    async def status(self, informer: Informer[Any], raw: Json, status: Json) -> Json:
        """Write the status of an object and return the object as stored.

        Args:
            informer: Cache of its kind.
            raw: The object the decision was taken on.
            status: Its new status.

        Raises:
            Conflict: The object changed since.
            KubeError: Any other refusal.
        """
        return await self._patch(informer, raw, {**raw, "status": status}, "status")

    async def update(self, informer: Informer[Any], raw: Json, desired: Json) -> Json:
        """Write all of an object but its status and return the object as stored.

        Raises:
            Conflict: The object changed since.
            KubeError: Any other refusal.
        """
        return await self._patch(informer, raw, desired, "")

    async def subresource(
        self, informer: Informer[Any], raw: Json, desired: Json, subresource: str
    ) -> Json:
        """Write an object, or the part of it behind a subresource; see `status` and `update`."""
        return await self._patch(informer, raw, desired, subresource)

    async def _patch(
        self, informer: Informer[Any], raw: Json, desired: Json, subresource: str
    ) -> Json:
        patch = merge_patch(raw, desired)
        if not patch:
            return raw
        self.check()
        metadata = raw["metadata"]
        kept = {field: metadata[field] for field in _IDENTITY if field in metadata}
        patch["metadata"] = {**patch.get("metadata", {}), **kept}
        answer = await self.client.patch(
            informer.resource,
            metadata.get("namespace", ""),
            metadata["name"],
            patch,
            subresource=subresource,
            field_manager=names.FIELD_MANAGER,
        )
        return _seen(informer, answer)

    async def create(self, informer: Informer[Any], namespace: str, body: Json) -> Json:
        """Create an object and return it as stored.

        Raises:
            AlreadyExists: An object of that name is there.
            KubeError: Any other refusal.
        """
        self.check()
        answer = await self.client.create(
            informer.resource, namespace, body, field_manager=names.FIELD_MANAGER
        )
        return _seen(informer, answer)

    async def delete(self, informer: Informer[Any], raw: Json, *, propagation: str = "") -> None:
        """Delete this very object (by uid).

        Raises:
            NotFound: It is gone.
            Conflict: Another object has its name by now.
        """
        self.check()
        metadata = raw["metadata"]
        await self.client.delete(
            informer.resource,
            metadata.get("namespace", ""),
            metadata["name"],
            uid=metadata["uid"],
            propagation=propagation,
        )

    async def fresh(self, informer: Informer[Any], namespace: str, name: str) -> Json:
        """Read an object from the API server, into the cache too.

        Raises:
            NotFound: It is gone.
        """
        return _seen(informer, await self.client.get(informer.resource, namespace, name))


def _seen(informer: Informer[Any], answer: Json) -> Json:
    answer.setdefault("apiVersion", informer.resource.api_version)
    answer.setdefault("kind", informer.resource.kind)
    informer.observe_write(answer)
    return answer


def without_finalizer(raw: Json, finalizer: str) -> Json:
    """Return an object without one finalizer; the same object when it has none of that name."""
    present = raw["metadata"].get("finalizers") or ()
    if finalizer not in present:
        return raw
    kept = [name for name in present if name != finalizer]
    return {**raw, "metadata": {**raw["metadata"], "finalizers": kept}}


def with_finalizer(raw: Json, finalizer: str) -> Json:
    """Return an object that has a finalizer; the same object when it has it."""
    present = raw["metadata"].get("finalizers") or ()
    if finalizer in present:
        return raw
    return {**raw, "metadata": {**raw["metadata"], "finalizers": [*present, finalizer]}}
