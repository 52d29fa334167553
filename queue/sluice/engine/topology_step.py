"""Where a flavor assignment meets the topology (docs/spec/algorithm.md 3.3.7, 3.5.6, 6.3).

Builds the placement requests of an assignment, asks the `Placement`, and turns the answers into
modes, reasons and topologies. Which domains fit is not decided here. Used by `sluice.engine.assign`
and `sluice.engine.nominate`.
"""

from sluice.api import names
from sluice.api.names import FlavorName
from sluice.api.records import (
    AdmissionCheck,
    PodSetUpdate,
    ResourceFlavor,
    TopologyAssignment,
    TopologyDomain,
)
from sluice.engine.assignment import (
    FIT,
    PREEMPT,
    WHY_TOPOLOGY,
    Assignment,
    FlavorChoice,
    PodSetResult,
    Reason,
)
from sluice.engine.attempt import Attempt
from sluice.engine.placement import Placement, PlacementOutcome, PlacementRequest, TopologyUsage
from sluice.engine.states import WorkloadState


class TopologyStep:
    """Knows which flavors have a topology and which checks delay placement."""

    __slots__ = ("_checks", "_flavors", "_with_slices", "placement")

    def __init__(
        self,
        placement: Placement,
        flavors: dict[FlavorName, ResourceFlavor],
        checks: dict[names.CheckName, AdmissionCheck],
        *,
        with_slices: bool,
    ) -> None:
        self.placement = placement
        self._flavors = flavors
        self._checks = checks
        self._with_slices = with_slices

    def concerns(self, attempt: Attempt) -> bool:
        """Tell whether some pod set of the Workload wants a topology."""
        return bool(attempt.plan.explicit or attempt.plan.implied)

    def apply(self, attempt: Attempt, result: Assignment) -> None:
        """Place the pod sets of a complete assignment and settle its mode (3.3.7)."""
        requests = self.requests(attempt, result)
        result.settle_mode()
        if not requests:
            return
        by_index = {r.need.index: r for r in result.pod_sets}
        if result.mode == FIT:
            outcome = self._place(attempt, requests, assume_empty=False)
            _reject(outcome, by_index)
            for index, reason in outcome.failed.items():
                _add_reason(by_index[index], reason)
                _turn_to_preempt(by_index[index])
            if not outcome.failed:
                _keep(outcome, by_index)
            result.settle_mode()
        if result.mode == PREEMPT and not attempt.wl.record.unhealthy_nodes:
            self._place_as_if_empty(attempt, requests, by_index)
            result.settle_mode()

    def _place_as_if_empty(
        self,
        attempt: Attempt,
        requests: tuple[PlacementRequest, ...],
        by_index: dict[int, PodSetResult],
    ) -> None:
        outcome = self._place(attempt, requests, assume_empty=True)
        _reject(outcome, by_index)
        for index, reason in outcome.failed.items():
            by_index[index].flavors = {}
            _add_reason(by_index[index], reason)
        if outcome.failed or outcome.errors:
            return
        for request in requests:
            pod_set = by_index[request.index]
            # The mode of a pod set without reasons would still read as a fit.
            if not pod_set.reasons:
                _add_reason(pod_set, "")
            _turn_to_preempt(pod_set)

    def fix_up(self, attempt: Attempt, result: Assignment, *, assume_empty: bool) -> None:
        """Store the topology that a preempting assignment is going to get (3.5.6)."""
        requests = self.requests(attempt, result)
        if requests:
            outcome = self._place(attempt, requests, assume_empty=assume_empty)
            if not outcome.failed and not outcome.errors:
                _keep(outcome, {r.need.index: r for r in result.pod_sets})

    def can_place(self, attempt: Attempt, requests: tuple[PlacementRequest, ...]) -> bool:
        """Tell whether requests can be placed on the present, simulated state (4.4.5)."""
        return self.placement.can_place(attempt.wl.record, requests)

    def requests(self, attempt: Attempt, result: Assignment) -> tuple[PlacementRequest, ...]:
        """Return the placement requests of an assignment, in spec order (6.3)."""
        plan = attempt.plan
        requests: list[PlacementRequest] = []
        for pod_set in sorted(result.pod_sets, key=lambda r: r.need.index):
            need = pod_set.need
            if need.index not in plan.explicit and need.index not in plan.implied:
                continue
            if pod_set.error or need.count == 0:
                continue
            previous = previous_topology(attempt.wl, need.index) if attempt.fixed else None
            if previous is not None and not is_broken(attempt.wl, previous):
                pod_set.topology = previous
                continue
            flavors = tuple(
                sorted({c.flavor for c in pod_set.flavors.values() if self.has_topology(c.flavor)})
            )
            if len(flavors) != 1:
                what = "more than one" if flavors else "no"
                pod_set.error = f"{what} flavor with a topology is assigned"
                continue
            if self._is_delayed(attempt, flavors[0]):
                pod_set.delayed = True
                continue
            requests.append(self._request(attempt, pod_set, flavors, previous))
        return tuple(requests)

    def usage(self, attempt: Attempt, result: Assignment) -> tuple[TopologyUsage, ...]:
        """Return what the placed pod sets take beyond their present admission (3.7)."""
        usages: list[TopologyUsage] = []
        for pod_set in result.pod_sets:
            topology = pod_set.topology
            if topology is None:
                continue
            before = previous_topology(attempt.wl, pod_set.need.index) if attempt.fixed else None
            if before is not None:
                topology = _beyond(topology, before)
            flavors = sorted(
                {c.flavor for c in pod_set.flavors.values() if self.has_topology(c.flavor)}
            )
            if topology.domains and flavors:
                usages.append(
                    TopologyUsage(flavor=flavors[0], pod=pod_set.need.pod.raw, assignment=topology)
                )
        return tuple(usages)

    def _request(
        self,
        attempt: Attempt,
        pod_set: PodSetResult,
        flavors: tuple[FlavorName, ...],
        previous: TopologyAssignment | None,
    ) -> PlacementRequest:
        need = pod_set.need
        grows = False
        if self._with_slices and attempt.old is not None:
            previous = previous_topology(attempt.old, need.index)
            grows = previous is not None
        return PlacementRequest(
            index=need.index,
            pod_set=need.spec,
            count=need.count,
            pod=need.pod.raw,
            flavors=flavors,
            is_implied=need.index in attempt.plan.implied,
            update=_merged_update(attempt.wl, need.spec.name),
            previous=previous,
            grows=grows,
        )

    def has_topology(self, flavor: FlavorName) -> bool:
        """Tell whether a flavor names a topology."""
        record = self._flavors.get(flavor)
        return record is not None and record.topology is not None

    def _is_delayed(self, attempt: Attempt, flavor: FlavorName) -> bool:
        """Tell whether topology waits for a check: MultiKueue, or nodes still to be provisioned."""
        for name, on_flavors in attempt.cq.checks.items():
            check = self._checks.get(name)
            if check is None:
                continue
            if check.controller == names.MULTIKUEUE_CONTROLLER:
                return True
            if (
                check.controller == names.PROVISIONING_CONTROLLER
                and attempt.fixed is None
                and (not on_flavors or flavor in on_flavors)
            ):
                return True
        return False

    def _place(
        self, attempt: Attempt, requests: tuple[PlacementRequest, ...], *, assume_empty: bool
    ) -> PlacementOutcome:
        return self.placement.place(attempt.wl.record, requests, assume_empty=assume_empty)


def previous_topology(wl: WorkloadState, index: int) -> TopologyAssignment | None:
    """Return the topology that a Workload's admission has for a pod set, None without."""
    admission = wl.admission
    if admission is None or index >= len(wl.record.pod_sets):
        return None
    name = wl.record.pod_sets[index].name
    for pod_set in admission.pod_sets:
        if pod_set.name == name:
            return pod_set.topology
    return None


def is_broken(wl: WorkloadState, topology: TopologyAssignment) -> bool:
    """Tell whether a topology touches the unhealthy node to be replaced first (6.8)."""
    nodes = wl.record.unhealthy_nodes
    if not nodes or topology.levels[-1] != names.HOSTNAME_LABEL:
        return False
    return any(domain.values[-1] == nodes[0] for domain in topology.domains)


def _beyond(new: TopologyAssignment, before: TopologyAssignment) -> TopologyAssignment:
    had = {domain.values: domain.count for domain in before.domains}
    more = [
        TopologyDomain(values=d.values, count=d.count - had.get(d.values, 0)) for d in new.domains
    ]
    return TopologyAssignment(levels=new.levels, domains=tuple(d for d in more if d.count > 0))


def _keep(outcome: PlacementOutcome, by_index: dict[int, PodSetResult]) -> None:
    for index, topology in outcome.placed.items():
        by_index[index].topology = topology


def _reject(outcome: PlacementOutcome, by_index: dict[int, PodSetResult]) -> None:
    for index, error in outcome.errors.items():
        by_index[index].error = error


def _add_reason(pod_set: PodSetResult, text: str) -> None:
    # Pod sets of one group share their list of reasons; this one's own must not show at the others.
    pod_set.reasons = [*pod_set.reasons, Reason(WHY_TOPOLOGY, "", "", text)]


def _turn_to_preempt(pod_set: PodSetResult) -> None:
    """Make every flavor of a pod set need preemption; choices may be shared within a group."""
    pod_set.flavors = {
        name: FlavorChoice(c.flavor, c.fr, PREEMPT, c.borrow, c.tried)
        for name, c in pod_set.flavors.items()
    }


def _merged_update(wl: WorkloadState, name: str) -> PodSetUpdate | None:
    """Return what the Ready checks ask of a pod set's pods, None when nothing."""
    updates = [
        update
        for check in wl.record.checks
        if check.state == "Ready"
        for update in check.updates
        if update.name == name
    ]
    if not updates:
        return None
    selector: dict[str, str] = {}
    for update in updates:
        selector.update(update.node_selector)
    return PodSetUpdate(
        name=updates[0].name,
        node_selector=tuple(sorted(selector.items())),
        tolerations=tuple(t for update in updates for t in update.tolerations),
    )
