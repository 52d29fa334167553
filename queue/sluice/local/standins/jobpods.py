"""Which Pods a Job has, needs and doesn't need, and what a new one looks like. Pure.

Called by `jobs`. Facts: the batch/v1 API as Kubernetes documents it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sluice.local.standins import records

Json = dict[str, Any]
View = Mapping[str, Any]

INDEX: Final = "batch.kubernetes.io/job-completion-index"
_INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_NAME_LENGTH_MAX: Final = 57
"""Longest prefix of a generated name: five more characters must fit, and a dash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCounts:
    """A Job's Pods by what they are doing.

    `active` ones run or will; `terminating` ones are being deleted and have not ended.
    """

    active: tuple[Json, ...]
    terminating: tuple[Json, ...]
    succeeded: tuple[Json, ...]
    failed: tuple[Json, ...]

    @property
    def ready(self) -> int:
        """Return how many active Pods are ready."""
        return sum(records.is_true(pod, "Ready") for pod in self.active)


def count(pods: Iterable[Json]) -> PodCounts:
    """Sort a Job's Pods."""
    active, terminating, succeeded, failed = [], [], [], []
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
        phase = records.phase(pod)
        if phase == "Succeeded":
            succeeded.append(pod)
        elif phase == "Failed":
            failed.append(pod)
        elif records.is_deleting(pod):
            terminating.append(pod)
        else:
            active.append(pod)
    return PodCounts(
        active=tuple(active),
        terminating=tuple(terminating),
        succeeded=tuple(succeeded),
        failed=tuple(failed),
    )


def is_indexed(job: View) -> bool:
    """Tell whether each Pod of a Job has a completion index."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def index_of(pod: View) -> int | None:
    """Return a Pod's completion index, None when it has none."""
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    return int(text) if text.isdecimal() else None


def wanted_active(job: View, succeeded: int, active: int) -> int:
    """Return how many Pods of an unfinished, unsuspended Job should be active."""
    spec = job["spec"]
    parallelism = int(spec.get("parallelism", 1))
    completions = spec.get("completions")
    if completions is None:
        # A work queue: once one has succeeded, the others finish and none is added.
        return active if succeeded else parallelism
    return min(parallelism, max(0, int(completions) - succeeded))


def free_indexes(job: View, taken: set[int], limit: int) -> list[int]:
    """Return the lowest completion indexes that no Pod works on or has done."""
    found: list[int] = []
    for index in range(int(job["spec"].get("completions") or 0)):
        if len(found) >= limit:
            break
        if index not in taken:
            found.append(index)
    return found


def show_indexes(indexes: Iterable[int]) -> str:
    """Return indexes as `status.completedIndexes` writes them, e.g. `0-2,4`."""
    parts: list[str] = []
    ordered = sorted(set(indexes))
    start = 0
    while start < len(ordered):
        end = start
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        first, last = ordered[start], ordered[end]
        parts.append(str(first) if first == last else f"{first}-{last}")
        start = end + 1
    return ",".join(parts)


def read_indexes(text: str) -> set[int]:
    """Return the indexes that `status.completedIndexes` lists."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def surplus(active: Sequence[Json], count_max: int) -> list[Json]:
    """Return the active Pods to delete so that at most `count_max` stay: the least ready first."""
    extra = len(active) - count_max
    if extra <= 0:
        return []
    order = sorted(
        active,
        key=lambda pod: (
            bool(pod["spec"].get("nodeName")),
            records.is_true(pod, "Ready"),
            pod["metadata"].get("creationTimestamp", ""),
            pod["metadata"]["name"],
        ),
    )
    return order[:extra]


def new_pod(job: View, index: int | None) -> Json:
    """Return a Pod to create for a Job.

    Args:
        job: The Job.
        index: Completion index; None for a Job without them.
    """
    metadata, template = job["metadata"], job["spec"]["template"]
    described = template.get("metadata") or {}
    labels = dict(described.get("labels") or {})
    annotations = dict(described.get("annotations") or {})
    spec: Json = dict(template["spec"])
    name = str(metadata["name"])
    prefix = f"{name[:_NAME_LENGTH_MAX]}-"
    if index is not None:
        labels[INDEX] = annotations[INDEX] = str(index)
        prefix = f"{name[: _NAME_LENGTH_MAX - len(str(index)) - 1]}-{index}-"
        spec.setdefault("hostname", f"{name}-{index}")
        for field in ("initContainers", "containers"):
            if spec.get(field):
                spec[field] = [_with_index(container) for container in spec[field]]
    owner = {
        "apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": metadata["uid"],
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    pod_metadata: Json = {
        "generateName": prefix,
        "namespace": metadata["namespace"],
        "labels": labels,
        "ownerReferences": [owner],
    }
    if annotations:
        pod_metadata["annotations"] = annotations
    if described.get("finalizers"):
        pod_metadata["finalizers"] = list(described["finalizers"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": pod_metadata, "spec": spec}


def _with_index(container: View) -> Json:
    variables = list(container.get("env") or ())
    if any(variable.get("name") == _INDEX_VARIABLE for variable in variables):
        return dict(container)
    reference = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    return {
        **container, "env": [*variables, {"name": _INDEX_VARIABLE, "valueFrom": reference}]
    }  # fmt: skip
