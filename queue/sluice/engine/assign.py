"""Flavor assignment of a whole Workload (docs/spec/algorithm.md 3.3).

Groups of pod sets, one flavor search per resource group, charging, and then the placement in a
topology. Changes nothing outside the `Assignment` it returns. Used by `sluice.engine.nominate`.
"""

from sluice.api.names import FlavorName, ResourceName
from sluice.engine.assignment import (
    FIT,
    NO_FIT,
    WHY_NO_MATCH,
    Assignment,
    FlavorChoice,
    PodSetNeed,
    PodSetResult,
    Reason,
)
from sluice.engine.attempt import Attempt
from sluice.engine.flavor_search import FlavorSearch
from sluice.engine.plan import GroupPlan
from sluice.engine.topology_step import TopologyStep


class Assigner:
    """Assigns flavors; holds what does not change from attempt to attempt."""

    __slots__ = ("_ignores_undeclared", "_search", "_topology")

    def __init__(
        self, search: FlavorSearch, topology: TopologyStep, *, ignores_undeclared: bool
    ) -> None:
        self._search = search
        self._topology = topology
        self._ignores_undeclared = ignores_undeclared

    def assign(self, attempt: Attempt, needs: list[PodSetNeed]) -> Assignment:
        """Return the assignment of an attempt with the given (full or reduced) needs."""
        result = Assignment()
        for group in attempt.plan.groups:
            if not self._assign_group(attempt, needs, group, result):
                result.mode = NO_FIT
                return result
        if self._topology.concerns(attempt):
            self._topology.apply(attempt, result)
        else:
            result.settle_mode()
        return result

    def _assign_group(
        self, attempt: Attempt, needs: list[PodSetNeed], group: GroupPlan, result: Assignment
    ) -> bool:
        """Find flavors for one group and charge them; False when there are none (3.3.2)."""
        members = [needs[index] for index in group.members]
        totals = members[0].totals if len(members) == 1 else _totals(group, members)
        reasons: list[Reason] = []
        chosen = _given(attempt, members) if attempt.fixed is not None else None
        is_found = True
        for search in group.searches:
            resource = search.resource
            if not search.resources:
                if totals[search.start] == 0 or self._ignores_undeclared:
                    continue
                text = f"resource {resource} unavailable in ClusterQueue"
                reasons.append(Reason(WHY_NO_MATCH, "", resource, text))
                is_found = False
                break
            if chosen is not None and resource in chosen:
                continue
            found = self._search.find(attempt, members, search, totals, result.used, reasons)
            if found is None:
                is_found = False
                break
            if chosen is None:
                chosen = found
            else:
                chosen.update(found)
        for need in members:
            pod_set = PodSetResult(need, reasons)
            result.pod_sets.append(pod_set)
            if is_found and chosen is not None:
                self._charge(attempt, pod_set, chosen, result)
        if is_found and chosen is not None and len(members) > 1:
            shared = {r: c for r, c in chosen.items() if self._topology.has_topology(c.flavor)}
            for pod_set in result.pod_sets[-len(members) :]:
                # Without requests it is charged nothing, but its placement needs the flavor.
                if not pod_set.need.names:
                    pod_set.flavors = shared
        return is_found

    def _charge(
        self,
        attempt: Attempt,
        pod_set: PodSetResult,
        chosen: dict[ResourceName, FlavorChoice],
        result: Assignment,
    ) -> None:
        """Give a pod set its part of the group's flavors and add up what it takes (3.3.3)."""
        need = pod_set.need
        used = result.used
        names = need.names
        flavors = pod_set.flavors
        for at in range(len(names)):
            name = names[at]
            choice = chosen.get(name)
            if choice is None:
                continue
            flavors[name] = choice
            if choice.tried != -1:
                pod_set.tried[name] = choice.tried
                result.is_scan_open = True
            value = need.totals[at]
            if attempt.old is not None:
                value -= attempt.old_requests.get((need.spec.name, name), 0)
            fr = choice.fr
            used[fr] = used[fr] + value if fr in used else value
            if choice.borrow > result.borrow:
                result.borrow = choice.borrow


def _totals(group: GroupPlan, members: list[PodSetNeed]) -> list[int]:
    sums: dict[ResourceName, int] = {}
    for need in members:
        for name, value in zip(need.names, need.totals, strict=True):
            sums[name] = sums.get(name, 0) + value
    return [sums[name] for name in group.names]


def _given(attempt: Attempt, members: list[PodSetNeed]) -> dict[ResourceName, FlavorChoice]:
    """Return the flavors that the admission record gives already (second pass, 3.3.8)."""
    chosen: dict[ResourceName, FlavorChoice] = {}
    assert attempt.fixed is not None
    for need in members:
        for name in need.names:
            flavor = attempt.fixed.get((need.index, name))
            if flavor is not None and name not in chosen:
                fr = attempt.cq.tree.intern(FlavorName(flavor), name)
                chosen[name] = FlavorChoice(flavor, fr, FIT, 0, -1)
    return chosen
