"""Which hosts of a placed Workload count as failed: pure rules.

Called by `topology_nodes`. Source: docs/spec/algorithm.md 6.8 (detection).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from sluice.api import names
from sluice.api.names import FlavorName
from sluice.api.records import ResourceFlavor, Taint, Toleration, Workload
from sluice.controllers.topology_records import CachedNode
from sluice.engine.options import Gates

NOT_READY_MS: Final = 30_000
"""With gate TASReplaceNodeDueToNotReadyOverFixedTime a node may be unready for so long."""
_KEEPING_OUT: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was found about the hosts of one Workload.

    Attributes:
        failed: Hosts that count as failed now, in the order of the names.
        ailing: Hosts where no new pod can run, the failed ones among them.
        look_again_ms: When a host will count as failed if nothing changes, None for never.
    """

    failed: tuple[str, ...] = ()
    ailing: frozenset[str] = frozenset()
    look_again_ms: int | None = None


def tolerations_by_host(
    workload: Workload, flavors: Callable[[FlavorName], ResourceFlavor | None]
) -> dict[str, list[tuple[Toleration, ...]]]:
    """Return, for each host assigned, what the pod sets on it tolerate.

    Args:
        workload: With an admission; only pod sets placed on hosts count.
        flavors: Returns a flavor by name, or None.
    """
    found: dict[str, list[tuple[Toleration, ...]]] = {}
    specs = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    for assigned in () if workload.admission is None else workload.admission.pod_sets:
        topology = assigned.topology
        if topology is None or topology.levels[-1:] != (names.HOSTNAME_LABEL,):
            continue
        held: list[Toleration] = []
        if assigned.name in specs:
            held.extend(specs[assigned.name].template.tolerations)
        for name in dict.fromkeys(flavor for _, flavor in assigned.flavors):
            flavor = flavors(name)
            held.extend(() if flavor is None else flavor.tolerations)
        for check in workload.checks:
            for update in check.updates:
                held.extend(update.tolerations if update.name == assigned.name else ())
        for domain in topology.domains:
            found.setdefault(domain.values[-1], []).append(tuple(held))
    return found


def examine(
    hosts: Mapping[str, list[tuple[Toleration, ...]]],
    node_of: Callable[[str], CachedNode | None],
    occupied: Collection[str],
    gates: Gates,
    now_ms: int,
) -> Findings:
    """Return which hosts have failed.

    Args:
        hosts: From `tolerations_by_host`.
        node_of: Returns the node of a host, None when there is none.
        occupied: Names of nodes where a pod of the Workload still lives.
        gates: Which rules apply.
        now_ms: Epoch milliseconds.

    Complexity: O(hosts x pod sets x taints x tolerations).
    """
    failed: list[str] = []
    ailing: set[str] = set()
    look_again_ms: int | None = None
    for host in sorted(hosts):
        node = node_of(host)
        if node is None or not node.is_reporting:
            failed.append(host)
            continue
        if not _keeps_out(node, hosts[host], gates):
            continue
        ailing.add(host)
        if gates.tas_replace_on_pod_termination and node.record.name not in occupied:
            failed.append(host)
        elif gates.tas_replace_not_ready_over_time and not node.record.is_ready:
            due_ms = node.ready_changed_ms + NOT_READY_MS
            if due_ms <= now_ms:
                failed.append(host)
            elif look_again_ms is None or due_ms < look_again_ms:
                look_again_ms = due_ms
    return Findings(
        failed=tuple(failed), ailing=frozenset(ailing.union(failed)), look_again_ms=look_again_ms
    )


def _keeps_out(node: CachedNode, pod_sets: list[tuple[Toleration, ...]], gates: Gates) -> bool:
    """Tell whether some pod set could not start on a node."""
    if not node.record.is_ready:
        return True
    if not gates.tas_replace_on_taints:
        return False
    return any(
        not all(_is_tolerated(taint, held) for held in pod_sets)
        for taint in node.record.taints
        if taint.effect in _KEEPING_OUT
    )


def _is_tolerated(taint: Taint, held: tuple[Toleration, ...]) -> bool:
    """Tell whether pods may stay for good: tolerating for some seconds only is not enough."""
    return any(item.seconds is None and item.tolerates(taint) for item in held)
