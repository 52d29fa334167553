"""Which priority a job's Workload has, and which class it refers to.

Pure: classes are looked up through functions that the caller passes in.
Source: docs/spec/api.md 2.3.8 (Priority), docs/spec/algorithm.md 0.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from sluice.api import names
from sluice.api.errors import SluiceError
from sluice.jobs.integration import JobIntegration, Json, PodSet, labels_of

_POD_GROUP_OF_CLASSES: Final = "scheduling.k8s.io"


class PriorityClassMissing(SluiceError):
    """The job names a class that does not exist (yet): tried again when it appears.

    Attributes:
        kind: WorkloadPriorityClass or PriorityClass.
        name: The name that the job gives.
    """

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f'{kind} "{name}" not found')
        self.kind = kind
        self.name = name


@dataclass(frozen=True, slots=True, kw_only=True)
class Priority:
    """A Workload's priority and where it comes from.

    Attributes:
        value: Larger goes first.
        reference: ``spec.priorityClassRef``, or None without a class.
    """

    value: int
    reference: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClasses:
    """Look-ups of the priority classes of a cluster; each returns None when there is no such class.

    Attributes:
        workload_class: Value of a WorkloadPriorityClass.
        pod_class: Value of a PriorityClass.
        default_class: Name and value of the default PriorityClass.
    """

    workload_class: Callable[[str], int | None]
    pod_class: Callable[[str], int | None]
    default_class: Callable[[], tuple[str, int] | None]


def workload_class_reference(name: str) -> Json:
    """Return the reference to a WorkloadPriorityClass."""
    return {"group": names.GROUP, "kind": "WorkloadPriorityClass", "name": name}


def pod_class_reference(name: str) -> Json:
    """Return the reference to a PriorityClass."""
    return {"group": _POD_GROUP_OF_CLASSES, "kind": "PriorityClass", "name": name}


def default_of(classes: Iterable[Json]) -> tuple[str, int] | None:
    """Return name and value of the default PriorityClass: the lowest value if several are."""
    defaults = [
        (c.get("value", 0), c["metadata"]["name"]) for c in classes if c.get("globalDefault")
    ]
    if not defaults:
        return None
    value, name = min(defaults)
    return name, value


def resolve(
    integration: JobIntegration, job: Json, pod_sets: Iterable[PodSet], classes: PriorityClasses
) -> Priority:
    """Return the priority of a job's Workload.

    Raises:
        PriorityClassMissing: The class that the job names does not exist.
    """
    if name := labels_of(job).get(names.PRIORITY_CLASS_LABEL):
        value = classes.workload_class(name)
        if value is None:
            raise PriorityClassMissing("WorkloadPriorityClass", name)
        return Priority(value=value, reference=workload_class_reference(name))
    name = integration.priority_class_name(job) or next(
        filter(None, (_class_of(pod_set) for pod_set in pod_sets)), ""
    )
    if name:
        value = classes.pod_class(name)
        if value is None:
            raise PriorityClassMissing("PriorityClass", name)
        return Priority(value=value, reference=pod_class_reference(name))
    default = classes.default_class()
    if default is None:
        return Priority(value=0)
    return Priority(value=default[1], reference=pod_class_reference(default[0]))


def _class_of(pod_set: PodSet) -> str:
    return str((pod_set.template.get("spec") or {}).get("priorityClassName") or "")
