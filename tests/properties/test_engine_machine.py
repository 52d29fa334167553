"""Random histories of events, with the engine's safety rules checked after each (issue 4, 4).

A hypothesis state machine drives the real engine through the harness. Facts are repeated, come
late or stale; commands fail; victims take their time. Seeds that once found a fault are kept in
``seeds.txt`` and run first.
"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.support import builders, engine_rules, strategies
from tests.support.harness import Harness

from sluice.api.conditions import ConditionType
from sluice.api.records import Kind, Record, Workload
from sluice.engine.commands import Evict, ReserveQuota
from sluice.engine.engine import Engine
from sluice.engine.events import Observed
from sluice.engine.options import EngineOptions

STEPS = 60
EXAMPLES = 170
"""Together at least 10,000 events in a normal run."""
REJECTS = st.sampled_from([False, False, True])
SEEDS = [int(line) for line in (Path(__file__).parent / "seeds.txt").read_text().split()]


class EngineMachine(RuleBasedStateMachine):
    """The world of one history."""

    @initialize(options=strategies.options(), data=st.data())
    def begin(self, options: EngineOptions, data: st.DataObject) -> None:
        self.options = options
        self.harness = Harness(options=options)
        self.harness.victims_stop = False
        self.stale: list[Workload] = []
        self.config: dict[tuple[type, str], Record] = {}
        self._note(builders.namespace())
        self._note(builders.flavor())
        self.show(builders.flavor("f1"))
        for name, local in zip(strategies.QUEUES, strategies.LOCAL_QUEUES, strict=True):
            self.show(data.draw(strategies.cluster_queues(name)))
            self.show(builders.lq(name, local))
        self.submit(data)
        self.harness.run(cycles_max=200)
        self.submit(data)

    def _note(self, record: Any) -> None:
        self.config[(type(record), record.name)] = record

    def show(self, record: Record) -> None:
        self._note(record)
        self.harness.observe(record)

    def drop(self, kind: Kind, cls: type, name: str, key: str | None = None) -> None:
        self.config.pop((cls, name), None)
        self.harness.gone(kind, key or name)

    # Configuration.

    @rule(record=strategies.configuration())
    def change_configuration(self, record: Record) -> None:
        self.show(record)

    @rule(data=st.data(), comes_back=st.booleans())
    def delete_configuration(self, data: st.DataObject, comes_back: bool) -> None:
        kind, cls, name = data.draw(strategies.deletions())
        record = self.config.get((cls, name))
        if record is not None:
            is_local = kind is Kind.LOCAL_QUEUE
            self.drop(kind, cls, name, f"{builders.NAMESPACE}/{name}" if is_local else None)
            if comes_back:
                self.show(record)

    # Workloads.

    def submit(self, data: st.DataObject) -> None:
        free = [n for n in strategies.WORKLOADS if builders.key(n) not in self.harness.workloads]
        if free:
            for name in data.draw(st.lists(st.sampled_from(free), min_size=1, max_size=8)):
                if builders.key(name) not in self.harness.workloads:
                    self.harness.observe(data.draw(strategies.workloads(name)))

    # Rules are drawn evenly, so what a history needs most is there several times.
    submit_1 = rule(data=st.data())(submit)
    submit_2 = rule(data=st.data())(submit)
    submit_3 = rule(data=st.data())(submit)

    def any_workload(self, data: st.DataObject) -> Workload:
        return data.draw(st.sampled_from(sorted(self.harness.workloads.values(), key=_name)))

    @precondition(lambda self: self.harness.workloads)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        self.harness.finish(self.any_workload(data).name)

    @precondition(lambda self: self.harness.workloads)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.harness.gone(Kind.WORKLOAD, self.any_workload(data).key)

    @precondition(lambda self: self.harness.workloads)
    @rule(data=st.data(), active=st.booleans(), priority=st.integers(0, 2))
    def change_workload(self, data: st.DataObject, active: bool, priority: int) -> None:
        record = self.any_workload(data)
        self.stale.append(record)
        self.harness.change(record.name, active=active, priority=priority)

    @precondition(lambda self: self.harness.workloads)
    @rule(data=st.data(), pods=st.integers(0, 3))
    def reclaim_pods(self, data: st.DataObject, pods: int) -> None:
        record = self.any_workload(data)
        self.harness.change(record.name, reclaimable=((record.pod_sets[0].name, pods),))

    @precondition(lambda self: self.harness.workloads)
    @rule(data=st.data())
    def repeat_a_fact(self, data: st.DataObject) -> None:
        record = self.any_workload(data)
        self.harness.engine.observe(Observed(at_ms=self.harness.now_ms, record=record))

    @precondition(lambda self: self.stale)
    @rule(data=st.data())
    def show_a_stale_fact(self, data: st.DataObject) -> None:
        record = data.draw(st.sampled_from(self.stale))
        if builders.key(record.name) in self.harness.workloads:
            self.harness.engine.observe(Observed(at_ms=self.harness.now_ms, record=record))

    @precondition(lambda self: any(map(_is_stopping, self.harness.workloads.values())))
    @rule(data=st.data())
    def complete_an_eviction(self, data: st.DataObject) -> None:
        stopping = sorted(filter(_is_stopping, self.harness.workloads.values()), key=_name)
        self.harness.stopped(data.draw(st.sampled_from(stopping)).name)

    # Decisions.

    def cycle(self, rejects: bool, echoes: bool) -> None:
        before = engine_rules.usage_of(self.harness.engine)
        self.stale.extend(self.harness.workloads.values())
        del self.stale[:-20]
        if rejects:
            self.harness.reject_next()
        self.harness.echoes = echoes
        commands = self.harness.engine.cycle(self.harness.now_ms)
        engine_rules.check_reservations(self.harness.engine, commands)
        engine_rules.check_evictions(self.harness.engine, commands, before)
        failed = self.harness.apply(commands)
        for command in failed:
            if isinstance(command, ReserveQuota):
                engine_rules.check_taken_back(self.harness.engine, command)
        assert len({c.workload for c in commands if isinstance(c, ReserveQuota | Evict)}) == sum(
            isinstance(c, ReserveQuota | Evict) for c in commands
        )

    cycle_1 = rule(rejects=REJECTS, echoes=st.booleans())(cycle)
    cycle_2 = rule(rejects=REJECTS, echoes=st.booleans())(cycle)
    cycle_3 = rule(rejects=REJECTS, echoes=st.booleans())(cycle)

    @rule()
    def run_until_nothing_is_due(self) -> None:
        self.harness.run(cycles_max=200)

    @rule(seconds=st.integers(1, 30))
    def let_time_pass(self, seconds: int) -> None:
        self.harness.now_ms += seconds * 1000

    @rule()
    def restart(self) -> None:
        """A fresh engine that is fed the same objects has the same usage."""
        fresh = Engine(self.options)
        for record in (*self.config.values(), *self.harness.workloads.values()):
            fresh.observe(Observed(at_ms=self.harness.now_ms, record=record))
        fresh.verify()
        assert engine_rules.usage_of(fresh) == engine_rules.usage_of(self.harness.engine)

    @invariant()
    def all_indexes_agree(self) -> None:
        if hasattr(self, "harness"):
            self.harness.engine.verify()


def _name(record: Workload) -> str:
    return record.name


def _is_stopping(record: Workload) -> bool:
    return record.is_true(ConditionType.EVICTED) and record.admission is not None


SETTINGS = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
def test_random_histories_keep_every_rule() -> None:
    run_state_machine_as_test(EngineMachine, settings=SETTINGS)


@pytest.mark.slow
@pytest.mark.parametrize("number", SEEDS)
def test_seeds_that_found_a_fault_stay_clean(number: int) -> None:
    kept = settings(SETTINGS, max_examples=20, database=None)
    run_state_machine_as_test(seed(number)(EngineMachine), settings=kept)
