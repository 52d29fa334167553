"""Admission that is built into an API server, as far as queued Jobs depend on it.

Only the priority of pods is here; what else Kubernetes' default plugins do is listed as a
difference in docs/embedded.md.
"""

from __future__ import annotations

from sluice.local.apiserver.backend import Backend
from sluice.local.apiserver.calls import Call
from sluice.local.apiserver.preparing import name_of
from sluice.local.apiserver.seams import Json
from sluice.local.apiserver.status import forbidden
from sluice.local.apiserver.store import Key

_CLASSES = ("scheduling.k8s.io", "priorityclasses")


def admit(backend: Backend, call: Call, obj: Json) -> None:
    """Complete a new object before webhooks see it.

    Raises:
        ApiError: 403 for a pod whose PriorityClass does not exist.
    """
    if call.resource.kind == "Pod" and not call.resource.group and not call.subresource:
        _set_priority(backend, obj)


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
