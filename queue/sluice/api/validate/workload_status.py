"""Rules of a Workload's ``status``, whatever it was before. Pure. Called by ``workload``.

Source: docs/spec/api.md 2.2 (Workload).
"""

from __future__ import annotations

from typing import Final

from sluice.api import names
from sluice.api.errors import FieldError, invalid, not_found, not_supported, required
from sluice.api.quantity import canonical
from sluice.api.validate.conditions import condition_list
from sluice.api.validate.gates import Gate, Gates, is_on
from sluice.api.validate.node import Node, annotations_of, key
from sluice.api.validate.syntax import annotation_map, check, label_map, qualified_name

QUOTA_RESERVED: Final = "QuotaReserved"
DEFAULT_POD_SET: Final = "main"


def is_elastic(workload: Node, gates: Gates) -> bool:
    """Tell whether a Workload may be replaced by a slice of another size."""
    return (
        is_on(gates, Gate.ELASTIC_JOBS)
        and annotations_of(workload).get(names.ELASTIC_JOB) == "true"
    )


def has_quota(workload: Node) -> bool:
    """Tell whether condition QuotaReserved is True."""
    return any(
        condition.raw("type") == QUOTA_RESERVED and condition.raw("status") == "True"
        for condition in workload.map("status").items("conditions")
    )


def pod_set_counts(workload: Node) -> dict[str, int]:
    """Return the pods of each pod set by its name, with the schema's defaults."""
    counts: dict[str, int] = {}
    for pod_set in workload.map("spec").items("podSets"):
        count = pod_set.integer("count")
        counts[pod_set.text("name", DEFAULT_POD_SET)] = 1 if count is None else count
    return counts


def reclaimable(workload: Node) -> dict[str, int]:
    """Return ``status.reclaimablePods`` by pod set."""
    items = workload.map("status").items("reclaimablePods")
    return {item.text("name"): item.integer("count") or 0 for item in items}


def rules(workload: Node, old: Node | None, gates: Gates) -> list[FieldError]:
    """Return what is wrong with the status of a Workload.

    Args:
        workload: The Workload to be stored.
        old: The stored Workload, None on create; some faults that it has already are let through.
        gates: Feature gates.
    """
    status = workload.map("status")
    counts = pod_set_counts(workload)
    errors = _admission(workload, old, counts)
    errors += condition_list(status.at("conditions"), status.items("conditions"))
    errors += _reclaimable(workload, old, counts, gates)
    errors += _pod_set_updates(status, counts)
    return errors


def _admission(workload: Node, old: Node | None, counts: dict[str, int]) -> list[FieldError]:
    status = workload.map("status")
    is_reserved = has_quota(workload)
    admission = status.optional("admission")
    if admission is None:
        was_so = old is not None and has_quota(old) and not old.map("status").has("admission")
        if is_reserved and not was_so:
            detail = "must be set while the QuotaReserved condition is true"
            return [required(status.at("admission"), detail)]
        return []
    errors: list[FieldError] = []
    for assignment in admission.items("podSetAssignments"):
        name = assignment.text("name", DEFAULT_POD_SET)
        if is_reserved and name not in counts:
            errors.append(not_found(assignment.at("name"), name))
        count = assignment.integer("count") or 0
        if count > 0:
            errors += _divisible(assignment, count)
    return errors


def _divisible(assignment: Node, count: int) -> list[FieldError]:
    errors: list[FieldError] = []
    for resource, value, path in assignment.entries("resourceUsage"):
        try:
            total = canonical(resource, value)
        except ValueError as error:
            errors.append(invalid(path, value, str(error)))
            continue
        if total % count:
            errors.append(invalid(path, total, f"is not a multiple of {count}"))
    return errors


def _reclaimable(
    workload: Node, old: Node | None, counts: dict[str, int], gates: Gates
) -> list[FieldError]:
    path = workload.map("status").at("reclaimablePods")
    before = reclaimable(old) if old is not None and is_elastic(workload, gates) else {}
    errors: list[FieldError] = []
    for name, count in reclaimable(workload).items():
        entry = key(path, name)
        if name not in counts:
            errors.append(not_supported(f"{entry}.name", name, sorted(counts)))
        # Scaling an elastic Workload down leaves the entry too high until its job corrects it.
        elif count > counts[name] and before.get(name) != count:
            detail = f"should be less than or equal to {counts[name]}"
            errors.append(invalid(f"{entry}.count", count, detail))
    return errors


def _pod_set_updates(status: Node, counts: dict[str, int]) -> list[FieldError]:
    errors: list[FieldError] = []
    for admission_check in status.items("admissionChecks"):
        for update in admission_check.items("podSetUpdates"):
            name = update.text("name")
            if name not in counts:
                errors.append(not_supported(update.at("name"), name, sorted(counts)))
            for toleration in update.items("tolerations"):
                if toleration_key := toleration.text("key"):
                    errors += check(toleration.at("key"), toleration_key, qualified_name)
            errors += annotation_map(update.at("annotations"), update.strings("annotations"))
            errors += label_map(update.at("nodeSelector"), update.strings("nodeSelector"))
            errors += label_map(update.at("labels"), update.strings("labels"))
    return errors
