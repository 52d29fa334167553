"""The orders of pending Workloads and of a cycle's entries; each ends in the uid.

Source: docs/spec/algorithm.md 0.4, 2.2, 2.3 and the classical part of 3.6. Fair order is in
`sluice.engine.tournament`, the order of candidates in `sluice.engine.preemption.candidates`.
"""

from typing import Final

from sluice.api.amount import clamp
from sluice.api.conditions import ConditionType, EvictionReason, PreemptionReason
from sluice.api.records import Workload
from sluice.engine.options import EngineOptions, RequeuingTimestamp

# Plain strings: looking a condition up by a StrEnum member costs a call.
_EVICTED: Final = ConditionType.EVICTED.value
_PREEMPTED: Final = ConditionType.PREEMPTED.value


def effective_priority(record: Workload, options: EngineOptions) -> int:
    """Return the priority that decisions use (0.4)."""
    if options.gates.priority_boost:
        return clamp(record.priority + record.priority_boost)
    return record.priority


def queue_timestamp_ms(record: Workload, options: EngineOptions) -> int:
    """Return the time that orders equal priorities (2.2)."""
    evicted = record.conditions.get(_EVICTED)
    if evicted is not None and evicted.is_true:
        if (
            evicted.reason == EvictionReason.PODS_READY_TIMEOUT
            and options.requeuing_timestamp is RequeuingTimestamp.EVICTION
        ):
            return evicted.at_ms
        if evicted.reason == EvictionReason.ADMISSION_CHECK:
            return evicted.at_ms
    if not options.gates.priority_sorting_within_cohort:
        preempted = record.conditions.get(_PREEMPTED)
        if (
            preempted is not None
            and preempted.is_true
            and preempted.reason == PreemptionReason.IN_COHORT_RECLAIM_WHILE_BORROWING
        ):
            return preempted.at_ms + 1
    return record.created_ms
