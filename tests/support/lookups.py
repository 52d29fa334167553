"""What the webhook looks up, over plain data: an implementation of Lookups for tests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sluice.jobs.admission.context import LookupFailed, OwnerReference


@dataclass
class StaticLookups:
    """Answers from what it holds; names in `broken` fail instead."""

    local_queues: set[str] = field(default_factory=set)
    namespaces: dict[str, dict[str, str]] = field(default_factory=lambda: {"team-a": {}})
    priority_classes: set[str] = field(default_factory=set)
    controllers: dict[str, set[str]] = field(default_factory=dict)
    owners: dict[str, dict[str, Any]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)

    def _guard(self, what: str) -> None:
        if what in self.broken:
            raise LookupFailed(f"{what} could not be read")

    async def local_queue_exists(self, namespace: str, name: str) -> bool:
        self._guard("local queue")
        return f"{namespace}/{name}" in self.local_queues

    async def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        self._guard("namespace")
        return self.namespaces[namespace]

    async def priority_class_exists(self, name: str) -> bool:
        self._guard("priority class")
        return name in self.priority_classes

    async def check_controllers(self, namespace: str, local_queue: str) -> frozenset[str]:
        self._guard("checks")
        return frozenset(self.controllers.get(f"{namespace}/{local_queue}", ()))

    async def owner(self, namespace: str, reference: OwnerReference) -> Mapping[str, Any] | None:
        self._guard("owner")
        return self.owners.get(f"{reference.kind}/{namespace}/{reference.name}")
