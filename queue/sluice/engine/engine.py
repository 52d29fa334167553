"""The engine's facade: facts in, decisions out, and read-only queries.

Three calls change it: `Engine.observe`, `Engine.cycle` and reading neither clock nor network.
Everything above (manager, simulator, replay, benchmarks) drives this class and nothing below it.
The same events at the same times give the same commands in any process, under any hash seed.
"""

from functools import partial
from typing import assert_never

from sluice.api.names import (
    CheckName,
    ClusterQueueName,
    CohortName,
    FlavorName,
    LocalQueueKey,
    WorkloadKey,
    split_key,
)
from sluice.api.records import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    CreditPolicy,
    Kind,
    LimitRange,
    LocalQueue,
    Namespace,
    Node,
    Pod,
    Record,
    ResourceFlavor,
    RuntimeClass,
    Topology,
    Workload,
)
from sluice.engine import answers, invariants
from sluice.engine.commands import Command
from sluice.engine.credits.history import changes_since
from sluice.engine.credits.service import Credits
from sluice.engine.cycle import Cycle
from sluice.engine.events import CommandApplied, CommandFailed, Event, Gone, Observed
from sluice.engine.observe_config import ConfigFacts
from sluice.engine.observe_queues import QueueFacts
from sluice.engine.observe_workload import WorkloadFacts
from sluice.engine.options import EngineOptions
from sluice.engine.placement import Placement, WithoutTopology
from sluice.engine.status import (
    ClusterQueueStatus,
    CohortStatus,
    Explanation,
    LocalQueueStatus,
    ObjectRef,
    PendingEntry,
)
from sluice.engine.topology.facade import TopologyPlacement
from sluice.engine.waking import Waking
from sluice.engine.world import World


class Engine:
    """Takes every admission and preemption decision of one cluster. Not thread-safe."""

    def __init__(self, options: EngineOptions, placement: Placement | None = None) -> None:
        """Make an engine that knows nothing yet.

        Args:
            options: Read once.
            placement: Who places pods in topologies; by default what the gates ask for.
        """
        self._world = World(options, placement or make_placement(options))
        self._world.credits.history = partial(changes_since, self._world)
        self._waking = Waking(self._world)
        self._workloads = WorkloadFacts(self._world, self._waking)
        self._queues = QueueFacts(self._world, self._waking, self._workloads)
        self._config = ConfigFacts(self._world, self._waking, self._queues)
        self._cycle = Cycle(self._world, self._waking)

    def observe(self, event: Event) -> None:
        """Take in one fact; never decides. Repeated and stale facts are harmless."""
        self._world.credits.to(event.at_ms)
        match event:
            case Observed():
                self._observe(event.record, event.at_ms)
            case Gone():
                self._forget(event)
            case CommandApplied():
                self._workloads.applied(event.command, event.resource_version, event.at_ms)
            case CommandFailed():
                self._workloads.failed(event.command, event.at_ms)
            case _:
                assert_never(event)

    def _observe(self, record: Record, at_ms: int) -> None:
        match record:
            case Workload():
                self._workloads.observe(record, at_ms)
            case ClusterQueue():
                self._queues.cluster_queue(record, at_ms)
            case LocalQueue():
                self._queues.local_queue(record, at_ms)
            case Cohort():
                self._config.cohort(record, at_ms)
            case ResourceFlavor():
                self._config.flavor(record, at_ms)
            case AdmissionCheck():
                self._config.check(record, at_ms)
            case Topology():
                self._config.topology(record, at_ms)
            case Node() | Pod():
                self._config.node_or_pod(record, at_ms)
            case Namespace():
                self._config.namespace(record, at_ms)
            case LimitRange():
                self._world.rules.set_limit_range(record)
                self._workloads.reconsider(record.namespace)
            case RuntimeClass():
                self._world.rules.set_runtime_class(record)
                self._workloads.reconsider(None)
            case CreditPolicy():
                self._world.credits.policy(record)
            case _:
                assert_never(record)

    def _forget(self, event: Gone) -> None:
        key, at_ms = event.key, event.at_ms
        match event.kind:
            case Kind.WORKLOAD:
                self._workloads.gone(WorkloadKey(key), at_ms, event.resource_version)
            case Kind.CLUSTER_QUEUE:
                self._queues.cluster_queue_gone(ClusterQueueName(key), at_ms)
            case Kind.LOCAL_QUEUE:
                self._queues.local_queue_gone(LocalQueueKey(key), at_ms)
            case Kind.COHORT:
                self._config.cohort_gone(CohortName(key), at_ms)
            case Kind.RESOURCE_FLAVOR:
                self._config.flavor_gone(FlavorName(key), at_ms)
            case Kind.ADMISSION_CHECK:
                self._config.check_gone(CheckName(key), at_ms)
            case Kind.TOPOLOGY:
                self._config.topology_gone(key, at_ms)
            case Kind.NODE | Kind.POD:
                self._config.node_or_pod_gone(event.kind, key, at_ms)
            case Kind.NAMESPACE:
                self._config.namespace_gone(key)
            case Kind.LIMIT_RANGE:
                namespace, name = split_key(key)
                self._world.rules.drop_limit_range(namespace, name)
                self._workloads.reconsider(namespace)
            case Kind.RUNTIME_CLASS:
                self._world.rules.drop_runtime_class(key)
                self._workloads.reconsider(None)
            case Kind.CREDIT_POLICY:
                self._world.credits.policy_gone(key)
            case _:
                assert_never(event.kind)

    def cycle(self, now_ms: int) -> tuple[Command, ...]:
        """Run one scheduling cycle and return its decisions, assumed applied from now on.

        Args:
            now_ms: Epoch milliseconds, not before the last event's ``at_ms``.
        """
        return tuple(self._cycle.run(now_ms))

    @property
    def heads_total(self) -> int:
        """Return how many heads all cycles so far have looked at."""
        return self._cycle.heads_total

    def has_heads(self) -> bool:
        """Tell whether some active ClusterQueue has a Workload in its heap, due or not."""
        return any(cq.is_active for cq in self._world.pending.heaps.hot.values())

    def next_deadline_ms(self) -> int | None:
        """Return when `cycle` should run: None after an event only, a past or present time now.

        Wake-up batches, second passes and back-offs give a time in the future. 0 means at once.
        """
        if (self._world.is_due or self._cycle.is_due) and self.has_heads():
            return 0
        waking_ms = self._waking.next_ms()
        boundary_ms = self._world.credits.next_boundary_ms()
        if waking_ms is None or boundary_ms is None:
            return boundary_ms if waking_ms is None else waking_ms
        return min(waking_ms, boundary_ms)

    @property
    def credits(self) -> Credits:
        """Return the ledgers of fair-share credits, for reading."""
        return self._world.credits

    def verify(self) -> None:
        """Check that all indexes agree; for tests and debugging, costs as much as the world.

        Raises:
            InvariantViolation: They do not.
        """
        invariants.verify(self._world)

    def cluster_queue_status(self, name: ClusterQueueName) -> ClusterQueueStatus | None:
        """Return the status of a ClusterQueue, or None when there is none of that name."""
        return answers.cluster_queue_status(self._world, name)

    def local_queue_status(self, key: LocalQueueKey) -> LocalQueueStatus | None:
        """Return the status of a LocalQueue, or None when there is none of that key."""
        return answers.local_queue_status(self._world, key)

    def cohort_status(self, name: CohortName) -> CohortStatus | None:
        """Return the status of a cohort, or None when there is none of that name."""
        return answers.cohort_status(self._world, name)

    def pending(self, cluster_queue: ClusterQueueName) -> tuple[PendingEntry, ...]:
        """Return the pending Workloads of a ClusterQueue in queue order; empty when unknown."""
        return answers.pending(self._world, cluster_queue)

    def explain(self, workload: WorkloadKey) -> Explanation | None:
        """Return why a Workload is where it is, or None when it was never seen."""
        wl = self._world.workloads.get(workload)
        return None if wl is None else answers.explain(self._world, wl)

    def changes_since(self, version: int) -> tuple[int, tuple[ObjectRef, ...]]:
        """Return the present version and the queues and cohorts whose status may differ since.

        Args:
            version: A value returned before; 0 asks for everything.
        """
        return self._world.changes.since(version)


def make_placement(options: EngineOptions) -> Placement:
    """Return the placement that the gates ask for."""
    return TopologyPlacement(options.gates) if options.gates.topology_aware else WithoutTopology()
