"""Which pods of an admitted Workload may start, and in which domain of the topology each one goes.

Pods of a pod set with a topology assignment are made with the scheduling gate
``kueue.x-k8s.io/topology``. Taking it off means choosing a domain: by the pod's rank where all pods
have one that makes sense, else the domains are filled one after the other. Pure rules; the
controller is ``sluice.controllers.topology_ungating``.
Source: docs/spec/algorithm.md 6.13 and docs/spec/api.md appendix B.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sluice.api import names
from sluice.api.topology_assignment import Domain, decode

Json = Mapping[str, Any]
_DIGITS_MAX: Final = 9
"""Longest label value that is read as a number; ranks are far below it."""
_ENDED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedPod:
    """A pod that belongs to a pod set of a Workload, as far as its place is concerned.

    Attributes:
        resource_version: Not compared: a pod of which only the rest changed is the same here.
        workload: Name of its Workload, which is in its namespace.
        node: Node that it is bound to, empty while it is not.
        gates: Names of its scheduling gates.
        numbers: Labels whose value is an unsigned integer; ranks are read from them.
        offset: What its annotation asks to subtract from ranks.
        is_terminating: It is being deleted.
        is_pending: It has not begun to run.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str = field(default="", compare=False)
    workload: str
    pod_set: str
    node: str = ""
    gates: tuple[str, ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    numbers: tuple[tuple[str, int], ...] = ()
    offset: int = 0
    is_terminating: bool = False
    is_pending: bool = True

    @property
    def key(self) -> str:
        """Return ``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def workload_key(self) -> str:
        """Return the key of its Workload."""
        return f"{self.namespace}/{self.workload}"

    @property
    def is_gated(self) -> bool:
        """Tell whether it waits for a domain."""
        return names.TOPOLOGY_GATE in self.gates


def queued_pod(raw: Json) -> QueuedPod | None:
    """Return what matters of a pod, None when it is of no pod set or has ended.

    An ended pod takes no place any more: whoever replaces it takes its place.
    """
    meta, spec = raw["metadata"], raw.get("spec") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    workload = annotations.get(names.WORKLOAD_ANNOTATION)
    pod_set = labels.get(names.POD_SET_LABEL)
    phase = (raw.get("status") or {}).get("phase") or "Pending"
    if not workload or not pod_set or phase in _ENDED:
        return None
    return QueuedPod(
        namespace=meta.get("namespace") or "",
        name=meta["name"],
        uid=meta.get("uid") or "",
        resource_version=meta.get("resourceVersion") or "",
        workload=workload,
        pod_set=pod_set,
        node=spec.get("nodeName") or "",
        gates=tuple(gate["name"] for gate in spec.get("schedulingGates") or ()),
        node_selector=tuple(sorted((spec.get("nodeSelector") or {}).items())),
        numbers=tuple(
            (key, number)
            for key, text in sorted(labels.items())
            if (number := _unsigned(text)) is not None
        ),
        offset=_unsigned(annotations.get(names.POD_INDEX_OFFSET)) or 0,
        is_terminating=bool(meta.get("deletionTimestamp")),
        is_pending=phase == "Pending",
    )


def _unsigned(text: str | None) -> int | None:
    if text is None or len(text) > _DIGITS_MAX or not text.isascii() or not text.isdecimal():
        return None
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where the pods of one pod set go, and how they are numbered.

    Attributes:
        count: Pods admitted.
        offset: Rank that is the first one of this pod set: of two in a group the second begins
            where the first ends.
        index_label: Label that numbers the pods, empty for none.
        sub_group_label: Label that numbers groups of pods, empty for none.
        sub_group_count: How many such groups there are.
    """

    pod_set: str
    levels: tuple[str, ...]
    domains: tuple[Domain, ...]
    count: int
    offset: int = 0
    index_label: str = ""
    sub_group_label: str = ""
    sub_group_count: int = 0


def placements(workload: Json) -> tuple[Placement, ...]:
    """Return the placement of each pod set that has a topology assignment.

    Args:
        workload: A Workload with ``status.admission``.

    Raises:
        InvalidObject: An assignment cannot be decoded.
    """
    admission = (workload.get("status") or {}).get("admission") or {}
    specs = {p.get("name", "main"): p for p in workload["spec"].get("podSets") or ()}
    assignments = admission.get("podSetAssignments") or ()
    counts = {
        name: assignment.get("count", specs.get(name, {}).get("count", 1))
        for assignment in assignments
        for name in (assignment.get("name", "main"),)
    }
    offsets = _offsets(specs, counts)
    result = []
    for assignment in assignments:
        topology = assignment.get("topologyAssignment")
        name = assignment.get("name", "main")
        if not topology:
            continue
        request = specs.get(name, {}).get("topologyRequest") or {}
        result.append(
            Placement(
                pod_set=name,
                levels=tuple(topology.get("levels") or ()),
                domains=tuple(decode(topology)),
                count=counts[name],
                offset=offsets.get(name, 0),
                index_label=request.get("podIndexLabel") or "",
                sub_group_label=request.get("subGroupIndexLabel") or "",
                sub_group_count=request.get("subGroupCount") or 0,
            )
        )
    return tuple(result)


def _offsets(specs: Mapping[str, Json], counts: Mapping[str, int]) -> dict[str, int]:
    """Return the first rank of pod sets that are the larger one of a group of two."""
    groups: dict[str, list[str]] = {}
    for name in counts:
        group = (specs.get(name, {}).get("topologyRequest") or {}).get("podSetGroupName")
        if group:
            groups.setdefault(group, []).append(name)
    offsets: dict[str, int] = {}
    for members in groups.values():
        if len(members) == 2:
            # Of two that are equal the first leads.
            leader, workers = sorted(members, key=lambda name: counts[name])
            offsets[workers] = counts[leader]
    return offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Ungate:
    """A pod that may be scheduled now, in one domain.

    Attributes:
        node_selector: Label values of its domain.
    """

    pod: QueuedPod
    node_selector: tuple[tuple[str, str], ...]


def to_ungate(
    placement: Placement, pods: Sequence[QueuedPod], unhealthy: Collection[str]
) -> tuple[Ungate, ...]:
    """Return the gated pods that may start, in the order given.

    Args:
        placement: Of their pod set.
        pods: All pods of the pod set that have not ended, gated or not, in a stable order.
        unhealthy: Hosts of ``status.unhealthyNodes``: whoever belongs there waits.

    Complexity: O(pods + domains).
    """
    if not any(pod.is_gated and not pod.is_terminating for pod in pods):
        return ()
    chosen = _by_rank(placement, pods)
    if chosen is None:
        chosen = _one_after_the_other(placement, pods)
    names_host = placement.levels[-1:] == (names.HOSTNAME_LABEL,)
    return tuple(
        Ungate(pod=pod, node_selector=tuple(zip(placement.levels, domain.values, strict=True)))
        for pod, domain in chosen
        if not (names_host and domain.values[-1] in unhealthy)
    )


def _by_rank(
    placement: Placement, pods: Sequence[QueuedPod]
) -> list[tuple[QueuedPod, Domain]] | None:
    """Return the domains that ranks say; None unless all of them make sense.

    A pod that is being deleted does not count: its successor has the same rank, and whatever else
    is gated meanwhile must not lose its place for that (Kueue would fill up instead).
    """
    by_rank = [domain for domain in placement.domains for _ in range(domain.count)]
    limit = min(placement.count, len(by_rank))
    offset = placement.offset + pods[0].offset
    seen: set[int] = set()
    chosen: list[tuple[QueuedPod, Domain]] = []
    for pod in pods:
        if pod.is_terminating:
            continue
        rank = _rank(placement, pod, offset)
        if rank is None or rank in seen or not 0 <= rank < limit:
            return None
        seen.add(rank)
        domain = by_rank[rank]
        if pod.is_gated:
            chosen.append((pod, domain))
        elif _values(placement, pod) != domain.values:
            return None
    return chosen


def _rank(placement: Placement, pod: QueuedPod, offset: int) -> int | None:
    if not placement.index_label:
        return None
    numbers = dict(pod.numbers)
    index = numbers.get(placement.index_label)
    if index is None:
        return None
    if not placement.sub_group_label:
        return index - offset
    group = numbers.get(placement.sub_group_label)
    if group is None or placement.sub_group_count < 1:
        return None
    size = placement.count // placement.sub_group_count
    return index + group * size - offset if index < size else None


def _one_after_the_other(
    placement: Placement, pods: Sequence[QueuedPod]
) -> list[tuple[QueuedPod, Domain]]:
    """Return domains filled in their order, with what is running there taken off."""
    taken = Counter(_values(placement, pod) for pod in pods if not pod.is_gated)
    waiting = iter([pod for pod in pods if pod.is_gated and not pod.is_terminating])
    chosen: list[tuple[QueuedPod, Domain]] = []
    for domain in placement.domains:
        for _ in range(domain.count - taken[domain.values]):
            pod = next(waiting, None)
            if pod is None:
                return chosen
            chosen.append((pod, domain))
    return chosen


def _values(placement: Placement, pod: QueuedPod) -> tuple[str, ...]:
    """Return the domain that a pod's node selector says."""
    selector = dict(pod.node_selector)
    return tuple(selector.get(level, "") for level in placement.levels)
