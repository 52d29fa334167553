"""Admission that is built into an API server, as far as queued Jobs depend on it.

Only what pods depend on is here (service account, priority, tolerations, limit ranges); what else
Kubernetes' default plugins do is listed as a difference in docs/embedded.md.
"""

from __future__ import annotations

from sluice.local.apiserver.backend import Backend
from sluice.local.apiserver.calls import Call
from sluice.local.apiserver.limits import apply_limit_ranges
from sluice.local.apiserver.preparing import name_of
from sluice.local.apiserver.seams import Json
from sluice.local.apiserver.status import forbidden
from sluice.local.apiserver.store import Key

LOST_NODE_S = 300
"""How long Kubernetes keeps a pod bound to a lost node by default, seconds."""

_CLASSES = ("scheduling.k8s.io", "priorityclasses")


def admit(backend: Backend, call: Call, obj: Json) -> None:
    """Complete a new object before webhooks see it.

    Raises:
        ApiError: 403 for a pod whose PriorityClass or account does not exist, or that leaves a
            LimitRange.
    """
    if call.resource.kind == "Pod" and not call.resource.group and not call.subresource:
        _set_account(backend, call.namespace, obj)
        _set_priority(backend, obj)
        _tolerate_lost_nodes(obj)
        _keep_limits(backend, call.namespace, obj)


def _keep_limits(backend: Backend, namespace: str, pod: Json) -> None:
    states = backend.store.collection("", "limitranges").select(namespace)
    ranges = [state.load() for state in states]
    if not ranges:
        return
    problems = apply_limit_ranges(pod, ranges)
    if problems:
        listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise forbidden("", "pods", name_of(pod), listed)


def _set_account(backend: Backend, namespace: str, pod: Json) -> None:
    spec = pod["spec"]
    name = spec.get("serviceAccountName") or "default"
    accounts = backend.store.collection("", "serviceaccounts").objects
    if Key(namespace, name) not in accounts:
        raise forbidden(
            "",
            "pods",
            name_of(pod),
            f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not '
            "found",
        )
    spec["serviceAccountName"] = spec["serviceAccount"] = name


def _tolerate_lost_nodes(pod: Json) -> None:
    """Let a pod stay five minutes on a node that is not ready or not reachable."""
    tolerations = pod["spec"].setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(
            t.get("key") in (None, "", key) and t.get("effect") in (None, "", "NoExecute")
            for t in tolerations
        ):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": LOST_NODE_S,
                }
            )


def _set_priority(backend: Backend, pod: Json) -> None:
    spec = pod["spec"]
    name = spec.get("priorityClassName")
    classes = backend.store.collection(*_CLASSES).objects
    found: Json | None = None
    if name:
        state = classes.get(Key("", name))
        if state is None:
            raise forbidden(
                "", "pods", name_of(pod), f"no PriorityClass with name {name} was found"
            )
        found = state.load()
    else:
        defaults = [c for c in (s.load() for s in classes.values()) if c.get("globalDefault")]
        found = min(defaults, key=lambda c: c["value"], default=None)
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
    value = found["value"] if found is not None else 0
    if spec.get("priority") not in (None, value):
        raise forbidden(
            "",
            "pods",
            name_of(pod),
            f"the integer value of priority ({spec['priority']}) must not be provided in pod "
            f"spec; priority admission controller computed {value} from the given PriorityClass "
            "name",
        )
    spec["priority"] = value
    policy = found.get("preemptionPolicy") if found is not None else None
    spec.setdefault("preemptionPolicy", policy or "PreemptLowerPriority")
