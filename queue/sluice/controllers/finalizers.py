"""Finalizers of what Workloads depend on: queues, flavors, admission checks and topologies.

Each of these carries ``kueue.x-k8s.io/resource-in-use`` and goes away only when nothing uses it: a
ClusterQueue when no Workload holds its quota, a flavor or check when no ClusterQueue names it, a
topology when no flavor does. Source: docs/spec/api.md 1.1, 1.5, 1.6 and 1.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sluice.api import names
from sluice.api.conditions import ConditionType
from sluice.api.errors import NotFound
from sluice.api.records import ClusterQueue, Kind, ResourceFlavor
from sluice.controllers.caches import (
    BY_CHECK,
    BY_CLUSTER_QUEUE,
    BY_FLAVOR,
    BY_TOPOLOGY,
    CachedWorkload,
    Caches,
)
from sluice.controllers.reconcile import DONE, Reconciler, Result
from sluice.controllers.write import Writer, with_finalizer, without_finalizer
from sluice.engine.engine import Engine
from sluice.kube.informer import Handlers, Informer


class FinalizerController:
    """Reconciles the finalizers; keys are ``Kind:name``."""

    def __init__(self, caches: Caches, engine: Engine, writer: Writer, *, workers: int) -> None:
        self._caches = caches
        self._engine = engine
        self._writer = writer
        self._informers: dict[Kind, Informer[Any]] = {
            Kind.CLUSTER_QUEUE: caches.cluster_queues,
            Kind.RESOURCE_FLAVOR: caches.flavors,
            Kind.ADMISSION_CHECK: caches.checks,
            Kind.TOPOLOGY: caches.topologies,
        }
        self._users: dict[Kind, Callable[[str], bool]] = {
            Kind.CLUSTER_QUEUE: self._holds_workloads,
            Kind.RESOURCE_FLAVOR: lambda name: self._named_by(BY_FLAVOR, name),
            Kind.ADMISSION_CHECK: lambda name: self._named_by(BY_CHECK, name),
            Kind.TOPOLOGY: lambda name: bool(caches.flavors.store.keys_by(BY_TOPOLOGY, name)),
        }
        self.reconciler = Reconciler(
            "finalizer", self._reconcile, workers=workers, all_keys=self._all_keys
        )

    def _all_keys(self) -> list[str]:
        return [
            f"{kind}:{key}"
            for kind, informer in self._informers.items()
            for key in informer.store.all_keys()
        ]

    def attach(self) -> None:
        """Look at an object when it changes, or when what uses it changes."""
        for kind, informer in self._informers.items():
            self._attach(kind, informer)
        self._caches.cluster_queues.add_handlers(
            Handlers(
                updated=lambda _, old, __: self._queue_let_go(old),
                deleted=lambda _, old: self._queue_let_go(old),
            )
        )
        self._caches.flavors.add_handlers(
            Handlers(
                updated=lambda _, old, __: self._flavor_let_go(old),
                deleted=lambda _, old: self._flavor_let_go(old),
            )
        )
        self._caches.workloads.add_handlers(
            Handlers(
                updated=lambda _, old, __: self._workload_let_go(old),
                deleted=lambda _, old: self._workload_let_go(old),
            )
        )

    def _attach(self, kind: Kind, informer: Informer[Any]) -> None:
        informer.add_handlers(
            Handlers(
                added=lambda key, _: self.reconciler.add(f"{kind}:{key}"),
                updated=lambda key, _, __: self.reconciler.add(f"{kind}:{key}"),
            )
        )

    def _add_all(self, kind: Kind, keys: Iterable[str]) -> None:
        for key in sorted(keys):
            self.reconciler.add(f"{kind}:{key}")

    def _queue_let_go(self, old: ClusterQueue) -> None:
        flavors = {flavor.name for group in old.resource_groups for flavor in group.flavors}
        self._add_all(Kind.RESOURCE_FLAVOR, flavors)
        self._add_all(Kind.ADMISSION_CHECK, {check.name for check in old.checks})

    def _flavor_let_go(self, old: ResourceFlavor) -> None:
        if old.topology:
            self._add_all(Kind.TOPOLOGY, {old.topology})

    def _workload_let_go(self, old: CachedWorkload) -> None:
        admission = old.record.admission
        if admission is None:
            return
        queue = self._caches.cluster_queues.store.get(admission.cluster_queue)
        if queue is not None and queue.is_terminating:
            self._add_all(Kind.CLUSTER_QUEUE, {queue.name})

    def _named_by(self, index: str, name: str) -> bool:
        return bool(self._caches.cluster_queues.store.keys_by(index, name))

    def _holds_workloads(self, name: str) -> bool:
        status = self._engine.cluster_queue_status(names.ClusterQueueName(name))
        if status is not None and status.reserving > 0:
            return True
        return any(
            cached.record.is_true(ConditionType.QUOTA_RESERVED) and not cached.is_finished
            for cached in self._caches.workloads.store.records_by(BY_CLUSTER_QUEUE, name)
        )

    async def _reconcile(self, key: str) -> Result:
        kind_text, _, name = key.partition(":")
        kind = Kind(kind_text)
        informer = self._informers[kind]
        raw = informer.store.raw(name)
        if raw is None:
            return DONE
        if "deletionTimestamp" not in raw["metadata"]:
            desired = with_finalizer(raw, names.IN_USE_FINALIZER)
        elif self._users[kind](name):
            return DONE
        else:
            desired = without_finalizer(raw, names.IN_USE_FINALIZER)
        if desired is raw:
            return DONE
        try:
            await self._writer.update(informer, raw, desired)
        except NotFound:
            return DONE
        return DONE
