"""Metrics of the process: API requests, webhook calls, reconcilers, scheduling cycles, build.

One `Metrics` for a process holds the registry; other modules add their own collectors. Names and
labels are Kueue's where Kueue has the metric (docs/spec/api.md 5) and controller-runtime's for what
Kueue inherits, so that dashboards go on working; what is only ours starts with ``sluice_``. Made by
the composition root.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final, Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from sluice import __version__
from sluice.clock import Clock
from sluice.kube.requests import METHODS, Verb

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_FRESH_S: Final = 1.0
"""Scrapes within a second of each other get the same text: rendering it takes CPU."""
_REQUEST_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Role(StrEnum):
    """Values of the label ``replica_role``."""

    LEADER = "leader"
    FOLLOWER = "follower"
    STANDALONE = "standalone"


class SnapshotSource(Protocol):
    """Gives metrics that are computed when they are asked for, inside the event loop."""

    def snapshot(self) -> Iterable[Metric]:
        """Return the metric families as they are now; must not block."""
        ...


class _Snapshot(Collector):
    """Hands what was computed in the event loop to the thread that renders it."""

    def __init__(self) -> None:
        self.families: list[Metric] = []

    def collect(self) -> Iterable[Metric]:
        """Return the families of the last snapshot."""
        return self.families


class Metrics:
    """Registry and instruments of one process.

    Attributes:
        registry: Where collectors are registered.
        role: Returns the present value of ``replica_role``.
    """

    def __init__(self, *, clock: Clock, role: Callable[[], Role] = lambda: Role.STANDALONE) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.role = role
        self._clock = clock
        self._sources: list[SnapshotSource] = []
        self._snapshot = _Snapshot()
        self._rendered: tuple[float, bytes] | None = None
        self._lock = asyncio.Lock()
        self.registry.register(self._snapshot)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._add_build_info()
        self._add_requests()
        self._add_webhook()
        self._add_loops()

    def _add_build_info(self) -> None:
        build = Gauge(
            "kueue_build_info",
            "Constant 1, labelled with what this program was built from",
            ["git_version", "git_commit", "build_date", "go_version", "compiler", "platform"],
            registry=self.registry,
        )
        compiler = f"{platform.python_implementation()} {platform.python_version()}"
        where = f"{platform.system().lower()}/{platform.machine()}"
        build.labels(f"v{__version__}", "", "", "", compiler, where).set(1)

    def _add_requests(self) -> None:
        self._client_requests = Counter(
            "rest_client_requests",
            "Requests to the API server, by status code and method",
            ["code", "method"],
            registry=self.registry,
        )
        self._api_requests = Counter(
            "sluice_api_requests",
            "Requests to the API server, by verb, resource and status code",
            ["verb", "resource", "code"],
            registry=self.registry,
        )
        self._api_seconds = Histogram(
            "sluice_api_request_duration_seconds",
            "Time until the API server's answer starts",
            ["verb"],
            buckets=_REQUEST_BUCKETS,
            registry=self.registry,
        )

    def _add_webhook(self) -> None:
        self._webhook_requests = Counter(
            "controller_runtime_webhook_requests",
            "Webhook requests, by path and status code",
            ["webhook", "code"],
            registry=self.registry,
        )
        self._webhook_denials = Counter(
            "sluice_webhook_denials",
            "Objects that the webhook refused, by path",
            ["webhook"],
            registry=self.registry,
        )
        self._webhook_seconds = Histogram(
            "controller_runtime_webhook_latency_seconds",
            "Time to answer a webhook request",
            ["webhook"],
            buckets=_REQUEST_BUCKETS,
            registry=self.registry,
        )
        self._webhook_running = Gauge(
            "controller_runtime_webhook_requests_in_flight",
            "Webhook requests being answered",
            ["webhook"],
            registry=self.registry,
        )

    def _add_loops(self) -> None:
        self._attempts = Counter(
            "kueue_admission_attempts",
            "Scheduling cycles, by whether they admitted something",
            ["result", "replica_role"],
            registry=self.registry,
        )
        self._attempt_seconds = Histogram(
            "kueue_admission_attempt_duration_seconds",
            "Time that a scheduling cycle takes",
            ["result", "replica_role"],
            registry=self.registry,
        )

    def add_source(self, source: SnapshotSource) -> None:
        """Compute these metrics, too, whenever they are asked for."""
        self._sources.append(source)

    def api_request(self, verb: Verb, resource: str, code: int, duration_s: float) -> None:
        """Count a request to the API server; observer of `sluice.kube.client.Client`."""
        text = str(code) if code else "<error>"
        self._client_requests.labels(text, METHODS[verb]).inc()
        self._api_requests.labels(verb.value, resource, text).inc()
        if verb is not Verb.WATCH:
            self._api_seconds.labels(verb.value).observe(duration_s)

    def started(self, path: str) -> None:
        """Count a webhook request that came in; see `sluice_webhook.observer`."""
        self._webhook_running.labels(path).inc()

    def finished(self, path: str, code: int, allowed: bool | None, duration_s: float) -> None:
        """Count a webhook request that was answered."""
        self._webhook_running.labels(path).dec()
        self._webhook_requests.labels(path, str(code)).inc()
        self._webhook_seconds.labels(path).observe(duration_s)
        if allowed is False:
            self._webhook_denials.labels(path).inc()

    def cycle(self, duration_s: float, *, has_admitted: bool) -> None:
        """Count a scheduling cycle that looked at some head."""
        labels = ("success" if has_admitted else "inadmissible", self.role().value)
        self._attempts.labels(*labels).inc()
        self._attempt_seconds.labels(*labels).observe(duration_s)

    async def render(self) -> bytes:
        """Return all metrics as Prometheus text, at most a second old.

        Values come from the event loop; the text is made in a thread, because it takes a tenth of
        a second for a few hundred queues.
        """
        async with self._lock:
            now_s = self._clock.monotonic_s()
            if self._rendered is None or now_s - self._rendered[0] >= _FRESH_S:
                self._snapshot.families = [
                    family for source in self._sources for family in source.snapshot()
                ]
                text = await asyncio.to_thread(generate_latest, self.registry)
                self._rendered = (now_s, text)
            return self._rendered[1]
