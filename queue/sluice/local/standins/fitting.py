"""Whether a Pod may run on a node, and which node suits it best. Pure; called by `scheduler`.

Covers what quotas and flavors lead to: node selectors, required node affinity, taints, resources
and the number of pods. Pod affinity, spreading, volumes and host ports are not looked at
(docs/embedded.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sluice.api import quantity

View = Mapping[str, Any]

_UNSCHEDULABLE_TAINT: Final = {
    "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "value": ""
}  # fmt: skip
_BLOCKING: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRoom:
    """A node as the scheduler sees it: canonical integer amounts."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[View, ...]
    allocatable: Mapping[str, int]


def node_room(node: View) -> NodeRoom:
    """Return what a Node offers; a cordoned one has the taint that says so."""
    spec, status = node.get("spec") or {}, node.get("status") or {}
    taints = list(spec.get("taints") or ())
    if spec.get("unschedulable"):
        taints.append(_UNSCHEDULABLE_TAINT)
    amounts = status.get("allocatable") or status.get("capacity") or {}
    return NodeRoom(
        name=node["metadata"]["name"],
        labels=node["metadata"].get("labels") or {},
        taints=tuple(taints),
        allocatable={name: quantity.canonical(name, text) for name, text in amounts.items()},
    )


def refusals(
    pod: View, asked: Mapping[str, int], node: NodeRoom, used: Mapping[str, int]
) -> list[str]:
    """Return why a Pod can't run on a node, in kube-scheduler's words; empty when it can."""
    spec = pod["spec"]
    if spec.get("nodeName") and spec["nodeName"] != node.name:
        return ["node(s) didn't match the requested node name"]
    taint = untolerated(node.taints, spec.get("tolerations") or ())
    if taint is not None:
        value = f": {taint['value']}" if taint.get("value") else ""
        return [f"node(s) had untolerated taint {{{taint.get('key', '')}{value}}}"]
    if not matches_affinity(spec, node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    short = []
    for name in sorted(asked):
        if asked[name] and used.get(name, 0) + asked[name] > node.allocatable.get(name, 0):
            short.append("Too many pods" if name == "pods" else f"Insufficient {name}")
    return short


def untolerated(taints: Iterable[View], tolerations: Iterable[View]) -> View | None:
    """Return the first taint that keeps the pod away, None when it tolerates all."""
    held = tuple(tolerations)
    for taint in taints:
        if taint.get("effect") in _BLOCKING and not any(tolerates(t, taint) for t in held):
            return taint
    return None


def tolerates(toleration: View, taint: View) -> bool:
    """Tell whether a toleration covers a taint."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    key = toleration.get("key")
    if key and key != taint.get("key"):
        return False
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")
        case _:
            return False


def matches_affinity(spec: View, node: NodeRoom) -> bool:
    """Tell whether node selector and required node affinity of a pod take a node."""
    selector = spec.get("nodeSelector") or {}
    if any(node.labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_matches_term(term, node) for term in required.get("nodeSelectorTerms") or ())


def _matches_term(term: View, node: NodeRoom) -> bool:
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(_holds(item, node.labels) for item in expressions) and all(
        _holds(item, {"metadata.name": node.name}) for item in fields
    )


def _holds(expression: View, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression.get("key", ""))
    values: Sequence[str] = expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(value, values, is_greater=expression.get("operator") == "Gt")
        case _:
            return False


def _compares(value: str | None, values: Sequence[str], *, is_greater: bool) -> bool:
    try:
        number, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if is_greater else number < bound


def share(asked: Mapping[str, int], node: NodeRoom, used: Mapping[str, int]) -> float:
    """Return how full a node would be with a pod: the mean over what the pod asks for."""
    parts = [
        (used.get(name, 0) + amount) / node.allocatable[name]
        for name, amount in asked.items()
        if node.allocatable.get(name)
    ]
    return sum(parts) / len(parts) if parts else 0.0


def summary(nodes: int, reasons: Mapping[str, int]) -> str:
    """Return the message of an unschedulable pod, with its reasons and on how many nodes."""
    if not nodes:
        return "0/0 nodes are available: no nodes available to schedule pods."
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return f"0/{nodes} nodes are available: {listed}."
