"""The simulated cluster: it holds the Workloads and does what the engine commands.

Jobs start the moment they are admitted and stop the moment they are evicted; admission checks are
Ready at once. The engine is told as the manager would tell it. Used by `sluice.simulator.play`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from sluice.api.conditions import ConditionType, EvictionReason
from sluice.api.names import WorkloadKey
from sluice.api.records import Admission, CheckStatus, Condition, Kind, Record, Workload
from sluice.engine.commands import (
    AssignTopology,
    Command,
    Evict,
    FinishSlice,
    MarkPending,
    ReserveQuota,
)
from sluice.engine.engine import Engine
from sluice.engine.events import CommandApplied, Gone, Observed
from sluice.simulator.loop import EventLoop


class Lifecycle:
    """What a source wants to know of its Workload; the default knows nothing."""

    def admitted(self, key: WorkloadKey) -> None:
        """Take note that it runs from now on."""

    def evicted(self, key: WorkloadKey) -> None:
        """Take note that it was stopped and waits again."""


Watcher = Callable[[Workload, Command], None]
"""Called with the Workload before a command is applied to it."""


class Cluster:
    """Workloads and the engine.

    Attributes:
        engine: Takes the decisions.
        workloads: The newest record of each.
        watchers: See every reservation and eviction.
        ended: See every Workload that goes, finished or withdrawn.
        cycles_count: Cycles run.
    """

    def __init__(self, engine: Engine, loop: EventLoop) -> None:
        self.engine = engine
        self.workloads: dict[WorkloadKey, Workload] = {}
        self.watchers: list[Watcher] = []
        self.ended: list[Callable[[Workload], None]] = []
        self.cycles_count = 0
        self._loop = loop
        self._owners: dict[WorkloadKey, Lifecycle] = {}
        self._version = 0

    def observe(self, record: Record) -> None:
        """Show the engine an object."""
        self.engine.observe(Observed(at_ms=self._loop.now_ms, record=record))

    def submit(self, record: Workload, owner: Lifecycle) -> None:
        """Add a Workload; its resourceVersion is older than any that is given here."""
        self.workloads[record.key] = record
        self._owners[record.key] = owner
        self.observe(record)

    def end(self, key: WorkloadKey) -> None:
        """Let a Workload go, finished or withdrawn; one that is gone is no matter."""
        record = self.workloads.pop(key, None)
        if record is None:
            return
        for listener in self.ended:
            listener(record)
        del self._owners[key]
        self.engine.observe(Gone(at_ms=self._loop.now_ms, kind=Kind.WORKLOAD, key=key))

    def cycle(self) -> int:
        """Run one cycle and apply its commands; return how many there were."""
        self.cycles_count += 1
        commands = self.engine.cycle(self._loop.now_ms)
        self.apply(commands)
        return len(commands)

    def apply(self, commands: Iterable[Command]) -> None:
        """Do what the engine decided."""
        for command in commands:
            record = self.workloads.get(command.workload)
            if record is None:
                continue
            for watcher in self.watchers:
                watcher(record, command)
            match command:
                case ReserveQuota():
                    self._reserve(record, command)
                case Evict():
                    self._evict(record, command)
                case FinishSlice():
                    self.end(record.key)
                case AssignTopology() | MarkPending():
                    # Placement and messages change nothing in what runs here.
                    pass

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)

    def _changed(
        self,
        record: Workload,
        conditions: Mapping[ConditionType, tuple[str, str]],
        admission: Admission | None,
        checks: tuple[CheckStatus, ...],
    ) -> Workload:
        at_ms = self._loop.now_ms // 1000 * 1000
        new = {
            kind.value: Condition(status=status, reason=reason, at_ms=at_ms)
            for kind, (status, reason) in conditions.items()
        }
        return replace(
            record,
            resource_version=self._next_version(),
            conditions={**record.conditions, **new},
            admission=admission,
            checks=checks,
        )

    def _reserve(self, record: Workload, command: ReserveQuota) -> None:
        conditions = {
            ConditionType.QUOTA_RESERVED: ("True", "QuotaReserved"),
            ConditionType.ADMITTED: ("True", "Admitted"),
        }
        for kind in (ConditionType.EVICTED, ConditionType.PREEMPTED):
            if record.is_true(kind):
                conditions[kind] = ("False", "QuotaReserved")
        checks = tuple(CheckStatus(name=name, state="Ready") for name in command.checks)
        changed = self._changed(record, conditions, command.admission, checks)
        self.workloads[record.key] = changed
        self.engine.observe(
            CommandApplied(
                at_ms=self._loop.now_ms,
                command=command,
                resource_version=changed.resource_version,
            )
        )
        if checks:
            self.observe(changed)
        self._owners[record.key].admitted(record.key)

    def _evict(self, record: Workload, command: Evict) -> None:
        conditions = {
            ConditionType.EVICTED: ("True", str(command.reason)),
            ConditionType.QUOTA_RESERVED: ("False", "Pending"),
            ConditionType.ADMITTED: ("False", "NoReservation"),
            ConditionType.REQUEUED: ("True", str(command.reason)),
        }
        if command.reason is EvictionReason.PREEMPTED:
            conditions[ConditionType.PREEMPTED] = ("True", str(command.preempted_reason))
        changed = self._changed(record, conditions, None, ())
        self.workloads[record.key] = changed
        self.engine.observe(
            CommandApplied(
                at_ms=self._loop.now_ms,
                command=command,
                resource_version=record.resource_version,
            )
        )
        self.observe(changed)
        self._owners[record.key].evicted(record.key)
