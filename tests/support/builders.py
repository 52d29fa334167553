"""Builders of the records that the engine observes, with defaults; a test names what it is about.

Quantities are written as in manifests: ``cq("a", cpu="4")``. One flavor ``default`` unless said
otherwise. Everything is a real record, decoded where that is the shorter way.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sluice.api import wire
from sluice.api.amount import from_quota
from sluice.api.conditions import ConditionType
from sluice.api.names import (
    CheckName,
    ClusterQueueName,
    CohortName,
    FlavorName,
    PodSetName,
    ResourceName,
    WorkloadKey,
)
from sluice.api.records import (
    Admission,
    AdmissionCheck,
    CheckRule,
    CheckStatus,
    ClusterQueue,
    Cohort,
    Condition,
    FlavorQuotas,
    LabelSelector,
    LocalQueue,
    Namespace,
    PodSet,
    PreemptionPolicy,
    PreemptionRules,
    QueueingStrategy,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    StopPolicy,
    Taint,
    TopologyRequest,
    Workload,
)

T0_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z, when the tests' world begins."""
NAMESPACE = "ns"

Quota = str | tuple[str, str | None] | tuple[str, str | None, str | None]
"""nominal, or (nominal, borrowing limit), or (nominal, borrowing limit, lending limit)."""
Flavors = Mapping[str, Mapping[str, Quota]]


def quota(resource: str, value: Quota) -> ResourceQuota:
    """Return one resource's quota."""
    parts = (value,) if isinstance(value, str) else value
    nominal, borrowing, lending = (*parts, None, None)[:3]
    return ResourceQuota(
        name=ResourceName(resource),
        nominal=from_quota(resource, nominal),
        borrowing_limit=None if borrowing is None else from_quota(resource, borrowing),
        lending_limit=None if lending is None else from_quota(resource, lending),
    )


def group(flavors: Flavors) -> ResourceGroup:
    """Return a resource group: flavors in order, each with the same resources."""
    covered = next(iter(flavors.values()))
    return ResourceGroup(
        covered_resources=tuple(ResourceName(r) for r in covered),
        flavors=tuple(
            FlavorQuotas(
                name=FlavorName(name), resources=tuple(quota(r, q) for r, q in quotas.items())
            )
            for name, quotas in flavors.items()
        ),
    )


def groups(
    cpu: Quota | None, flavors: Flavors | None, more: Sequence[Flavors]
) -> tuple[ResourceGroup, ...]:
    """Return resource groups from the short forms of `cq` and `cohort`."""
    first = flavors if flavors is not None else {"default": {"cpu": cpu}} if cpu else None
    return tuple(group(f) for f in (*((first,) if first else ()), *more))


def cq(
    name: str,
    cohort: str | None = None,
    *,
    cpu: Quota | None = None,
    flavors: Flavors | None = None,
    more_groups: Sequence[Flavors] = (),
    within: str = "Never",
    reclaim: str = "Never",
    borrow: str = "Never",
    threshold: int | None = None,
    strict: bool = False,
    stop: str = "None",
    checks: Mapping[str, Sequence[str]] | None = None,
    **fields: Any,
) -> ClusterQueue:
    """Return a ClusterQueue that selects every namespace."""
    return ClusterQueue(
        name=ClusterQueueName(name),
        uid=f"uid-{name}",
        cohort=CohortName(cohort) if cohort else None,
        resource_groups=groups(cpu, flavors, more_groups),
        namespace_selector=fields.pop("namespace_selector", LabelSelector()),
        strategy=QueueingStrategy.STRICT_FIFO if strict else QueueingStrategy.BEST_EFFORT_FIFO,
        stop_policy=StopPolicy(stop),
        preemption=PreemptionRules(
            within_cluster_queue=PreemptionPolicy(within),
            reclaim_within_cohort=PreemptionPolicy(reclaim),
            borrow_within_cohort=PreemptionPolicy(borrow),
            borrow_priority_threshold_max=threshold,
        ),
        checks=tuple(
            CheckRule(name=CheckName(c), on_flavors=tuple(FlavorName(f) for f in on))
            for c, on in (checks or {}).items()
        ),
        **fields,
    )


def cohort(
    name: str,
    parent: str | None = None,
    *,
    cpu: Quota | None = None,
    flavors: Flavors | None = None,
    weight: float = 1.0,
) -> Cohort:
    """Return a Cohort object."""
    return Cohort(
        name=CohortName(name),
        parent=CohortName(parent) if parent else None,
        resource_groups=groups(cpu, flavors, ()),
        fair_weight=weight,
    )


def lq(queue: str, name: str | None = None, *, stop: str = "None", **fields: Any) -> LocalQueue:
    """Return a LocalQueue; named as its ClusterQueue unless said otherwise."""
    return LocalQueue(
        namespace=fields.pop("namespace", NAMESPACE),
        name=name or queue,
        cluster_queue=ClusterQueueName(queue),
        stop_policy=StopPolicy(stop),
        **fields,
    )


def flavor(name: str = "default", **fields: Any) -> ResourceFlavor:
    """Return a ResourceFlavor; ``labels`` as a mapping, ``taints`` as (key, value, effect)."""
    labels: Mapping[str, str] = fields.pop("labels", {})
    taints: Sequence[tuple[str, str, str]] = fields.pop("taints", ())
    return ResourceFlavor(
        name=FlavorName(name),
        node_labels=tuple(sorted(labels.items())),
        node_taints=tuple(Taint(key=k, value=v, effect=e) for k, v, e in taints),
        **fields,
    )


def namespace(name: str = NAMESPACE, **labels: str) -> Namespace:
    """Return a Namespace."""
    return Namespace(name=name, labels=tuple(sorted(labels.items())))


def check(
    name: str, controller: str = "example.com/check", *, active: bool = True
) -> AdmissionCheck:
    """Return an AdmissionCheck."""
    return AdmissionCheck(name=CheckName(name), controller=controller, is_active=active)


def ps(
    name: str = "main",
    count: int = 1,
    *,
    min_count: int | None = None,
    topology: TopologyRequest | None = None,
    spec: Mapping[str, Any] | None = None,
    **requests: str,
) -> PodSet:
    """Return a pod set of one container; keyword arguments are its requests (cpu="1")."""
    amounts = {key.replace("__", "."): value for key, value in requests.items()}
    container = {"name": "c", "resources": {"requests": amounts}}
    return PodSet(
        name=PodSetName(name),
        count=count,
        min_count=min_count,
        topology=topology,
        template=wire.template({"containers": [container], **(spec or {})}),
    )


def wl(
    name: str,
    queue: str,
    *pod_sets: PodSet,
    cpu: str | None = None,
    count: int = 1,
    priority: int = 0,
    created_s: int = 0,
    **fields: Any,
) -> Workload:
    """Return a pending Workload; ``cpu`` and ``count`` make a single pod set ``main``."""
    if cpu is not None:
        pod_sets = (*pod_sets, ps(count=count, cpu=cpu))
    return Workload(
        namespace=fields.pop("namespace", NAMESPACE),
        name=name,
        uid=fields.pop("uid", f"uid-{name}"),
        queue=queue,
        pod_sets=pod_sets,
        priority=priority,
        created_ms=T0_MS + created_s * 1000,
        **fields,
    )


def condition(status: bool, reason: str = "", *, at_s: int = 0, message: str = "") -> Condition:
    """Return a condition, its transition ``at_s`` seconds after the beginning."""
    return Condition(
        status="True" if status else "False",
        reason=reason,
        message=message,
        at_ms=T0_MS + at_s * 1000,
    )


def reserved(admission: Admission, *, at_s: int = 0, admitted: bool = True) -> dict[str, Any]:
    """Return the fields of a Workload that holds an admission."""
    conditions = {ConditionType.QUOTA_RESERVED: condition(True, "QuotaReserved", at_s=at_s)}
    if admitted:
        conditions[ConditionType.ADMITTED] = condition(True, "Admitted", at_s=at_s)
    return {"admission": admission, "conditions": conditions}


def ready(*names: str) -> tuple[CheckStatus, ...]:
    """Return Ready states of admission checks."""
    return tuple(CheckStatus(name=CheckName(name), state="Ready") for name in names)


def key(name: str) -> WorkloadKey:
    """Return the key of a Workload in the tests' namespace."""
    return WorkloadKey(f"{NAMESPACE}/{name}")
