"""Raw JSON objects of the API server to slotted records, and decisions back to JSON.

The hot edge of the manager: informers hand raw dicts to `decode`, and nothing on that path builds a
pydantic model. Only ``kueue.x-k8s.io/v1beta2``, our own CreditPolicy and the core kinds the engine
needs are known. The object is taken as the API server's schema lets it pass: defaults are applied
where they matter. Anyone may import it. Pure.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from sluice.api import amount, quantity, times
from sluice.api.errors import InvalidObject, invalid
from sluice.api.names import (
    CheckName,
    ClusterQueueName,
    CohortName,
    FlavorName,
    ResourceName,
)
from sluice.api.records import (
    AdmissionCheck,
    AdmissionMode,
    CheckRule,
    ClusterQueue,
    Cohort,
    ConcurrentAdmissionPolicy,
    FlavorQuotas,
    FungibilityPolicy,
    FungibilityPreference,
    LimitRange,
    LimitRangeItem,
    LocalQueue,
    MigrationMode,
    Namespace,
    PreemptionPolicy,
    PreemptionRules,
    QueueingStrategy,
    Record,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    RuntimeClass,
    StopPolicy,
    Topology,
)
from sluice.api.wire_credit import credit_policy
from sluice.api.wire_pod import (
    label_selector,
    node,
    pairs,
    pod,
    quantity_texts,
    taint,
    template,
    toleration,
)
from sluice.api.wire_workload import (
    admission,
    encode_admission,
    encode_requests,
    topology_request,
    workload,
)

JsonObject = Mapping[str, Any]


def decode(raw: JsonObject) -> Record:
    """Return the record of a raw object, chosen by its ``kind``.

    Raises:
        InvalidObject: The kind is unknown, or a field has a form its schema would refuse.
    """
    kind = raw.get("kind")
    decoder = _DECODERS.get(str(kind))
    if decoder is None:
        raise InvalidObject([invalid("kind", kind, f"must be one of {', '.join(_DECODERS)}")])
    return _decode(raw, decoder)


def decode_as(kind: str, raw: JsonObject) -> Record:
    """Return the record of a raw object whose kind is known but not written in it (list items).

    Raises:
        InvalidObject: As `decode`.
    """
    return _decode(raw, _DECODERS[kind])


def _decode(raw: JsonObject, decoder: Callable[[JsonObject], Record]) -> Record:
    try:
        return decoder(raw)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        name = (raw.get("metadata") or {}).get("name")
        raise InvalidObject(
            [invalid("metadata.name", name, f"cannot read this object: {error!r}")]
        ) from error


def _version(meta: JsonObject) -> str:
    return meta.get("resourceVersion") or ""


def _weight(spec: JsonObject) -> float:
    sharing = spec.get("fairSharing")
    if not sharing or sharing.get("weight") is None:
        return 1.0
    return float(quantity.parse(sharing["weight"]))


def _quota(raw: JsonObject) -> ResourceQuota:
    name = raw["name"]
    borrowing, lending = raw.get("borrowingLimit"), raw.get("lendingLimit")
    return ResourceQuota(
        name=ResourceName(name),
        nominal=amount.from_quota(name, raw["nominalQuota"]),
        borrowing_limit=None if borrowing is None else amount.from_quota(name, borrowing),
        lending_limit=None if lending is None else amount.from_quota(name, lending),
    )


def _groups(spec: JsonObject) -> tuple[ResourceGroup, ...]:
    return tuple(
        ResourceGroup(
            covered_resources=tuple(ResourceName(r) for r in group["coveredResources"]),
            flavors=tuple(
                FlavorQuotas(
                    name=FlavorName(flavor["name"]),
                    resources=tuple(_quota(q) for q in flavor.get("resources") or ()),
                )
                for flavor in group["flavors"]
            ),
        )
        for group in spec.get("resourceGroups") or ()
    )


def _preemption(raw: JsonObject) -> PreemptionRules:
    borrow = raw.get("borrowWithinCohort") or {}
    return PreemptionRules(
        within_cluster_queue=PreemptionPolicy(raw.get("withinClusterQueue") or "Never"),
        reclaim_within_cohort=PreemptionPolicy(raw.get("reclaimWithinCohort") or "Never"),
        borrow_within_cohort=PreemptionPolicy(borrow.get("policy") or "Never"),
        borrow_priority_threshold_max=borrow.get("maxPriorityThreshold"),
    )


def _concurrent(raw: JsonObject | None) -> ConcurrentAdmissionPolicy | None:
    if raw is None:
        return None
    migration = raw.get("migration") or {}
    last = (migration.get("constraints") or {}).get("lastAcceptableFlavorName")
    return ConcurrentAdmissionPolicy(
        mode=MigrationMode(migration.get("mode") or "TryPreferredFlavors"),
        last_acceptable_flavor=FlavorName(last) if last else None,
    )


def cluster_queue(raw: JsonObject) -> ClusterQueue:
    """Return the record of a ClusterQueue."""
    meta, spec = raw["metadata"], raw.get("spec") or {}
    fungibility = spec.get("flavorFungibility") or {}
    rules = (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or ()
    cohort = spec.get("cohortName")
    return ClusterQueue(
        name=ClusterQueueName(meta["name"]),
        uid=meta.get("uid") or "",
        resource_version=_version(meta),
        generation=meta.get("generation") or 0,
        resource_groups=_groups(spec),
        cohort=CohortName(cohort) if cohort else None,
        strategy=QueueingStrategy(spec.get("queueingStrategy") or "BestEffortFIFO"),
        namespace_selector=label_selector(spec.get("namespaceSelector")),
        when_can_borrow=_fungibility(fungibility.get("whenCanBorrow"), "MayStopSearch"),
        when_can_preempt=_fungibility(fungibility.get("whenCanPreempt"), "TryNextFlavor"),
        preference=FungibilityPreference(
            fungibility.get("preference") or "BorrowingOverPreemption"
        ),
        preemption=_preemption(spec.get("preemption") or {}),
        checks=tuple(
            CheckRule(
                name=CheckName(rule["name"]),
                on_flavors=tuple(FlavorName(f) for f in rule.get("onFlavors") or ()),
            )
            for rule in rules
        ),
        stop_policy=StopPolicy(spec.get("stopPolicy") or "None"),
        fair_weight=_weight(spec),
        admission_mode=AdmissionMode(
            (spec.get("admissionScope") or {}).get("admissionMode") or "NoAdmissionFairSharing"
        ),
        concurrent_admission=_concurrent(spec.get("concurrentAdmissionPolicy")),
        is_terminating=meta.get("deletionTimestamp") is not None,
    )


_OLD_SPELLINGS: Final = {"Borrow": "MayStopSearch", "Preempt": "MayStopSearch"}


def _fungibility(value: str | None, default: str) -> FungibilityPolicy:
    text = value or default
    return FungibilityPolicy(_OLD_SPELLINGS.get(text, text))


def local_queue(raw: JsonObject) -> LocalQueue:
    """Return the record of a LocalQueue."""
    meta, spec = raw["metadata"], raw.get("spec") or {}
    sharing = (raw.get("status") or {}).get("fairSharing") or {}
    afs = sharing.get("admissionFairSharingStatus") or {}
    updated = afs.get("lastUpdate")
    return LocalQueue(
        namespace=meta.get("namespace") or "",
        name=meta["name"],
        cluster_queue=ClusterQueueName(spec.get("clusterQueue") or ""),
        uid=meta.get("uid") or "",
        resource_version=_version(meta),
        generation=meta.get("generation") or 0,
        stop_policy=StopPolicy(spec.get("stopPolicy") or "None"),
        fair_weight=_weight(spec),
        consumed=quantity_texts(afs.get("consumedResources")),
        consumed_updated_ms=times.to_ms(updated) if updated else None,
        is_terminating=meta.get("deletionTimestamp") is not None,
    )


def cohort(raw: JsonObject) -> Cohort:
    """Return the record of a Cohort."""
    meta, spec = raw["metadata"], raw.get("spec") or {}
    parent = spec.get("parentName")
    return Cohort(
        name=CohortName(meta["name"]),
        uid=meta.get("uid") or "",
        resource_version=_version(meta),
        parent=CohortName(parent) if parent else None,
        resource_groups=_groups(spec),
        fair_weight=_weight(spec),
    )


def resource_flavor(raw: JsonObject) -> ResourceFlavor:
    """Return the record of a ResourceFlavor."""
    meta, spec = raw["metadata"], raw.get("spec") or {}
    return ResourceFlavor(
        name=FlavorName(meta["name"]),
        uid=meta.get("uid") or "",
        resource_version=_version(meta),
        node_labels=pairs(spec.get("nodeLabels")),
        node_taints=tuple(taint(t) for t in spec.get("nodeTaints") or ()),
        tolerations=tuple(toleration(t) for t in spec.get("tolerations") or ()),
        topology=spec.get("topologyName") or None,
    )


def admission_check(raw: JsonObject) -> AdmissionCheck:
    """Return the record of an AdmissionCheck."""
    meta = raw["metadata"]
    conditions = (raw.get("status") or {}).get("conditions") or ()
    return AdmissionCheck(
        name=CheckName(meta["name"]),
        controller=(raw.get("spec") or {}).get("controllerName") or "",
        resource_version=_version(meta),
        is_active=any(c.get("type") == "Active" and c.get("status") == "True" for c in conditions),
    )


def topology(raw: JsonObject) -> Topology:
    """Return the record of a Topology."""
    meta = raw["metadata"]
    levels = (raw.get("spec") or {}).get("levels") or ()
    return Topology(
        name=meta["name"],
        levels=tuple(level["nodeLabel"] for level in levels),
        resource_version=_version(meta),
    )


def namespace(raw: JsonObject) -> Namespace:
    """Return the record of a Namespace."""
    meta = raw["metadata"]
    return Namespace(
        name=meta["name"],
        labels=pairs(meta.get("labels")),
        resource_version=_version(meta),
    )


def limit_range(raw: JsonObject) -> LimitRange:
    """Return the record of a LimitRange."""
    meta = raw["metadata"]
    items: Iterable[JsonObject] = (raw.get("spec") or {}).get("limits") or ()
    return LimitRange(
        namespace=meta.get("namespace") or "",
        name=meta["name"],
        items=tuple(
            LimitRangeItem(
                type=item.get("type") or "",
                max=quantity_texts(item.get("max")),
                min=quantity_texts(item.get("min")),
                default=quantity_texts(item.get("default")),
                default_request=quantity_texts(item.get("defaultRequest")),
            )
            for item in items
        ),
        resource_version=_version(meta),
    )


def runtime_class(raw: JsonObject) -> RuntimeClass:
    """Return the record of a RuntimeClass (its fields are at the top level)."""
    meta = raw["metadata"]
    overhead = (raw.get("overhead") or {}).get("podFixed")
    return RuntimeClass(
        name=meta["name"], overhead=quantity_texts(overhead), resource_version=_version(meta)
    )


_DECODERS: Final[dict[str, Callable[[JsonObject], Record]]] = {
    "ClusterQueue": cluster_queue,
    "LocalQueue": local_queue,
    "Cohort": cohort,
    "ResourceFlavor": resource_flavor,
    "AdmissionCheck": admission_check,
    "Topology": topology,
    "Node": node,
    "Pod": pod,
    "Namespace": namespace,
    "LimitRange": limit_range,
    "RuntimeClass": runtime_class,
    "Workload": workload,
    "CreditPolicy": credit_policy,
}

__all__ = [
    "admission",
    "decode",
    "decode_as",
    "encode_admission",
    "encode_requests",
    "template",
    "topology_request",
    "workload",
]
