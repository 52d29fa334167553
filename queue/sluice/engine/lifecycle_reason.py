"""The scheduler's own reason for one Workload that it parked without looking at it.

A Workload whose equivalent has just failed is parked without an attempt, and no command tells of it
(docs/spec/algorithm.md 2.7, 2.8.6): its controller does. Kept beside the lifecycle rules, which
turn the answer into a condition. Pure, O(1).
"""

from __future__ import annotations

from sluice.api.names import WorkloadKey
from sluice.engine.engine import Engine
from sluice.engine.states import INADMISSIBLE


def parked_reason(engine: Engine, workload: WorkloadKey) -> tuple[str, str] | None:
    """Return reason and message of the decision that parked a Workload; None when it is not parked.

    The answer is that of `Engine.explain`, without the position, which takes sorting the queue.
    """
    state = engine._world.workloads.get(workload)
    if state is None or state.place != INADMISSIBLE or state.decision is None:
        return None
    return str(state.decision.reason), state.decision.message
