"""Conversion of Workload (docs/spec/api.md 1.4, 1.11).

`upgrade` goes from v1beta1 to v1beta2 and `downgrade` back. Called by `convert` only, which sets
apiVersion and checks that spec and status are objects.
"""

from collections.abc import Callable
from typing import Final

from sluice.api.conversion.edits import Object, edited, edited_items, renamed, without
from sluice.api.errors import FieldError, InvalidObject
from sluice.api.topology_assignment import Domain, decode, encode

_SOURCE_TO_CLASS: Final = {
    "kueue.x-k8s.io/workloadpriorityclass": ("kueue.x-k8s.io", "WorkloadPriorityClass"),
    "scheduling.k8s.io/priorityclass": ("scheduling.k8s.io", "PriorityClass"),
}
_GROUP_TO_SOURCE: Final = {group: source for source, (group, _) in _SOURCE_TO_CLASS.items()}

_OLD_ACCUMULATED: Final = "accumulatedPastExexcutionTimeSeconds"
_NEW_ACCUMULATED: Final = "accumulatedPastExecutionTimeSeconds"


def upgrade(obj: Object) -> Object:
    """Return a Workload in v1beta2."""
    obj = edited(obj, "spec", _upgrade_spec)
    return edited(obj, "status", _upgrade_status)


def downgrade(obj: Object) -> Object:
    """Return a Workload in v1beta1."""
    obj = edited(obj, "spec", _downgrade_spec)
    return edited(obj, "status", _downgrade_status)


def _upgrade_spec(spec: Object) -> Object:
    name, source = spec.get("priorityClassName"), spec.get("priorityClassSource")
    spec = without(spec, "priorityClassName", "priorityClassSource")
    if not name or source not in _SOURCE_TO_CLASS:
        return spec
    group, kind = _SOURCE_TO_CLASS[source]
    return {**spec, "priorityClassRef": {"group": group, "kind": kind, "name": name}}


def _downgrade_spec(spec: Object) -> Object:
    ref = spec.get("priorityClassRef")
    spec = without(spec, "priorityClassRef", "preemptionGates")
    spec = edited_items(spec, "podSets", _downgrade_pod_set)
    if ref is None:
        # The default of v1beta1, as if the object had been written in that version.
        return {**spec, "priorityClassSource": ""}
    source = _GROUP_TO_SOURCE.get(ref["group"], "")
    return {**spec, "priorityClassName": ref["name"], "priorityClassSource": source}


def _downgrade_pod_set(pod_set: Object) -> Object:
    return edited(
        pod_set,
        "topologyRequest",
        lambda request: without(request, "podsetSliceRequiredTopologyConstraints"),
    )


def _upgrade_status(status: Object) -> Object:
    status = renamed(status, _OLD_ACCUMULATED, _NEW_ACCUMULATED)
    return _with_topologies(status, _compressed)


def _downgrade_status(status: Object) -> Object:
    status = renamed(status, _NEW_ACCUMULATED, _OLD_ACCUMULATED)
    return _with_topologies(without(status, "preemptionGates"), _expanded)


def _with_topologies(status: Object, change: Callable[[Object], Object]) -> Object:
    admission = status.get("admission") or {}
    assignments = admission.get("podSetAssignments")
    if not assignments or not any("topologyAssignment" in a for a in assignments):
        return status
    changed = [
        _with_topology(assignment, change, index) for index, assignment in enumerate(assignments)
    ]
    return {**status, "admission": {**admission, "podSetAssignments": changed}}


def _with_topology(assignment: Object, change: Callable[[Object], Object], index: int) -> Object:
    try:
        return edited(assignment, "topologyAssignment", change)
    except InvalidObject as error:
        base = f"status.admission.podSetAssignments[{index}].topologyAssignment"
        raise InvalidObject(_below(base, e) for e in error.errors) from error


def _below(base: str, error: FieldError) -> FieldError:
    return FieldError(error.kind, f"{base}.{error.path}", error.detail, error.value)


def _compressed(topology: Object) -> Object:
    domains = [Domain(tuple(d["values"]), d["count"]) for d in topology.get("domains") or ()]
    return encode(topology.get("levels") or (), domains)


def _expanded(topology: Object) -> Object:
    domains = [{"values": list(d.values), "count": d.count} for d in decode(topology)]
    return {"levels": topology.get("levels") or [], "domains": domains}
