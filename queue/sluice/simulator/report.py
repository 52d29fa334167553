"""What a scenario came to: a row per period, totals, balances, waiting times.

Usage is measured as the integral of what holds quota, so a row's figure is the mean over its
period. Used by `sluice.simulator.play` and printed by ``sluice simulate``.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from sluice.api.names import WorkloadKey
from sluice.api.records import Admission, Workload
from sluice.engine.commands import Command, Evict, ReserveQuota
from sluice.simulator.loop import EventLoop


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """One queue in one period; amounts of the measured resource.

    Attributes:
        demand: What arrived in the period.
        used: Mean usage.
        waiting: Workloads that wait at its end.
        balance: Credits after the settlement at its end, in ledger units; None without a policy.
    """

    demand: int
    used: Fraction
    waiting: int
    balance: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One period, by queue: ClusterQueues, or LocalQueues where the scenario reports those."""

    end_ms: int
    accounts: dict[str, AccountRow]


@dataclass(slots=True, kw_only=True)
class Total:
    """One queue over the whole run.

    Attributes:
        demand: Sum of what arrived.
        used: Usage times periods.
        waits_ms: Waiting time of each admission, and of each Workload that gave up.
        gave_up: How many went without ever having run.
        evictions: How many Workloads were evicted.
    """

    demand: int = 0
    used: Fraction = Fraction(0)
    waits_ms: list[int] = field(default_factory=list)
    gave_up: int = 0
    evictions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The outcome of a scenario.

    Attributes:
        balances: Last balance of every account as (cohort, kind, name), in ledger units.
        settlements_count: Settlements of all ledgers.
        cycles_count: Cycles of the engine.
    """

    name: str
    measure: str
    period_ms: int
    balances_in_ms: int
    rows: list[Row]
    totals: dict[str, Total]
    balances: dict[tuple[str, str, str], int]
    settlements_count: int
    cycles_count: int

    @property
    def min_over_max(self) -> float:
        """Return the least total usage over the greatest, 1 when nobody used anything."""
        used = [total.used for total in self.totals.values()]
        greatest = max(used, default=Fraction(0))
        return float(min(used) / greatest) if greatest else 1.0

    @property
    def jain(self) -> float:
        """Return Jain's index of fairness of the totals: 1 when all got the same."""
        used = [total.used for total in self.totals.values()]
        squares = sum(u * u for u in used)
        return float(sum(used) ** 2 / (len(used) * squares)) if squares else 1.0


class Recorder:
    """Watches a run and writes the report."""

    def __init__(self, loop: EventLoop, measure: str, queues: list[str]) -> None:
        self.rows: list[Row] = []
        self.totals = {name: Total() for name in queues}
        self._loop = loop
        self._measure = measure
        self._usage = dict.fromkeys(queues, 0)
        self._integral = dict.fromkeys(queues, 0)
        self._waiting = dict.fromkeys(queues, 0)
        self._demand = dict.fromkeys(queues, 0)
        self._at_ms = loop.now_ms
        self._row_ms = loop.now_ms
        self._since: dict[WorkloadKey, tuple[str, int]] = {}
        self._held: dict[WorkloadKey, tuple[str, int]] = {}
        self.queue_of: dict[str, str] = {}
        """Queue that the report is by, of every LocalQueue key."""

    def arrived(self, record: Workload, amount: int) -> None:
        """Take note of a new Workload."""
        queue = self.queue_of[record.queue_key]
        self._demand[queue] += amount
        self.totals[queue].demand += amount
        self._wait(record.key, queue)

    def _wait(self, key: WorkloadKey, queue: str) -> None:
        self._waiting[queue] += 1
        self._since[key] = (queue, self._loop.now_ms)

    def decided(self, record: Workload, command: Command) -> None:
        """Take note of a reservation or eviction."""
        match command:
            case ReserveQuota():
                queue, since_ms = self._since.pop(record.key)
                self._waiting[queue] -= 1
                self.totals[queue].waits_ms.append(self._loop.now_ms - since_ms)
                self._held[record.key] = (queue, self._amount(command.admission))
                self._change(*self._held[record.key])
            case Evict():
                queue, amount = self._held.pop(record.key)
                self._change(queue, -amount)
                self.totals[queue].evictions += 1
                self._wait(record.key, queue)
            case _:
                pass

    def ended(self, record: Workload) -> None:
        """Take note that a Workload is gone."""
        waiting = self._since.pop(record.key, None)
        if waiting is not None:
            queue, since_ms = waiting
            self._waiting[queue] -= 1
            self.totals[queue].gave_up += 1
            self.totals[queue].waits_ms.append(self._loop.now_ms - since_ms)
        held = self._held.pop(record.key, None)
        if held is not None:
            self._change(held[0], -held[1])

    def _amount(self, admission: Admission) -> int:
        return sum(
            amount
            for pod_set in admission.pod_sets
            for resource, amount in pod_set.usage
            if resource == self._measure
        )

    def _change(self, queue: str, amount: int) -> None:
        self._integrate()
        self._usage[queue] += amount

    def _integrate(self) -> None:
        span_ms = self._loop.now_ms - self._at_ms
        if span_ms:
            for queue, usage in self._usage.items():
                if usage:
                    self._integral[queue] += usage * span_ms
            self._at_ms = self._loop.now_ms

    def close_row(self, balances: dict[str, int]) -> None:
        """End the present period; ``balances`` by ClusterQueue, empty without a policy."""
        self._integrate()
        span_ms = self._loop.now_ms - self._row_ms
        accounts = {}
        for queue, total in self.totals.items():
            used = Fraction(self._integral[queue], span_ms)
            total.used += used
            accounts[queue] = AccountRow(
                demand=self._demand[queue],
                used=used,
                waiting=self._waiting[queue],
                balance=balances.get(queue),
            )
            self._integral[queue] = self._demand[queue] = 0
        self._row_ms = self._loop.now_ms
        self.rows.append(Row(end_ms=self._loop.now_ms, accounts=accounts))
