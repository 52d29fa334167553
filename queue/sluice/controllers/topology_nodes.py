"""Finds failed nodes under placed Workloads and asks the engine to replace them, or evicts.

One failed node goes into ``status.unhealthyNodes``: the engine's second pass looks for another
place. A second one evicts the Workload. Pods that wait for a failed node are ended, so that their
job makes new ones, which are sent where the replacement is. Keyed by Workload; rules are in
`topology_health`. Made only with gate TASFailedNodeReplacement.
Source: docs/spec/algorithm.md 6.8 (detection).
"""

from __future__ import annotations

from typing import Final

from sluice.api import conditions, names
from sluice.api.conditions import ConditionType, EvictionReason
from sluice.api.errors import Conflict, NotFound
from sluice.clock import Clock
from sluice.controllers.caches import (
    BY_HOST,
    BY_WORKLOAD,
    CachedWorkload,
    Caches,
    Json,
    assigned_hosts,
)
from sluice.controllers.notes import WORKLOAD_CONTROLLER, Notes
from sluice.controllers.reconcile import DONE, After, Reconciler, Result
from sluice.controllers.topology_feed import TopologyFeed
from sluice.controllers.topology_health import Findings, examine, tolerations_by_host
from sluice.controllers.topology_records import CachedNode, CachedPod
from sluice.controllers.write import Writer
from sluice.engine import lifecycle_status as transitions
from sluice.engine.lifecycle_facts import Note
from sluice.engine.lifecycle_status import Moment
from sluice.engine.options import Gates
from sluice.jobs.ungating import QueuedPod
from sluice.kube.informer import Handlers

BATCH_S: Final = 0.1
_CONTROLLER: Final = "kueue-pod-termination-controller"
_TERMINATED: Final = "TerminatedByKueue"
_REASON: Final = "UnschedulableOnAssignedNode"
_LATE: Final = "The node that this pod was sent to cannot run it any more"
_MANY: Final = (
    "Workload eviction triggered due to multiple TAS assigned node failures, including: {}"
)


class NodeController:
    """Reconciles Workloads whose pods are placed on hosts."""

    def __init__(
        self,
        caches: Caches,
        feed: TopologyFeed,
        writer: Writer,
        notes: Notes,
        *,
        gates: Gates,
        clock: Clock,
        workers: int,
    ) -> None:
        self._caches = caches
        self._feed = feed
        self._writer = writer
        self._notes = notes
        self._gates = gates
        self._clock = clock
        self.reconciler = Reconciler(
            "topology-nodes", self._reconcile, workers=workers, all_keys=self._all_keys
        )

    def _all_keys(self) -> list[str]:
        store = self._caches.workloads.store
        return [key for key, cached in store.items() if assigned_hosts(cached.record)]

    def attach(self) -> None:
        """Look at Workloads when they, their nodes, or pods on these change."""
        self._caches.workloads.add_handlers(
            Handlers(
                added=lambda key, cached: self._workload_changed(key, cached),
                updated=lambda key, _, cached: self._workload_changed(key, cached),
            )
        )
        self._caches.nodes.add_handlers(
            Handlers(
                added=lambda _, node: self._host_changed(node.hostname),
                updated=self._node_updated,
                deleted=lambda _, node: self._host_changed(node.hostname),
            )
        )
        self._caches.pods.add_handlers(
            Handlers(
                updated=lambda _, old, new: self._pod_changed(old, new),
                deleted=lambda _, pod: self._pod_changed(pod, None),
            )
        )
        self._feed.opened.append(self._look_at_all)

    def _look_at_all(self) -> None:
        for key in self._all_keys():
            self.reconciler.add(key)

    def _workload_changed(self, key: str, cached: CachedWorkload) -> None:
        if assigned_hosts(cached.record):
            self.reconciler.add(key)

    def _node_updated(self, _: str, old: CachedNode, new: CachedNode) -> None:
        if old != new:
            for host in {old.hostname, new.hostname}:
                self._host_changed(host)

    def _host_changed(self, host: str) -> None:
        for key in self._caches.workloads.store.keys_by(BY_HOST, host):
            self.reconciler.add(key)

    def _pod_changed(self, old: CachedPod, new: CachedPod | None) -> None:
        """Look when a pod leaves its node, or waits for one."""
        before, now = old.queued, None if new is None else new.queued
        queued = now or before
        if queued is None or now == before:
            return
        if now is None or now.is_terminating or _waits_for_its_node(now):
            self.reconciler.add_after(queued.workload_key, BATCH_S)

    async def _reconcile(self, key: str) -> Result:
        cached = self._caches.workloads.store.get(key)
        if not self._feed.is_open or cached is None or not _is_placed(cached):
            return DONE
        pods = [
            pod.queued
            for pod in self._caches.pods.store.records_by(BY_WORKLOAD, key)
            if pod.queued is not None
        ]
        now_ms = self._clock.now_ms()
        findings = examine(
            tolerations_by_host(cached.record, self._caches.flavors.store.get),
            self._node_of,
            {pod.node for pod in pods if pod.node and not pod.is_terminating},
            self._gates,
            now_ms,
        )
        recorded = await self._record(key, cached, findings, now_ms)
        for pod in pods:
            if self._waits_in_vain(pod, cached, recorded):
                await self._end(pod)
        if findings.look_again_ms is None:
            return DONE
        return After((findings.look_again_ms - now_ms) / 1000)

    def _node_of(self, host: str) -> CachedNode | None:
        found = self._caches.nodes.store.records_by(BY_HOST, host)
        return found[0] if found else None

    async def _record(
        self, key: str, cached: CachedWorkload, findings: Findings, now_ms: int
    ) -> tuple[str, ...]:
        """Write what was found into the Workload's status; return its unhealthy nodes.

        Raises:
            KubeError: The write was refused.
        """
        known = cached.record.unhealthy_nodes
        kept = tuple(host for host in known if host in findings.ailing)
        new = tuple(host for host in findings.failed if host not in kept)
        present = kept + new
        raw = self._caches.workloads.store.raw(key)
        if present == known or raw is None:
            return known
        status = raw.get("status") or {}
        if len(present) > 1 and new:
            await self._evict(raw, status, present, now_ms)
            return ()
        if present:
            status = {**status, "unhealthyNodes": [{"name": host} for host in present]}
        else:
            status = transitions.without(status, "unhealthyNodes")
        await self._writer.status(self._caches.workloads, raw, status)
        return present

    async def _evict(self, raw: Json, status: Json, hosts: tuple[str, ...], now_ms: int) -> None:
        at = Moment(now_ms=now_ms, generation=raw["metadata"].get("generation", 0))
        reason, message = EvictionReason.NODE_FAILURES, _MANY.format(", ".join(hosts))
        new = transitions.evict(status, at, reason=reason, message=message)
        answer = await self._writer.status(self._caches.workloads, raw, new)
        note = Note(reason=f"EvictedDueTo{reason}", message=message)
        self._notes.record(answer, WORKLOAD_CONTROLLER, note)

    def _waits_in_vain(
        self, pod: QueuedPod, cached: CachedWorkload, recorded: tuple[str, ...]
    ) -> bool:
        """Tell whether a pod waits for a host that won't come back to its Workload.

        That host is recorded as unhealthy, or has been replaced already and is gone or unready.
        """
        if pod.is_terminating or not _waits_for_its_node(pod):
            return False
        host = dict(pod.node_selector).get(names.HOSTNAME_LABEL, "")
        if host in recorded:
            return True
        if not host or host in assigned_hosts(cached.record):
            return False
        node = self._node_of(host)
        return node is None or not node.record.is_ready or node.record.is_unschedulable

    async def _end(self, pod: QueuedPod) -> None:
        """Mark a pod as failed, so that its job makes another.

        Raises:
            KubeError: It cannot be read or written.
        """
        pods = self._caches.pods
        try:
            raw = await self._writer.fresh(pods, pod.namespace, pod.name)
        except NotFound:
            return
        status = raw.get("status") or {}
        is_same = raw["metadata"]["uid"] == pod.uid
        if not is_same or raw["spec"].get("nodeName") or status.get("phase") != "Pending":
            return
        changed = conditions.set_condition(
            status.get("conditions"),
            kind=_TERMINATED,
            status=conditions.TRUE,
            reason=_REASON,
            message=_LATE,
            now_ms=self._clock.now_ms(),
        )
        try:
            answer = await self._writer.status(
                pods, raw, {**status, "phase": "Failed", "conditions": changed}
            )
        except (NotFound, Conflict):
            return  # it moved on; the watch tells what it is now
        self._notes.record(answer, _CONTROLLER, Note(reason="PodTerminatedByKueue", message=_LATE))


def _waits_for_its_node(pod: QueuedPod) -> bool:
    return pod.is_pending and not pod.is_gated and not pod.node


def _is_placed(cached: CachedWorkload) -> bool:
    """Tell whether a Workload holds hosts that may have to be replaced."""
    record = cached.record
    return (
        bool(assigned_hosts(record))
        and record.is_true(ConditionType.QUOTA_RESERVED)
        and not record.is_true(ConditionType.EVICTED)
        and not record.is_true(ConditionType.FINISHED)
    )
