"""Workloads and facts for the tests of the lifecycle rules."""

from typing import Any

from sluice.api import times
from sluice.api.names import CheckName, ClusterQueueName, FlavorName
from sluice.api.records import (
    CheckRule,
    ClusterQueue,
    FlavorQuotas,
    LocalQueue,
    ResourceGroup,
    StopPolicy,
)
from sluice.engine.lifecycle import next_step
from sluice.engine.lifecycle_facts import Facts, LifecycleOptions, Step

NOW_MS = times.to_ms("2026-03-01T12:00:00Z")
OPTIONS = LifecycleOptions()


def ago(seconds: int) -> str:
    """Return the time so many seconds before now."""
    return times.from_ms(NOW_MS - seconds * 1000)


def condition(kind: str, status: str = "True", reason: str = "", **fields: Any) -> dict[str, Any]:
    """Return a condition that has been so for a minute."""
    return {
        "type": kind,
        "status": status,
        "reason": reason or kind,
        "message": fields.pop("message", ""),
        "lastTransitionTime": fields.pop("since", ago(60)),
        **fields,
    }


ADMISSION = {
    "clusterQueue": "cq",
    "podSetAssignments": [{"name": "main", "flavors": {"cpu": "f1"}, "count": 1}],
}
RESERVED = condition("QuotaReserved")
ADMITTED = condition("Admitted")


def workload(*conditions: dict[str, Any], spec: Any = None, **status: Any) -> dict[str, Any]:
    """Return a Workload with these conditions; one with QuotaReserved has an admission."""
    if any(c["type"] == "QuotaReserved" and c["status"] == "True" for c in conditions):
        status.setdefault("admission", ADMISSION)
    if conditions:
        status["conditions"] = list(conditions)
    return {
        "metadata": {
            "name": "wl",
            "namespace": "ns",
            "uid": "u",
            "generation": 3,
            "finalizers": ["kueue.x-k8s.io/resource-in-use"],
            "ownerReferences": [{"kind": "Job", "name": "j", "uid": "ju", "controller": True}],
        },
        "spec": {"queueName": "lq", "active": True, **(spec or {})},
        "status": status,
    }


def facts(
    *,
    local: StopPolicy | None = StopPolicy.NONE,
    cluster: StopPolicy | None = StopPolicy.NONE,
    active: bool = True,
    checks: dict[str, list[str]] | None = None,
    terminating: bool = False,
) -> Facts:
    """Return facts; None for a queue that does not exist."""
    groups = tuple(
        ResourceGroup(
            covered_resources=(),
            flavors=(FlavorQuotas(name=FlavorName(name), resources=()),),
        )
        for name in ("f1", "f2")
    )
    rules = tuple(
        CheckRule(name=CheckName(name), on_flavors=tuple(FlavorName(f) for f in flavors))
        for name, flavors in (checks or {}).items()
    )
    queue = ClusterQueueName("cq")
    return Facts(
        local_queue_name="lq",
        local_queue=None
        if local is None
        else LocalQueue(
            namespace="ns",
            name="lq",
            cluster_queue=queue,
            stop_policy=local,
            is_terminating=terminating,
        ),
        cluster_queue_name="cq",
        cluster_queue=None
        if cluster is None
        else ClusterQueue(name=queue, stop_policy=cluster, resource_groups=groups, checks=rules),
        cluster_queue_active=active,
    )


def step(
    given: dict[str, Any],
    around: Facts | None = None,
    options: LifecycleOptions = OPTIONS,
    now_ms: int = NOW_MS,
) -> Step:
    """Evaluate the rules once."""
    return next_step(given, around or facts(), options, now_ms)


def shown(result: Step, kind: str) -> tuple[str, str, str] | None:
    """Return status, reason and message of a condition of the new status, or None."""
    for entry in (result.status or {}).get("conditions", ()):
        if entry["type"] == kind:
            return entry["status"], entry["reason"], entry["message"]
    return None


def settle(
    given: dict[str, Any], around: Facts, options: LifecycleOptions = OPTIONS
) -> tuple[dict[str, Any], list[Step]]:
    """Write what the rules ask for until they ask for nothing more."""
    current, steps = given, []
    while True:
        result = step(current, around, options)
        if result.status is None and result.active is None:
            return current, steps
        steps.append(result)
        assert len(steps) <= 4, "the rules must settle"
        spec = dict(current["spec"])
        if result.active is not None:
            spec["active"] = result.active
        current = {**current, "spec": spec, "status": result.status or current["status"]}
