"""The webhook as part of a replica: application, certificate, look-ups, upkeep of configurations.

Used by ``replica``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sluice.api.configuration import Settings
from sluice.cli.certificates import CertificateSource, FollowedDirectory, KeptSecret
from sluice.cli.options import server_options
from sluice.clock import Clock
from sluice.controllers import webhookconfigs
from sluice.controllers.webhookconfigs import SelectorKeeper
from sluice.jobs.admission.context import LookupFailed, Lookups, Options, OwnerReference
from sluice.kube.client import Client
from sluice.kube.informer import Informer
from sluice_webhook.app import Application
from sluice_webhook.observer import Observer
from sluice_webhook.routes import routes
from sluice_webhook.server import WebhookServer
from sluice_webhook.tls import LiveTls

_SYNC_WAIT_S: Final = 5.0
"""Reviews that come while the caches fill wait this long: shorter than the API server does."""


class SyncedLookups:
    """Look-ups that wait for the caches they read: an empty cache would give wrong answers."""

    def __init__(self, lookups: Lookups, informers: Iterable[Informer[Any]]) -> None:
        self._lookups = lookups
        self._pending = tuple(informers)

    async def _wait(self) -> None:
        self._pending = tuple(i for i in self._pending if not i.synced.is_set())
        try:
            async with asyncio.timeout(_SYNC_WAIT_S):
                for informer in self._pending:
                    await informer.synced.wait()
        except TimeoutError:
            raise LookupFailed("Sluice is still starting; try again in a few seconds") from None

    async def local_queue_exists(self, namespace: str, name: str) -> bool:
        """Tell whether a LocalQueue exists."""
        await self._wait()
        return await self._lookups.local_queue_exists(namespace, name)

    async def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace."""
        await self._wait()
        return await self._lookups.namespace_labels(namespace)

    async def priority_class_exists(self, name: str) -> bool:
        """Tell whether a WorkloadPriorityClass exists."""
        await self._wait()
        return await self._lookups.priority_class_exists(name)

    async def check_controllers(self, namespace: str, local_queue: str) -> frozenset[str]:
        """Return the controller names of the admission checks behind a LocalQueue."""
        await self._wait()
        return await self._lookups.check_controllers(namespace, local_queue)

    async def owner(self, namespace: str, reference: OwnerReference) -> Mapping[str, Any] | None:
        """Return an owner as raw JSON, or None when there is none."""
        await self._wait()
        return await self._lookups.owner(namespace, reference)


class WebhookPart:
    """The webhook of one replica. `open`, then `run` beside everything else, then `close`.

    Attributes:
        tls: Context that the metrics server may share, once open.
    """

    def __init__(
        self,
        client: Client,
        settings: Settings,
        *,
        clock: Clock,
        options: Options,
        lookups: Lookups,
        observer: Observer,
        is_in_pod: bool,
    ) -> None:
        """Make the parts; nothing is read or served before `open`.

        Args:
            client: The API server.
            settings: The Configuration file.
            clock: The clock.
            options: Settings of job admission.
            lookups: What job admission asks.
            observer: Hears of every request.
            is_in_pod: Whether a Service leads here.
        """
        config = settings.configuration
        self._configurations = webhookconfigs.informers(client)
        self._certificates: CertificateSource = (
            KeptSecret(client, clock, config, self._configurations)
            if config.internal_cert_management.enable
            else FollowedDirectory(config)
        )
        self._selectors = SelectorKeeper(
            client,
            self._configurations,
            managed=config.managed_jobs_namespace_selector.to_json(),
            manages_unqueued=config.manage_jobs_without_queue_name,
        )
        self._application = Application(
            routes(options, lookups), observer=observer, clock=clock, ready=self._unready_text
        )
        self._server_options = server_options(config, is_in_pod=is_in_pod)
        self._server: WebhookServer | None = None
        self.tls: LiveTls | None = None

    @property
    def port(self) -> int:
        """Return the port served on; 0 before `open`."""
        return 0 if self._server is None else self._server.port

    async def open(self) -> None:
        """Get the certificate and serve.

        Raises:
            ConfigError: There is no certificate, or the address cannot be used.
        """
        self.tls = await self._certificates.open()
        server = WebhookServer(self._application, self.tls, self._server_options)
        await server.start()
        self._server = server

    async def run(self) -> None:
        """Keep certificate and webhook configurations until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._configurations:
                name = f"informer of {informer.resource.full_name}"
                group.create_task(informer.run(), name=name)
            group.create_task(self._certificates.run(), name="certificates")
            group.create_task(self._selectors.run(), name="webhook selectors")

    async def close(self) -> None:
        """Drain and stop serving."""
        if self._server is not None:
            await self._server.stop()

    def unready_reasons(self) -> list[str]:
        """Return why the webhook is not ready, one sentence each."""
        if self._server is None:
            return ["the webhook does not serve yet"]
        reason = self._certificates.unready()
        return [reason] if reason else []

    def _unready_text(self) -> str | None:
        return "\n".join(self.unready_reasons()) or None
