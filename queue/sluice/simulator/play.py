"""Plays a scenario on the real engine in virtual time.

At one instant, in this order: what ends ends, unserved demand is withdrawn, ledgers settle, rows of
the report are closed, new work comes, and the engine runs cycles until it asks for no more. Then
time moves on to the next action or deadline. Used by ``sluice simulate``, tests and benchmarks.
"""

from typing import Final

from sluice.api import times, wire
from sluice.api.errors import ConfigError, InvalidObject
from sluice.api.names import FlavorName
from sluice.api.records import (
    ClusterQueue,
    CreditPolicy,
    LocalQueue,
    Namespace,
    Record,
    ResourceFlavor,
    Workload,
)
from sluice.engine.engine import Engine
from sluice.engine.options import (
    AdmissionFairSharing,
    EngineOptions,
    FairSharing,
    FairStrategy,
    gates_from,
)
from sluice.simulator.cluster import Cluster
from sluice.simulator.loop import EventLoop, Rank
from sluice.simulator.report import Recorder, Report
from sluice.simulator.scenario import JsonObject, Scenario, known, mapping
from sluice.simulator.sources import Stage, make

NAMESPACE: Final = "simulation"
"""Where LocalQueues are made for ClusterQueues that have none."""
CYCLES_MAX: Final = 1_000_000
"""Cycles at one instant; more would mean that they never end."""
_KINDS: Final = {"Cohort": 1, "ClusterQueue": 2, "LocalQueue": 3, "CreditPolicy": 4}


def options_of(configuration: JsonObject) -> EngineOptions:
    """Return engine options from the fields of Kueue's configuration that a scenario gives.

    Raises:
        ConfigError: A field is not one that a scenario may set.
    """
    where = "scenario.configuration"
    known(configuration, ("fairSharing", "admissionFairSharing", "featureGates"), where)
    fair = configuration.get("fairSharing")
    usage = configuration.get("admissionFairSharing")
    gates = mapping(configuration.get("featureGates", {}), f"{where}.featureGates")
    try:
        return EngineOptions(
            gates=gates_from({str(name): bool(on) for name, on in gates.items()}),
            fair_sharing=None
            if fair is None
            else FairSharing(
                strategies=tuple(FairStrategy(s) for s in fair.get("preemptionStrategies") or ())
            ),
            admission_fair_sharing=None
            if usage is None
            else AdmissionFairSharing(
                half_life_ms=times.duration_ms(usage.get("usageHalfLifeTime") or "0"),
                sampling_interval_ms=times.duration_ms(usage.get("usageSamplingInterval") or "5m"),
            ),
            wake_up_batch_ms=0,
        )
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error


def records_of(scenario: Scenario) -> list[Record]:
    """Return the records of the manifests, with what they leave out.

    A plain ResourceFlavor is added for each flavor without one, a LocalQueue for each ClusterQueue
    without one, and every namespace that LocalQueues are in.

    Raises:
        ConfigError: A manifest is of an unknown kind or can't be read.
    """
    records: list[Record] = []
    for at, raw in enumerate(scenario.manifests):
        try:
            record = wire.decode(raw)
        except InvalidObject as error:
            raise ConfigError(f"scenario.manifests[{at}]: {error}") from error
        if isinstance(record, Workload):
            raise ConfigError(f"scenario.manifests[{at}]: work comes from sources, not manifests")
        records.append(record)
    flavors = {r.name for r in records if isinstance(r, ResourceFlavor)}
    queues = [r for r in records if isinstance(r, ClusterQueue)]
    named = {f.name for q in queues for g in q.resource_groups for f in g.flavors}
    records.extend(ResourceFlavor(name=FlavorName(name)) for name in sorted(named - flavors))
    doors = [r for r in records if isinstance(r, LocalQueue)]
    lead_to = {door.cluster_queue for door in doors}
    made = [
        LocalQueue(namespace=NAMESPACE, name=queue.name, cluster_queue=queue.name)
        for queue in queues
        if queue.name not in lead_to
    ]
    records.extend(made)
    present = {r.name for r in records if isinstance(r, Namespace)}
    needed = {door.namespace for door in (*doors, *made)}
    records.extend(
        Namespace(name=name, labels=(("kubernetes.io/metadata.name", name),))
        for name in sorted(needed - present)
    )
    return sorted(records, key=lambda r: _KINDS.get(type(r).__name__, 0))


class Player:
    """One run of a scenario.

    Attributes:
        engine: The engine, for looking at it after the run.
        cluster: The simulated cluster.
        loop: Virtual time.
        recorder: The report so far.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.loop = EventLoop(scenario.start_ms)
        self.engine = Engine(options_of(scenario.configuration))
        self.cluster = Cluster(self.engine, self.loop)
        records = records_of(scenario)
        queues = [r for r in records if isinstance(r, ClusterQueue)]
        doors = {r.cluster_queue: r for r in records if isinstance(r, LocalQueue)}
        self._policies = [r.name for r in records if isinstance(r, CreditPolicy)]
        self._end_ms = scenario.start_ms + scenario.length_ms
        self._settlements = 0
        label_of: dict[str, str] = {
            r.key: r.key if scenario.by_local_queue else r.cluster_queue
            for r in records
            if isinstance(r, LocalQueue)
        }
        labels = set(label_of.values()) if scenario.by_local_queue else {q.name for q in queues}
        self.recorder = Recorder(self.loop, scenario.measure, sorted(labels))
        self.recorder.queue_of = label_of
        self.cluster.watchers.append(self.recorder.decided)
        self.cluster.ended.append(self.recorder.ended)
        for record in records:
            self.cluster.observe(record)

        def door_of(queue: str) -> tuple[str, str]:
            found = {str(name): door for name, door in doors.items()}.get(queue)
            if found is None:
                raise ConfigError(f"ClusterQueue {queue!r} has demand but no manifest")
            return found.namespace, found.name

        stage = Stage(
            loop=self.loop,
            cluster=self.cluster,
            report=self.recorder,
            measure=scenario.measure,
            door_of=door_of,
            start_ms=scenario.start_ms,
            end_ms=self._end_ms,
        )
        for source in make(scenario.sources, stage):
            source.start()
        self._row(scenario.start_ms)

    def _row(self, start_ms: int) -> None:
        """Close a row a period after a time, and go on so."""
        end_ms = start_ms + self.scenario.period_ms
        if end_ms > self._end_ms:
            return

        def close() -> None:
            self.recorder.close_row(self._queue_balances())
            self._row(end_ms)

        self.loop.at(end_ms, Rank.SETTLE, lambda: self.engine.credits.to(self.loop.now_ms))
        self.loop.at(end_ms, Rank.REPORT, close)

    def _queue_balances(self) -> dict[str, int]:
        return {
            name: balance
            for (_, kind, name), balance in self.balances().items()
            if kind == "ClusterQueue"
        }

    def balances(self) -> dict[tuple[str, str, str], int]:
        """Return the balance of every live account, by (cohort, kind, name)."""
        found: dict[tuple[str, str, str], int] = {}
        for name in self._policies:
            book = self.engine.credits.book(name)
            for account in book.accounts.values() if book is not None else ():
                at = account.id
                found[(at.parent, at.kind, at.name)] = account.balance
        return found

    def run(self) -> Report:
        """Play to the end."""
        self.engine.cycle(self.loop.now_ms)
        while True:
            self._run_instant()
            next_ms = self._next_ms()
            if next_ms is None or next_ms >= self._end_ms:
                break
            self.loop.now_ms = next_ms
        self.loop.now_ms = self._end_ms
        self.loop.run_now(Rank.REPORT)
        self._settlements += len(self.engine.credits.take_settlements())
        return self.report()

    def _run_instant(self) -> None:
        now_ms = self.loop.now_ms
        for _ in range(CYCLES_MAX):
            has_run = self.loop.run_now()
            due_ms = self.engine.next_deadline_ms()
            if due_ms is not None and due_ms <= now_ms:
                self.cluster.cycle()
            elif not has_run:
                break
        else:
            raise ConfigError(f"the engine asks for cycles without end at {times.from_ms(now_ms)}")
        self._settlements += len(self.engine.credits.take_settlements())

    def _next_ms(self) -> int | None:
        candidates = [self.loop.next_ms(), self.engine.next_deadline_ms()]
        return min((at for at in candidates if at is not None), default=None)

    def report(self) -> Report:
        """Return the report so far."""
        return Report(
            name=self.scenario.name,
            measure=self.scenario.measure,
            period_ms=self.scenario.period_ms,
            balances_in_ms=self.scenario.balances_in_ms,
            rows=self.recorder.rows,
            totals=self.recorder.totals,
            balances=self.balances(),
            settlements_count=self._settlements,
            cycles_count=self.cluster.cycles_count,
        )


def play(scenario: Scenario) -> Report:
    """Play a scenario to its end and return what it came to.

    Raises:
        ConfigError: The scenario can't be played; names the field.
    """
    return Player(scenario).run()
