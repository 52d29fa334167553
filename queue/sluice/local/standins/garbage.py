"""Stand-in for Kubernetes' garbage collector: deletes what no owner is left for.

It watches every kind that the server has, also those of CRDs that come later, and keeps the graph
of owners. Background deletion follows from owners that are gone; foreground deletion lets an owner
go when its blocking dependents are; orphaning takes the references off first.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from sluice.api.errors import Conflict, KubeError, NotFound
from sluice.clock import Clock
from sluice.kube.client import Client, PatchType
from sluice.kube.informer import Handlers, Informer
from sluice.kube.resources import Resource
from sluice.local.standins.discovery import discover
from sluice.local.standins.ownership import FOREGROUND, ORPHAN, Graph, Item, Owner, item
from sluice.local.standins.worker import Worker
from sluice.log import get_logger

Json = dict[str, Any]

_SYNC_S_MAX: Final = 30.0
_DISCOVERY_RETRY_S: Final = 1.0
_UNWATCHED: Final = frozenset({("", "events"), ("events.k8s.io", "events")})
"""Events are many, own nothing and have no owners."""

log = get_logger(__name__)


class GarbageCollector:
    """Collects until cancelled.

    Args:
        client: For lists, watches, deletions and patches.
        definitions: All CRDs; a change makes it discover kinds again.
        clock: For informers.
    """

    def __init__(self, client: Client, definitions: Informer[Json], clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._graph = Graph()
        self._by_kind: dict[tuple[str, str], Resource] = {}
        self._watched: dict[tuple[str, str], tuple[Informer[Item], asyncio.Task[None]]] = {}
        self._worker = Worker("garbage", self._reconcile, concurrency=16)
        self._unresolved: set[str] = set()
        self._changed = asyncio.Event()
        self._changed.set()
        self.synced = asyncio.Event()
        definitions.add_handlers(
            Handlers(
                added=lambda key, crd: self._changed.set(),
                updated=lambda key, old, new: self._changed.set(),
                deleted=lambda key, crd: self._changed.set(),
            )
        )

    async def run(self) -> None:
        """Collect until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._worker.run(), name="standin-garbage")
            group.create_task(self._follow_kinds(group), name="standin-garbage-kinds")

    async def _follow_kinds(self, group: asyncio.TaskGroup) -> None:
        """Watch each kind that the server serves, for as long as it does."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                found = await discover(self._client)
            except KubeError as error:
                log.debug("discovery failed; trying again", fields={"error": str(error)})
                self._changed.set()
                await asyncio.sleep(_DISCOVERY_RETRY_S)
                continue
            self._by_kind = {(r.api_version, r.kind): r for r in found.all_versions}
            wanted = {
                (resource.group, resource.plural): resource
                for resource in found.preferred
                if (resource.group, resource.plural) not in _UNWATCHED
            }
            for key in [key for key in self._watched if key not in wanted]:
                self._watched.pop(key)[1].cancel()
            for key, resource in wanted.items():
                if key not in self._watched:
                    self._watched[key] = self._watch(group, resource)
            await self._wait_synced()
            self.synced.set()
            # Their owners' kinds may be known now.
            unresolved, self._unresolved = self._unresolved, set()
            for uid in unresolved:
                self._worker.queue.add(uid)

    async def _wait_synced(self) -> None:
        for informer, _ in list(self._watched.values()):
            try:
                await informer.wait_synced(_SYNC_S_MAX)
            except TimeoutError as error:
                log.warning("kind can't be listed", fields={"error": str(error)})

    def _watch(
        self, group: asyncio.TaskGroup, resource: Resource
    ) -> tuple[Informer[Item], asyncio.Task[None]]:
        informer: Informer[Item] = Informer(
            self._client, resource, lambda body: item(resource, body), clock=self._clock
        )
        informer.add_handlers(
            Handlers(
                added=lambda key, new: self._see(None, new),
                updated=lambda key, old, new: self._see(old, new),
                deleted=lambda key, old: self._lose(old),
            )
        )
        task = group.create_task(informer.run(), name=f"standin-garbage-{resource.full_name}")
        return informer, task

    def _see(self, old: Item | None, new: Item) -> None:
        if old is not None and old.uid != new.uid:
            self._lose(old)
        self._graph.put(new)
        if new.owners or new.waits_for_dependents or new.orphans_dependents:
            self._worker.queue.add(new.uid)
        if old is not None and old.owners != new.owners:
            # Who was an owner may have waited for this one.
            for owner in old.owners:
                self._worker.queue.add(owner.uid)

    def _lose(self, old: Item) -> None:
        dependents = self._graph.dependents(old.uid)
        self._graph.remove(old.uid)
        for dependent in dependents:
            self._worker.queue.add(dependent.uid)
        for owner in old.owners:
            self._worker.queue.add(owner.uid)

    async def _reconcile(self, uid: str) -> float | None:
        found = self._graph.get(uid)
        if found is None:
            return None
        try:
            if found.orphans_dependents:
                await self._orphan(found)
            elif found.waits_for_dependents:
                await self._delete_dependents(found)
            elif found.owners and not found.is_deleting:
                await self._collect(found)
        except NotFound:
            return None
        return None

    async def _collect(self, found: Item) -> None:
        """Delete an object whose owners are gone or going; take off references to those."""
        if not self.synced.is_set():
            # Owners may be there and just not listed yet; the live look below would be right,
            # but costs a request for each object at start.
            async with asyncio.timeout(_SYNC_S_MAX * 2):
                await self.synced.wait()
        gone: list[Owner] = []
        waiting: list[Owner] = []
        for owner in found.owners:
            known = self._graph.get(owner.uid)
            if known is None and await self._is_gone(owner, found):
                gone.append(owner)
            elif known is not None and known.waits_for_dependents and owner.is_blocked:
                waiting.append(owner)
        held = [owner for owner in found.owners if owner not in gone and owner not in waiting]
        if held:
            if gone or waiting:
                await self._drop_owners(found, {owner.uid for owner in (*gone, *waiting)})
            return
        if not gone and not waiting:
            return
        if waiting and self._graph.dependents(found.uid):
            propagation = "Foreground"
        elif ORPHAN in found.finalizers:
            propagation = "Orphan"
        elif FOREGROUND in found.finalizers:
            propagation = "Foreground"
        else:
            propagation = "Background"
        await self._client.delete(
            found.resource, found.namespace, found.name, uid=found.uid, propagation=propagation
        )

    async def _is_gone(self, owner: Owner, dependent: Item) -> bool:
        """Ask the server whether an owner that no watch has shown exists."""
        resource = self._by_kind.get((owner.api_version, owner.kind))
        if resource is None:
            # A kind that isn't served can't be looked up; look again when kinds change.
            self._unresolved.add(dependent.uid)
            return False
        namespace = dependent.namespace if resource.namespaced else ""
        if resource.namespaced and not namespace:
            return True
        try:
            body = await self._client.get(resource, namespace, owner.name)
        except NotFound:
            return True
        return bool(body["metadata"]["uid"] != owner.uid)

    async def _drop_owners(self, found: Item, uids: set[str]) -> None:
        body = await self._client.get(found.resource, found.namespace, found.name)
        metadata = body["metadata"]
        if metadata["uid"] != found.uid:
            return
        kept = [r for r in metadata.get("ownerReferences") or () if r["uid"] not in uids]
        patch = {
            "metadata": {
                "uid": found.uid,
                "resourceVersion": metadata["resourceVersion"],
                "ownerReferences": kept or None,
            }
        }
        await self._client.patch(
            found.resource, found.namespace, found.name, patch, patch_type=PatchType.MERGE
        )

    async def _delete_dependents(self, found: Item) -> None:
        """Go on with a foreground deletion: let the object go when nothing blocks it."""
        if self._graph.has_blocking_dependents(found.uid):
            for dependent in self._graph.dependents(found.uid):
                self._worker.queue.add(dependent.uid)
            return
        await self._drop_finalizer(found, FOREGROUND)

    async def _orphan(self, found: Item) -> None:
        for dependent in self._graph.dependents(found.uid):
            try:
                await self._drop_owners(dependent, {found.uid})
            except NotFound:
                continue
        await self._drop_finalizer(found, ORPHAN)

    async def _drop_finalizer(self, found: Item, finalizer: str) -> None:
        body = await self._client.get(found.resource, found.namespace, found.name)
        metadata = body["metadata"]
        if metadata["uid"] != found.uid or finalizer not in (metadata.get("finalizers") or ()):
            return
        kept = [name for name in metadata["finalizers"] if name != finalizer]
        patch = {
            "metadata": {
                "uid": found.uid,
                "resourceVersion": metadata["resourceVersion"],
                "finalizers": kept or None,
            }
        }
        try:
            await self._client.patch(
                found.resource, found.namespace, found.name, patch, patch_type=PatchType.MERGE
            )
        except Conflict:
            self._worker.queue.add(found.uid)
