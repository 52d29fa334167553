"""Where work comes from: demand per period, or jobs with arrival, size and run time.

A source is made from its settings in the scenario and puts its first actions on the loop. More
kinds (traces, failures) register in `KINDS`. Used by `sluice.simulator.play`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sluice.api import quantity, wire
from sluice.api.errors import ConfigError
from sluice.api.names import WorkloadKey
from sluice.api.records import Workload
from sluice.simulator.cluster import Cluster, Lifecycle
from sluice.simulator.loop import EventLoop, Rank
from sluice.simulator.scenario import JsonObject, duration, known, listed, mapping, whole


class Demanded(Protocol):
    """Told what work arrives, for the report."""

    def arrived(self, record: Workload, amount: int) -> None:
        """Take note of a new Workload and what it asks of the measured resource."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a source works with.

    Attributes:
        door_of: Returns the LocalQueue (namespace, name) that leads to a ClusterQueue.
        end_ms: When the scenario ends.
    """

    loop: EventLoop
    cluster: Cluster
    report: Demanded
    measure: str
    door_of: Callable[[str], tuple[str, str]]
    start_ms: int
    end_ms: int


class Source(Protocol):
    """Brings work in."""

    def start(self) -> None:
        """Put the first actions on the loop."""
        ...


def template(
    namespace: str, queue: str, requests: Mapping[str, str], count: int, priority: int
) -> Workload:
    """Return a Workload of one pod set to make others from; name and uid are empty."""
    container = {"name": "main", "resources": {"requests": dict(requests)}}
    raw = {
        "metadata": {"namespace": namespace, "name": "template", "uid": ""},
        "spec": {
            "queueName": queue,
            "priority": priority,
            "podSets": [
                {"name": "main", "count": count, "template": {"spec": {"containers": [container]}}}
            ],
        },
    }
    return wire.workload(raw)


def named(base: Workload, name: str, created_ms: int) -> Workload:
    """Return a Workload like a template, with a name that is its uid too."""
    return Workload(
        namespace=base.namespace,
        name=name,
        uid=name,
        queue=base.queue,
        pod_sets=base.pod_sets,
        created_ms=created_ms,
        priority=base.priority,
    )


class Demand(Lifecycle):
    """Per period and ClusterQueue an amount: as many Workloads of ``size`` that run one period.

    What is not served by the end of its period is withdrawn. Names and uids ascend in the order of
    the ClusterQueues, so that ties go by it.
    """

    FIELDS = ("period", "size", "amounts", "repeat", "skip")

    def __init__(self, settings: JsonObject, stage: Stage, where: str) -> None:
        known(settings, self.FIELDS, where)
        self._stage = stage
        self._period_ms = duration(settings, "period", where, "60s")
        self._repeat = whole(settings, "repeat", where, 1, 1)
        self._size = whole(settings, "size", where, 1, 1)
        self._waiting: dict[WorkloadKey, None] = {}
        amounts = mapping(settings.get("amounts"), f"{where}.amounts")
        self._amounts: list[tuple[Workload, list[int]]] = []
        for name in sorted(amounts):
            row = _row(amounts[name], f"{where}.amounts.{name}")
            namespace, queue = stage.door_of(name)
            requests = {stage.measure: str(self._size)}
            self._amounts.append((template(namespace, queue, requests, 1, 0), row))
        lengths = {len(row) for _, row in self._amounts}
        if len(lengths) != 1:
            raise ConfigError(f"{where}.amounts: every list must have the same length, at least 1")
        self._length = lengths.pop()

    def start(self) -> None:
        """Have the first period's demand arrive."""
        self._stage.loop.at(self._stage.start_ms, Rank.ARRIVE, lambda: self._arrive(0))

    def _arrive(self, period: int) -> None:
        stage = self._stage
        now_ms = stage.loop.now_ms
        if period >= self._length * self._repeat:
            return
        for account, (base, row) in enumerate(self._amounts):
            for at in range(-(-row[period % self._length] // self._size)):
                name = f"d{period:07}-{account:04}-{at:06}"
                record = named(base, name, now_ms)
                self._waiting[record.key] = None
                stage.report.arrived(record, self._size)
                stage.cluster.submit(record, self)
        stage.loop.at(now_ms + self._period_ms, Rank.WITHDRAW, self._withdraw)
        stage.loop.at(now_ms + self._period_ms, Rank.ARRIVE, lambda: self._arrive(period + 1))

    def _withdraw(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for key in waiting:
            self._stage.cluster.end(key)

    def admitted(self, key: WorkloadKey) -> None:
        """Let it run for one period."""
        self._waiting.pop(key, None)
        loop = self._stage.loop
        loop.at(loop.now_ms + self._period_ms, Rank.END, lambda: self._stage.cluster.end(key))

    def evicted(self, key: WorkloadKey) -> None:
        """Withdraw it: its period is partly gone."""
        self._waiting[key] = None


def _row(value: object, where: str) -> list[int]:
    row = list(listed(value, where))
    for at, amount in enumerate(row):
        if isinstance(amount, bool) or not isinstance(amount, int) or amount < 0:
            raise ConfigError(f"{where}[{at}]: {amount!r} must be a whole number of at least 0")
    return row


class Jobs(Lifecycle):
    """Jobs that arrive at given times and run for a given time once they are admitted.

    An evicted job waits again and starts its work from the beginning.
    """

    FIELDS = ("name", "queue", "at", "every", "count", "pods", "requests", "runTime", "priority")

    def __init__(self, settings: JsonObject, stage: Stage, where: str) -> None:
        known(settings, self.FIELDS, where)
        self._stage = stage
        self._name = str(settings.get("name", "job"))
        namespace, _, queue = str(settings.get("queue", "")).partition("/")
        if not namespace or not queue:
            raise ConfigError(f'{where}.queue: required, "namespace/name" of a LocalQueue')
        requests = mapping(settings.get("requests"), f"{where}.requests")
        for resource, amount in requests.items():
            if not quantity.is_quantity(str(amount)):
                raise ConfigError(f"{where}.requests.{resource}: {amount!r} is not a quantity")
        texts = {str(resource): str(amount) for resource, amount in requests.items()}
        self._pods = whole(settings, "pods", where, 1, 1)
        priority = settings.get("priority", 0)
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise ConfigError(f"{where}.priority: {priority!r} must be a whole number")
        self._base = template(namespace, queue, texts, self._pods, priority)
        self._amount = self._pods * quantity.canonical(stage.measure, texts.get(stage.measure, "0"))
        self._first_ms = stage.start_ms
        if "at" in settings and str(settings["at"]) not in ("0", "0s"):
            self._first_ms += duration(settings, "at", where)
        self._count = whole(settings, "count", where, 1, 1)
        self._every_ms = duration(settings, "every", where) if self._count > 1 else 0
        self._run_ms = duration(settings, "runTime", where)
        self._starts: dict[WorkloadKey, int] = {}

    def start(self) -> None:
        """Have the first job arrive."""
        self._stage.loop.at(self._first_ms, Rank.ARRIVE, lambda: self._arrive(0))

    def _arrive(self, number: int) -> None:
        stage = self._stage
        name = f"{self._name}-{number:06}"
        record = named(self._base, name, stage.loop.now_ms)
        stage.report.arrived(record, self._amount)
        stage.cluster.submit(record, self)
        if number + 1 < self._count:
            next_ms = self._first_ms + (number + 1) * self._every_ms
            stage.loop.at(next_ms, Rank.ARRIVE, lambda: self._arrive(number + 1))

    def admitted(self, key: WorkloadKey) -> None:
        """Let it run to its end, unless it is stopped before."""
        start = self._starts.get(key, 0) + 1
        self._starts[key] = start
        loop = self._stage.loop
        loop.at(loop.now_ms + self._run_ms, Rank.END, lambda: self._end(key, start))

    def evicted(self, key: WorkloadKey) -> None:
        """Forget the end of its run."""
        self._starts[key] += 1

    def _end(self, key: WorkloadKey, start: int) -> None:
        if self._starts.get(key) == start:
            del self._starts[key]
            self._stage.cluster.end(key)


class Trace(Lifecycle):
    """Jobs as rows: when, where, how much of the measured resource, for how long.

    A job that has not begun after ``patience`` is withdrawn; an evicted one begins anew.
    """

    FIELDS = ("rows", "patience")
    ROW_FIELDS = ("at", "queue", "amount", "runTime", "priority")

    def __init__(self, settings: JsonObject, stage: Stage, where: str) -> None:
        known(settings, self.FIELDS, where)
        self._stage = stage
        self._patience_ms = duration(settings, "patience", where) if "patience" in settings else 0
        self._rows: list[tuple[int, Workload, int, int]] = []
        self._templates: dict[tuple[str, str, int, int], Workload] = {}
        for at, entry in enumerate(listed(settings.get("rows"), f"{where}.rows")):
            self._rows.append(self._row(mapping(entry, f"{where}.rows[{at}]"), at, where))
        self._run_ms: dict[WorkloadKey, int] = {}
        self._starts: dict[WorkloadKey, int] = {}

    def _row(self, row: JsonObject, number: int, where: str) -> tuple[int, Workload, int, int]:
        where = f"{where}.rows[{number}]"
        known(row, self.ROW_FIELDS, where)
        namespace, _, queue = str(row.get("queue", "")).partition("/")
        if not namespace or not queue:
            raise ConfigError(f'{where}.queue: required, "namespace/name" of a LocalQueue')
        amount = whole(row, "amount", where, 1, 1)
        key = (namespace, queue, amount, whole(row, "priority", where, 0))
        base = self._templates.get(key)
        if base is None:
            requests = {self._stage.measure: str(amount)}
            base = self._templates[key] = template(namespace, queue, requests, 1, key[3])
        at_ms = 0 if str(row.get("at", "0")) in ("0", "0s") else duration(row, "at", where)
        created_ms = self._stage.start_ms + at_ms
        record = named(base, f"t{number:07}", created_ms)
        return created_ms, record, amount, duration(row, "runTime", where)

    def start(self) -> None:
        """Put every arrival on the loop."""
        for created_ms, record, amount, run_ms in self._rows:
            self._arrive_at(created_ms, record, amount, run_ms)

    def _arrive_at(self, at_ms: int, record: Workload, amount: int, run_ms: int) -> None:
        def arrive() -> None:
            self._run_ms[record.key] = run_ms
            self._starts[record.key] = 0
            self._stage.report.arrived(record, amount)
            self._stage.cluster.submit(record, self)
            if self._patience_ms:
                self._give_up_at(at_ms + self._patience_ms, record.key)

        self._stage.loop.at(at_ms, Rank.ARRIVE, arrive)

    def _give_up_at(self, at_ms: int, key: WorkloadKey) -> None:
        def give_up() -> None:
            if self._starts.get(key) == 0:
                self._drop(key)

        self._stage.loop.at(at_ms, Rank.WITHDRAW, give_up)

    def _drop(self, key: WorkloadKey) -> None:
        del self._starts[key]
        del self._run_ms[key]
        self._stage.cluster.end(key)

    def admitted(self, key: WorkloadKey) -> None:
        """Let it run to its end, unless it is stopped before."""
        start = self._starts[key] + 1
        self._starts[key] = start
        loop = self._stage.loop

        def end() -> None:
            if self._starts.get(key) == start:
                self._drop(key)

        loop.at(loop.now_ms + self._run_ms[key], Rank.END, end)

    def evicted(self, key: WorkloadKey) -> None:
        """Forget the end of its run."""
        self._starts[key] += 1


KINDS: dict[str, Callable[[JsonObject, Stage, str], Source]] = {
    "demand": Demand,
    "jobs": Jobs,
    "trace": Trace,
}
"""Kinds of sources by the key that names them in a scenario."""


def make(sources: Sequence[tuple[str, JsonObject]], stage: Stage) -> list[Source]:
    """Return the sources of a scenario.

    Raises:
        ConfigError: A kind is unknown or its settings are not right; names the field.
    """
    made: list[Source] = []
    for at, (kind, settings) in enumerate(sources):
        factory: Any = KINDS.get(kind)
        where = f"scenario.sources[{at}].{kind}"
        if factory is None:
            raise ConfigError(f"{where}: unknown kind; known are {', '.join(KINDS)}")
        made.append(factory(settings, stage, where))
    return made
