"""Answers to read-only questions: status of queues and cohorts, positions, explanations.

Computed on demand from the world; nothing here changes it beyond rebuilding stale trees. Used by
`sluice.engine.engine`.
"""

from sluice.api.amount import bounded
from sluice.api.names import ClusterQueueName, CohortName, FlavorName, LocalQueueKey, ResourceName
from sluice.api.records import ClusterQueue, StopPolicy
from sluice.engine import activity, messages
from sluice.engine.fairshare import reported, share
from sluice.engine.pending import bypassed
from sluice.engine.states import (
    PENDING,
    RESERVED,
    ClusterQueueState,
    WorkloadState,
)
from sluice.engine.status import (
    ClusterQueueStatus,
    CohortStatus,
    Explanation,
    FlavorUsage,
    LocalQueueStatus,
    PendingEntry,
    Place,
    ResourceUsage,
)
from sluice.engine.world import World

_Totals = dict[tuple[FlavorName, ResourceName], int]


def cluster_queue_status(world: World, name: ClusterQueueName) -> ClusterQueueStatus | None:
    """Return the status of a ClusterQueue, None when there is none of that name."""
    cq = world.queues.get(name)
    if cq is None:
        return None
    world.settle()
    held = list(cq.reserved.values())
    admitted = [wl for wl in held if wl.is_admitted]
    is_active, reason, message = activity.message(cq.problems)
    has_cohort = cq.record.cohort is not None
    return ClusterQueueStatus(
        name=name,
        pending=cq.active_count + cq.parked_count,
        reserving=len(held),
        admitted=len(admitted),
        reservation=_flavor_usage(cq.record, _totals(held), has_cohort),
        usage=_flavor_usage(cq.record, _totals(admitted), has_cohort),
        is_active=is_active,
        reason=reason,
        message=message,
        weighted_share=reported(share(cq.node)) if world.options.fair_sharing else None,
    )


def local_queue_status(world: World, key: LocalQueueKey) -> LocalQueueStatus | None:
    """Return the status of a LocalQueue, None when there is none of that key."""
    state = world.local_queues.get(key)
    if state is None or state.record is None:
        return None
    cq = world.queues.get(state.record.cluster_queue)
    mine = list(state.workloads.values())
    held = [wl for wl in mine if wl.place == RESERVED]
    admitted = [wl for wl in held if wl.is_admitted]
    is_stopped = state.record.stop_policy is not StopPolicy.NONE
    pending = sum(wl.place == PENDING for wl in mine)
    reason, message = "Ready", "Can submit new workloads to localQueue"
    if is_stopped:
        reason, message = "Stopped", "LocalQueue is stopped"
    elif cq is None:
        reason, message = "ClusterQueueDoesNotExist", "Can't submit new workloads to clusterQueue"
    elif not cq.is_active:
        reason, message = "ClusterQueueIsInactive", "Can't submit new workloads to clusterQueue"
    consumed, updated_ms = None, None
    if world.ledger.is_on and cq is not None and cq.is_active:
        consumed, updated_ms = world.ledger.consumed(key)
    return LocalQueueStatus(
        key=key,
        pending=0 if is_stopped else pending,
        reserving=len(held),
        admitted=len(admitted),
        reservation=_flavor_usage(cq.record, _totals(held), False) if cq is not None else (),
        usage=_flavor_usage(cq.record, _totals(admitted), False) if cq is not None else (),
        is_active=reason == "Ready",
        reason=reason,
        message=message,
        consumed=consumed,
        consumed_updated_ms=updated_ms,
    )


def cohort_status(world: World, name: CohortName) -> CohortStatus | None:
    """Return the status of a cohort, None when there is none of that name."""
    if not world.forest.exists(name):
        return None
    if world.options.fair_sharing is None:
        return CohortStatus(name=name, weighted_share=None)
    world.settle()
    root = world.forest.root_of(name)
    tree = world.trees.get(root) if root is not None else None
    for node in tree.nodes if tree is not None else ():
        if not node.is_queue and node.name == name:
            return CohortStatus(name=name, weighted_share=reported(share(node)))
    return CohortStatus(name=name, weighted_share=0)


def _totals(workloads: list[WorkloadState]) -> _Totals:
    totals: _Totals = {}
    for wl in workloads:
        for flavor, resource, amount in wl.named_usage:
            key = (flavor, resource)
            totals[key] = totals.get(key, 0) + amount
    return totals


def _flavor_usage(
    record: ClusterQueue, totals: _Totals, has_cohort: bool
) -> tuple[FlavorUsage, ...]:
    """Return usage of all flavors and covered resources of a queue, in its order."""
    result = []
    for group in record.resource_groups:
        for flavor in group.flavors:
            resources = []
            for quota in sorted(flavor.resources, key=lambda q: q.name):
                total = totals.get((flavor.name, quota.name), 0)
                over = total - quota.nominal if has_cohort else 0
                resources.append(
                    ResourceUsage(
                        name=quota.name, total=bounded(total), borrowed=over if over > 0 else 0
                    )
                )
            result.append(FlavorUsage(name=flavor.name, resources=tuple(resources)))
    return tuple(result)


def pending(world: World, name: ClusterQueueName) -> tuple[PendingEntry, ...]:
    """Return the pending Workloads of a ClusterQueue in queue order."""
    cq = world.queues.get(name)
    if cq is None:
        return ()
    positions: dict[LocalQueueKey, int] = {}
    result = []
    for position, wl in enumerate(in_order(world, cq)):
        local = positions.get(wl.lq, 0)
        positions[wl.lq] = local + 1
        result.append(
            PendingEntry(
                workload=wl.key,
                local_queue=wl.lq,
                priority=wl.eff,
                position=position,
                local_position=local,
                inadmissible=wl.is_parked(),
            )
        )
    return tuple(result)


def in_order(world: World, cq: ClusterQueueState) -> list[WorkloadState]:
    """Return all pending Workloads of a queue, parked ones too, in queue order (2.3)."""
    heaps = world.pending.heaps
    return sorted(heaps.members(cq), key=lambda wl: heaps.sort_key(cq, wl))


def _place(wl: WorkloadState) -> Place:
    if wl.place == RESERVED:
        return Place.RESERVED
    if wl.place != PENDING:
        return Place.OUTSIDE
    return Place.ACTIVE if wl.is_active() else Place.INADMISSIBLE


def explain(world: World, wl: WorkloadState) -> Explanation:
    """Return why a Workload is where it is."""
    decision = wl.decision
    box = wl.box
    if box is not None and box.bucket.why is not None and wl.is_parked():
        why = box.bucket.why
        if decision is None or (why.at_ms or 0) > (decision.at_ms or 0):
            decision = bypassed(why)
    position = None
    cq = wl.cq or world.home_of(wl)
    if wl.place == PENDING and wl.cq is not None:
        position = in_order(world, wl.cq).index(wl)
    return Explanation(
        workload=wl.key,
        place=_place(wl),
        cluster_queue=cq.name if cq is not None else None,
        position=position,
        reason=decision.reason if decision is not None else "",
        message=decision.message if decision is not None else "",
        details=messages.details(decision.why) if decision is not None else (),
        decided_at_ms=decision.at_ms if decision is not None else None,
    )
