"""Reasons of an assignment as wire reasons and sentences a user can act on.

The wording follows Kueue's (docs/spec/api.md 4.2), so that people and their tools recognise it.
Used when a decision is recorded and by `explain`.
"""

from typing import Final

from sluice.api import quantity
from sluice.api.amount import bounded
from sluice.api.conditions import PendingReason, PreemptionReason
from sluice.api.names import PodSetName, ResourceName
from sluice.api.wire_credit import unit_hours
from sluice.engine.assignment import (
    WHY_ERROR,
    WHY_MAXIMUM,
    WHY_NO_MATCH,
    WHY_TOPOLOGY,
    WHY_UNUSED,
    Assignment,
    PodSetNeed,
    Reason,
)
from sluice.engine.credits.contest import CreditLoss
from sluice.engine.states import ClusterQueueState, WorkloadState
from sluice.engine.tree import QuotaNode

PodSetReasons = list[tuple[str, list[Reason]]]

NO_LONGER_FITS: Final = "Workload no longer fits after processing another workload"
OVERLAPPING: Final = "Workload has overlapping preemption targets with another workload"
DEFERRED: Final = (
    "Workload has overlapping preemption targets with another workload, "
    "but will fit after these preemptions complete"
)
GATED: Final = "Workload requires preemption, but it's gated"
NOT_READY: Final = "waiting for all admitted workloads to be in PodsReady condition"

_SEVERITY: Final = {
    WHY_ERROR: PendingReason.NO_MATCHING_FLAVOR,
    WHY_NO_MATCH: PendingReason.NO_MATCHING_FLAVOR,
    WHY_MAXIMUM: PendingReason.EXCEEDS_MAX_QUOTA,
    WHY_UNUSED: PendingReason.WAITING_FOR_QUOTA,
    WHY_TOPOLOGY: PendingReason.TOPOLOGY_PLACEMENT_FAILED,
}
_GROUNDS: Final = {
    PreemptionReason.IN_CLUSTER_QUEUE: "prioritization in the ClusterQueue",
    PreemptionReason.IN_COHORT_RECLAMATION: "reclamation within the cohort",
    PreemptionReason.IN_COHORT_FAIR_SHARING: "Fair Sharing within the cohort",
    PreemptionReason.IN_COHORT_RECLAIM_WHILE_BORROWING: (
        "reclamation within the cohort while borrowing"
    ),
}


def sentence(reason: Reason) -> str:
    """Return one reason as text."""
    name = reason.resource
    if reason.kind == WHY_UNUSED:
        more = quantity.to_text(name, bounded(reason.amounts[0]))
        return f"insufficient unused quota for {name} in flavor {reason.flavor}, {more} more needed"
    if reason.kind == WHY_MAXIMUM:
        earlier, present, most = (quantity.to_text(name, bounded(a)) for a in reason.amounts)
        return (
            f"insufficient quota for {name} in flavor {reason.flavor}, previously considered "
            f"podsets requests ({earlier}) + current podset request ({present}) > "
            f"maximum capacity ({most})"
        )
    return reason.text


def reasons_of(assignment: Assignment) -> PodSetReasons:
    """Return the reasons of every pod set that has some, with errors as reasons."""
    return [
        (r.need.spec.name, [Reason(WHY_ERROR, "", "", r.error)] if r.error else r.reasons)
        for r in assignment.pod_sets
        if r.error or r.reasons
    ]


def explain(reasons: PodSetReasons) -> str:
    """Return the scheduler's message for an assignment that doesn't fit now."""
    parts = []
    for name, why in reasons:
        texts = sorted({sentence(reason) for reason in why} - {""})
        if texts:
            is_error = any(reason.kind == WHY_ERROR for reason in why)
            verb = "failed to" if is_error else "couldn't"
            parts.append(f"{verb} assign flavors to pod set {name}: {', '.join(texts)}")
    return "; ".join(parts)


def pending_reason(reasons: PodSetReasons) -> PendingReason:
    """Return the most severe reason of all (docs/spec/api.md 4.2)."""
    worst = -1
    for _, why in reasons:
        for reason in why:
            if reason.kind > worst:
                worst = reason.kind
    return _SEVERITY.get(worst, PendingReason.WAITING_FOR_QUOTA)


def details(reasons: PodSetReasons) -> tuple[str, ...]:
    """Return one line per pod set and reason, in the order they were found."""
    lines = [f"pod set {name}: {sentence(reason)}" for name, why in reasons for reason in why]
    return tuple(dict.fromkeys(lines))


def credit_loss(loss: CreditLoss) -> str:
    """Return what credits had to do with a Workload that waits (docs/spec/credits.md 3)."""
    theirs, mine = unit_hours(loss.theirs), unit_hours(loss.mine)
    return (
        f"Credits of {loss.ahead} in cohort {loss.cohort} went before it: projected balance "
        f"{theirs:.3f} against {mine:.3f} unit-hours, {theirs - mine:.3f} apart"
    )


def requests_of(
    needs: list[PodSetNeed],
) -> tuple[tuple[PodSetName, tuple[tuple[ResourceName, int], ...]], ...]:
    """Return total requests per pod set, resources in name order."""
    return tuple(
        (need.spec.name, tuple(sorted(zip(need.names, need.totals, strict=True)))) for need in needs
    )


def preempted(
    preemptor: WorkloadState,
    cq: ClusterQueueState,
    victim: WorkloadState,
    reason: PreemptionReason,
) -> str:
    """Return the message of an eviction by preemption for a head of ``cq`` (api.md 4.6)."""
    assert victim.cq is not None
    return (
        f"Preempted to accommodate a workload (UID: {preemptor.uid or 'UNKNOWN'}, "
        f"JobUID: {preemptor.record.job_uid or 'UNKNOWN'}) due to {_GROUNDS[reason]}; "
        f"preemptor path: {path(cq.node)}; preemptee path: {path(victim.cq.node)}"
    )


def path(node: QuotaNode) -> str:
    """Return ``/root/…/clusterqueue``."""
    return "/" + "/".join(n.name for n in node.path)
