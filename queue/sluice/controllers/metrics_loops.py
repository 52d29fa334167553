"""Health of the loops: work queues, reconciles, caches, events, leadership. Made by the root.

Names are controller-runtime's where it has the metric; docs/spec/api.md 5 names none of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from sluice.controllers.manager import Manager


class LoopMetrics:
    """Source of metrics about one manager's own work."""

    def __init__(self, manager: Manager, *, lease: str) -> None:
        """Make a source.

        Args:
            manager: Whose loops.
            lease: Name of the Lease, as the label of leadership.
        """
        self._manager = manager
        self._lease = lease

    def snapshot(self) -> Iterable[Metric]:
        """Return the metrics as they are now."""
        yield from self._loops()
        yield self._events()
        objects = GaugeMetricFamily(
            "sluice_cache_objects", "Objects in a cache", labels=["resource"]
        )
        for informer in self._manager.caches.all():
            objects.add_metric([informer.resource.full_name], len(informer.store))
        yield objects
        leading = GaugeMetricFamily(
            "leader_election_master_status", "1 while this process decides", labels=["name"]
        )
        leading.add_metric([self._lease], float(self._manager.is_leading))
        yield leading
        yield CounterMetricFamily(
            "sluice_cycles", "Scheduling cycles", value=self._manager.scheduler.cycles_count
        )

    def _loops(self) -> Iterator[Metric]:
        depth = GaugeMetricFamily("workqueue_depth", "Keys that wait for a worker", labels=["name"])
        errors = CounterMetricFamily(
            "controller_runtime_reconcile_errors", "Reconciles that failed", labels=["controller"]
        )
        for reconciler in self._manager.reconcilers:
            depth.add_metric([reconciler.name], reconciler.waiting_count)
            errors.add_metric([reconciler.name], reconciler.failures_count)
        yield depth
        yield errors

    def _events(self) -> Metric:
        recorder, notes = self._manager.events, self._manager.notes
        events = CounterMetricFamily(
            "sluice_events",
            "Events, by what became of them: thinned means left out because too many came at once",
            labels=["result"],
        )
        events.add_metric(["written"], recorder.written_count)
        events.add_metric(["dropped"], recorder.dropped_count)
        events.add_metric(["thinned"], notes.thinned_count)
        return events
