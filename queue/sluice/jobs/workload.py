"""The Workload of a job: its name, how it is made, and whether it still says what the job says.

Pure. The name depends on the owner alone, so that making it twice is a harmless 409.
Source: docs/spec/api.md 2.3.8 (points 5, 10, 15) and 2.3.10; docs/spec/algorithm.md 7.2.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sluice.api import conditions, names
from sluice.jobs.difference import same
from sluice.jobs.integration import (
    JobIntegration,
    Json,
    PodSet,
    annotations_of,
    labels_of,
    queue_name,
)
from sluice.jobs.priority import Priority

NAME_LENGTH_MAX: Final = 253
SHORT_NAME_LENGTH_MAX: Final = 63
_HASH_LENGTH: Final = 5
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_MAX_INT32: Final = 2**31 - 1

_CONTAINER_FIELDS: Final = (
    "name", "image", "command", "args", "env", "envFrom", "ports", "resources", "restartPolicy"
)  # fmt: skip
"""Container fields that make another Workload. Only these, because the Workload's schema may be
older than the cluster's and drop fields that it does not know."""
_SCHEDULING_FIELDS: Final = (
    "nodeSelector", "affinity", "tolerations", "priorityClassName", "runtimeClassName", "overhead",
    "topologySpreadConstraints", "resourceClaims", "resources"
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadOptions:
    """Settings that shape Workloads.

    Attributes:
        label_keys_to_copy: ``integrations.labelKeysToCopy`` of the configuration.
        partial_admission: Gate PartialAdmission.
        short_names: Gate ShortWorkloadNames.
    """

    label_keys_to_copy: tuple[str, ...] = ()
    partial_admission: bool = True
    short_names: bool = False


def workload_name(
    *, kind: str, group: str, owner_name: str, owner_uid: str, extra: str = "", short: bool = False
) -> str:
    """Return the deterministic name of an owner's Workload (docs/spec/api.md 2.3.10)."""
    parts = [kind, group, owner_name, owner_uid] + ([extra] if extra else [])
    digest = hashlib.sha1("\n".join(parts).encode(), usedforsecurity=False).hexdigest()
    length_max = (SHORT_NAME_LENGTH_MAX if short else NAME_LENGTH_MAX) - _HASH_LENGTH - 1
    return f"{kind.lower()}-{owner_name}"[:length_max] + f"-{digest[:_HASH_LENGTH]}"


def name_of(integration: JobIntegration, job: Json, options: WorkloadOptions) -> str:
    """Return the name of a job's Workload."""
    metadata = job["metadata"]
    return workload_name(
        kind=integration.kind.kind,
        group=integration.kind.group,
        owner_name=metadata["name"],
        owner_uid=metadata["uid"],
        extra=integration.workload_name_extra(job),
        short=options.short_names,
    )


def owner_reference(integration: JobIntegration, job: Json) -> Json:
    """Return the controlling owner reference to a job."""
    return {
        "apiVersion": integration.kind.api_version,
        "kind": integration.kind.kind,
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_sets_of(
    integration: JobIntegration, job: Json, options: WorkloadOptions
) -> tuple[PodSet, ...]:
    """Return the pod sets of a job as a Workload shall have them."""
    pod_sets = integration.pod_sets(job)
    if options.partial_admission:
        return pod_sets
    return tuple(
        PodSet(name=p.name, count=p.count, template=p.template, topology_request=p.topology_request)
        for p in pod_sets
    )


def construct(
    integration: JobIntegration,
    job: Json,
    *,
    pod_sets: Sequence[PodSet],
    priority: Priority,
    options: WorkloadOptions,
) -> Json:
    """Return the Workload to create for a job."""
    metadata = job["metadata"]
    labels = {
        key: labels_of(job)[key] for key in options.label_keys_to_copy if key in labels_of(job)
    }
    if _LABEL_VALUE.fullmatch(metadata["uid"]):
        labels[names.JOB_UID_LABEL] = metadata["uid"]
    result: Json = {
        "apiVersion": names.API_VERSION,
        "kind": "Workload",
        "metadata": {
            "name": name_of(integration, job, options),
            "namespace": metadata["namespace"],
            "labels": labels,
            "finalizers": [names.IN_USE_FINALIZER],
            "ownerReferences": [owner_reference(integration, job)],
        },
        "spec": {
            "podSets": [pod_set.to_json() for pod_set in pod_sets],
            "queueName": queue_name(job),
            "active": True,
            **priority_fields(priority),
        },
    }
    if not result["spec"]["queueName"]:
        del result["spec"]["queueName"]
    if annotations := copied_annotations(job):
        result["metadata"]["annotations"] = annotations
    seconds = execution_seconds_max(job)
    if seconds is not None:
        result["spec"]["maximumExecutionTimeSeconds"] = seconds
    return result


def priority_fields(priority: Priority) -> Json:
    """Return the fields of ``spec`` that carry a priority."""
    fields: Json = {"priority": priority.value}
    if priority.reference is not None:
        fields["priorityClassRef"] = priority.reference
    return fields


def copied_annotations(job: Json) -> dict[str, str]:
    """Return the annotations that a Workload takes over from its job."""
    return {
        key: value
        for key, value in sorted(annotations_of(job).items())
        if key.startswith(names.PROVISIONING_PREFIX)
        or key in (names.ADMISSION_GATED_BY, names.ALLOWED_FLAVORS)
    }


def execution_seconds_max(job: Json) -> int | None:
    """Return the job's maximum execution time in seconds, or None without a readable label."""
    text = labels_of(job).get(names.MAX_EXEC_TIME_LABEL, "")
    return int(text) if text.isdecimal() and 0 < int(text) <= _MAX_INT32 else None


def is_owned_by(workload: Json, job: Json) -> bool:
    """Tell whether a job owns a Workload."""
    references = workload["metadata"].get("ownerReferences") or ()
    return any(reference.get("uid") == job["metadata"]["uid"] for reference in references)


def is_reserved(workload: Json) -> bool:
    """Tell whether a Workload holds quota."""
    return conditions.is_true(_conditions(workload), conditions.ConditionType.QUOTA_RESERVED)


def is_admitted(workload: Json) -> bool:
    """Tell whether a Workload is admitted."""
    return conditions.is_true(_conditions(workload), conditions.ConditionType.ADMITTED)


def is_finished(workload: Json) -> bool:
    """Tell whether a Workload is finished."""
    return conditions.is_true(_conditions(workload), conditions.ConditionType.FINISHED)


def is_evicted(workload: Json) -> bool:
    """Tell whether a Workload is evicted."""
    return conditions.is_true(_conditions(workload), conditions.ConditionType.EVICTED)


def _conditions(workload: Json) -> Sequence[Json]:
    return (workload.get("status") or {}).get("conditions") or ()


def matches(workload: Json, pod_sets: Sequence[PodSet], *, suspended: bool) -> bool:
    """Tell whether a Workload still describes its job.

    While the job runs, its pod templates carry what the admission added, and its counts may be the
    admitted ones; so only counts and containers are compared then.

    Args:
        workload: The Workload.
        pod_sets: Pod sets of the job as it stands now.
        suspended: Whether the job is suspended.
    """
    wanted = workload["spec"].get("podSets") or ()
    if len(wanted) != len(pod_sets):
        return False
    reserved = is_reserved(workload)
    admitted_counts = _admitted_counts(workload)
    for there, here in zip(wanted, pod_sets, strict=True):
        counts = {there.get("count", 1)}
        if reserved:
            counts.add(admitted_counts.get(here.name, there.get("count", 1)))
        if there.get("name", "main") != here.name or here.count not in counts:
            return False
        if not _same_containers(there["template"], here.template):
            return False
        if reserved or not suspended:
            continue
        if there.get("minCount") != here.count_min:
            return False
        if not same(there.get("topologyRequest"), here.topology_request):
            return False
        if not _same_scheduling(there["template"], here.template):
            return False
    return True


def _admitted_counts(workload: Json) -> Mapping[str, int]:
    admission = (workload.get("status") or {}).get("admission") or {}
    return {
        a.get("name", "main"): a["count"]
        for a in admission.get("podSetAssignments") or ()
        if "count" in a
    }


def _same_containers(left: Json, right: Json) -> bool:
    for where in ("containers", "initContainers"):
        ours = (left.get("spec") or {}).get(where) or ()
        theirs = (right.get("spec") or {}).get(where) or ()
        if len(ours) != len(theirs):
            return False
        for one, other in zip(ours, theirs, strict=True):
            if not all(same(one.get(f), other.get(f)) for f in _CONTAINER_FIELDS):
                return False
    return True


def _same_scheduling(left: Json, right: Json) -> bool:
    ours, theirs = left.get("spec") or {}, right.get("spec") or {}
    return all(same(ours.get(f), theirs.get(f)) for f in _SCHEDULING_FIELDS)


def synced(
    workload: Json, job: Json, *, pod_sets: Sequence[PodSet], priority: Priority | None
) -> Json:
    """Return a Workload brought up to its suspended job: the same object when nothing differs.

    Queue, pod sets and maximum execution time follow only while no quota is held, as the
    Workload's own rules demand (docs/spec/api.md 1.4); priorities follow always, a PriorityClass
    reference only while no quota is held.

    Args:
        workload: The Workload as it is.
        job: Its job.
        pod_sets: Pod sets of the job.
        priority: What the job's classes say, or None to leave the priority alone.
    """
    spec, metadata = dict(workload["spec"]), dict(workload["metadata"])
    if not is_reserved(workload):
        _replace(spec, "queueName", queue_name(job) or None)
        _replace(spec, "maximumExecutionTimeSeconds", execution_seconds_max(job))
        if not matches(workload, pod_sets, suspended=True):
            spec["podSets"] = [pod_set.to_json() for pod_set in pod_sets]
    if priority is not None and _may_follow(workload, priority):
        spec.update(priority_fields(priority))
    annotations = dict(metadata.get("annotations") or {})
    _replace(
        annotations, names.ADMISSION_GATED_BY, annotations_of(job).get(names.ADMISSION_GATED_BY)
    )
    if annotations or "annotations" in metadata:
        metadata["annotations"] = annotations
    desired = {**workload, "metadata": metadata, "spec": spec}
    return workload if same(desired, workload) else desired


def _may_follow(workload: Json, priority: Priority) -> bool:
    old = workload["spec"].get("priorityClassRef")
    new = priority.reference
    if same(old, new):
        # A priority set on the Workload itself wins unless a class of ours is behind it
        # (docs/spec/algorithm.md 0.4); changes of a class are followed by its own controller.
        return False
    if not is_reserved(workload):
        return True
    both_ours = old is not None and new is not None and old["kind"] == new["kind"]
    return both_ours and new is not None and new["kind"] == "WorkloadPriorityClass"


def _replace(fields: Json, key: str, value: object) -> None:
    if value is None:
        fields.pop(key, None)
    else:
        fields[key] = value


def restored_pod_sets(workload: Json | None) -> Sequence[Json] | None:
    """Return the pod sets that a job gets back when it is stopped, or None without a Workload."""
    return None if workload is None else workload["spec"].get("podSets") or None
