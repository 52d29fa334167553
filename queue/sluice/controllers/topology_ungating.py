"""Takes the topology gate off pods of admitted Workloads, and sends each to its domain.

Keyed by Workload: all pods of its pod sets are looked at together, because who goes where depends
on who is where. Therefore a pod whose patch has an unknown outcome is read before the next look
(docs/spec/algorithm.md 6.13: pending ungate operations must be observed first); answers to patches
go into the cache at once. The rules are in `sluice.jobs.ungating`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from sluice.api import names
from sluice.api.conditions import ConditionType
from sluice.api.errors import KubeError, NotFound
from sluice.controllers.caches import BY_WORKLOAD, CachedWorkload, Caches
from sluice.controllers.reconcile import DONE, After, Reconciler, Result
from sluice.controllers.topology_feed import TopologyFeed
from sluice.controllers.topology_records import CachedPod
from sluice.controllers.write import NotLeading, Writer
from sluice.jobs import ungating
from sluice.jobs.ungating import QueuedPod, Ungate
from sluice.kube.informer import Handlers

BATCH_S: Final = 0.1
"""Pods of a Workload come in bursts; they are looked at once for each such time."""
_ROUND_MAX: Final = 256
"""Pods ungated in one reconcile, so that none takes longer than it may."""
_PATCHES_AT_ONCE: Final = 8
_PAGE_SIZE: Final = 500


class UngatingController:
    """Reconciles Workloads that have pods behind the topology gate."""

    def __init__(self, caches: Caches, feed: TopologyFeed, writer: Writer, *, workers: int) -> None:
        self._caches = caches
        self._feed = feed
        self._writer = writer
        self._unsure: dict[str, set[str]] = {}
        """Pods by Workload whose cached state may be behind our own patch."""
        self.reconciler = Reconciler(
            "topology-ungating", self._reconcile, workers=workers, all_keys=self._all_keys
        )

    def _all_keys(self) -> list[str]:
        store = self._caches.workloads.store
        return [key for key, cached in store.items() if _has_topology(cached)]

    def attach(self) -> None:
        """Look at a Workload when it or one of its pods changes."""
        self._caches.workloads.add_handlers(
            Handlers(
                added=lambda key, cached: self._workload_changed(key, cached),
                updated=lambda key, _, cached: self._workload_changed(key, cached),
                deleted=lambda key, _: self._workload_gone(key),
            )
        )
        self._caches.pods.add_handlers(
            Handlers(
                added=lambda _, pod: self._pod_changed(None, pod),
                updated=lambda _, old, new: self._pod_changed(old, new),
                deleted=lambda _, pod: self._pod_changed(pod, None),
            )
        )
        self._feed.opened.append(self._look_at_all)

    def _look_at_all(self) -> None:
        for key in self._all_keys():
            self.reconciler.add(key)

    def _workload_changed(self, key: str, cached: CachedWorkload) -> None:
        if _has_topology(cached):
            self.reconciler.add(key)

    def _workload_gone(self, key: str) -> None:
        self._unsure.pop(key, None)

    def _pod_changed(self, old: CachedPod | None, new: CachedPod | None) -> None:
        before = None if old is None else old.queued
        now = None if new is None else new.queued
        queued = now or before
        if queued is not None and now != before:
            self.reconciler.add_after(queued.workload_key, BATCH_S)

    async def catch_up(self) -> None:
        """Read the pods of all Workloads: our watch may be behind the leader before us.

        Raises:
            KubeError: They cannot be read.
        """
        if not self._feed.is_open:
            return  # they are about to be listed
        pods, token = self._caches.pods, ""
        while True:
            page = await self._writer.client.list(
                pods.resource,
                label_selector=names.POD_SET_LABEL,
                limit=_PAGE_SIZE,
                continue_token=token,
            )
            for body in page.get("items") or ():
                body.setdefault("apiVersion", pods.resource.api_version)
                body.setdefault("kind", pods.resource.kind)
                pods.observe_write(body)
            token = page["metadata"].get("continue") or ""
            if not token:
                return

    async def _reconcile(self, key: str) -> Result:
        cached = self._caches.workloads.store.get(key)
        if not self._feed.is_open or cached is None or not _may_run(cached):
            return DONE
        await self._settle(key)
        pods = self._pods_of(key)
        if not any(pod.is_gated for pod in pods):
            return DONE
        raw = self._caches.workloads.store.raw(key)
        if raw is None:
            return DONE
        wanted: list[Ungate] = []
        for placement in ungating.placements(raw):
            own = [pod for pod in pods if pod.pod_set == placement.pod_set]
            wanted += ungating.to_ungate(placement, own, cached.record.unhealthy_nodes)
        await self._ungate_all(key, wanted[:_ROUND_MAX])
        return DONE if len(wanted) <= _ROUND_MAX else After(0)

    def _pods_of(self, key: str) -> list[QueuedPod]:
        found = self._caches.pods.store.records_by(BY_WORKLOAD, key)
        return [pod.queued for pod in found if pod.queued is not None]

    async def _settle(self, key: str) -> None:
        """Read the pods that may have changed more than the cache knows.

        Raises:
            KubeError: One cannot be read; nothing may be decided before.
        """
        unsure = self._unsure.get(key, set())
        while unsure:
            pod = next(iter(unsure))
            namespace, name = names.split_key(pod)
            # A pod that is gone: the watch will tell; one too many only makes another wait.
            with suppress(NotFound):
                await self._writer.fresh(self._caches.pods, namespace, name)
            unsure.discard(pod)
        self._unsure.pop(key, None)

    async def _ungate_all(self, key: str, wanted: list[Ungate]) -> None:
        """Patch pods, some at once; one that is refused does not keep the others waiting.

        Raises:
            KubeError: The first refusal.
            NotLeading: Another replica decides now.
        """
        slots = asyncio.Semaphore(_PATCHES_AT_ONCE)
        failures: list[KubeError | NotLeading] = []

        async def patch(ungate: Ungate) -> None:
            async with slots:
                try:
                    await self._ungate(key, ungate)
                except NotFound:
                    return
                except (KubeError, NotLeading) as error:
                    failures.append(error)

        async with asyncio.TaskGroup() as group:
            for ungate in wanted:
                group.create_task(patch(ungate), name=f"ungate-{ungate.pod.key}")
        if failures:
            raise failures[0]

    async def _ungate(self, key: str, ungate: Ungate) -> None:
        pod = ungate.pod
        gates = [{"name": name} for name in pod.gates]
        selector = dict(pod.node_selector)
        raw = {
            "metadata": {
                "namespace": pod.namespace,
                "name": pod.name,
                "uid": pod.uid,
                "resourceVersion": pod.resource_version,
            },
            "spec": {"schedulingGates": gates, "nodeSelector": selector},
        }
        kept = [gate for gate in gates if gate["name"] != names.TOPOLOGY_GATE]
        spec = {"schedulingGates": kept, "nodeSelector": {**selector, **dict(ungate.node_selector)}}
        unsure = self._unsure.setdefault(key, set())
        unsure.add(pod.key)
        await self._writer.update(self._caches.pods, raw, {**raw, "spec": spec})
        unsure.discard(pod.key)


def _has_topology(cached: CachedWorkload) -> bool:
    admission = cached.record.admission
    return admission is not None and any(p.topology is not None for p in admission.pod_sets)


def _may_run(cached: CachedWorkload) -> bool:
    """Tell whether pods of a Workload are to be started."""
    record = cached.record
    return (
        _has_topology(cached)
        and record.is_true(ConditionType.ADMITTED)
        and not record.is_true(ConditionType.EVICTED)
        and not record.is_true(ConditionType.FINISHED)
    )
