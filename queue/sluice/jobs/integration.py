"""What Sluice must know about a job kind: the JobIntegration protocol and the table of kinds.

The generic reconciler (``sluice.controllers.jobs``) and the webhook know no job kind; they ask an
integration. An integration is pure: it reads and returns raw JSON objects and never calls the API.
Adding a kind means one module beside ``batch.py`` and one entry in `all_integrations`.
Source: docs/spec/api.md 2.3.8, 2.3.9 and 2.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sluice.api import names

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """Identity of a job kind.

    Attributes:
        framework: Name in the configuration's ``integrations.frameworks``, e.g. ``batch/job``.
        group: API group, empty for the core group.
        version: API version that we read and write.
        kind: Kind as in manifests.
        plural: Name in URL paths.
        manager: Value of the kind's managedBy field for its own controller; empty without one.
        prebuilt: Whether a Workload made beforehand can be adopted (docs/spec/api.md 2.3.4).
    """

    framework: str
    group: str
    version: str
    kind: str
    plural: str
    manager: str = ""
    prebuilt: bool = True

    @property
    def api_version(self) -> str:
        """Return ``group/version``, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """Pods of one shape in a job.

    Attributes:
        name: DNS label, lower case.
        count: Pods, at least 0.
        template: PodTemplateSpec; its metadata keeps labels and annotations only.
        count_min: Least pods the job can run with, or None when it needs all.
        topology_request: ``topologyRequest`` of the Workload's pod set, or None.
    """

    name: str
    count: int
    template: Json
    count_min: int | None = None
    topology_request: Json | None = None

    def to_json(self) -> Json:
        """Return the element of a Workload's ``spec.podSets``."""
        result: Json = {"name": self.name, "count": self.count, "template": self.template}
        if self.count_min is not None:
            result["minCount"] = self.count_min
        if self.topology_request is not None:
            result["topologyRequest"] = self.topology_request
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetInfo:
    """What admission adds to the pods of one pod set (docs/spec/api.md 2.3.9)."""

    name: str
    count: int
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Json] = ()
    scheduling_gates: Sequence[Json] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The end of a job."""

    success: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One write that a job needs next.

    Attributes:
        desired: The whole object as it should be; the caller sends only what differs.
        subresource: Empty, or ``status``.
    """

    desired: Json
    subresource: str = ""


class JobIntegration(Protocol):
    """Everything the generic code asks about one job kind. All methods are pure."""

    @property
    def kind(self) -> JobKind:
        """Return the identity of the kind."""
        ...

    def managed_by(self, job: Json) -> str:
        """Return the job's managedBy, empty when unset."""
        ...

    def is_suspended(self, job: Json) -> bool:
        """Tell whether the job is suspended, and not just on its way there."""
        ...

    def is_stopping(self, job: Json) -> bool:
        """Tell whether a stop of the job has begun and is not complete."""
        ...

    def is_active(self, job: Json) -> bool:
        """Tell whether pods of the job still run."""
        ...

    def pod_sets(self, job: Json) -> tuple[PodSet, ...]:
        """Return the pod sets of the job as it stands now."""
        ...

    def start(self, job: Json, infos: Sequence[PodSetInfo]) -> Change:
        """Return the write that starts a suspended job with what its admission adds.

        Raises:
            PodSetConflict: The template already says something else.
        """
        ...

    def stop(self, job: Json, pod_sets: Sequence[Json] | None) -> Change | None:
        """Return the next write towards a suspended job with its own templates back.

        Called again with the answer until it returns None, so that a crash in between is harmless.

        Args:
            job: The job as last seen.
            pod_sets: ``spec.podSets`` of its Workload, or None when no Workload tells the original.
        """
        ...

    def finished(self, job: Json) -> Finish | None:
        """Return how the job ended, or None while it has not."""
        ...

    def pods_ready(self, job: Json) -> bool:
        """Tell whether every expected pod is ready or has succeeded."""
        ...

    def reclaimable_pods(self, job: Json) -> Mapping[str, int]:
        """Return by pod set how many pods need no quota any more; zero counts left out."""
        ...

    def priority_class_name(self, job: Json) -> str:
        """Return the name of the job's PriorityClass, empty when it names none."""
        ...

    def workload_name_extra(self, job: Json) -> str:
        """Return what else the Workload's name is hashed over (docs/spec/api.md 2.3.10)."""
        ...


class Registry:
    """The job kinds in use, by framework and by group and kind."""

    def __init__(self, integrations: Iterable[JobIntegration]) -> None:
        self._all = tuple(integrations)
        self._by_kind = {(i.kind.group, i.kind.kind): i for i in self._all}

    def __iter__(self) -> Iterator[JobIntegration]:
        """Iterate over the integrations in the order given."""
        return iter(self._all)

    def find(self, api_version: str, kind: str) -> JobIntegration | None:
        """Return the integration of a kind, whatever its version, or None."""
        group = api_version.rpartition("/")[0]
        return self._by_kind.get((group, kind))

    def owner_of(self, obj: Json) -> tuple[JobIntegration, Json] | None:
        """Return the integration and owner reference of an object's controller, if we know it."""
        reference = controller_of(obj)
        if reference is None:
            return None
        integration = self.find(str(reference.get("apiVersion", "")), str(reference.get("kind")))
        return None if integration is None else (integration, reference)


def select(
    integrations: Iterable[JobIntegration], frameworks: Sequence[str]
) -> tuple[Registry, tuple[str, ...]]:
    """Return the registry of the frameworks that the configuration enables, and those we lack.

    A framework of Kueue's that is not available yet is no reason not to start: its jobs are left
    alone, and the caller says so.
    """
    known = {integration.kind.framework: integration for integration in integrations}
    wanted = tuple(dict.fromkeys(frameworks))
    registry = Registry(known[name] for name in wanted if name in known)
    return registry, tuple(name for name in wanted if name not in known)


def controller_of(obj: Json) -> Json | None:
    """Return the controlling owner reference of an object, or None."""
    for reference in obj.get("metadata", {}).get("ownerReferences") or ():
        if reference.get("controller"):
            return dict(reference)
    return None


def labels_of(obj: Json) -> Mapping[str, str]:
    """Return an object's labels, empty when it has none."""
    return obj.get("metadata", {}).get("labels") or {}


def annotations_of(obj: Json) -> Mapping[str, str]:
    """Return an object's annotations, empty when it has none."""
    return obj.get("metadata", {}).get("annotations") or {}


def queue_name(job: Json) -> str:
    """Return the LocalQueue that a job names, empty when it names none."""
    return labels_of(job).get(names.QUEUE_LABEL, "")


def prebuilt_workload_name(job: Json) -> str:
    """Return the Workload that a job wants to adopt, empty for none; the annotation wins."""
    return annotations_of(job).get(names.PREBUILT_WORKLOAD) or labels_of(job).get(
        names.PREBUILT_WORKLOAD, ""
    )
