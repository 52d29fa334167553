"""What job admission depends on beside the object: options, and lookups passed in from outside.

`Lookups` is implemented by the composition root over the manager's caches, with live reads behind
them, and by tests over plain dicts. Pure. Used throughout ``sluice.jobs.admission``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from sluice.api.errors import SluiceError
from sluice.api.selectors import EVERYTHING, LabelSelector
from sluice.api.validate.gates import Gate, Gates, is_on
from sluice.jobs.admission.kinds import ALL_KINDS, PASS_THROUGH, GroupKind


class LookupFailed(SluiceError):
    """Something that a decision depends on could not be read; trying again may help."""


class Refused(SluiceError):
    """An object that cannot be admitted for a reason that belongs to no field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerReference:
    """The controlling owner of an object."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def group_kind(self) -> GroupKind:
        """Return group and kind; the group is empty for core kinds."""
        return self.api_version.rpartition("/")[0], self.kind


class Lookups(Protocol):
    """Reads of the cluster's state. Every method may raise LookupFailed."""

    async def local_queue_exists(self, namespace: str, name: str) -> bool:
        """Tell whether a LocalQueue exists."""
        ...

    async def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace that exists."""
        ...

    async def priority_class_exists(self, name: str) -> bool:
        """Tell whether a WorkloadPriorityClass exists."""
        ...

    async def check_controllers(self, namespace: str, local_queue: str) -> frozenset[str]:
        """Return the controller names of the admission checks behind a LocalQueue.

        Empty when the LocalQueue or its ClusterQueue does not exist.
        """
        ...

    async def owner(self, namespace: str, reference: OwnerReference) -> Mapping[str, Any] | None:
        """Return an owner as raw JSON (its metadata suffices), or None when there is none.

        Args:
            namespace: Namespace of the owned object.
            reference: An owner of a kind in `Options.known_owners`.
        """
        ...


_KNOWN: Final = PASS_THROUGH | {(kind.group, kind.kind) for kind in ALL_KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Settings of job admission, from the configuration file.

    Attributes:
        manages_unqueued: ``manageJobsWithoutQueueName``.
        managed_namespaces: ``managedJobsNamespaceSelector``, compiled.
        gates: Feature gates.
        frameworks: ``integrations.frameworks``: names of the enabled job kinds.
        external: ``integrations.externalFrameworks`` as group and kind.
    """

    manages_unqueued: bool = False
    managed_namespaces: LabelSelector = EVERYTHING
    gates: Gates = field(default_factory=dict)
    frameworks: frozenset[str] = frozenset({"batch/job"})
    external: frozenset[GroupKind] = frozenset()

    def gate(self, gate: Gate) -> bool:
        """Tell whether a feature gate is on."""
        return is_on(self.gates, gate)

    @property
    def managed_owners(self) -> frozenset[GroupKind]:
        """Return the kinds whose objects Sluice or an external framework queues."""
        enabled = {(k.group, k.kind) for k in ALL_KINDS if k.framework in self.frameworks}
        return self.external | enabled

    @property
    def known_owners(self) -> frozenset[GroupKind]:
        """Return the kinds that the ancestor search follows."""
        return self.external | _KNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What one admission of a job may ask.

    Attributes:
        namespace: Namespace of the request.
        options: Settings.
        lookups: Reads of the cluster's state.
    """

    namespace: str
    options: Options
    lookups: Lookups

    async def is_managed_namespace(self) -> bool:
        """Tell whether the namespace is among those whose jobs are managed.

        Raises:
            LookupFailed: The namespace could not be read.
        """
        labels = await self.lookups.namespace_labels(self.namespace)
        return self.options.managed_namespaces.matches(labels)
