"""Our webhook configurations: a cache of their entries, and the upkeep of the second entries.

For each job kind our manifests have two entries: one for objects that carry a Kueue label or
annotation, and a second one for those without, in namespaces where they are queued all the same.
Which namespaces those are changes with LocalQueues and settings, so the ``namespaceSelector`` of
the second entries is written here, by every replica alike: the same input gives the same selector.
The manifests leave it out, so that applying them again neither conflicts with us nor undoes it; and
since an entry without selector would take every namespace, they leave out its ``rules`` too, and an
entry without rules takes nothing. Both are written here, at once.
Configurations of other names are never read or written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sluice.api import names
from sluice.api.errors import KubeError, NotFound
from sluice.kube.client import Client, PatchType
from sluice.kube.informer import Handlers, Informer
from sluice.kube.resources import (
    LOCAL_QUEUES,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
)
from sluice.log import get_logger

log = get_logger(__name__)

MUTATING_NAME: Final = "sluice-mutating-webhook-configuration"
VALIDATING_NAME: Final = "sluice-validating-webhook-configuration"
UNLABELLED_SUFFIX: Final = f".unlabelled.{names.OWN_GROUP}"
"""End of the names of second entries."""
_LABELLED_SUFFIX: Final = ".kb.io"
"""End of the names of first entries."""
_RETRY_S: Final = 5.0
_SYNC_TIMEOUT_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEntry:
    """One entry of a webhook configuration.

    Attributes:
        index: Position in ``webhooks``.
        name: Name of the entry.
        service: ``namespace/name`` of the Service that is called; empty for a URL.
        ca_bundle: Base64 of the CAs trusted for it, empty for none.
        namespace_selector: Its selector as JSON.
        rules: Operations and resources that it takes, as JSON.
    """

    index: int
    name: str
    service: str
    ca_bundle: str
    namespace_selector: Mapping[str, Any]
    rules: Sequence[Mapping[str, Any]] = ()


def service_key(client_config: Mapping[str, Any]) -> str:
    """Return ``namespace/name`` of the Service of a clientConfig, empty for a URL."""
    service = client_config.get("service")
    return names.key(service["namespace"], service["name"]) if service else ""


def entries_of(body: Mapping[str, Any]) -> tuple[WebhookEntry, ...]:
    """Return the entries of a mutating or validating webhook configuration."""
    return tuple(
        WebhookEntry(
            index=index,
            name=webhook["name"],
            service=service_key(webhook["clientConfig"]),
            ca_bundle=webhook["clientConfig"].get("caBundle") or "",
            namespace_selector=webhook.get("namespaceSelector") or {},
            rules=webhook.get("rules") or (),
        )
        for index, webhook in enumerate(body.get("webhooks") or ())
    )


ConfigurationInformer = Informer[tuple[WebhookEntry, ...]]


def informers(
    client: Client, *, mutating: str = MUTATING_NAME, validating: str = VALIDATING_NAME
) -> tuple[ConfigurationInformer, ...]:
    """Return informers of our two configurations, to be run by the caller and shared."""
    kinds = ((MUTATING_WEBHOOKS, mutating), (VALIDATING_WEBHOOKS, validating))
    return tuple(
        Informer(client, resource, entries_of, field_selector=f"metadata.name={name}")
        for resource, name in kinds
    )


def unlabelled_selector(
    managed: Mapping[str, Any], queue_namespaces: Iterable[str], *, manages_unqueued: bool
) -> dict[str, Any]:
    """Return the namespaceSelector of second entries (docs/spec/api.md 2.3.1 and 2.3.2).

    Args:
        managed: ``managedJobsNamespaceSelector`` as JSON.
        queue_namespaces: Namespaces that hold a LocalQueue ``default``.
        manages_unqueued: ``manageJobsWithoutQueueName``.
    """
    selector: dict[str, Any] = {}
    if managed.get("matchLabels"):
        selector["matchLabels"] = dict(managed["matchLabels"])
    expressions = [dict(expression) for expression in managed.get("matchExpressions") or ()]
    if not manages_unqueued:
        expressions.append(_holds_queue(sorted(set(queue_namespaces))))
    if expressions:
        selector["matchExpressions"] = expressions
    return selector


def _holds_queue(namespaces: Sequence[str]) -> dict[str, Any]:
    if not namespaces:
        # Every namespace has this label, so this takes none.
        return {"key": names.NAMESPACE_NAME_LABEL, "operator": "DoesNotExist"}
    return {"key": names.NAMESPACE_NAME_LABEL, "operator": "In", "values": list(namespaces)}


async def patch_entries(
    client: Client,
    informer: ConfigurationInformer,
    name: str,
    changes: Sequence[tuple[WebhookEntry, str, object]],
) -> None:
    """Write fields of entries of one configuration, if the entries still stand where they did.

    Args:
        client: Where to write.
        informer: Gets the answer into its cache at once.
        name: Name of the configuration.
        changes: Entry, JSON pointer below it, and value.

    Raises:
        KubeError: The write failed; Invalid when an entry has moved meanwhile.
    """
    operations: list[dict[str, Any]] = []
    for entry, pointer, value in changes:
        at = f"/webhooks/{entry.index}"
        operations.append({"op": "test", "path": f"{at}/name", "value": entry.name})
        operations.append({"op": "add", "path": f"{at}{pointer}", "value": value})
    written = await client.patch(
        informer.resource,
        "",
        name,
        operations,
        patch_type=PatchType.JSON,
        field_manager=names.FIELD_MANAGER,
    )
    informer.observe_write(written)


def second_entry_changes(
    entries: Sequence[WebhookEntry], selector: Mapping[str, Any]
) -> list[tuple[WebhookEntry, str, object]]:
    """Return what `patch_entries` has to write so that second entries take what they should.

    Args:
        entries: Of one configuration.
        selector: From `unlabelled_selector`.
    """
    rules = {entry.name: entry.rules for entry in entries}
    changes: list[tuple[WebhookEntry, str, object]] = []
    for entry in entries:
        if not entry.name.endswith(UNLABELLED_SUFFIX):
            continue
        first = entry.name.removesuffix(UNLABELLED_SUFFIX) + _LABELLED_SUFFIX
        wanted = rules.get(first, entry.rules)
        if entry.namespace_selector != selector:
            changes.append((entry, "/namespaceSelector", selector))
        if entry.rules != wanted:
            changes.append((entry, "/rules", wanted))
    return changes


class SelectorKeeper:
    """Keeps selector and rules of our second entries. ``run`` does it until cancelled."""

    def __init__(
        self,
        client: Client,
        configurations: Sequence[ConfigurationInformer],
        *,
        managed: Mapping[str, Any],
        manages_unqueued: bool,
    ) -> None:
        """Make a keeper.

        Args:
            client: Where to watch LocalQueues and write configurations.
            configurations: `informers`, run by the caller.
            managed: ``managedJobsNamespaceSelector`` as JSON.
            manages_unqueued: ``manageJobsWithoutQueueName``.
        """
        self._client = client
        self._configurations = tuple(configurations)
        self._managed = managed
        self._manages_unqueued = manages_unqueued
        self._wake = asyncio.Event()
        self._queues: Informer[str] = Informer(
            client,
            LOCAL_QUEUES,
            lambda body: str(body["metadata"]["namespace"]),
            field_selector=f"metadata.name={names.DEFAULT_LOCAL_QUEUE}",
        )
        self.kept = asyncio.Event()
        """Set while every configuration that exists is as it should be."""

    async def run(self) -> None:
        """Watch and write until cancelled."""
        self._queues.add_handlers(waking(self._wake))
        for informer in self._configurations:
            informer.add_handlers(waking(self._wake))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._queues.run(), name="informer of default LocalQueues")
            await synced(self._queues, *self._configurations)
            while True:
                self._wake.clear()
                if await self._write_all():
                    self.kept.set()
                    await self._wake.wait()
                else:
                    self.kept.clear()
                    await asyncio.sleep(_RETRY_S)

    async def _write_all(self) -> bool:
        namespaces = [namespace for _, namespace in self._queues.store.items()]
        wanted = unlabelled_selector(
            self._managed, namespaces, manages_unqueued=self._manages_unqueued
        )
        results = [await self._write(informer, wanted) for informer in self._configurations]
        return all(results)

    async def _write(self, informer: ConfigurationInformer, wanted: Mapping[str, Any]) -> bool:
        is_done = True
        for name, entries in tuple(informer.store.items()):
            changes = second_entry_changes(entries, wanted)
            if not changes:
                continue
            fields = {"kind": informer.resource.kind, "name": name}
            try:
                await patch_entries(self._client, informer, name, changes)
                log.info("namespaces of unlabelled jobs changed", fields=fields)
            except NotFound:
                continue
            except KubeError as error:
                is_done = False
                log.warning(
                    "namespaces of unlabelled jobs not written; trying again",
                    fields={**fields, "error": str(error)},
                )
        return is_done


def waking(event: asyncio.Event) -> Handlers[Any]:
    """Return informer handlers that set an event on every change."""

    def wake(*_: object) -> None:
        event.set()

    handler: Callable[..., None] = wake
    return Handlers(added=handler, updated=handler, deleted=handler)


async def synced(*caches: Informer[Any]) -> None:
    """Wait until informers have their first list, however long that takes; say so in the log."""
    for informer in caches:
        while True:
            try:
                await informer.wait_synced(_SYNC_TIMEOUT_S)
                break
            except TimeoutError as error:
                log.warning("still waiting", fields={"error": str(error)})
