"""The batch/v1 Job: one pod set, suspended by ``spec.suspend``.

Stopping takes up to three writes, because Kubernetes lets a Job's pod template change only while it
is suspended, has no start time and, since 1.36, has no active pods: suspend it, clear
``status.startTime``, and when its pods are gone put the template back.
The annotation ``kueue.x-k8s.io/stopping`` marks the way, so that a crash in between is seen.
Pure. Source: docs/spec/api.md 2.4 (batch/job) and 2.3.9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sluice.api import names
from sluice.jobs import podset
from sluice.jobs.difference import same
from sluice.jobs.integration import (
    Change,
    Finish,
    JobKind,
    Json,
    PodSet,
    PodSetInfo,
    annotations_of,
)
from sluice.jobs.topology import parse_bool, topology_request

POD_SET: Final = "main"
COMPLETION_INDEX_LABEL: Final = "batch.kubernetes.io/job-completion-index"
CONTROLLER_LABELS: Final = (
    "job-name",
    "controller-uid",
    "batch.kubernetes.io/job-name",
    "batch.kubernetes.io/controller-uid",
)
"""Labels that the Job controller puts on the template; they are no part of the request."""
_INDEXED: Final = "Indexed"


class BatchJob:
    """The integration ``batch/job``."""

    kind = JobKind(
        framework="batch/job",
        group="batch",
        version="v1",
        kind="Job",
        plural="jobs",
        manager="kubernetes.io/job-controller",
    )

    def managed_by(self, job: Json) -> str:
        """Return ``spec.managedBy``, empty when unset."""
        return job["spec"].get("managedBy") or ""

    def is_suspended(self, job: Json) -> bool:
        """Tell whether the Job is suspended and no stop is half done."""
        return bool(job["spec"].get("suspend")) and not _has_stop_mark(job)

    def is_stopping(self, job: Json) -> bool:
        """Tell whether the Job is suspended, and waits for its own template."""
        return bool(job["spec"].get("suspend")) and _has_stop_mark(job)

    def is_active(self, job: Json) -> bool:
        """Tell whether the Job has pods that are neither finished nor being deleted."""
        return bool(_status(job).get("active"))

    def pod_sets(self, job: Json) -> tuple[PodSet, ...]:
        """Return the one pod set of the Job."""
        template = podset.bare_template(job["spec"]["template"], dropped_labels=CONTROLLER_LABELS)
        return (
            PodSet(
                name=POD_SET,
                count=pods_count(job),
                template=template,
                count_min=count_min(job),
                topology_request=topology_request(template, pod_index_label=COMPLETION_INDEX_LABEL),
            ),
        )

    def start(self, job: Json, infos: Sequence[PodSetInfo]) -> Change:
        """Return the write that unsuspends the Job with its admission injected.

        Raises:
            PodSetConflict: The template already says something else.
        """
        info = infos[0]
        spec = dict(job["spec"], suspend=False)
        spec["template"] = podset.inject(spec["template"], info)
        if count_min(job) is not None:
            _set_count(job, spec, info.count)
        return Change(desired={**job, "spec": spec})

    def stop(self, job: Json, pod_sets: Sequence[Json] | None) -> Change | None:
        """Return the next write towards a suspended Job with its own template back.

        None while the API server would refuse that template because pods are active: the Job, which
        `is_suspended` does not call suspended yet, comes again when its controller has ended them.
        """
        if not job["spec"].get("suspend"):
            annotations = {**annotations_of(job), names.STOPPING: "true"}
            return Change(
                desired={
                    **job,
                    "metadata": {**job["metadata"], "annotations": annotations},
                    "spec": {**job["spec"], "suspend": True},
                }
            )
        if "startTime" in _status(job):
            status = {k: v for k, v in _status(job).items() if k != "startTime"}
            return Change(desired={**job, "status": status}, subresource="status")
        desired = _restored(job, pod_sets[0] if pod_sets else None)
        if same(desired, job):
            return None
        changes_template = not same(desired["spec"]["template"], job["spec"]["template"])
        return None if changes_template and self.is_active(job) else Change(desired=desired)

    def finished(self, job: Json) -> Finish | None:
        """Return the end that condition Complete or Failed tells, or None."""
        for condition in _status(job).get("conditions") or ():
            if condition.get("status") == "True" and condition.get("type") in _ENDS:
                success, text = _ENDS[condition["type"]]
                return Finish(success=success, message=condition.get("message") or text)
        return None

    def pods_ready(self, job: Json) -> bool:
        """Tell whether as many pods as expected are ready or have succeeded."""
        status = _status(job)
        uncounted = (status.get("uncountedTerminatedPods") or {}).get("succeeded") or ()
        ready = (status.get("succeeded") or 0) + (status.get("ready") or 0) + len(uncounted)
        return ready >= pods_count(job)

    def reclaimable_pods(self, job: Json) -> Mapping[str, int]:
        """Return the pods that will not be replaced, because too few completions remain."""
        spec, status = job["spec"], _status(job)
        parallelism = _or(spec.get("parallelism"), 1)
        completions = _or(spec.get("completions"), parallelism)
        done = _done(status, completions, spec.get("completionMode") == _INDEXED)
        remaining = max(completions - done, 0)
        if parallelism <= 1 or done == 0 or remaining >= parallelism:
            return {}
        return {POD_SET: parallelism - remaining}

    def priority_class_name(self, job: Json) -> str:
        """Return the priority class of the pod template, empty when unset."""
        return (job["spec"]["template"].get("spec") or {}).get("priorityClassName") or ""

    def workload_name_extra(self, job: Json) -> str:
        """Return nothing: the Workload of a Job is named after the Job alone."""
        return ""


_ENDS: Final = {
    "Complete": (True, "Job finished successfully"),
    "Failed": (False, "Job failed"),
}


def pods_count(job: Json) -> int:
    """Return how many pods run at a time: parallelism, but never more than completions."""
    parallelism = _or(job["spec"].get("parallelism"), 1)
    completions = job["spec"].get("completions")
    return int(parallelism if completions is None else min(parallelism, completions))


def count_min(job: Json) -> int | None:
    """Return the least parallelism that the Job accepts, or None without (readable) annotation."""
    text = annotations_of(job).get(names.MIN_PARALLELISM, "")
    return int(text) if text.isdecimal() and int(text) > 0 else None


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _status(job: Json) -> Json:
    return job.get("status") or {}


def _has_stop_mark(job: Json) -> bool:
    return annotations_of(job).get(names.STOPPING) == "true"


def _set_count(job: Json, spec: Json, count: int) -> None:
    spec["parallelism"] = count
    if parse_bool(annotations_of(job).get(names.COMPLETIONS_EQUAL_PARALLELISM, "")):
        spec["completions"] = count


def _restored(job: Json, pod_set: Json | None) -> Json:
    metadata = dict(job["metadata"])
    annotations = {k: v for k, v in annotations_of(job).items() if k != names.STOPPING}
    if annotations or "annotations" in metadata:
        metadata["annotations"] = annotations
    spec = dict(job["spec"])
    if pod_set is not None:
        spec["template"] = podset.restore(
            spec["template"], pod_set["template"], kept_labels=CONTROLLER_LABELS
        )
        if count_min(job) is not None:
            _set_count(job, spec, pod_set.get("count", 1))
    return {**job, "metadata": metadata, "spec": spec}


def _done(status: Json, completions: int, indexed: bool) -> int:
    if not indexed:
        return int(status.get("succeeded") or 0)
    done = index_set(status.get("completedIndexes") or "", completions)
    return len(done | index_set(status.get("failedIndexes") or "", completions))


def index_set(text: str, limit: int) -> set[int]:
    """Return the indexes below a limit that a text such as ``1,3-5,7`` lists."""
    indexes: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        indexes.update(range(int(first), min(int(last or first) + 1, limit)))
    return indexes
