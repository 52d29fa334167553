"""Raw JSON of Workloads to records, and admissions back to JSON.

Part of `sluice.api.wire`, which is what others import. Source: docs/spec/api.md 1.4. Pure.
"""

from collections.abc import Mapping
from typing import Any

from sluice.api import names, quantity, times, topology_assignment, wire_pod
from sluice.api.amount import clamp
from sluice.api.names import (
    CheckName,
    ClusterQueueName,
    FlavorName,
    PodSetName,
    ResourceName,
    WorkloadKey,
)
from sluice.api.records_workload import (
    Admission,
    CheckStatus,
    Condition,
    PodSet,
    PodSetAssignment,
    PodSetUpdate,
    SliceConstraint,
    TopologyAssignment,
    TopologyDomain,
    TopologyRequest,
    Workload,
)

JsonObject = Mapping[str, Any]
PARENT_LABEL = f"{names.GROUP}/concurrent-admission-parent"


def workload(raw: JsonObject) -> Workload:
    """Return the record of a Workload."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    labels, notes = meta.get("labels") or {}, meta.get("annotations") or {}
    namespace = meta.get("namespace") or ""
    allowed = notes.get(names.ALLOWED_FLAVORS) or ""
    parent = labels.get(PARENT_LABEL) or ""
    replaces = notes.get(names.WORKLOAD_SLICE_REPLACES)
    owners: list[JsonObject] = meta.get("ownerReferences") or []
    created = meta.get("creationTimestamp")
    requeue_at = (status.get("requeueState") or {}).get("requeueAt")
    return Workload(
        namespace=namespace,
        name=meta["name"],
        uid=meta.get("uid") or "",
        resource_version=meta.get("resourceVersion") or "",
        generation=meta.get("generation") or 0,
        created_ms=times.to_ms(created) if created else 0,
        is_terminating=meta.get("deletionTimestamp") is not None,
        queue=spec.get("queueName") or "",
        pod_sets=tuple(_pod_set(p) for p in spec.get("podSets") or ()),
        priority=spec.get("priority") or 0,
        priority_boost=_integer(notes.get(names.PRIORITY_BOOST)),
        active=spec.get("active") is not False,
        gated_by=notes.get(names.ADMISSION_GATED_BY) or "",
        replaces=WorkloadKey(replaces) if replaces else None,
        is_elastic=notes.get(names.ELASTIC_JOB) == "true",
        allowed_flavors=tuple(FlavorName(f.strip()) for f in allowed.split(",") if f.strip()),
        variant_of=WorkloadKey(f"{namespace}/{parent}") if allowed and parent else None,
        is_variant_parent=bool(parent) and not allowed,
        job_uid=labels.get(names.JOB_UID_LABEL) or "",
        is_owned_by_pod=len(owners) == 1 and owners[0].get("kind") == "Pod",
        conditions={c["type"]: _condition(c) for c in status.get("conditions") or ()},
        admission=admission(status.get("admission")),
        checks=tuple(_check(c) for c in status.get("admissionChecks") or ()),
        reclaimable=tuple(
            (PodSetName(p["name"]), p["count"]) for p in status.get("reclaimablePods") or ()
        ),
        requeue_at_ms=times.to_ms(requeue_at) if requeue_at else None,
        closed_gates=_closed_gates(spec, status),
        unhealthy_nodes=tuple(n["name"] for n in status.get("unhealthyNodes") or ()),
        cluster_name=status.get("clusterName") or "",
    )


def _integer(text: str | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        return 0


def _condition(raw: JsonObject) -> Condition:
    at = raw.get("lastTransitionTime")
    return Condition(
        status=raw["status"],
        reason=raw.get("reason") or "",
        message=raw.get("message") or "",
        at_ms=times.to_ms(at) if at else 0,
    )


def _closed_gates(spec: JsonObject, status: JsonObject) -> tuple[str, ...]:
    positions = {g["name"]: g["position"] for g in status.get("preemptionGates") or ()}
    gates = [g["name"] for g in spec.get("preemptionGates") or ()]
    return tuple(name for name in gates if positions.get(name, "Closed") != "Open")


def _pod_set(raw: JsonObject) -> PodSet:
    count = raw.get("count")
    return PodSet(
        name=PodSetName(raw.get("name") or "main"),
        count=1 if count is None else count,
        template=wire_pod.template((raw.get("template") or {}).get("spec")),
        min_count=raw.get("minCount"),
        topology=topology_request(raw.get("topologyRequest")),
    )


def topology_request(raw: JsonObject | None) -> TopologyRequest | None:
    """Return the topology request of a pod set, or None."""
    if raw is None:
        return None
    constraints = raw.get("podsetSliceRequiredTopologyConstraints")
    level, size = raw.get("podSetSliceRequiredTopology"), raw.get("podSetSliceSize")
    if constraints:
        slices = tuple(SliceConstraint(topology=c["topology"], size=c["size"]) for c in constraints)
    elif level is not None:
        slices = (SliceConstraint(topology=level, size=1 if size is None else size),)
    else:
        slices = ()
    return TopologyRequest(
        required=raw.get("required"),
        preferred=raw.get("preferred"),
        unconstrained=raw.get("unconstrained"),
        group=raw.get("podSetGroupName") or None,
        slices=slices,
        has_slice_fields=bool(constraints) or level is not None or size is not None,
    )


def _check(raw: JsonObject) -> CheckStatus:
    return CheckStatus(
        name=CheckName(raw["name"]),
        state=raw.get("state") or "Pending",
        updates=tuple(
            PodSetUpdate(
                name=PodSetName(u["name"]),
                node_selector=wire_pod.pairs(u.get("nodeSelector")),
                tolerations=tuple(wire_pod.toleration(t) for t in u.get("tolerations") or ()),
            )
            for u in raw.get("podSetUpdates") or ()
        ),
    )


def admission(raw: JsonObject | None) -> Admission | None:
    """Return status.admission, or None when it is absent."""
    if raw is None:
        return None
    return Admission(
        cluster_queue=ClusterQueueName(raw.get("clusterQueue") or ""),
        pod_sets=tuple(_assignment(a) for a in raw.get("podSetAssignments") or ()),
    )


def _assignment(raw: JsonObject) -> PodSetAssignment:
    flavors, usage = raw.get("flavors") or {}, raw.get("resourceUsage") or {}
    return PodSetAssignment(
        name=PodSetName(raw.get("name") or "main"),
        flavors=tuple((ResourceName(r), FlavorName(f)) for r, f in sorted(flavors.items())),
        usage=tuple(
            (ResourceName(r), clamp(quantity.canonical(r, v))) for r, v in sorted(usage.items())
        ),
        count=raw.get("count"),
        topology=_topology(raw.get("topologyAssignment")),
        delayed_topology=raw.get("delayedTopologyRequest"),
    )


def _topology(raw: dict[str, Any] | None) -> TopologyAssignment | None:
    if raw is None:
        return None
    return TopologyAssignment(
        levels=tuple(raw["levels"]),
        domains=tuple(
            TopologyDomain(values=d.values, count=d.count) for d in topology_assignment.decode(raw)
        ),
    )


def encode_admission(value: Admission, *, hostname_runs: bool = True) -> dict[str, Any]:
    """Return status.admission as JSON.

    Args:
        value: The admission.
        hostname_runs: Gate TASAssignmentsEncodingByHostnamePrefix.
    """
    return {
        "clusterQueue": value.cluster_queue,
        "podSetAssignments": [_encode_assignment(a, hostname_runs) for a in value.pod_sets],
    }


def _encode_assignment(value: PodSetAssignment, hostname_runs: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"name": value.name}
    if value.flavors:
        result["flavors"] = dict(value.flavors)
    if value.usage:
        result["resourceUsage"] = {r: quantity.to_text(r, v) for r, v in value.usage}
    if value.count is not None:
        result["count"] = value.count
    if value.topology is not None:
        domains = [topology_assignment.Domain(d.values, d.count) for d in value.topology.domains]
        result["topologyAssignment"] = topology_assignment.encode(
            value.topology.levels, domains, by_hostname_prefix=hostname_runs
        )
    if value.delayed_topology is not None:
        result["delayedTopologyRequest"] = value.delayed_topology
    return result


def encode_requests(
    requests: tuple[tuple[PodSetName, tuple[tuple[ResourceName, int], ...]], ...],
) -> list[dict[str, Any]]:
    """Return status.resourceRequests of the requests of a MarkPending."""
    return [
        {"name": name, "resources": {r: quantity.to_text(r, v) for r, v in amounts}}
        for name, amounts in requests
    ]
