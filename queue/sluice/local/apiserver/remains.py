"""What keeps an ending namespace: conditions that `kubectl describe namespace` shows.

Types, reasons and texts are those of Kubernetes' namespace controller, which people search for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sluice.local.apiserver.seams import Json


def remaining_conditions(
    objects: Mapping[str, Sequence[Json]], failures: Sequence[str]
) -> list[Json]:
    """Return the conditions of an ending namespace, without times.

    Args:
        objects: What is left, by `plural.group`.
        failures: What went wrong with deletions of this pass.
    """
    finalizers = Counter(
        finalizer
        for left in objects.values()
        for obj in left
        for finalizer in obj["metadata"].get("finalizers") or ()
    )
    kinds = ", ".join(
        f"{name} has {len(left)} resource instances" for name, left in sorted(objects.items())
    )
    holds = ", ".join(
        f"{name} in {count} resource instances" for name, count in sorted(finalizers.items())
    )
    return [
        _condition(
            "NamespaceDeletionContentFailure",
            "ContentDeletionFailed" if failures else "ContentDeleted",
            f"Failed to delete all resource types, {len(failures)} remaining: "
            + ", ".join(failures)
            if failures
            else "All content successfully deleted, may be waiting on finalization",
            is_true=bool(failures),
        ),
        _condition(
            "NamespaceContentRemaining",
            "SomeResourcesRemain" if objects else "ContentRemoved",
            f"Some resources are remaining: {kinds}"
            if objects
            else "All content successfully removed",
            is_true=bool(objects),
        ),
        _condition(
            "NamespaceFinalizersRemaining",
            "SomeFinalizersRemain" if finalizers else "ContentHasNoFinalizers",
            f"Some content in the namespace has finalizers remaining: {holds}"
            if finalizers
            else "All content-preserving finalizers finished",
            is_true=bool(finalizers),
        ),
    ]


def _condition(kind: str, reason: str, message: str, *, is_true: bool) -> Json:
    status = "True" if is_true else "False"
    return {"type": kind, "status": status, "reason": reason, "message": message}


def merge_conditions(old: Sequence[Json], new: Sequence[Json], now: str) -> list[Json]:
    """Return conditions with the time of each change of status."""
    since = {c["type"]: (c["status"], c.get("lastTransitionTime", now)) for c in old}
    merged = []
    for condition in new:
        status, at = since.get(condition["type"], ("", now))
        changed = status != condition["status"]
        merged.append({**condition, "lastTransitionTime": now if changed else at})
    return merged
