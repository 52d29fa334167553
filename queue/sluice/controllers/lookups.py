"""What job admission asks about the cluster, answered from the manager's caches.

Implements `sluice.jobs.admission.context.Lookups` for the job reconciler, and for the webhook when
it runs in the same process. Kinds that are not cached (owners of other kinds) are read live.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice.api import names
from sluice.api.errors import KubeError, NotFound
from sluice.controllers.caches import Caches
from sluice.jobs.admission.context import LookupFailed, OwnerReference
from sluice.jobs.admission.kinds import ALL_KINDS
from sluice.kube.client import Client
from sluice.kube.resources import Resource

_TIMEOUT_S: Final = 5.0
_PLURALS: Final = {("apps", "ReplicaSet"): "replicasets"} | {
    (kind.group, kind.kind): kind.plural for kind in ALL_KINDS
}


class CachedLookups:
    """Look-ups over the caches of a manager."""

    def __init__(self, caches: Caches, client: Client) -> None:
        self._caches = caches
        self._client = client

    async def local_queue_exists(self, namespace: str, name: str) -> bool:
        """Tell whether a LocalQueue exists."""
        return names.key(namespace, name) in self._caches.local_queues.store

    async def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace."""
        return self._caches.namespace_labels(namespace)

    async def priority_class_exists(self, name: str) -> bool:
        """Tell whether a WorkloadPriorityClass exists."""
        return name in self._caches.workload_classes.store

    async def check_controllers(self, namespace: str, local_queue: str) -> frozenset[str]:
        """Return the controller names of the admission checks behind a LocalQueue."""
        local = self._caches.local_queues.store.get(names.key(namespace, local_queue))
        queue = (
            None if local is None else self._caches.cluster_queues.store.get(local.cluster_queue)
        )
        if queue is None:
            return frozenset()
        checks = (self._caches.checks.store.get(rule.name) for rule in queue.checks)
        return frozenset(check.controller for check in checks if check is not None)

    async def owner(self, namespace: str, reference: OwnerReference) -> Mapping[str, Any] | None:
        """Return an owner as raw JSON, or None when there is none.

        Raises:
            LookupFailed: The API server could not be asked.
        """
        informer = self._caches.jobs.get(reference.group_kind)
        if informer is not None:
            cached = informer.store.raw(names.key(namespace, reference.name))
            if cached is not None:
                return cached
        group, kind = reference.group_kind
        resource = Resource(
            group=group,
            version=reference.api_version.rpartition("/")[2],
            plural=_PLURALS.get((group, kind), f"{kind.lower()}s"),
            kind=kind,
        )
        try:
            return await self._client.get(
                resource, namespace, reference.name, timeout_s=_TIMEOUT_S, retry=False
            )
        except NotFound:
            return None
        except KubeError as error:
            raise LookupFailed(f"cannot read the owner {kind} {reference.name}: {error}") from error
