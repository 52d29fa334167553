"""Small readings of Jobs, Pods and Nodes that several stand-ins share. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice.api import quantity

Json = dict[str, Any]
View = Mapping[str, Any]

ENDED_PHASES: Final = frozenset({"Succeeded", "Failed"})


def whole(body: Json) -> Json:
    """Keep the object as it is: the transform of informers that need all of it."""
    return body


def controller_uid(obj: View) -> str:
    """Return the uid of the controlling owner, "" when there is none."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner.get("uid", ""))
    return ""


def is_deleting(obj: View) -> bool:
    """Tell whether an object is marked for deletion."""
    return obj["metadata"].get("deletionTimestamp") is not None


def phase(pod: View) -> str:
    """Return the phase of a Pod."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def has_ended(pod: View) -> bool:
    """Tell whether a Pod has run to its end."""
    return phase(pod) in ENDED_PHASES


def condition(obj: View, kind: str) -> View | None:
    """Return a condition of an object's status."""
    for found in (obj.get("status") or {}).get("conditions") or ():
        if found.get("type") == kind:
            entry: View = found
            return entry
    return None


def is_true(obj: View, kind: str) -> bool:
    """Tell whether a condition has status True."""
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def set_condition(
    conditions: list[Json],
    kind: str,
    status: str,
    now: str,
    *,
    reason: str = "",
    message: str = "",
    is_probed: bool = False,
) -> bool:
    """Set a condition in place; return whether anything changed.

    Args:
        conditions: The list to change.
        kind: Condition type.
        status: True, False or Unknown.
        now: RFC 3339 time of a transition.
        reason: CamelCase word, may be empty.
        message: Sentence, may be empty.
        is_probed: Also set lastProbeTime, as the Job controller does.
    """
    probed: Json = {"lastProbeTime": now} if is_probed else {}
    wanted: Json = {"type": kind, "status": status}
    if reason:
        wanted["reason"] = reason
    if message:
        wanted["message"] = message
    for index, found in enumerate(conditions):
        if found.get("type") != kind:
            continue
        same = {k: v for k, v in found.items() if not k.startswith("last")} == wanted
        if same:
            return False
        moved = now if found.get("status") != status else found.get("lastTransitionTime", now)
        conditions[index] = {**wanted, **probed, "lastTransitionTime": moved}
        return True
    conditions.append({**wanted, **probed, "lastTransitionTime": now})
    return True


def requests(pod: View) -> dict[str, int]:
    """Return what a Pod asks of a node: canonical integers, with one of `pods`.

    Containers add up; a plain init container counts with what it asks while it runs, one that
    restarts always (a sidecar) as a container.
    """
    spec = pod["spec"]
    total = dict[str, int]()
    for container in spec.get("containers") or ():
        _add(total, container)
    peak = dict[str, int]()
    sidecars = dict[str, int]()
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            _add(sidecars, container)
            continue
        running = dict(sidecars)
        _add(running, container)
        for name, amount in running.items():
            peak[name] = max(peak.get(name, 0), amount)
    for name, amount in sidecars.items():
        total[name] = total.get(name, 0) + amount
    for name, amount in peak.items():
        total[name] = max(total.get(name, 0), amount)
    for name, amount in (spec.get("overhead") or {}).items():
        total[name] = total.get(name, 0) + quantity.canonical(name, amount)
    total["pods"] = 1
    return total


def _add(total: dict[str, int], container: View) -> None:
    asked = (container.get("resources") or {}).get("requests") or {}
    for name, amount in asked.items():
        total[name] = total.get(name, 0) + quantity.canonical(name, amount)
