"""Targets on random worlds: allowed by policy, from queues that borrow, none of them needless.

Source: docs/spec/algorithm.md 4.2, 4.4, 4.5. The search is asked directly, for a request that
doesn't fit, on the state its search starts from.
"""

import random

import pytest
from tests.support import builders, history
from tests.support.harness import Harness

from sluice.api.conditions import PreemptionReason
from sluice.engine.engine import Engine
from sluice.engine.options import EngineOptions, FairSharing
from sluice.engine.preemption.candidates import Demand, Search, allows
from sluice.engine.preemption.fair import FairRules
from sluice.engine.preemption.oracle import Preemption
from sluice.engine.simulation import Simulation
from sluice.engine.states import WorkloadState


def crowded(seed: int, sharing: FairSharing | None) -> Engine:
    """Return an engine whose queues are full of Workloads of every priority."""
    dice = random.Random(seed)
    harness = Harness(
        *history.world(dice), options=EngineOptions(wake_up_batch_ms=0, fair_sharing=sharing)
    )
    for at in range(40):
        harness.observe(history.workload(dice, f"w{at:03}"))
        harness.cycle()
    return harness.engine


@pytest.mark.slow
@pytest.mark.parametrize("is_fair", [False, True], ids=["classical", "fair"])
@pytest.mark.parametrize("seed", range(25))
def test_targets_are_allowed_and_minimal(seed: int, is_fair: bool) -> None:
    sharing = FairSharing() if is_fair else None
    engine = crowded(seed, sharing)
    world = engine._world
    search = Search(world.queues, world.simulation, None)
    rules = FairRules((), preempts_within_nominal=True) if is_fair else None
    found = 0
    for cq in world.queues.values():
        for fr in range(len(cq.tree.pairs)):
            record = builders.wl("new", cq.name, cpu="1", priority=2, created_s=50)
            wl = WorkloadState(record, -1)
            wl.eff, wl.ts_ms = 2, record.created_ms
            demand = Demand(wl, cq, [fr], {fr: 2000 if cq.tree.pairs[fr][1] == "cpu" else 2})
            if demand.fits(may_borrow=True):
                continue
            targets = Preemption(search, rules).find_targets(demand)
            engine.verify()
            if targets:
                found += 1
                check(engine, demand, [t.wl for t in targets], [t.reason for t in targets])
    assert found or seed


def check(
    engine: Engine,
    demand: Demand,
    targets: list[WorkloadState],
    reasons: list[PreemptionReason],
) -> None:
    world = engine._world
    rules = demand.cq.record.preemption
    for wl, reason in zip(targets, reasons, strict=True):
        assert wl.cq is not None
        is_own = wl.cq is demand.cq
        policy = rules.within_cluster_queue if is_own else rules.reclaim_within_cohort
        assert allows(policy, demand.wl, wl)
        assert (reason is PreemptionReason.IN_CLUSTER_QUEUE) is is_own
        assert demand.needed[0] in wl.flavors
        if not is_own:
            node = wl.cq.node
            assert any(node.usage[fr] > node.nominal[fr] for fr in demand.needed)
    simulation = world.simulation
    point = simulation.checkpoint()
    for wl in targets:
        simulation.remove(wl)
    # The attempt that succeeded may have been one that forbids to borrow; then less would do while
    # borrowing, so a set counts as minimal when it is so in one of the two.
    attempts = [b for b in (True, False) if demand.fits(may_borrow=b)]
    assert attempts
    assert any(_is_minimal(world.simulation, demand, targets, b) for b in attempts)
    simulation.rollback(point)


def _is_minimal(
    simulation: Simulation, demand: Demand, targets: list[WorkloadState], may_borrow: bool
) -> bool:
    for wl in targets:
        simulation.restore(wl)
        fits = demand.fits(may_borrow=may_borrow)
        simulation.remove(wl)
        if fits:
            return False
    return True
