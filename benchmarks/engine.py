"""Times the engine on Kueue's performance generators.

::

    python benchmarks/engine.py --queues 30 --cohorts 5 --workloads 15000 --mode burst --hold 3

Burst mode has everything pending from the start; what a cycle admits finishes a fixed number of
cycles later. Timed mode runs arrivals and finishes on a virtual clock. Times are those inside
`Engine.cycle` and `Engine.observe`; ``loop_ms`` is a fixed pure-Python loop of the same run, to
compare machines by.
"""

import argparse
import gc
import heapq
import json
import resource
import sys
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

# An installed Sluice, compiled perhaps, goes before the sources beside this folder.
sys.path[:0] = [str(Path(__file__).parent)]
sys.path.append(str(Path(__file__).resolve().parents[1] / "queue"))

import worlds  # noqa: E402  (found through the path set above)
from sluice.api.conditions import ConditionType, EvictionReason  # noqa: E402
from sluice.api.records import Condition, Record, Workload  # noqa: E402
from sluice.engine import cycle as cycle_module  # noqa: E402
from sluice.engine.commands import Command, Evict, ReserveQuota  # noqa: E402
from sluice.engine.engine import Engine  # noqa: E402
from sluice.engine.events import Observed  # noqa: E402
from sluice.engine.options import EngineOptions  # noqa: E402

LOOP_STEPS = 1_000_000
GC_THRESHOLDS = (50_000, 50, 100)
"""Those of `sluice.controllers.manager`."""


@dataclass(slots=True, kw_only=True)
class Result:
    """The figures of one run; times in microseconds unless the name says otherwise."""

    build: str
    mode: str
    hold: int
    queues: int
    busy: int
    cohorts: int
    preemption: bool
    workloads: int
    heads: int
    cycles: int
    admissions: int
    preemptions: int
    us_per_admission: float
    us_per_head: float
    us_per_cycle: float
    observe_us_per_admission: float
    observe_us_per_head: float
    observe_us_per_cycle: float
    events: int
    peak_memory_mib: float
    loop_ms: float


class Bench:
    """One engine, its Workloads as an API server would show them, and the clocks."""

    def __init__(self, world: worlds.World, options: EngineOptions) -> None:
        self.engine = Engine(options)
        self.world = world
        self.records: dict[str, Workload] = {str(w.key): w for w in world.workloads}
        self.now_ms = worlds.START_MS
        self.cycle_ns = 0
        self.observe_ns = 0
        self.events = 0
        self.cycles = 0
        self.admissions = 0
        self.preemptions = 0
        for record in world.config:
            self.engine.observe(Observed(at_ms=self.now_ms, record=record))
        self.engine.cycle(self.now_ms)  # builds the quota trees, which is not what a cycle costs

    def observe(self, records: Iterable[Record]) -> None:
        """Feed facts, timed."""
        events = [Observed(at_ms=self.now_ms, record=record) for record in records]
        observe = self.engine.observe
        start = time.thread_time_ns()
        for event in events:
            observe(event)
        self.observe_ns += time.thread_time_ns() - start
        self.events += len(events)

    def cycle(self) -> tuple[list[str], int]:
        """Run one cycle and apply its commands; return what was admitted and how much evicted."""
        start = time.thread_time_ns()
        commands = self.engine.cycle(self.now_ms)
        self.cycle_ns += time.thread_time_ns() - start
        self.cycles += 1
        admitted = [str(c.workload) for c in commands if isinstance(c, ReserveQuota)]
        self.observe([self._applied(c) for c in commands if isinstance(c, ReserveQuota | Evict)])
        evicted = sum(isinstance(c, Evict) for c in commands)
        self.admissions += len(admitted)
        self.preemptions += evicted
        return admitted, evicted

    def _applied(self, command: Command) -> Workload:
        record = self.records[str(command.workload)]
        yes, no = _condition("True", self.now_ms), _condition("False", self.now_ms)
        conditions = dict(record.conditions)
        if isinstance(command, ReserveQuota):
            conditions |= {ConditionType.QUOTA_RESERVED: yes, ConditionType.ADMITTED: yes}
            if ConditionType.EVICTED in conditions:
                conditions |= {ConditionType.EVICTED: no, ConditionType.PREEMPTED: no}
            changed = replace(record, conditions=conditions, admission=command.admission)
        else:
            conditions |= {
                ConditionType.QUOTA_RESERVED: no,
                ConditionType.ADMITTED: no,
                ConditionType.EVICTED: replace(yes, reason=EvictionReason.PREEMPTED),
                ConditionType.PREEMPTED: yes,
                ConditionType.REQUEUED: yes,
            }
            changed = replace(record, conditions=conditions, admission=None)
        self.records[str(command.workload)] = changed
        return changed

    def finish(self, keys: Iterable[str]) -> None:
        """Let Workloads that still hold quota finish."""
        done = []
        for key in keys:
            record = self.records[key]
            if record.admission is not None:
                condition = _condition("True", self.now_ms)
                conditions = {**record.conditions, ConditionType.FINISHED: condition}
                self.records[key] = replace(record, conditions=conditions)
                done.append(self.records[key])
        self.observe(done)

    def is_pending(self) -> bool:
        """Tell whether a heap has a Workload (a cycle is possible)."""
        return self.engine.has_heads()

    def is_parked(self) -> bool:
        """Tell whether some Workload is parked."""
        return any(
            entry.inadmissible
            for record in self.world.config
            if isinstance(record, worlds.ClusterQueue)
            for entry in self.engine.pending(record.name)
        )


def _condition(status: str, at_ms: int) -> Condition:
    return Condition(status=status, reason="Bench", at_ms=at_ms // 1000 * 1000)


def settle_memory() -> None:
    """Leave what is there out of garbage collection, as the manager does after its first sync."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def run_burst(bench: Bench, hold: int) -> None:
    """Everything is pending; what cycle k admits finishes right after cycle k + hold - 1.

    While no heap has a Workload, the oldest that run finish, one cycle's at a time.
    """
    bench.observe(bench.world.workloads)
    settle_memory()
    running: deque[list[str]] = deque()
    while bench.is_pending() or running:
        if not bench.is_pending():
            bench.finish(running.popleft())
            continue
        admitted, _ = bench.cycle()
        running.append(admitted)
        if len(running) >= hold:
            bench.finish(running.popleft())
        bench.now_ms += 1000
    assert not bench.is_parked(), "Workloads are parked that nothing will wake"


def run_timed(bench: Bench) -> None:
    """Arrivals and finishes happen on a virtual clock; cycles run while they are due."""
    settle_memory()
    ends: list[tuple[int, str]] = []
    arrivals = deque(bench.world.workloads)
    while True:
        due_ms = bench.engine.next_deadline_ms()
        times = [arrivals[0].created_ms] if arrivals else []
        times += [ends[0][0]] if ends else []
        times += [due_ms] if due_ms is not None else []
        if not times:
            break
        bench.now_ms = max(bench.now_ms, min(times))
        done = []
        while ends and ends[0][0] <= bench.now_ms:
            done.append(heapq.heappop(ends)[1])
        bench.finish(done)
        fresh = []
        while arrivals and arrivals[0].created_ms <= bench.now_ms:
            fresh.append(arrivals.popleft())
        bench.observe(fresh)
        while True:
            admitted, evicted = bench.cycle()
            for key in admitted:
                heapq.heappush(ends, (bench.now_ms + bench.world.run_ms[key], key))
            if not admitted and not evicted:
                break


def measure(arguments: argparse.Namespace) -> Result:
    """Run one benchmark and return its figures."""
    world = worlds.generate(
        queues=arguments.queues,
        cohorts=arguments.cohorts,
        workloads=arguments.workloads,
        preemption=arguments.preemption,
        busy=arguments.busy or arguments.queues,
    )
    loop_ms = time_loop_ms()
    is_timed = arguments.mode == "timed"
    bench = Bench(world, EngineOptions(wake_up_batch_ms=1000 if is_timed else 0))
    if is_timed:
        run_timed(bench)
    else:
        run_burst(bench, arguments.hold)
    finished = sum(w.is_true(ConditionType.FINISHED) for w in bench.records.values())
    assert finished == len(world.workloads), f"{finished} of {len(world.workloads)} finished"
    heads = bench.engine.heads_total
    cycle_us, observe_us = bench.cycle_ns / 1000, bench.observe_ns / 1000
    return Result(
        build="compiled" if cycle_module.__file__.endswith(".so") else "plain",
        mode=arguments.mode,
        hold=arguments.hold,
        queues=arguments.queues,
        busy=arguments.busy or arguments.queues,
        cohorts=arguments.cohorts,
        preemption=arguments.preemption,
        workloads=len(world.workloads),
        heads=heads,
        cycles=bench.cycles,
        admissions=bench.admissions,
        preemptions=bench.preemptions,
        us_per_admission=cycle_us / bench.admissions,
        us_per_head=cycle_us / heads,
        us_per_cycle=cycle_us / bench.cycles,
        observe_us_per_admission=observe_us / bench.admissions,
        observe_us_per_head=observe_us / heads,
        observe_us_per_cycle=observe_us / bench.cycles,
        events=bench.events,
        peak_memory_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        loop_ms=loop_ms,
    )


def time_loop_ms() -> float:
    """Return the milliseconds of a fixed pure-Python loop."""
    start = time.thread_time_ns()
    total = 0
    for step in range(LOOP_STEPS):
        total += step & 7
    assert total == LOOP_STEPS // 8 * 28
    return (time.thread_time_ns() - start) / 1e6


def main() -> None:
    """Run the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--queues", type=int, default=30)
    parser.add_argument("--cohorts", type=int, default=5)
    parser.add_argument("--workloads", type=int, default=15_000, help="in all")
    parser.add_argument("--busy", type=int, default=0, help="queues with work; 0: all of them")
    parser.add_argument("--preemption", action="store_true")
    parser.add_argument("--mode", choices=("burst", "timed"), default="burst")
    parser.add_argument("--hold", type=int, default=1, help="cycles that a Workload runs (burst)")
    parser.add_argument("--json", action="store_true")
    result = asdict(measure(parser.parse_args()))
    if "--json" in sys.argv[1:]:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:26} {value:.1f}" if isinstance(value, float) else f"{name:26} {value}")


if __name__ == "__main__":
    main()
