"""Makes the plan of a flavor search for the pod shapes of a Workload in a ClusterQueue.

Source: docs/spec/algorithm.md 3.3.1, 3.3.2, 3.3.4 c, 6.2. Used by `sluice.engine.assign`.
"""

from sluice.api.names import FlavorName, ResourceName
from sluice.api.records import FlavorQuotas, ResourceFlavor
from sluice.engine import eligibility
from sluice.engine.assignment import PodSetNeed
from sluice.engine.placement import Placement, is_explicit
from sluice.engine.plan import FlavorOption, GroupPlan, Plan, Search
from sluice.engine.requests import resource_order
from sluice.engine.states import ClusterQueueState, WorkloadState


def plan_of(
    cq: ClusterQueueState,
    wl: WorkloadState,
    flavors: dict[FlavorName, ResourceFlavor],
    placement: Placement,
) -> Plan:
    """Return the plan of a Workload in a ClusterQueue, from the queue's store if it is there."""
    if wl.plan is not None and wl.plan_epoch == cq.plan_epoch:
        return wl.plan
    key = tuple((n.spec.template.key, n.names, n.spec.topology) for n in wl.needs)
    plan = cq.plans.get(key)
    if plan is None:
        plan = _make(cq, wl.needs, flavors, placement)
        cq.plans[key] = plan
    wl.plan = plan
    wl.plan_epoch = cq.plan_epoch
    return plan


def _make(
    cq: ClusterQueueState,
    needs: list[PodSetNeed],
    flavors: dict[FlavorName, ResourceFlavor],
    placement: Placement,
) -> Plan:
    explicit = frozenset(n.index for n in needs if is_explicit(n.spec.topology))
    implied = (
        frozenset(n.index for n in needs if n.index not in explicit)
        if cq.only_topology
        else frozenset()
    )
    groups: dict[str, list[PodSetNeed]] = {}
    for need in needs:
        group = need.spec.topology.group if need.spec.topology is not None else None
        groups.setdefault(f"g{group}" if group else f"p{need.index}", []).append(need)
    plans = []
    for members in groups.values():
        names = sorted({name for need in members for name in need.names}, key=resource_order)
        searches = _searches(cq, members, names, implied, flavors, placement)
        plans.append(GroupPlan([n.index for n in members], names, searches))
    return Plan(plans, explicit, implied)


def _searches(
    cq: ClusterQueueState,
    members: list[PodSetNeed],
    names: list[ResourceName],
    implied: frozenset[int],
    flavors: dict[FlavorName, ResourceFlavor],
    placement: Placement,
) -> list[Search]:
    searches: list[Search] = []
    done: set[int] = set()
    for name in names:
        group = cq.group_of.get(name)
        if group is None:
            searches.append(Search(name, (), names, []))
        elif group not in done:
            done.add(group)
            covered = tuple(n for n in names if cq.group_of.get(n) == group)
            options = [
                _option(cq, index, quotas, covered, members, implied, flavors, placement)
                for index, quotas in enumerate(cq.record.resource_groups[group].flavors)
            ]
            searches.append(Search(name, covered, names, options))
    return searches


def _option(
    cq: ClusterQueueState,
    index: int,
    quotas: FlavorQuotas,
    covered: tuple[ResourceName, ...],
    members: list[PodSetNeed],
    implied: frozenset[int],
    flavors: dict[FlavorName, ResourceFlavor],
    placement: Placement,
) -> FlavorOption:
    frs = [cq.tree.intern(quotas.name, name) for name in covered]
    flavor = flavors.get(quotas.name)
    refusal: str | None = f"flavor {quotas.name} not found"
    if flavor is not None:
        refusal = None
        group = cq.group_of[covered[0]]
        for need in members:
            covers = any(cq.group_of.get(name) == group for name, _ in need.pod.raw)
            refusal = placement.refusal(
                need.spec,
                quotas.name,
                is_implied=need.index in implied,
                covers_pod_resources=covers,
            ) or eligibility.refusal(need.spec.template, flavor)
            if refusal:
                break
    return FlavorOption(index, quotas.name, frs, refusal or "")
