"""Safety rules of the engine, as checks on its state around a cycle.

Used by the property machine. They look at the engine's trees, since that is what the rules are
about; each says which section of docs/spec/algorithm.md it holds the engine to.
"""

from collections.abc import Iterable

from sluice.api.conditions import PreemptionReason
from sluice.api.names import ClusterQueueName, WorkloadKey
from sluice.api.records import PreemptionPolicy
from sluice.engine.commands import Command, Evict, ReserveQuota
from sluice.engine.engine import Engine
from sluice.engine.preemption.candidates import allows
from sluice.engine.states import RESERVED, WorkloadState
from sluice.engine.tree import raw_available

Usage = dict[str, dict[str, int]]


def usage_of(engine: Engine) -> Usage:
    """Return what every ClusterQueue has reserved, by ``flavor/resource``."""
    world = engine._world
    usage: Usage = {}
    for name in sorted(world.queues):
        status = engine.cluster_queue_status(ClusterQueueName(name))
        assert status is not None
        usage[name] = {
            f"{f.name}/{r.name}": r.total
            for f in status.reservation
            for r in f.resources
            if r.total
        }
    return usage


def state(engine: Engine, key: WorkloadKey) -> WorkloadState:
    """Return the engine's state of a Workload."""
    return engine._world.workloads[key]


def check_reservations(engine: Engine, commands: Iterable[Command]) -> None:
    """Nothing is reserved beyond what fits once all victims are gone (3.7.1)."""
    world = engine._world
    simulation = world.simulation
    point = simulation.checkpoint()
    for wl in world.workloads.values():
        if wl.place == RESERVED and (wl.is_evicting or wl.is_evicted):
            simulation.remove(wl)
    for command in commands:
        if isinstance(command, ReserveQuota):
            wl = state(engine, command.workload)
            assert wl.cq is not None
            for fr, value in wl.usage:
                room = raw_available(wl.cq.node, fr)
                assert value == 0 or room >= 0, f"{wl.key} overbooks {wl.cq.name} by {-room}"
    simulation.rollback(point)
    simulation.commit()


def check_evictions(engine: Engine, commands: Iterable[Command], before: Usage) -> None:
    """Nobody is preempted against a policy, nor from a queue that borrows nothing (4.2, 4.4, 4.5).

    An entry processed earlier may have put the victim's queue above nominal within this cycle, so
    what it would book counts as used.
    """
    world = engine._world
    for command in commands:
        if not isinstance(command, Evict) or command.preemptor is None:
            continue
        victim, preemptor = state(engine, command.workload), state(engine, command.preemptor)
        assert victim.cq is not None
        home = world.home_of(preemptor)
        assert home is not None
        rules = home.record.preemption
        is_own = victim.cq is home
        policy = rules.within_cluster_queue if is_own else rules.reclaim_within_cohort
        assert policy is not PreemptionPolicy.NEVER
        assert allows(policy, preemptor, victim)
        assert (command.preempted_reason is PreemptionReason.IN_CLUSTER_QUEUE) is is_own
        if not is_own:
            assert home.tree is victim.cq.tree
            assert _borrows(engine, victim, before), f"{victim.cq.name} is within nominal"


def _borrows(engine: Engine, victim: WorkloadState, before: Usage) -> bool:
    cq = victim.cq
    assert cq is not None
    used = {fr: before[cq.name].get("/".join(pair), 0) for fr, pair in enumerate(cq.tree.pairs)}
    heads = [wl for wl in engine._world.workloads.values() if wl.lq in _doors(engine, cq.name)]
    for fr, _ in enumerate(cq.tree.pairs):
        extra = max(
            (n.totals[i] for w in heads for n in w.needs for i in range(len(n.totals))), default=0
        )
        if used[fr] > cq.node.nominal[fr] or used[fr] + extra > cq.node.nominal[fr]:
            return True
    return False


def _doors(engine: Engine, queue: ClusterQueueName) -> Iterable[str]:
    return engine._world.doors.get(queue, {})


def check_taken_back(engine: Engine, command: ReserveQuota) -> None:
    """A failed reservation leaves no trace, and its Workload is queued again (2.6)."""
    wl = state(engine, command.workload)
    assert wl.place != RESERVED
    assert not wl.usage
    assert not wl.topology
    assert not wl.assumed
    assert wl.key not in engine._world.unready
    if engine._world.home_of(wl) is not None:
        assert wl.is_active()
