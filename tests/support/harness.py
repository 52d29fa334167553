"""Drives a real engine as a shell would: feeds facts, applies commands, echoes what was written.

The harness plays the API server for Workloads: it keeps their records, writes commands into them
and shows the result to the engine. Invariants are checked after every cycle. The next command can
be rejected, echoes can be withheld, victims can be left running.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tests.support import builders

from sluice.api.conditions import ConditionType, EvictionReason
from sluice.api.names import ClusterQueueName, WorkloadKey
from sluice.api.records import ClusterQueue, Condition, Kind, Record, Workload
from sluice.engine.commands import (
    AssignTopology,
    Command,
    Evict,
    FinishSlice,
    MarkPending,
    ReserveQuota,
)
from sluice.engine.engine import Engine
from sluice.engine.events import CommandApplied, CommandFailed, Gone, Observed
from sluice.engine.options import EngineOptions

AT_ONCE = EngineOptions(wake_up_batch_ms=0)


class Harness:
    """An engine and the Workloads it has been shown.

    Attributes:
        commands: Of the last cycle.
        now_ms: Moves on by a second after each cycle.
    """

    def __init__(self, *records: Record, options: EngineOptions = AT_ONCE) -> None:
        self.engine = Engine(options)
        self.now_ms = builders.T0_MS + 3_600_000
        self.workloads: dict[WorkloadKey, Workload] = {}
        self.commands: tuple[Command, ...] = ()
        self.echoes = True
        self.victims_stop = True
        self._version = 0
        self._rejects = False
        self.observe(builders.namespace(), builders.flavor())
        self.observe(*records)

    # Facts.

    def observe(self, *records: Record) -> None:
        """Show objects; Workloads get a new resourceVersion."""
        for record in records:
            shown = record
            if isinstance(record, Workload):
                shown = replace(record, resource_version=self._next_version())
                self.workloads[record.key] = shown
            self.engine.observe(Observed(at_ms=self.now_ms, record=shown))

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)

    def gone(self, kind: Kind, key: str) -> None:
        """Delete an object."""
        if kind is Kind.WORKLOAD:
            self.workloads.pop(WorkloadKey(key), None)
        self.engine.observe(Gone(at_ms=self.now_ms, kind=kind, key=key))

    def change(
        self, name: str, conditions: Mapping[str, Condition] | None = None, **fields: Any
    ) -> None:
        """Update a Workload by name."""
        record = self.workloads[builders.key(name)]
        merged = {**record.conditions, **(conditions or {})}
        self.observe(replace(record, conditions=merged, **fields))

    def finish(self, name: str) -> None:
        """Let a Workload finish."""
        self.change(name, {ConditionType.FINISHED: self._condition(True, "Succeeded")})

    def stopped(self, name: str) -> None:
        """Complete the eviction of a Workload: its job has stopped, its quota is given up."""
        record = self.workloads[builders.key(name)]
        evicted = record.conditions[ConditionType.EVICTED]
        at_once = evicted.reason in (EvictionReason.PREEMPTED, EvictionReason.NODE_FAILURES)
        self.change(
            name,
            {
                ConditionType.QUOTA_RESERVED: self._condition(False, "PendingEvaluation"),
                ConditionType.ADMITTED: self._condition(False, "NoReservation"),
                ConditionType.REQUEUED: self._condition(at_once, evicted.reason),
            },
            admission=None,
        )

    def _condition(self, status: bool, reason: str, message: str = "") -> Condition:
        at_ms = self.now_ms // 1000 * 1000
        return Condition(
            status="True" if status else "False", reason=reason, message=message, at_ms=at_ms
        )

    # Cycles.

    def reject_next(self) -> None:
        """Have the first reservation, topology or eviction of the next cycle fail."""
        self._rejects = True

    def cycle(self) -> tuple[Command, ...]:
        """Run a cycle, apply its commands, check the invariants, move the clock."""
        self.commands = self.engine.cycle(self.now_ms)
        self.engine.verify()
        self.apply(self.commands)
        self.engine.verify()
        return self.commands

    def apply(self, commands: tuple[Command, ...]) -> list[Command]:
        """Write commands to the Workloads, move the clock; return what was rejected."""
        failed: list[Command] = []
        for command in commands:
            if self._rejects and not isinstance(command, MarkPending):
                self._rejects = False
                failed.append(command)
                self.engine.observe(
                    CommandFailed(
                        at_ms=self.now_ms, command=command, message="rejected by the test"
                    )
                )
            elif command.workload in self.workloads:
                self._apply(command)
        self.now_ms += 1000
        return failed

    def run(self, cycles_max: int = 50) -> None:
        """Run cycles while the engine asks for one at once."""
        for _ in range(cycles_max):
            due_ms = self.engine.next_deadline_ms()
            if due_ms is None or due_ms > self.now_ms:
                return
            self.cycle()
        raise AssertionError(f"the engine still asks for a cycle after {cycles_max}")

    def _apply(self, command: Command) -> None:
        written = self._written(command)
        written = replace(written, resource_version=self._next_version())
        self.workloads[command.workload] = written
        self.engine.observe(
            CommandApplied(
                at_ms=self.now_ms, command=command, resource_version=written.resource_version
            )
        )
        if self.echoes:
            self.engine.observe(Observed(at_ms=self.now_ms, record=written))
        if isinstance(command, Evict) and self.victims_stop:
            self.stopped(written.name)

    def _written(self, command: Command) -> Workload:
        record = self.workloads[command.workload]
        now = self._condition
        conditions: dict[str, Condition] = dict(record.conditions)
        match command:
            case ReserveQuota():
                conditions[ConditionType.QUOTA_RESERVED] = now(True, "QuotaReserved")
                if command.admitted:
                    conditions[ConditionType.ADMITTED] = now(True, "Admitted")
                for kind in (ConditionType.EVICTED, ConditionType.PREEMPTED):
                    if record.is_true(kind):
                        conditions[kind] = now(False, "QuotaReserved")
                return replace(record, conditions=conditions, admission=command.admission)
            case AssignTopology():
                nodes = () if command.clear_unhealthy_nodes else record.unhealthy_nodes
                if command.admitted:
                    conditions[ConditionType.ADMITTED] = now(True, "Admitted")
                return replace(
                    record,
                    conditions=conditions,
                    admission=command.admission,
                    unhealthy_nodes=nodes,
                )
            case Evict():
                conditions[ConditionType.EVICTED] = now(True, command.reason)
                if command.preempted_reason is not None:
                    conditions[ConditionType.PREEMPTED] = now(True, command.preempted_reason)
            case MarkPending():
                conditions[ConditionType.QUOTA_RESERVED] = now(
                    False, command.reason, command.message
                )
            case FinishSlice():
                conditions[ConditionType.FINISHED] = now(True, "WorkloadSliceReplaced")
        return replace(record, conditions=conditions)

    # Answers.

    def admitted(self) -> dict[str, dict[str, str]]:
        """Return what the last cycle reserved: Workload to (pod set/resource to flavor)."""
        return {
            _name(c.workload): {
                f"{p.name}/{r}": f for p in c.admission.pod_sets for r, f in p.flavors
            }
            for c in self.commands
            if isinstance(c, ReserveQuota)
        }

    def evicted(self) -> dict[str, str]:
        """Return whom the last cycle evicted, and on what ground."""
        return {
            _name(c.workload): str(c.preempted_reason or c.reason)
            for c in self.commands
            if isinstance(c, Evict)
        }

    def told(self) -> dict[str, tuple[str, str]]:
        """Return what the last cycle told Workloads: (reason, message)."""
        return {
            _name(c.workload): (str(c.reason), c.message)
            for c in self.commands
            if isinstance(c, MarkPending)
        }

    def holding(self) -> set[str]:
        """Return the names of all Workloads that hold quota."""
        return {
            w.name
            for w in self.workloads.values()
            if w.admission is not None and not w.is_true(ConditionType.FINISHED)
        }

    def pending(self, queue: str) -> list[str]:
        """Return the heap of a queue in order."""
        return self._entries(queue, inadmissible=False)

    def parked(self, queue: str) -> list[str]:
        """Return the parked Workloads of a queue in order."""
        return self._entries(queue, inadmissible=True)

    def _entries(self, queue: str, *, inadmissible: bool) -> list[str]:
        entries = self.engine.pending(ClusterQueueName(queue))
        return [_name(e.workload) for e in entries if e.inadmissible is inadmissible]

    def usage(self, queue: str) -> dict[str, int]:
        """Return what a queue has reserved: ``flavor/resource`` to amount, zeros left out."""
        status = self.engine.cluster_queue_status(ClusterQueueName(queue))
        assert status is not None
        return {
            f"{f.name}/{r.name}": r.total
            for f in status.reservation
            for r in f.resources
            if r.total
        }


def _name(key: str) -> str:
    return key.split("/", 1)[1]


def queues(*records: Record) -> Iterable[Record]:
    """Return the records, each ClusterQueue followed by a LocalQueue of the same name."""
    for record in records:
        yield record
        if isinstance(record, ClusterQueue):
            yield builders.lq(record.name)
