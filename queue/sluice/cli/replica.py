"""One replica of Sluice: client, manager, webhook and telemetry put together, started and stopped.

The composition root proper: ``sluice run``, ``manager`` and ``webhook`` run one against a cluster,
``up`` and ``demo`` one against the control plane they have started. It reads no file and no
environment; ``settings`` did.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sluice.api.configuration import Settings
from sluice.api.configuration_effect import fields_without_effect
from sluice.api.selectors import compile_selector
from sluice.cli.certificates import self_signed
from sluice.cli.options import client_options
from sluice.cli.webhook_server import SyncedLookups, WebhookPart
from sluice.clock import Clock, SystemClock
from sluice.controllers.caches import Caches
from sluice.controllers.credits_metrics import CreditMetrics
from sluice.controllers.lookups import CachedLookups
from sluice.controllers.manager import Manager
from sluice.controllers.metrics import Metrics, Role
from sluice.controllers.metrics_loops import LoopMetrics
from sluice.controllers.metrics_queues import QueueMetrics
from sluice.controllers.metrics_workloads import WorkloadMetrics
from sluice.controllers.settings import manager_options
from sluice.controllers.telemetry import (
    ApiServerAuthorizer,
    HttpServer,
    metrics_app,
    parse_address,
    probes,
)
from sluice.engine.commands import Command, ReserveQuota
from sluice.jobs.catalogue import all_integrations
from sluice.jobs.integration import select
from sluice.kube.access import ClusterAccess
from sluice.kube.client import Client
from sluice.kube.config import require_reachable
from sluice.kube.informer import Informer
from sluice.log import get_logger

log = get_logger(__name__)

_CONVERSION_ERROR: Final = "conversion webhook"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaOptions:
    """What to run.

    Attributes:
        settings: The Configuration file.
        identity: Unique name of this process.
        runs_manager: Whether to decide (and campaign for the Lease).
        runs_webhook: Whether to serve the webhook.
        is_in_pod: Whether a Service leads here; then stopping waits until it no longer does.
        owns_process: Whether nothing else runs in this process.
    """

    settings: Settings
    identity: str
    runs_manager: bool = True
    runs_webhook: bool = True
    is_in_pod: bool = False
    owns_process: bool = True


class Replica:
    """A running replica. ``run`` does everything; the rest tells about it.

    Attributes:
        metrics: What this replica counts.
        serving: Set once every port is open, before the replica is ready.
        manager: The manager, once running and if there is one.
    """

    def __init__(
        self, access: ClusterAccess, options: ReplicaOptions, *, clock: Clock | None = None
    ) -> None:
        self._access = access
        self._options = options
        self._clock = clock or SystemClock()
        self._config = options.settings.configuration
        self.metrics = Metrics(clock=self._clock, role=self._role)
        self._webhook: WebhookPart | None = None
        self._health: HttpServer | None = None
        self._metrics_server: HttpServer | None = None
        self._informers: tuple[Informer[Any], ...] = ()
        self._is_stopping = False
        self.serving = asyncio.Event()
        self.manager: Manager | None = None

    @property
    def webhook_port(self) -> int:
        """Return the webhook's port; 0 when it does not serve."""
        return 0 if self._webhook is None else self._webhook.port

    @property
    def health_port(self) -> int:
        """Return the probes' port; 0 when they are not served."""
        return 0 if self._health is None else self._health.port

    @property
    def metrics_port(self) -> int:
        """Return the port of metrics; 0 when they are not served."""
        return 0 if self._metrics_server is None else self._metrics_server.port

    def unready_reasons(self) -> list[str]:
        """Return why this replica is not ready, one sentence each; empty when it is."""
        if self._is_stopping:
            return ["shutting down"]
        if not self.serving.is_set():
            return ["starting"]
        reasons = [] if self._webhook is None else self._webhook.unready_reasons()
        if self.manager is not None:
            reasons += self.manager.unready_reasons()
        else:
            missing = [i.resource.full_name for i in self._informers if not i.synced.is_set()]
            if missing:
                reasons.append(f"waiting for the first list of {', '.join(missing)}")
        if any(_CONVERSION_ERROR in informer.last_error for informer in self._informers):
            # Objects stored in an older version are listed through our own conversion webhook,
            # which gets no calls before this replica is ready: waiting for each other would last.
            reasons = [r for r in reasons if not r.startswith("waiting for the first list")]
        return reasons

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set, then stop in order.

        Raises:
            ConfigError: The cluster cannot be reached, or a port or certificate cannot be used.
        """
        unused = fields_without_effect(self._options.settings)
        if unused:
            log.warning("settings without effect yet", fields={"settings": list(unused)})
        options = client_options(self._config)
        observer = self.metrics.api_request
        async with Client(
            self._access, options=options, clock=self._clock, observer=observer
        ) as client:
            version = await require_reachable(client)
            log.info(
                "starting",
                fields={"api_server": self._access.host, "kubernetes": version},
            )
            self._build(client)
            try:
                await self._open(client)
                await self._run_until(stop)
            finally:
                await self._close()

    def _build(self, client: Client) -> None:
        settings, options = self._options.settings, self._options
        manager_settings = manager_options(
            settings, identity=options.identity, tune_gc=options.owns_process
        )
        if options.runs_manager:
            self.manager = Manager(client, manager_settings, clock=self._clock)
            caches, self._informers = self.manager.caches, tuple(self.manager.caches.all())
            self.manager.scheduler.cycle_observers.append(self._count_cycle)
            self._add_metrics(self.manager)
        else:
            registry, _ = select(all_integrations(), self._config.integrations.frameworks)
            caches = Caches(client, registry)
            self._informers = _asked_by_webhook(caches)
        if options.runs_webhook:
            self._webhook = WebhookPart(
                client,
                settings,
                clock=self._clock,
                options=manager_settings.jobs.admission,
                lookups=SyncedLookups(CachedLookups(caches, client), _asked_by_webhook(caches)),
                observer=self.metrics,
                is_in_pod=options.is_in_pod,
            )

    def _add_metrics(self, manager: Manager) -> None:
        WorkloadMetrics(self.metrics.registry, manager.caches, role=self._role)
        election = manager_options(self._options.settings, identity="").election
        lease = "none" if election is None else election.name
        self.metrics.add_source(LoopMetrics(manager, lease=lease))
        self.metrics.add_source(CreditMetrics(manager.scheduler.engine, role=self._role))
        local = self._config.metrics.local_queue_metrics
        selector = local.local_queue_selector
        shows_local = local.enable and self._options.settings.gates.enabled("LocalQueueMetrics")
        self.metrics.add_source(
            QueueMetrics(
                manager.caches,
                manager.scheduler.engine,
                role=self._role,
                local_queues=shows_local,
                local_queue_selector=None
                if selector is None
                else compile_selector(selector.to_json()),
            )
        )

    async def _open(self, client: Client) -> None:
        """Open every port, the probes first: a slow start must not look like a dead process."""
        health = self._config.health
        address = parse_address("health.healthProbeBindAddress", health.health_probe_bind_address)
        if address is not None:
            app = probes(
                self.unready_reasons,
                liveness=health.liveness_endpoint_name,
                readiness=health.readiness_endpoint_name,
            )
            self._health = HttpServer("health.healthProbeBindAddress", app, address)
            await self._health.start()
        if self._webhook is not None:
            await self._webhook.open()
        address = parse_address("metrics.bindAddress", self._config.metrics.bind_address)
        if address is not None:
            app = metrics_app(self.metrics, ApiServerAuthorizer(client, self._clock))
            self._metrics_server = HttpServer(
                "metrics.bindAddress", app, address, self._metrics_tls()
            )
            await self._metrics_server.start()
        self.serving.set()

    def _metrics_tls(self) -> ssl.SSLContext:
        if self._webhook is not None and self._webhook.tls is not None:
            return self._webhook.tls.context
        return self_signed(self._config, self._clock, self._options.identity).context

    async def _run_until(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            tasks: list[asyncio.Task[None]] = []
            for name, work in self._parts():
                tasks.append(group.create_task(_reporting(name, work), name=name))
            await stop.wait()
            self._is_stopping = True
            log.info("stopping")
            # Deciding ends at once, so that another replica can take over; reviews go on until
            # the API server has been told to ask elsewhere.
            for task in tasks:
                task.cancel()
            if self._webhook is not None:
                await self._webhook.close()

    def _parts(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        if self.manager is not None:
            yield "manager", self.manager.run()
        else:
            for informer in self._informers:
                yield f"informer-{informer.resource.plural}", informer.run()
        if self._webhook is not None:
            yield "webhook upkeep", self._webhook.run()

    async def _close(self) -> None:
        self._is_stopping = True
        if self._webhook is not None:
            await self._webhook.close()
        for server in (self._metrics_server, self._health):
            if server is not None:
                await server.stop()

    def _role(self) -> Role:
        if self.manager is None:
            return Role.FOLLOWER if self._config.leader_election.leader_elect else Role.STANDALONE
        if not self._config.leader_election.leader_elect:
            return Role.STANDALONE
        return Role.LEADER if self.manager.is_leading else Role.FOLLOWER

    def _count_cycle(self, duration_s: float, commands: Iterable[Command]) -> None:
        has_admitted = any(isinstance(command, ReserveQuota) for command in commands)
        self.metrics.cycle(duration_s, has_admitted=has_admitted)


async def _reporting(name: str, work: Coroutine[Any, Any, None]) -> None:
    """Run a part; say at once when it fails: ending the others takes a while."""
    try:
        await work
    except Exception:
        log.exception("part failed; ending", fields={"part": name})
        raise


def _asked_by_webhook(caches: Caches) -> tuple[Informer[Any], ...]:
    """Return the caches that job admission reads."""
    return (
        caches.local_queues,
        caches.cluster_queues,
        caches.checks,
        caches.namespaces,
        caches.workload_classes,
    )
