"""The scheduler's own reason for one Workload that it parked without looking at it.

A Workload whose equivalent has just failed is parked without an attempt, and no command tells of it
(docs/spec/algorithm.md 2.7, 2.8.6): its controller does. Kept beside the lifecycle rules, which
turn the answer into a condition. Pure.
"""

from __future__ import annotations

from sluice.api.names import WorkloadKey
from sluice.engine.engine import Engine
from sluice.engine.status import Place


def parked_reason(engine: Engine, workload: WorkloadKey) -> tuple[str, str] | None:
    """Return reason and message of the decision that parked a Workload; None when it is not parked.

    Complexity: that of `Engine.explain`, which sorts the queue to tell the position.
    """
    known = engine.explain(workload)
    if known is None or known.place is not Place.INADMISSIBLE or not known.reason:
        return None
    return str(known.reason), known.message
