"""Facts about cohorts, flavors, checks, topologies, namespaces, nodes and pods.

Each keeps the world's records, marks trees stale, rechecks which ClusterQueues are active, and
wakes parked Workloads whose answer may differ now. Source: docs/spec/algorithm.md 1.7 to 1.9, 2.8,
2.9. Used by `sluice.engine.engine`.
"""

from collections.abc import Iterable
from dataclasses import replace

from sluice.api.names import (
    CheckName,
    ClusterQueueName,
    CohortName,
    FlavorName,
)
from sluice.api.records import (
    AdmissionCheck,
    Cohort,
    Kind,
    Namespace,
    Node,
    Pod,
    ResourceFlavor,
    Topology,
)
from sluice.engine import accounting
from sluice.engine.observe_queues import QueueFacts
from sluice.engine.waking import Waking
from sluice.engine.world import World


class ConfigFacts:
    """Applies facts about configuration objects to the world."""

    __slots__ = ("_queues", "_waking", "_world")

    def __init__(self, world: World, waking: Waking, queues: QueueFacts) -> None:
        self._world = world
        self._waking = waking
        self._queues = queues

    # Cohorts, flavors, checks, topologies.

    def cohort(self, record: Cohort, at_ms: int) -> None:
        """Add or update a Cohort object."""
        world = self._world
        before = world.forest.cohorts.get(record.name)
        if before is not None and (before.parent, before.resource_groups, before.fair_weight) == (
            record.parent, record.resource_groups, record.fair_weight
        ):  # fmt: skip
            world.forest.cohorts[record.name] = record
            return
        affected = self._around_cohort(record.name)
        world.mark_stale(record.name)
        world.forest.set_cohort(record)
        self._after_cohort(record.name, affected, at_ms)

    def cohort_gone(self, name: CohortName, at_ms: int) -> None:
        """Forget a Cohort object; with members left it turns implicit (1.8)."""
        world = self._world
        if name not in world.forest.cohorts:
            return
        affected = self._around_cohort(name)
        world.mark_stale(name)
        world.forest.drop_cohort(name)
        world.changes.forget(Kind.COHORT, name)
        self._after_cohort(name, affected, at_ms)

    def _around_cohort(self, name: CohortName) -> list[ClusterQueueName]:
        """Return the ClusterQueues of the tree that a cohort is in now."""
        forest = self._world.forest
        root = forest.root_of(name)
        return forest.queues_below(root if root is not None else name)

    def _after_cohort(self, name: CohortName, affected: list[ClusterQueueName], at_ms: int) -> None:
        world = self._world
        world.mark_stale(name)
        queues = dict.fromkeys((*affected, *self._around_cohort(name)))
        for queue in queues:
            self._queues.recheck(world.queues[queue], at_ms)
        for queue in queues:
            self._waking.notify(world.queues[queue], at_ms)
        if name in world.forest.cohorts:
            world.changes.touch(Kind.COHORT, name)

    def flavor(self, record: ResourceFlavor, at_ms: int) -> None:
        """Add or update a ResourceFlavor."""
        world = self._world
        before = world.flavors.get(record.name)
        world.flavors[record.name] = record
        affected = world.placement.observe(record)
        if before is None or replace(before, resource_version="") != replace(
            record, resource_version=""
        ):
            self._queues.recheck_users(Kind.RESOURCE_FLAVOR, record.name, at_ms, wakes=True)
        self._rebook(affected)
        self._wake_users(affected, at_ms)

    def flavor_gone(self, name: FlavorName, at_ms: int) -> None:
        """Forget a ResourceFlavor."""
        if self._world.flavors.pop(name, None) is not None:
            self._world.placement.gone(Kind.RESOURCE_FLAVOR, name)
            self._queues.recheck_users(Kind.RESOURCE_FLAVOR, name, at_ms, wakes=False)

    def check(self, record: AdmissionCheck, at_ms: int) -> None:
        """Add or update an AdmissionCheck."""
        self._world.checks[record.name] = record
        self._queues.recheck_users(Kind.ADMISSION_CHECK, record.name, at_ms, wakes=False)

    def check_gone(self, name: CheckName, at_ms: int) -> None:
        """Forget an AdmissionCheck."""
        if self._world.checks.pop(name, None) is not None:
            self._queues.recheck_users(Kind.ADMISSION_CHECK, name, at_ms, wakes=False)

    def topology(self, record: Topology, at_ms: int) -> None:
        """Add or update a Topology."""
        self._world.topologies[record.name] = record
        affected = self._world.placement.observe(record)
        self._recheck_topology(record.name, at_ms)
        self._rebook(affected)
        self._wake_users(affected, at_ms)

    def topology_gone(self, name: str, at_ms: int) -> None:
        """Forget a Topology."""
        if self._world.topologies.pop(name, None) is not None:
            self._world.placement.gone(Kind.TOPOLOGY, name)
            self._recheck_topology(name, at_ms)

    def _recheck_topology(self, name: str, at_ms: int) -> None:
        for flavor in list(self._world.flavors.values()):
            if flavor.topology == name:
                self._queues.recheck_users(Kind.RESOURCE_FLAVOR, flavor.name, at_ms, wakes=True)

    def _rebook(self, flavors: Iterable[FlavorName]) -> None:
        """Book what reservations take from domains, now that a flavor's topology is known (6.1).

        After a restart Workloads may be seen before flavors and topologies.
        """
        world = self._world
        for name in sorted(flavors):
            for user in self._queues.users.get((Kind.RESOURCE_FLAVOR, name), {}):
                for wl in world.queues[user].reserved.values():
                    if wl.admission is None:
                        continue
                    booked = accounting.topology_of(world, wl.record, wl.admission)
                    if booked != wl.topology:
                        world.placement.unbook(wl.topology)
                        wl.topology = booked
                        world.placement.book(booked)

    # Nodes, pods, namespaces.

    def node_or_pod(self, record: Node | Pod, at_ms: int) -> None:
        """Add or update a node or pod."""
        self._wake_users(self._world.placement.observe(record), at_ms)

    def node_or_pod_gone(self, kind: Kind, key: str, at_ms: int) -> None:
        """Forget a node or pod."""
        self._wake_users(self._world.placement.gone(kind, key), at_ms)

    def _wake_users(self, flavors: Iterable[FlavorName], at_ms: int) -> None:
        for name in sorted(flavors):
            for user in self._queues.users.get((Kind.RESOURCE_FLAVOR, name), {}):
                self._waking.notify(self._world.queues[user], at_ms)

    def namespace(self, record: Namespace, at_ms: int) -> None:
        """Add or update a namespace; wakes queues whose selector matches it now (2.9)."""
        world = self._world
        before = world.namespaces.get(record.name)
        labels = dict(record.labels)
        if before == labels:
            return
        world.namespaces[record.name] = labels
        for cq in world.queues.values():
            selector = cq.record.namespace_selector
            if selector is None or not selector.matches(labels):
                continue
            if before is None or not selector.matches(before):
                self._waking.notify(cq, at_ms)

    def namespace_gone(self, name: str) -> None:
        """Forget a namespace."""
        self._world.namespaces.pop(name, None)
