"""Makes the reservations that a cycle decided on, and the commands that write them.

Source: docs/spec/algorithm.md 3.7.3.14, 3.9, 5.4.4, 7.3. Used by `sluice.engine.cycle` after all
entries are processed and the simulation is undone.
"""

from sluice.api.names import CheckName, FlavorName, ResourceName
from sluice.api.records import Admission, PodSetAssignment
from sluice.engine import accounting
from sluice.engine.assignment import Reason
from sluice.engine.commands import AssignTopology, Command, FinishSlice, ReserveQuota
from sluice.engine.entry import Entry
from sluice.engine.slices import REPLACED_MESSAGE
from sluice.engine.states import ClusterQueueState, Decision, WorkloadState
from sluice.engine.world import World

_NO_REASONS: list[tuple[str, list[Reason]]] = []


def admit(world: World, entry: Entry, now_ms: int) -> list[Command]:
    """Book what an entry gets and return the commands that write it."""
    if entry.holds_quota:
        return [_assign_topology(world, entry, now_ms)]
    wl, cq = entry.wl, entry.cq
    admission = Admission(cluster_queue=cq.name, pod_sets=_pod_sets(entry))
    checks = required_checks(cq, admission)
    admitted = _is_admitted(wl, checks, admission)
    commands: list[Command] = []
    old = entry.attempt.old if entry.attempt is not None else None
    if old is not None:
        accounting.release(world, old)
        old.finish_assumed = True
        commands.append(
            FinishSlice(
                workload=old.key,
                uid=old.uid,
                resource_version=old.record.resource_version,
                replaced_by=wl.key,
                message=REPLACED_MESSAGE,
            )
        )
    accounting.reserve(
        world,
        wl,
        cq,
        admission,
        reserved_ms=now_ms // 1000 * 1000,
        is_admitted=admitted,
        usage=[
            (choice.flavor, name, p.need.totals[p.need.names.index(name)])
            for p in entry.assignment.pod_sets
            for name, choice in p.flavors.items()
            if name in p.need.names
        ],
    )
    wl.assume()
    wl.scan = None
    wl.marked = None
    if world.ledger.is_on:
        _charge(world, entry)
    message = f"Quota reserved in ClusterQueue {cq.name}"
    wl.decision = Decision("QuotaReserved", message, now_ms, _NO_REASONS)
    waited = now_ms - wl.queued_ms
    commands.insert(
        0,
        ReserveQuota(
            workload=wl.key,
            uid=wl.uid,
            resource_version=wl.record.resource_version,
            cluster_queue=cq.name,
            admission=admission,
            checks=checks,
            admitted=admitted,
            message=message,
            wait_ms=waited if waited > 0 else 0,
        ),
    )
    return commands


def _assign_topology(world: World, entry: Entry, now_ms: int) -> AssignTopology:
    """Store the topology of a second pass; quota stays as it is (3.10)."""
    wl, cq = entry.wl, entry.cq
    assert wl.admission is not None
    found = {p.need.spec.name: p.topology for p in entry.assignment.pod_sets}
    pod_sets = tuple(
        PodSetAssignment(
            name=p.name,
            flavors=p.flavors,
            usage=p.usage,
            count=p.count,
            topology=found.get(p.name) or p.topology,
            delayed_topology="Ready" if p.delayed_topology is not None else None,
        )
        for p in wl.admission.pod_sets
    )
    admission = Admission(cluster_queue=cq.name, pod_sets=pod_sets)
    admitted = _is_admitted(wl, required_checks(cq, admission), admission)
    if wl.topology:
        world.placement.unbook(wl.topology)
    wl.admission = admission
    wl.topology = accounting.topology_of(world, wl.record, admission)
    if wl.topology:
        world.placement.book(wl.topology)
    wl.is_admitted = wl.is_admitted or admitted
    wl.assume_topology()
    wl.pass_attempt = 0
    wl.pass_due_ms = None
    wl.decision = Decision("QuotaReserved", "Topology assigned", now_ms, _NO_REASONS)
    return AssignTopology(
        workload=wl.key,
        uid=wl.uid,
        resource_version=wl.record.resource_version,
        cluster_queue=cq.name,
        admission=admission,
        admitted=admitted,
        clear_unhealthy_nodes=bool(wl.record.unhealthy_nodes),
    )


def required_checks(cq: ClusterQueueState, admission: Admission) -> tuple[CheckName, ...]:
    """Return the admission checks that the assigned flavors require, in name order (7.3)."""
    if not cq.checks:
        return ()
    assigned: set[FlavorName] = {f for p in admission.pod_sets for _, f in p.flavors}
    names = [
        name
        for name, on_flavors in cq.checks.items()
        if assigned and (not on_flavors or not assigned.isdisjoint(on_flavors))
    ]
    return tuple(sorted(names))


def _is_admitted(wl: WorkloadState, checks: tuple[CheckName, ...], admission: Admission) -> bool:
    """Tell whether nothing stands between the reservation and admission."""
    for pod_set in admission.pod_sets:
        if pod_set.delayed_topology == "Pending" and pod_set.topology is None:
            return False
    if not checks:
        return True
    ready = {check.name for check in wl.record.checks if check.state == "Ready"}
    return all(name in ready for name in checks)


def _pod_sets(entry: Entry) -> tuple[PodSetAssignment, ...]:
    result = []
    for pod_set in entry.assignment.pod_sets:
        need = pod_set.need
        flavors = [(name, choice.flavor) for name, choice in pod_set.flavors.items()]
        usage: list[tuple[ResourceName, int]] = list(zip(need.names, need.totals, strict=True))
        if len(usage) > 1:
            flavors.sort()
            usage.sort()
        result.append(
            PodSetAssignment(
                name=need.spec.name,
                flavors=tuple(flavors),
                usage=tuple(usage),
                count=need.count,
                topology=pod_set.topology,
                delayed_topology="Pending" if pod_set.delayed else None,
            )
        )
    return tuple(result)


def _charge(world: World, entry: Entry) -> None:
    """Charge the LocalQueue the entry penalty of what was let in (5.4.4)."""
    covered = entry.cq.group_of if world.options.ignore_undeclared else None
    totals: dict[ResourceName, int] = {}
    for need in entry.wl.needs:
        for name, value in zip(need.names, need.totals, strict=True):
            if covered is None or name in covered:
                totals[name] = totals.get(name, 0) + value
    world.ledger.charge(entry.wl.lq, entry.wl.key, totals)
    entry.cq.needs_reorder = True
