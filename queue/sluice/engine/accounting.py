"""Reservations: booking and releasing quota and topology (docs/spec/algorithm.md 1.4, 1.10, 2.1).

The only place where a Workload starts or stops to hold quota, so that the tree's usage, the
queue's list and the topology's bookings always tell the same story (`sluice.engine.invariants`
checks it). Used by the event handlers and by the cycle.
"""

from sluice.api.amount import divide, scale
from sluice.api.conditions import ConditionType
from sluice.api.names import FlavorName, ResourceName
from sluice.api.records import Admission, Workload
from sluice.engine.placement import TopologyUsage
from sluice.engine.states import OUTSIDE, RESERVED, ClusterQueueState, WorkloadState
from sluice.engine.tree import add_usage, remove_usage
from sluice.engine.world import World, resolve_usage

NamedUsage = list[tuple[FlavorName, ResourceName, int]]
"""(flavor, resource, amount)."""


def reserve(
    world: World,
    wl: WorkloadState,
    cq: ClusterQueueState,
    admission: Admission,
    *,
    reserved_ms: int,
    is_admitted: bool,
    usage: NamedUsage | None = None,
) -> None:
    """Let a Workload hold what an admission says; it must be nowhere else.

    ``usage`` is what `usage_of` would return, for a caller that knows it already.
    """
    wl.place = RESERVED
    wl.cq = cq
    wl.admission = admission
    wl.reserved_ms = reserved_ms
    wl.is_admitted = is_admitted
    if usage is None:
        usage = usage_of(wl.record, admission, world.options.gates.reclaimable_pods)
    wl.named_usage = usage
    cq.reserved[wl.key] = wl
    if not cq.tree.is_stale:
        resolve_usage(wl, cq.tree)
        for fr, value in wl.usage:
            add_usage(cq.node, fr, value, None)
        if cq.tree.book is not None:
            cq.tree.book.feed(cq.node, [fr for fr, _ in wl.usage])
    wl.topology = topology_of(world, wl.record, admission)
    if wl.topology:
        world.placement.book(wl.topology)
    world.touch(wl, cq)
    track_readiness(world, wl)


def release(world: World, wl: WorkloadState) -> ClusterQueueState:
    """Take back what a Workload holds and return its ClusterQueue."""
    cq = wl.cq
    assert cq is not None
    world.touch(wl, cq)
    del cq.reserved[wl.key]
    if not cq.tree.is_stale:
        for fr, value in wl.usage:
            remove_usage(cq.node, fr, value, None)
        if cq.tree.book is not None:
            cq.tree.book.feed(cq.node, [fr for fr, _ in wl.usage])
    cq.generation += 1
    if wl.topology:
        world.placement.unbook(wl.topology)
        wl.topology = ()
    wl.usage = []
    wl.named_usage = []
    wl.flavors = set()
    wl.admission = None
    wl.place = OUTSIDE
    wl.cq = None
    wl.assumed = False
    wl.topology_assumed = False
    wl.is_admitted = False
    wl.is_evicted = False
    wl.is_evicting = False
    world.unready.pop(wl.key, None)
    return cq


def track_readiness(world: World, wl: WorkloadState) -> None:
    """Keep the list of admitted Workloads whose pods are not ready (7.4)."""
    if wl.is_admitted and not wl.record.is_true(ConditionType.PODS_READY):
        world.unready[wl.key] = None
    else:
        world.unready.pop(wl.key, None)


def usage_of(record: Workload, admission: Admission, counts_reclaimable: bool) -> NamedUsage:
    """Return what an admission books, less what reclaimable pods give back (1.10).

    Resources without a flavor are not charged; zero amounts are kept, because they make a Workload
    a candidate for preemption (4.2).
    """
    reclaimable = dict(record.reclaimable) if counts_reclaimable else {}
    counts = {pod_set.name: pod_set.count for pod_set in record.pod_sets}
    result: NamedUsage = []
    for pod_set in admission.pod_sets:
        spec_count = counts.get(pod_set.name, 0)
        count = pod_set.count if pod_set.count is not None else spec_count
        flavors = dict(pod_set.flavors)
        effective = spec_count - min(reclaimable.get(pod_set.name, 0), spec_count)
        shrinks = pod_set.name in counts and effective < count
        for resource, amount in pod_set.usage:
            flavor = flavors.get(resource)
            if flavor is None:
                continue
            value = scale(divide(amount, count), effective) if shrinks else amount
            result.append((flavor, resource, value))
    return result


def topology_of(world: World, record: Workload, admission: Admission) -> tuple[TopologyUsage, ...]:
    """Return what an admission takes from domains: by the spec's pods, never reclaimed (6.1)."""
    templates = None
    usages: list[TopologyUsage] = []
    for pod_set in admission.pod_sets:
        if pod_set.topology is None or not pod_set.topology.domains:
            continue
        if templates is None:
            templates = {p.name: p.template for p in record.pod_sets}
        template = templates.get(pod_set.name)
        flavor = next(
            (f for _, f in pod_set.flavors if world.placement.levels(f) is not None), None
        )
        if template is None or flavor is None:
            continue
        pod = world.rules.of(template, record.namespace).raw
        usages.append(TopologyUsage(flavor=flavor, pod=pod, assignment=pod_set.topology))
    return tuple(usages)
