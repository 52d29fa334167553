"""A store that outlives managers, managers that stop anywhere, and a ledger that never stops.

The store holds Workloads and the policy's status as JSON text. A manager is a real engine that is
shown the store; its writes are the points where it may stop. The undisturbed ledger is fed with
every change of the store at its time. All times are whole seconds, as objects show them.
"""

import json
from dataclasses import replace
from random import Random
from typing import Any

from tests.support.builders import NAMESPACE, T0_MS, cohort, cq, flavor, namespace, wl
from tests.support.credit_reference import Node, Reference, Rules, Shape
from tests.support.harness import queues

from sluice.api import times, wire_credit
from sluice.api.conditions import ConditionType
from sluice.api.names import WorkloadKey
from sluice.api.records import Condition, Kind, Record, Workload
from sluice.controllers.credits_status import status_of
from sluice.engine.commands import Command, ReserveQuota
from sluice.engine.engine import Engine
from sluice.engine.events import CommandApplied, Gone, Observed
from sluice.engine.options import EngineOptions

PERIOD_MS = 60_000
QUEUES = ("a", "b", "c")
FR = ("default", "cpu")
_ROUNDING = 1000
"""Each settlement rounds; a remainder may go to another account."""


class Stopped(Exception):
    """The manager stopped here."""


class Store:
    """What the API server keeps."""

    def __init__(self) -> None:
        self.workloads: dict[WorkloadKey, Workload] = {}
        self.status = "{}"
        self.version = 0

    def put(self, record: Workload) -> Workload:
        """Store a Workload with a new resourceVersion."""
        self.version += 1
        record = replace(record, resource_version=str(self.version))
        self.workloads[record.key] = record
        return record


class Undisturbed:
    """The reference model on what the store shows."""

    def __init__(self, now_ms: int) -> None:
        self.nodes = {
            ("Cohort", "R"): Node("Cohort", "R", None, {FR: 2000}),
            **{("ClusterQueue", q): Node("ClusterQueue", q, "R", {FR: 2000}) for q in QUEUES},
        }
        self.model = Reference(Rules(period=PERIOD_MS), Shape(self.nodes), now_ms)

    def use(self, at_ms: int, queue: str, amount: int) -> None:
        """Change usage at a time."""
        self.model.to(at_ms)
        usage = self.nodes[("ClusterQueue", queue)].usage
        usage[FR] = usage.get(FR, 0) + amount

    def balances(self, at_ms: int) -> dict[str, int]:
        """Return the balances of a time."""
        self.model.to(at_ms)
        return {name: a.balance for (_, name, _), a in self.model.accounts.items()}


class Play:
    """One seeded run.

    Attributes:
        hidden: Finished Workloads are deleted while no manager looks.
        resumed: How often a manager went on from a checkpoint.
        bound: What balances may differ by, in ledger units: what was used by Workloads that no
            manager could see any more, since the checkpoint that the next one went on from.
    """

    def __init__(self, seed: int, *, hidden: bool = False) -> None:
        self.random = Random(seed)
        self.hidden = hidden
        self.now_ms = T0_MS + 3_600_000
        self.store = Store()
        self.model = Undisturbed(self.now_ms)
        self.resumed = 0
        self.bound = 0
        self._count = 0
        self._unseen: list[tuple[int, int]] = []
        self._amounts: dict[WorkloadKey, int] = {}
        self._fuse = 0
        self.start()

    # The manager ------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a manager on what the store shows."""
        self.engine = Engine(EngineOptions(wake_up_batch_ms=0))
        self._written = ""
        records: list[Record] = [namespace(), flavor(), cohort("R", cpu="2")]
        records += queues(*[cq(q, "R", cpu="2") for q in QUEUES])
        records.append(wire_credit.credit_policy(self._policy()))
        for record in (*records, *self.store.workloads.values()):
            self.engine.observe(Observed(at_ms=self.now_ms, record=record))
        self._fuse = self.random.choice([0, 1, 2, 5, 9, 14])

    def _policy(self) -> dict[str, Any]:
        return {
            "metadata": {"name": "credits", "uid": "p"},
            "spec": {"cohortName": "R"},
            "status": json.loads(self.store.status),
        }

    def _may_stop(self) -> None:
        """Stop the manager here if its time has come: before and after every write."""
        if '"settledAt"' in self.store.status:
            if self._fuse == 0:
                raise Stopped
            self._fuse -= 1

    def work(self) -> None:
        """Let the manager run until it has nothing to do, or stop on the way."""
        try:
            for _ in range(200):
                due_ms = self.engine.next_deadline_ms()
                if due_ms is None or due_ms > self.now_ms:
                    break
                for command in self.engine.cycle(self.now_ms):
                    self._write(command)
            self._write_status()
        except Stopped:
            self._stop()

    def _stop(self) -> None:
        """Restart after a while, during which jobs end and nobody looks."""
        for _ in range(self.random.randint(0, 4)):
            self.advance(self.random.choice([1000, 7000, 60_000, 200_000]))
            self._end_some()
        settled = json.loads(self.store.status).get("settledAt")
        if settled is not None:
            self.resumed += 1
            since_ms = times.to_ms(settled)
            unseen = sum(amount for at_ms, amount in self._unseen if at_ms >= since_ms)
            self.bound += unseen * (self.now_ms - since_ms) + _ROUNDING
        self.start()
        self.work()

    def _write(self, command: Command) -> None:
        if not isinstance(command, ReserveQuota):
            return
        self._may_stop()
        record = self.store.workloads[command.workload]
        held = Condition(status="True", reason="QuotaReserved", at_ms=self.now_ms)
        written = self.store.put(
            replace(
                record,
                admission=command.admission,
                conditions={
                    ConditionType.QUOTA_RESERVED.value: held,
                    ConditionType.ADMITTED.value: held,
                },
            )
        )
        amount = sum(n for p in command.admission.pod_sets for _, n in p.usage)
        self._amounts[written.key] = amount
        self.model.use(self.now_ms, command.cluster_queue, amount)
        self._may_stop()
        self.engine.observe(
            CommandApplied(
                at_ms=self.now_ms, command=command, resource_version=written.resource_version
            )
        )

    def _write_status(self) -> None:
        status = status_of(
            self.engine.credits,
            "credits",
            json.loads(self.store.status),
            now_ms=self.now_ms,
            seen=1,
        )
        text = json.dumps(status)
        if status is None or text == self._written:
            return
        self._may_stop()
        self.store.status = self._written = text
        self._may_stop()

    # The world --------------------------------------------------------------------------------

    def advance(self, span_ms: int) -> None:
        """Let time pass without looking."""
        self.now_ms += span_ms

    def submit(self) -> None:
        """Let jobs arrive."""
        for _ in range(self.random.randint(0, 3)):
            self._count += 1
            queue = self.random.choice(QUEUES)
            record = self.store.put(
                wl(f"w{self._count:04}", queue, cpu=self.random.choice(["1", "500m", "3"]))
            )
            self.engine.observe(Observed(at_ms=self.now_ms, record=record))

    def _end_some(self) -> None:
        for key, record in list(self.store.workloads.items()):
            if record.admission is None or record.is_true(ConditionType.FINISHED):
                continue
            if self.random.random() < 0.3:
                self._end(key, record)

    def _end(self, key: WorkloadKey, record: Workload) -> None:
        assert record.admission is not None
        amount = self._amounts[key]
        self.model.use(self.now_ms, record.admission.cluster_queue, -amount)
        if self.hidden and self.random.random() < 0.5:
            del self.store.workloads[key]
            self._unseen.append((self.now_ms, amount))
            return
        done = Condition(status="True", reason="Succeeded", at_ms=self.now_ms)
        conditions = {**record.conditions, ConditionType.FINISHED.value: done}
        self.store.put(replace(record, conditions=conditions))

    def end_jobs(self) -> None:
        """Let some jobs end while the manager looks."""
        before = dict(self.store.workloads)
        self._end_some()
        for key, record in before.items():
            after = self.store.workloads.get(key)
            if after is None:
                self.engine.observe(Gone(at_ms=self.now_ms, kind=Kind.WORKLOAD, key=key))
            elif after is not record:
                self.engine.observe(Observed(at_ms=self.now_ms, record=after))

    def step(self) -> None:
        """Let one thing happen after another."""
        self.submit()
        self.work()
        self.advance(self.random.choice([0, 1000, 3000, 30_000, 61_000]))
        self.end_jobs()
        self.work()

    def balances(self) -> dict[str, int]:
        """Return the manager's balances now."""
        self.engine.credits.to(self.now_ms)
        self.engine.cycle(self.now_ms)
        book = self.engine.credits.book("credits")
        assert book is not None
        return {a.id.name: a.balance for a in book.accounts.values()}


def key(name: str) -> WorkloadKey:
    """Return the key of a Workload."""
    return WorkloadKey(f"{NAMESPACE}/{name}")
