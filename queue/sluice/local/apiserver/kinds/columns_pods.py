"""Table columns of pods and of the kinds that make pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice.local.apiserver.ages import human, parse_time
from sluice.local.apiserver.kinds.columns import AGE, NAME, NONE, join_map, number, or_none
from sluice.local.apiserver.resources import Column, Extract, dig
from sluice.local.apiserver.seams import JsonView


def _statuses(obj: JsonView, field: str) -> list[Mapping[str, Any]]:
    return list((obj.get("status") or {}).get(field) or ())


def _ready(obj: JsonView) -> str:
    statuses = _statuses(obj, "containerStatuses")
    ready = sum(1 for status in statuses if status.get("ready"))
    return f"{ready}/{len((obj.get('spec') or {}).get('containers') or ())}"


def _state_reason(status: Mapping[str, Any]) -> str | None:
    state = status.get("state") or {}
    waiting, terminated = state.get("waiting") or {}, state.get("terminated")
    if waiting.get("reason"):
        return str(waiting["reason"])
    if terminated is not None:
        if terminated.get("reason"):
            return str(terminated["reason"])
        if terminated.get("signal"):
            return f"Signal:{terminated['signal']}"
        return f"ExitCode:{terminated.get('exitCode', 0)}"
    return None


def pod_status(obj: JsonView) -> str:
    """Return the STATUS cell: phase, or the reason that tells more."""
    status = obj.get("status") or {}
    shown = str(status.get("reason") or status.get("phase") or "")
    conditions = status.get("conditions") or ()
    if any(c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated"
           for c in conditions):  # fmt: skip
        shown = "SchedulingGated"
    is_running = False
    for container in reversed(_statuses(obj, "containerStatuses")):
        reason = _state_reason(container)
        if reason is not None:
            shown = reason
        elif container.get("ready") and "running" in (container.get("state") or {}):
            is_running = True
    if shown == "Completed" and is_running:
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
        shown = "Running" if ready else "NotReady"
    if obj["metadata"].get("deletionTimestamp"):
        phase = status.get("phase")
        if status.get("reason") == "NodeLost":
            return "Unknown"
        return shown if phase in ("Succeeded", "Failed") else "Terminating"
    return shown


def _restarts(obj: JsonView) -> str:
    return str(sum(s.get("restartCount", 0) for s in _statuses(obj, "containerStatuses")))


def _gates(obj: JsonView) -> str:
    gates = (obj.get("spec") or {}).get("readinessGates") or ()
    if not gates:
        return NONE
    conditions = (obj.get("status") or {}).get("conditions") or ()
    true = {c.get("type") for c in conditions if c.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate.get('conditionType') in true)}/{len(gates)}"


def _containers(field: str, *path: str) -> Extract:
    def extract(obj: JsonView) -> str:
        containers = dig(*path, "containers")(obj) or ()
        return ",".join(str(container.get(field, "")) for container in containers)

    return extract


def _selector(*path: str) -> Extract:
    def extract(obj: JsonView) -> str:
        selector = dig(*path)(obj) or {}
        terms = [f"{k}={v}" for k, v in sorted((selector.get("matchLabels") or {}).items())]
        for term in selector.get("matchExpressions") or ():
            values = ",".join(term.get("values") or ())
            word = {"In": "in", "NotIn": "notin"}.get(term["operator"])
            if word:
                terms.append(f"{term['key']} {word} ({values})")
            else:
                terms.append(term["key"] if term["operator"] == "Exists" else f"!{term['key']}")
        return ",".join(terms) or NONE

    return extract


def _wide(*pod_spec: str) -> tuple[Column, Column]:
    return (
        Column(name="Containers", extract=_containers("name", *pod_spec), priority=1),
        Column(name="Images", extract=_containers("image", *pod_spec), priority=1),
    )


def _has(obj: JsonView, condition_type: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == condition_type and c.get("status") == "True" for c in conditions)


def _job_status(obj: JsonView) -> str:
    if _has(obj, "Complete"):
        return "Complete"
    if _has(obj, "Failed"):
        return "Failed"
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if _has(obj, "Suspended"):
        return "Suspended"
    if _has(obj, "FailureTarget"):
        return "FailureTarget"
    if _has(obj, "SuccessCriteriaMet"):
        return "SuccessCriteriaMet"
    return "Running"


def _completions(obj: JsonView) -> str:
    spec = obj.get("spec") or {}
    succeeded = (obj.get("status") or {}).get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(obj: JsonView, now_s: float) -> str:
    status = obj.get("status") or {}
    start_s, end_s = parse_time(status.get("startTime")), parse_time(status.get("completionTime"))
    if start_s is None:
        return ""
    # The cell grows until the Job completes.
    return human((now_s if end_s is None else end_s) - start_s)


def _ready_of(obj: JsonView) -> str:
    ready = (obj.get("status") or {}).get("readyReplicas", 0)
    return f"{ready}/{(obj.get('spec') or {}).get('replicas', 0)}"


_TEMPLATE = ("spec", "template", "spec")
_SELECTOR = Column(name="Selector", extract=_selector("spec", "selector"), priority=1)

COLUMNS: dict[str, tuple[Column, ...]] = {
    "Pod": (
        NAME,
        Column(name="Ready", extract=_ready),
        Column(name="Status", extract=pod_status),
        Column(name="Restarts", extract=_restarts),
        AGE,
        Column(name="IP", extract=or_none(dig("status", "podIP")), priority=1),
        Column(name="Node", extract=or_none(dig("spec", "nodeName")), priority=1),
        Column(
            name="Nominated Node",
            extract=or_none(dig("status", "nominatedNodeName")),
            priority=1,
        ),
        Column(name="Readiness Gates", extract=_gates, priority=1),
    ),
    "PodTemplate": (
        NAME,
        Column(name="Containers", extract=_containers("name", "template", "spec")),
        Column(name="Images", extract=_containers("image", "template", "spec")),
        Column(name="Pod Labels", extract=join_map("template", "metadata", "labels")),
    ),
    "Job": (
        NAME,
        Column(name="Status", extract=_job_status),
        Column(name="Completions", extract=_completions),
        Column(name="Duration", extract=dig("status", "completionTime"), timed=_duration),
        AGE,
        *_wide(*_TEMPLATE),
        _SELECTOR,
    ),
    "CronJob": (
        NAME,
        Column(name="Schedule", extract=dig("spec", "schedule")),
        Column(name="Timezone", extract=or_none(dig("spec", "timeZone"))),
        Column(
            name="Suspend",
            extract=lambda obj: "True" if dig("spec", "suspend")(obj) else "False",
            type="boolean",
        ),
        Column(
            name="Active",
            extract=lambda obj: len(dig("status", "active")(obj) or ()),
            type="integer",
        ),
        Column(
            name="Last Schedule", extract=or_none(dig("status", "lastScheduleTime")), is_age=True
        ),
        AGE,
        *_wide("spec", "jobTemplate", "spec", "template", "spec"),
        Column(
            name="Selector",
            extract=_selector("spec", "jobTemplate", "spec", "selector"),
            priority=1,
        ),
    ),
    "Deployment": (
        NAME,
        Column(name="Ready", extract=_ready_of),
        Column(name="Up-to-date", extract=number("status", "updatedReplicas")),
        Column(name="Available", extract=number("status", "availableReplicas")),
        AGE,
        *_wide(*_TEMPLATE),
        _SELECTOR,
    ),
    "ReplicaSet": (
        NAME,
        Column(name="Desired", extract=number("spec", "replicas"), type="integer"),
        Column(name="Current", extract=number("status", "replicas"), type="integer"),
        Column(name="Ready", extract=number("status", "readyReplicas"), type="integer"),
        AGE,
        *_wide(*_TEMPLATE),
        _SELECTOR,
    ),
    "StatefulSet": (NAME, Column(name="Ready", extract=_ready_of), AGE, *_wide(*_TEMPLATE)),
    "DaemonSet": (
        NAME,
        Column(name="Desired", extract=number("status", "desiredNumberScheduled"), type="integer"),
        Column(name="Current", extract=number("status", "currentNumberScheduled"), type="integer"),
        Column(name="Ready", extract=number("status", "numberReady"), type="integer"),
        Column(
            name="Up-to-date", extract=number("status", "updatedNumberScheduled"), type="integer"
        ),
        Column(name="Available", extract=number("status", "numberAvailable"), type="integer"),
        Column(name="Node Selector", extract=join_map(*_TEMPLATE, "nodeSelector")),
        AGE,
        *_wide(*_TEMPLATE),
        _SELECTOR,
    ),
}
