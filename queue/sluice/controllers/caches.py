"""The informers of a manager: one cache for each kind it reads, and the look-ups over them.

Workloads are cached as `CachedWorkload`: the engine's record plus the few references that the
controllers look up by. Nodes and pods are cached while some flavor has a topology
(`topology_feed`). Made by `manager`; read by every controller. Only informers write here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from sluice.api import names, records, wire
from sluice.api.conditions import ConditionType
from sluice.controllers.topology_records import (
    LIVE_PODS,
    CachedNode,
    CachedPod,
    cached_node,
    cached_pod,
)
from sluice.jobs.integration import JobIntegration, Registry, controller_of
from sluice.kube import resources
from sluice.kube.client import Client
from sluice.kube.informer import Informer
from sluice.kube.resources import Resource

Json = dict[str, Any]
R = TypeVar("R")
_HOST_LEVEL: Final = (names.HOSTNAME_LABEL,)

BY_QUEUE: Final = "queue"
BY_CLUSTER_QUEUE: Final = "cluster_queue"
BY_OWNER: Final = "owner"
BY_OWNER_UID: Final = "owner_uid"
BY_PRIORITY_CLASS: Final = "priority_class"
BY_FLAVOR: Final = "flavor"
BY_CHECK: Final = "check"
BY_TOPOLOGY: Final = "topology"
BY_HOST: Final = "host"
BY_WORKLOAD: Final = "workload"


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedWorkload:
    """A Workload as the controllers look for it.

    Attributes:
        record: What the engine observes.
        owner: `owner_key` of its controlling job; empty without one.
        owner_uids: Uids of all owners.
        priority_class: Name of its WorkloadPriorityClass, empty without one.
    """

    record: records.Workload
    owner: str
    owner_uids: tuple[str, ...]
    priority_class: str

    @property
    def is_finished(self) -> bool:
        """Tell whether the Workload is finished."""
        return self.record.is_true(ConditionType.FINISHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedJob:
    """A job as the cache indexes it; its JSON is kept beside."""

    uid: str
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedClass:
    """A priority class of either kind."""

    name: str
    value: int
    is_default: bool


def owner_key(group: str, kind: str, namespace: str, name: str) -> str:
    """Return the index value of an owner: group and kind before its namespace and name."""
    return f"{kind}.{group}:{namespace}/{name}"


def _owner_of(raw: Json) -> str:
    reference = controller_of(raw)
    if reference is None:
        return ""
    group = str(reference.get("apiVersion", "")).rpartition("/")[0]
    namespace = raw["metadata"].get("namespace", "")
    return owner_key(group, reference["kind"], namespace, reference["name"])


def _workload(raw: Json) -> CachedWorkload:
    reference = raw.get("spec", {}).get("priorityClassRef") or {}
    ours = reference.get("kind") == "WorkloadPriorityClass"
    owners = raw["metadata"].get("ownerReferences") or ()
    return CachedWorkload(
        record=cast(records.Workload, wire.decode_as("Workload", raw)),
        owner=_owner_of(raw),
        owner_uids=tuple(owner["uid"] for owner in owners),
        priority_class=reference.get("name", "") if ours else "",
    )


def assigned_hosts(workload: records.Workload) -> frozenset[str]:
    """Return the hosts that the topology assignments of a Workload name."""
    if workload.admission is None:
        return frozenset()
    return frozenset(
        domain.values[-1]
        for pod_set in workload.admission.pod_sets
        if pod_set.topology is not None and pod_set.topology.levels[-1:] == _HOST_LEVEL
        for domain in pod_set.topology.domains
    )


def _job(raw: Json) -> CachedJob:
    return CachedJob(uid=raw["metadata"]["uid"], owner=_owner_of(raw))


def _priority_class(raw: Json) -> CachedClass:
    return CachedClass(
        name=raw["metadata"]["name"],
        value=int(raw.get("value", 0)),
        is_default=bool(raw.get("globalDefault")),
    )


def _by(attribute: Callable[[R], str | None]) -> Callable[[R], tuple[str, ...]]:
    def index(record: R) -> tuple[str, ...]:
        value = attribute(record)
        return (value,) if value else ()

    return index


def _nodes(client: Client) -> Informer[CachedNode]:
    def host(node: CachedNode) -> str:
        return node.hostname

    return Informer(client, resources.NODES, cached_node, indexes={BY_HOST: _by(host)})


def _pods(client: Client) -> Informer[CachedPod]:
    def workload(pod: CachedPod) -> str | None:
        return None if pod.queued is None else pod.queued.workload_key

    indexes = {BY_WORKLOAD: _by(workload)}
    return Informer(client, resources.PODS, cached_pod, field_selector=LIVE_PODS, indexes=indexes)


def _decoder(kind: str) -> Callable[[Json], Any]:
    return lambda raw: wire.decode_as(kind, raw)


def _flavors(queue: records.ClusterQueue) -> set[str]:
    return {flavor.name for group in queue.resource_groups for flavor in group.flavors}


class Caches:
    """Every informer of a manager.

    Attributes:
        jobs: Informer of each job kind, by its group and kind.
        nodes: Empty and not kept current unless ``uses_topology``.
        pods: Those that have not ended and are on a node or of a Workload; likewise.
        uses_topology: Some flavor has a topology; kept by `topology_feed`.
    """

    def __init__(self, client: Client, registry: Registry) -> None:
        self.registry = registry

        def informer(resource: Resource, **kwargs: Any) -> Informer[Any]:
            transform = kwargs.pop("transform", None) or _decoder(resource.kind)
            return Informer(client, resource, transform, **kwargs)

        self.workloads: Informer[CachedWorkload] = informer(
            resources.WORKLOADS,
            transform=_workload,
            keep_raw=True,
            indexes={
                BY_QUEUE: _by(lambda w: w.record.queue_key),
                BY_CLUSTER_QUEUE: _by(
                    lambda w: w.record.admission and w.record.admission.cluster_queue
                ),
                BY_OWNER: _by(lambda w: w.owner),
                BY_OWNER_UID: lambda w: w.owner_uids,
                BY_PRIORITY_CLASS: _by(lambda w: w.priority_class),
                BY_HOST: lambda w: assigned_hosts(w.record),
            },
        )
        self.cluster_queues: Informer[records.ClusterQueue] = informer(
            resources.CLUSTER_QUEUES,
            keep_raw=True,
            indexes={
                BY_FLAVOR: _flavors,
                BY_CHECK: lambda q: {check.name for check in q.checks},
            },
        )
        self.local_queues: Informer[records.LocalQueue] = informer(
            resources.LOCAL_QUEUES,
            keep_raw=True,
            indexes={BY_CLUSTER_QUEUE: _by(lambda q: q.cluster_queue)},
        )
        self.cohorts: Informer[records.Cohort] = informer(resources.COHORTS, keep_raw=True)
        self.flavors: Informer[records.ResourceFlavor] = informer(
            resources.RESOURCE_FLAVORS,
            keep_raw=True,
            indexes={BY_TOPOLOGY: _by(lambda f: f.topology)},
        )
        self.checks: Informer[records.AdmissionCheck] = informer(
            resources.ADMISSION_CHECKS, keep_raw=True
        )
        self.topologies: Informer[records.Topology] = informer(resources.TOPOLOGIES, keep_raw=True)
        # Who does not use credits need not install their CRD.
        self.credit_policies: Informer[records.CreditPolicy] = informer(
            resources.CREDIT_POLICIES, keep_raw=True, is_optional=True
        )
        self.namespaces: Informer[records.Namespace] = informer(resources.NAMESPACES)
        self.limit_ranges: Informer[records.LimitRange] = informer(resources.LIMIT_RANGES)
        self.runtime_classes: Informer[records.RuntimeClass] = informer(resources.RUNTIME_CLASSES)
        self.pod_classes: Informer[CachedClass] = informer(
            resources.PRIORITY_CLASSES, transform=_priority_class
        )
        self.workload_classes: Informer[CachedClass] = informer(
            resources.WORKLOAD_PRIORITY_CLASSES, transform=_priority_class
        )
        self.uses_topology = False
        self.nodes = _nodes(client)
        self.pods = _pods(client)
        self.jobs: dict[tuple[str, str], Informer[CachedJob]] = {
            (integration.kind.group, integration.kind.kind): informer(
                resource_of(integration),
                transform=_job,
                keep_raw=True,
                indexes={BY_OWNER: _by(lambda j: j.owner)},
            )
            for integration in registry
        }

    def observed(self) -> Iterator[tuple[records.Kind, Informer[Any]]]:
        """Yield the informers that the engine always observes, referenced kinds first.

        Workloads come last: what they refer to is known by then. What belongs to topologies is
        told by `topology_feed`.
        """
        yield records.Kind.NAMESPACE, self.namespaces
        yield records.Kind.LIMIT_RANGE, self.limit_ranges
        yield records.Kind.RUNTIME_CLASS, self.runtime_classes
        yield records.Kind.RESOURCE_FLAVOR, self.flavors
        yield records.Kind.ADMISSION_CHECK, self.checks
        yield records.Kind.COHORT, self.cohorts
        yield records.Kind.CLUSTER_QUEUE, self.cluster_queues
        yield records.Kind.LOCAL_QUEUE, self.local_queues
        yield records.Kind.CREDIT_POLICY, self.credit_policies
        yield records.Kind.WORKLOAD, self.workloads

    def all(self) -> Iterator[Informer[Any]]:
        """Yield every informer that is kept current."""
        yield from self.always()
        if self.uses_topology:
            yield from self.of_topology()

    def always(self) -> Iterator[Informer[Any]]:
        """Yield the informers that run as long as the manager."""
        for _, informer in self.observed():
            yield informer
        yield self.topologies
        yield self.pod_classes
        yield self.workload_classes
        yield from self.jobs.values()

    def of_topology(self) -> tuple[Informer[Any], ...]:
        """Return the informers that run while some flavor has a topology."""
        return self.nodes, self.pods

    def jobs_of(self, integration: JobIntegration) -> Informer[CachedJob]:
        """Return the informer of a job kind."""
        return self.jobs[integration.kind.group, integration.kind.kind]

    def cluster_queue_name(self, workload: records.Workload) -> str:
        """Return the ClusterQueue that holds its quota, else its LocalQueue's; else empty."""
        if workload.admission is not None:
            return workload.admission.cluster_queue
        local = self.local_queues.store.get(workload.queue_key)
        return "" if local is None else local.cluster_queue

    def namespace_labels(self, name: str) -> dict[str, str]:
        """Return the labels of a namespace; only its name when it is not cached."""
        namespace = self.namespaces.store.get(name)
        if namespace is None:
            return {names.NAMESPACE_NAME_LABEL: name}
        return dict(namespace.labels)


def resource_of(integration: JobIntegration) -> Resource:
    """Return the REST resource of a job kind."""
    kind = integration.kind
    return Resource(group=kind.group, version=kind.version, plural=kind.plural, kind=kind.kind)
