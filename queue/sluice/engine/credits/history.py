"""Changes of usage that Workloads still show with their time, for a ledger that is resumed.

A reservation shows when it was made, a finished Workload when it finished, a deactivated one when
it was evicted; times are whole seconds. What else happened since the checkpoint has no time.
Source: docs/spec/credits.md 4. Used by the engine. Pure.
"""

from collections.abc import Iterator

from sluice.api.conditions import ConditionType
from sluice.api.names import CohortName
from sluice.api.records import Workload
from sluice.engine.accounting import usage_of
from sluice.engine.credits.restore import UsageChange
from sluice.engine.world import World


def changes_since(world: World, root: CohortName, since_ms: int) -> Iterator[UsageChange]:
    """Yield the changes of usage below a root cohort at or after a time, in any order."""
    queues = set(world.forest.queues_below(root))
    counts_reclaimable = world.options.gates.reclaimable_pods
    for wl in world.workloads.values():
        record = wl.record
        admission = record.admission
        if admission is None or admission.cluster_queue not in queues:
            continue
        reserved = record.conditions.get(ConditionType.QUOTA_RESERVED.value)
        if reserved is None or not reserved.is_true:
            continue
        times = [(reserved.at_ms, 1)]
        ended_ms = _ended_ms(record)
        if ended_ms is not None:
            times.append((ended_ms, -1))
        for at_ms, sign in times:
            if at_ms >= since_ms:
                for flavor, resource, amount in usage_of(record, admission, counts_reclaimable):
                    if amount:
                        yield UsageChange(
                            at_ms, admission.cluster_queue, flavor, resource, sign * amount
                        )


def _ended_ms(record: Workload) -> int | None:
    """Return when a Workload stopped to hold its quota, None while it does or nobody knows."""
    finished = record.conditions.get(ConditionType.FINISHED.value)
    if finished is not None and finished.is_true:
        return finished.at_ms
    evicted = record.conditions.get(ConditionType.EVICTED.value)
    if not record.active and evicted is not None and evicted.is_true:
        return evicted.at_ms
    return None
