"""The engine's facade: facts in, decisions out, and read-only queries.

Three calls change it: `Engine.observe`, `Engine.cycle` and reading neither clock nor network.
Everything above (manager, simulator, replay, benchmarks) drives this class and nothing below it.
The same events at the same times give the same commands in any process, under any hash seed.
"""

from sluice.api.names import ClusterQueueName, CohortName, LocalQueueKey, WorkloadKey
from sluice.engine.commands import Command
from sluice.engine.events import Event
from sluice.engine.options import EngineOptions
from sluice.engine.status import (
    ClusterQueueStatus,
    CohortStatus,
    Explanation,
    LocalQueueStatus,
    ObjectRef,
    PendingEntry,
)


class Engine:
    """Takes every admission and preemption decision of one cluster. Not thread-safe."""

    def __init__(self, options: EngineOptions) -> None:
        self._options = options

    def observe(self, event: Event) -> None:
        """Take in one fact; never decides. Repeated and stale facts are harmless."""
        raise NotImplementedError

    def cycle(self, now_ms: int) -> tuple[Command, ...]:
        """Run one scheduling cycle and return its decisions, assumed applied from now on.

        Args:
            now_ms: Epoch milliseconds, not before the last event's ``at_ms``.
        """
        raise NotImplementedError

    def next_deadline_ms(self) -> int | None:
        """Return when `cycle` should run: None after an event only, a past or present time now.

        Wake-up batches, second passes and back-offs give a time in the future. 0 means at once.
        """
        raise NotImplementedError

    def cluster_queue_status(self, name: ClusterQueueName) -> ClusterQueueStatus | None:
        """Return the status of a ClusterQueue, or None when there is none of that name."""
        raise NotImplementedError

    def local_queue_status(self, key: LocalQueueKey) -> LocalQueueStatus | None:
        """Return the status of a LocalQueue, or None when there is none of that key."""
        raise NotImplementedError

    def cohort_status(self, name: CohortName) -> CohortStatus | None:
        """Return the status of a cohort, or None when there is none of that name."""
        raise NotImplementedError

    def pending(self, cluster_queue: ClusterQueueName) -> tuple[PendingEntry, ...]:
        """Return the pending Workloads of a ClusterQueue in queue order; empty when unknown."""
        raise NotImplementedError

    def explain(self, workload: WorkloadKey) -> Explanation | None:
        """Return why a Workload is where it is, or None when it was never seen."""
        raise NotImplementedError

    def changes_since(self, version: int) -> tuple[int, tuple[ObjectRef, ...]]:
        """Return the present version and the queues and cohorts whose status may differ since.

        Args:
            version: A value returned before; 0 asks for everything.
        """
        raise NotImplementedError
