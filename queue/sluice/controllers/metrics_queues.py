"""Gauges of queues, computed from the engine when they are scraped.

Nothing is kept in step by hand: a queue that is gone has no series, and a standby that takes over
shows its new role at once. Names and labels: docs/spec/api.md 5.2 and 5.3. Made by the composition
root.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from sluice.api import names, records
from sluice.api.names import ClusterQueueName, LocalQueueKey
from sluice.api.selectors import LabelSelector
from sluice.controllers.caches import Caches
from sluice.controllers.metrics import Role
from sluice.engine.engine import Engine
from sluice.engine.status import ClusterQueueStatus

_STATES: Final = ("pending", "active", "terminating")
_CONDITION: Final = ("True", "False", "Unknown")


class QueueMetrics:
    """Source of the gauges of ClusterQueues and LocalQueues."""

    def __init__(
        self,
        caches: Caches,
        engine: Engine,
        *,
        role: Callable[[], Role],
        local_queues: bool = True,
        local_queue_selector: LabelSelector | None = None,
    ) -> None:
        """Make a source.

        Args:
            caches: Which queues there are.
            engine: Their counts.
            role: Value of ``replica_role``.
            local_queues: Whether LocalQueues have series (metrics.localQueueMetrics.enable).
            local_queue_selector: LocalQueues whose labels it takes; None for all.
        """
        self._caches = caches
        self._engine = engine
        self._role = role
        self._local_queues = local_queues
        self._selector = local_queue_selector
        self._pending_local: Counter[tuple[LocalQueueKey, bool]] = Counter()

    def snapshot(self) -> Iterable[Metric]:
        """Return the gauges as they are now."""
        role = self._role().value
        self._pending_local.clear()
        yield from self._cluster_queues(role)
        yield self._finished(role)
        if self._local_queues:
            yield from self._locals(role)

    def _cluster_queues(self, role: str) -> Iterator[Metric]:
        pending = _gauge("pending_workloads", "Pending Workloads", "cluster_queue", "status")
        reserving = _gauge("reserving_active_workloads", "Workloads with quota", "cluster_queue")
        admitted = _gauge("admitted_active_workloads", "Admitted Workloads", "cluster_queue")
        states = _gauge("cluster_queue_status", "1 for its state", "cluster_queue", "status")
        info = _gauge(
            "cluster_queue_info",
            "Constant 1, labelled with the queue's cohort",
            "cluster_queue",
            "parent_cohort",
            "root_cohort",
        )
        for name, queue in self._caches.cluster_queues.store.items():
            status = self._engine.cluster_queue_status(ClusterQueueName(name))
            if status is None:
                continue
            active, inadmissible = self._pending_of(name, status)
            pending.add_metric([name, "active", role], active)
            pending.add_metric([name, "inadmissible", role], inadmissible)
            reserving.add_metric([name, role], status.reserving)
            admitted.add_metric([name, role], status.admitted)
            present = _state(queue, status)
            for state in _STATES:
                states.add_metric([name, state, role], float(state == present))
            cohort = queue.cohort or ""
            info.add_metric([name, cohort, self._root(cohort), role], 1)
        yield from (pending, reserving, admitted, states, info)

    def _pending_of(self, name: str, status: ClusterQueueStatus) -> tuple[int, int]:
        """Return how many pending Workloads are in the heap and how many are parked.

        Those of an inactive queue count as parked (docs/spec/api.md 5.2). What each LocalQueue has
        of them is noted for the series of LocalQueues.
        """
        entries = self._engine.pending(ClusterQueueName(name)) if status.pending else ()
        parked = 0
        for entry in entries:
            is_parked = entry.inadmissible or not status.is_active
            parked += is_parked
            self._pending_local[entry.local_queue, is_parked] += 1
        return len(entries) - parked, parked

    def _root(self, cohort: str) -> str:
        seen: set[str] = set()
        while cohort and cohort not in seen:
            seen.add(cohort)
            record = self._caches.cohorts.store.get(cohort)
            if record is None or not record.parent:
                break
            cohort = record.parent
        return cohort

    def _locals(self, role: str) -> Iterator[Metric]:
        labels = ("name", "namespace")
        pending = _gauge("local_queue_pending_workloads", "Pending Workloads", *labels, "status")
        reserving = _gauge(
            "local_queue_reserving_active_workloads", "Workloads with quota", *labels
        )
        admitted = _gauge("local_queue_admitted_active_workloads", "Admitted Workloads", *labels)
        states = _gauge("local_queue_status", "1 for the Active condition", *labels, "active")
        for key, _ in self._caches.local_queues.store.items():
            if self._selector is not None and not self._selector.matches(self._labels(key)):
                continue
            status = self._engine.local_queue_status(LocalQueueKey(key))
            if status is None:
                continue
            namespace, name = names.split_key(key)
            for text, is_parked in (("active", False), ("inadmissible", True)):
                count = self._pending_local[LocalQueueKey(key), is_parked]
                pending.add_metric([name, namespace, text, role], count)
            reserving.add_metric([name, namespace, role], status.reserving)
            admitted.add_metric([name, namespace, role], status.admitted)
            for value in _CONDITION:
                present = value == str(status.is_active)
                states.add_metric([name, namespace, value, role], float(present))
        yield from (pending, reserving, admitted, states)

    def _labels(self, key: str) -> dict[str, str]:
        raw = self._caches.local_queues.store.raw(key) or {"metadata": {}}
        return dict(raw["metadata"].get("labels") or {})

    def _finished(self, role: str) -> Metric:
        finished = _gauge("finished_workloads", "Finished Workloads that exist", "cluster_queue")
        counts = Counter(
            self._caches.cluster_queue_name(cached.record)
            for _, cached in self._caches.workloads.store.items()
            if cached.is_finished
        )
        for name in self._caches.cluster_queues.store.all_keys():
            finished.add_metric([name, role], counts[name])
        return finished


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"kueue_{name}", text, labels=[*labels, "replica_role"])


def _state(queue: records.ClusterQueue, status: ClusterQueueStatus) -> str:
    if queue.is_terminating:
        return "terminating"
    return "active" if status.is_active else "pending"
