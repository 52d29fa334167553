"""Admission of batch/v1 Jobs. Pure. Source: docs/spec/api.md 2.4 (batch/job)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice.api import names
from sluice.api.edits import Edits
from sluice.api.errors import FieldError, forbidden, invalid
from sluice.api.validate.node import Node, annotations_of, key
from sluice.jobs.admission import common, defaulting, topology
from sluice.jobs.admission.context import Context
from sluice.jobs.batch import BatchJob
from sluice.jobs.topology import parse_bool

_MIN_PARALLELISM_PATH: Final = key("metadata.annotations", names.MIN_PARALLELISM)
_SYNC_PATH: Final = key("metadata.annotations", names.COMPLETIONS_EQUAL_PARALLELISM)


class BatchJobAdmission:
    """Defaults and validation of Jobs."""

    kind = BatchJob.kind

    async def default(self, edits: Edits, context: Context) -> None:
        """Give a new Job its queue and priority class, and suspend it if it has to wait.

        Raises:
            InvalidObject: A value has the wrong JSON type.
            LookupFailed: Something that this depends on could not be read.
            Refused: The owners of the Job make no sense.
        """
        await defaulting.default_queue(edits, context)
        await defaulting.default_priority_class(edits, context)
        job = Node(edits.obj)
        if await defaulting.should_suspend(job, context):
            edits.set(("spec", "suspend"), True)
        await defaulting.default_managed_by(
            edits, context, path=("spec", "managedBy"), own_manager=self.kind.manager
        )
        if common.is_elastic(job, context.options):
            _gate_pods(edits)

    async def on_create(self, new: Mapping[str, Any], context: Context) -> list[FieldError]:
        """Return what is wrong with a new Job.

        Raises:
            InvalidObject: A value has the wrong JSON type.
        """
        job = Node(new)
        errors = common.on_create(job, self.kind, context.options)
        errors += _min_parallelism(job, context)
        errors += _completions_sync(job)
        return errors + _topology(job, context)

    async def on_update(
        self, old: Mapping[str, Any], new: Mapping[str, Any], context: Context
    ) -> list[FieldError]:
        """Return what is wrong with a changed Job.

        Raises:
            InvalidObject: A value has the wrong JSON type.
            LookupFailed: The default LocalQueue could not be read.
        """
        before, after = Node(old), Node(new)
        errors = common.on_create(after, self.kind, context.options)
        texts = [annotations_of(job).get(names.MIN_PARALLELISM) for job in (before, after)]
        if texts[0] != texts[1]:
            errors += _min_parallelism(after, context)
        errors += _completions_sync(after)
        errors += await common.on_update(
            before,
            after,
            self.kind,
            context,
            was_suspended=_is_suspended(before),
            is_suspended=_is_suspended(after),
        )
        errors += _partial_admission_changes(before, after)
        return errors + _topology(after, context)


def _is_suspended(job: Node) -> bool:
    """Tell whether a Job is suspended and no stop is half done (docs/spec/api.md 2.4)."""
    is_stopping = annotations_of(job).get(names.STOPPING) == "true"
    return bool(job.map("spec").boolean("suspend")) and not is_stopping


def _or_1(value: int | None) -> int:
    return 1 if value is None else value


def _pods_count(job: Node) -> int:
    spec = job.map("spec")
    parallelism, completions = _or_1(spec.integer("parallelism")), spec.integer("completions")
    return parallelism if completions is None else min(parallelism, completions)


def _gate_pods(edits: Edits) -> None:
    pod_spec = Node(edits.obj).map("spec", "template", "spec")
    gates = [gate.text("name") for gate in pod_spec.items("schedulingGates")]
    if names.ELASTIC_JOB_GATE not in gates:
        path = ("spec", "template", "spec", "schedulingGates")
        edits.append(path, {"name": names.ELASTIC_JOB_GATE})


def _min_parallelism(job: Node, context: Context) -> list[FieldError]:
    text = annotations_of(job).get(names.MIN_PARALLELISM)
    if text is None:
        return []
    errors: list[FieldError] = []
    pods, least = _pods_count(job), common.to_integer(text)
    if least is None:
        errors.append(invalid(_MIN_PARALLELISM_PATH, text, "must be an integer"))
    elif not 0 < least < pods:
        detail = f"should be between 0 and {pods - 1}"
        errors.append(invalid(_MIN_PARALLELISM_PATH, least, detail))
    if common.is_elastic(job, context.options):
        detail = f"cannot be used together with {names.ELASTIC_JOB}"
        errors.append(invalid(_MIN_PARALLELISM_PATH, text, detail))
    return errors


def _completions_sync(job: Node) -> list[FieldError]:
    text = annotations_of(job).get(names.COMPLETIONS_EQUAL_PARALLELISM)
    if text is None:
        return []
    is_synced = parse_bool(text)
    if is_synced is None:
        return [invalid(_SYNC_PATH, text, "must be a boolean value")]
    if not is_synced:
        return []
    spec = job.map("spec")
    errors: list[FieldError] = []
    if spec.text("completionMode", "NonIndexed") == "NonIndexed":
        detail = "may not be true when spec.completionMode is NonIndexed"
        errors.append(invalid(_SYNC_PATH, text, detail))
    completions = _or_1(spec.integer("completions"))
    if completions != (parallelism := _or_1(spec.integer("parallelism"))):
        detail = (
            f"should be equal to spec.parallelism, {parallelism}, "
            f"when {names.COMPLETIONS_EQUAL_PARALLELISM} is true"
        )
        errors.append(invalid(spec.at("completions"), completions, detail))
    return errors


def _partial_admission_changes(old: Node, new: Node) -> list[FieldError]:
    errors: list[FieldError] = []
    before, after = old.map("spec"), new.map("spec")
    # spec.suspend itself counts here, not a stop half done (docs/spec/api.md 2.4).
    was_running = not before.boolean("suspend")
    is_partial = names.MIN_PARALLELISM in annotations_of(old)
    has_changed = _or_1(before.integer("parallelism")) != _or_1(after.integer("parallelism"))
    if is_partial and was_running and has_changed:
        detail = f"may not change while a job with {names.MIN_PARALLELISM} is not suspended"
        errors.append(forbidden(after.at("parallelism"), detail))
    texts = [annotations_of(job).get(names.COMPLETIONS_EQUAL_PARALLELISM) for job in (old, new)]
    if texts[0] != texts[1] and not (_is_suspended(old) or _is_suspended(new)):
        errors.append(forbidden(_SYNC_PATH, "may not change while the job is not suspended"))
    return errors


def _topology(job: Node, context: Context) -> list[FieldError]:
    metadata = job.map("spec", "template", "metadata")
    path, annotations = metadata.at("annotations"), metadata.strings("annotations")
    errors = topology.template_errors(
        path, annotations, pods=_pods_count(job), options=context.options
    )
    if common.is_elastic(job, context.options):
        errors += [
            forbidden(f"{path}.{name}", "elastic jobs cannot ask for this topology")
            for name in (names.REQUIRED_TOPOLOGY, names.PREFERRED_TOPOLOGY)
            if name in annotations
        ]
    return errors
