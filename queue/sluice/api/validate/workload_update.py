"""Rules of what may change in a Workload. Pure. Called by ``workload``.

Source: docs/spec/api.md 2.2 (Workload, UPDATE only).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice.api import names
from sluice.api.errors import FieldError, invalid, required
from sluice.api.validate.gates import Gate, Gates, is_on
from sluice.api.validate.node import Node, annotations_of, key
from sluice.api.validate.syntax import IMMUTABLE
from sluice.api.validate.workload_status import (
    has_quota,
    is_elastic,
    pod_set_counts,
    reclaimable,
)

_PLACEMENT = frozenset({"topologyAssignment", "delayedTopologyRequest"})


def changes(old: Node, new: Node, gates: Gates) -> list[FieldError]:
    """Return what must not have changed between two states of a Workload."""
    errors: list[FieldError] = []
    if has_quota(old):
        errors += _pod_sets(old, new, gates)
        if has_quota(new):
            errors += _reclaimable(old, new, gates)
    errors += _admission(old, new, gates)
    errors += _checks(old, new)
    errors += _cluster_name(old, new, gates)
    return errors


def _pod_sets(old: Node, new: Node, gates: Gates) -> list[FieldError]:
    spec = new.map("spec")
    before, after = old.map("spec").items("podSets"), spec.items("podSets")
    if len(before) != len(after):
        value = [dict(pod_set.value) for pod_set in after]
        return [invalid(spec.at("podSets"), value, IMMUTABLE)]
    may_shrink = is_on(gates, Gate.ELASTIC_JOBS)
    # The index really stands behind a dot here (docs/spec/api.md 2.2).
    return [
        invalid(f"{spec.at('podSets')}.{i}", dict(now.value), IMMUTABLE)
        for i, (was, now) in enumerate(zip(before, after, strict=True))
        if not _same_pod_set(was, now, may_shrink)
    ]


def _same_pod_set(was: Node, now: Node, may_shrink: bool) -> bool:
    if was.value == now.value:
        return True
    counts = [1 if (n := node.integer("count")) is None else n for node in (was, now)]
    return (
        may_shrink
        and counts[1] < counts[0]
        and _without(was.value, {"count"}) == _without(now.value, {"count"})
    )


def _without(value: Mapping[str, Any], dropped: set[str] | frozenset[str]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name not in dropped}


def _reclaimable(old: Node, new: Node, gates: Gates) -> list[FieldError]:
    path = new.map("status").at("reclaimablePods")
    before, after = pod_set_counts(old), pod_set_counts(new)
    now = reclaimable(new)
    errors: list[FieldError] = []
    for name, count in reclaimable(old).items():
        if is_elastic(new, gates) and after.get(name, 0) < before.get(name, 0):
            continue
        if name not in now:
            errors.append(required(key(path, name), "cannot be removed"))
        elif now[name] < count:
            detail = f"cannot be less than {count}"
            errors.append(invalid(f"{key(path, name)}.count", now[name], detail))
    return errors


def _admission(old: Node, new: Node, gates: Gates) -> list[FieldError]:
    was, now = old.map("status").optional("admission"), new.map("status").optional("admission")
    if was is None or now is None:
        return []
    ignored = _PLACEMENT if is_on(gates, Gate.TOPOLOGY_AWARE_SCHEDULING) else frozenset()
    if _comparable(was, ignored) == _comparable(now, ignored):
        return []
    return [invalid(now.path, dict(now.value), IMMUTABLE)]


def _comparable(admission: Node, ignored: frozenset[str]) -> dict[str, Any]:
    assignments = [_without(a.value, ignored) for a in admission.items("podSetAssignments")]
    return {**_without(admission.value, {"podSetAssignments"}), "podSetAssignments": assignments}


def _checks(old: Node, new: Node) -> list[FieldError]:
    was_ready = {
        admission_check.text("name"): admission_check.raw("podSetUpdates") or []
        for admission_check in old.map("status").items("admissionChecks")
        if admission_check.raw("state") == "Ready"
    }
    errors: list[FieldError] = []
    for admission_check in new.map("status").items("admissionChecks"):
        name, updates = admission_check.text("name"), admission_check.raw("podSetUpdates") or []
        if admission_check.raw("state") != "Ready" or name not in was_ready:
            continue
        if updates != was_ready[name]:
            errors.append(invalid(admission_check.at("podSetUpdates"), updates, IMMUTABLE))
    return errors


def _cluster_name(old: Node, new: Node, gates: Gates) -> list[FieldError]:
    status = new.map("status")
    name = status.text("clusterName")
    if not name or old.map("status").text("clusterName"):
        return []
    is_replacement = names.WORKLOAD_SLICE_REPLACES in annotations_of(new)
    if is_replacement and is_on(gates, Gate.ELASTIC_JOBS):
        return []
    nominated = old.map("status").texts("nominatedClusterNames")
    if name in nominated:
        return []
    shown = ", ".join(nominated) or "none"
    detail = f"must be one of the nominatedClusterNames before the update: {shown}"
    return [invalid(status.at("clusterName"), name, detail)]
