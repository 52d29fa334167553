"""Nodes and pods for the engine, watched only while some flavor has a topology.

A cluster without topologies pays nothing. With one, the engine learns of Topologies only after all
nodes and pods are listed: until then ClusterQueues that use them are inactive, so that nothing is
placed on nodes whose load is not known (docs/spec/algorithm.md 1.7). Every replica watches, so that
a standby knows the same when it takes over. Made and run by `manager`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sluice.api.records import Kind, ResourceFlavor, Topology
from sluice.controllers.caches import Caches
from sluice.controllers.scheduler import Scheduler
from sluice.controllers.topology_records import CachedNode, CachedPod
from sluice.kube.informer import Handlers
from sluice.log import get_logger

log = get_logger(__name__)


class TopologyFeed:
    """Starts and stops the informers of nodes and pods and tells the engine what they see.

    Attributes:
        settled: Set while nothing is waited for: no flavor has a topology, or all is listed.
        opened: Called each time that nodes and pods are listed, from then on current.
    """

    def __init__(self, caches: Caches, scheduler: Scheduler) -> None:
        self.settled = asyncio.Event()
        self.settled.set()
        self.opened: list[Callable[[], None]] = []
        self._caches = caches
        self._scheduler = scheduler
        self._flavors: set[str] = set()
        self._changed = asyncio.Event()
        self._is_open = False

    @property
    def is_open(self) -> bool:
        """Tell whether nodes and pods are listed and kept current."""
        return self._is_open

    def attach(self) -> None:
        """Follow flavors, and pass on what concerns topologies."""
        caches = self._caches
        caches.flavors.add_handlers(
            Handlers(
                added=lambda _, flavor: self._see_flavor(flavor),
                updated=lambda _, __, flavor: self._see_flavor(flavor),
                deleted=lambda _, flavor: self._lose_flavor(flavor),
            )
        )
        caches.topologies.add_handlers(
            Handlers(
                added=lambda _, topology: self._see_topology(topology),
                updated=lambda _, __, topology: self._see_topology(topology),
                deleted=lambda key, _: self._lose_topology(key),
            )
        )
        caches.nodes.add_handlers(
            Handlers(
                added=lambda _, node: self._scheduler.observe_record(node.record),
                updated=self._node_updated,
                deleted=lambda key, _: self._scheduler.observe_gone(Kind.NODE, key),
            )
        )
        caches.pods.add_handlers(
            Handlers(
                added=lambda key, pod: self._pod_changed(key, None, pod),
                updated=self._pod_changed,
                deleted=lambda key, pod: self._pod_changed(key, pod, None),
            )
        )

    async def wait_settled(self, timeout_s: float) -> None:
        """Wait until the engine knows nodes and pods, or need not know them.

        Raises:
            TimeoutError: They were not listed in time.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self.settled.wait()
        except TimeoutError:
            message = f"no list of nodes and pods within {timeout_s:g}s"
            raise TimeoutError(message) from None

    # What the engine is told. Most updates of nodes and pods are heartbeats and progress, which
    # say nothing new: they must not wake it.

    def _node_updated(self, _: str, old: CachedNode, new: CachedNode) -> None:
        if old.record != new.record:
            self._scheduler.observe_record(new.record)

    def _pod_changed(self, key: str, old: CachedPod | None, new: CachedPod | None) -> None:
        before = None if old is None else old.record
        record = None if new is None else new.record
        if record == before:
            return
        if record is None:
            self._scheduler.observe_gone(Kind.POD, key)
        else:
            self._scheduler.observe_record(record)

    def _see_topology(self, topology: Topology) -> None:
        if self._is_open:
            self._scheduler.observe_record(topology)

    def _lose_topology(self, key: str) -> None:
        if self._is_open:
            self._scheduler.observe_gone(Kind.TOPOLOGY, key)

    # Whether to watch.

    def _see_flavor(self, flavor: ResourceFlavor) -> None:
        if flavor.topology is None:
            self._lose_flavor(flavor)
            return
        self._flavors.add(flavor.name)
        self._flavors_changed()

    def _lose_flavor(self, flavor: ResourceFlavor) -> None:
        self._flavors.discard(flavor.name)
        self._flavors_changed()

    def _flavors_changed(self) -> None:
        uses_topology = bool(self._flavors)
        if uses_topology is self._caches.uses_topology:
            return
        self._caches.uses_topology = uses_topology
        if uses_topology and not self._is_open:
            self.settled.clear()
        else:
            self.settled.set()
        self._changed.set()

    async def run(self) -> None:
        """Watch while it is asked for, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._caches.uses_topology:
                log.info("a flavor has a topology: watching nodes and pods")
                await self._watch()
                log.info("no flavor has a topology any more: nodes and pods are not watched")

    async def _watch(self) -> None:
        """Keep nodes and pods current until no flavor has a topology."""
        informers = self._caches.of_topology()
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(informer.run(), name=f"informer-{informer.resource.plural}")
                for informer in informers
            ]
            tasks.append(group.create_task(self._open_when_listed(), name="topology-listed"))
            while self._caches.uses_topology:
                await self._changed.wait()
                self._changed.clear()
            for task in tasks:
                task.cancel()
        self._close()
        for informer in informers:
            informer.clear()

    async def _open_when_listed(self) -> None:
        for informer in self._caches.of_topology():
            await informer.synced.wait()
        self._is_open = True
        for _, topology in self._caches.topologies.store.items():
            self._scheduler.observe_record(topology)
        self.settled.set()
        for hear in self.opened:
            hear()

    def _close(self) -> None:
        """Have the engine forget topologies before it forgets what is on them."""
        if self._is_open:
            self._is_open = False
            for key in self._caches.topologies.store.all_keys():
                self._scheduler.observe_gone(Kind.TOPOLOGY, key)
        if self._caches.uses_topology:  # a flavor came back while this ended
            self.settled.clear()
            self._changed.set()
