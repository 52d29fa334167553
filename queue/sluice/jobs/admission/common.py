"""Validation that job kinds share: of labels and annotations, and of their changes.

Pure. Called by the modules of job kinds. Source: docs/spec/api.md 2.3.4 and 2.3.5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sluice.api import names
from sluice.api.errors import FieldError, forbidden, invalid
from sluice.api.validate import gated_by
from sluice.api.validate.gates import Gate
from sluice.api.validate.node import Node, annotations_of, key, labels_of
from sluice.api.validate.syntax import IMMUTABLE, check, dns_subdomain
from sluice.jobs.admission.context import Context, Options
from sluice.jobs.admission.kinds import ELASTIC_FRAMEWORKS
from sluice.jobs.integration import JobKind

QUEUE_PATH: Final = key("metadata.labels", names.QUEUE_LABEL)
MAX_EXEC_PATH: Final = key("metadata.labels", names.MAX_EXEC_TIME_LABEL)
PRIORITY_CLASS_PATH: Final = key("metadata.labels", names.PRIORITY_CLASS_LABEL)
ELASTIC_PATH: Final = key("metadata.annotations", names.ELASTIC_JOB)
_LABEL_VALUE_BYTES_MAX: Final = 63
_INT32_MAX: Final = 2**31 - 1
_is_integer = re.compile("[+-]?[0-9]{1,18}").fullmatch


def to_integer(text: str) -> int | None:
    """Return the 32-bit integer that a label or annotation holds, or None when it is none."""
    if not _is_integer(text) or not -_INT32_MAX - 1 <= int(text) <= _INT32_MAX:
        return None
    return int(text)


def is_elastic(job: Node, options: Options) -> bool:
    """Tell whether a job asks to be resized while it runs."""
    return options.gate(Gate.ELASTIC_JOBS) and (
        annotations_of(job).get(names.ELASTIC_JOB) == "true"
    )


def on_create(job: Node, kind: JobKind, options: Options) -> list[FieldError]:
    """Return what is wrong with the labels and annotations of a job."""
    labels, annotations = labels_of(job), annotations_of(job)
    errors: list[FieldError] = []
    if (queue := labels.get(names.QUEUE_LABEL)) is not None:
        errors += check(QUEUE_PATH, queue, dns_subdomain)
    errors += _prebuilt(job, kind, options)
    if (text := labels.get(names.MAX_EXEC_TIME_LABEL)) is not None:
        seconds = to_integer(text)
        if seconds is None:
            errors.append(invalid(MAX_EXEC_PATH, text, "must be an integer number of seconds"))
        elif seconds <= 0:
            errors.append(invalid(MAX_EXEC_PATH, text, "must be greater than 0"))
    if is_elastic(job, options) and kind.framework not in ELASTIC_FRAMEWORKS:
        errors.append(forbidden(ELASTIC_PATH, f"elastic jobs are not supported for {kind.kind}"))
    if options.gate(Gate.ADMISSION_GATED_BY):
        errors += gated_by.on_create(annotations)
    return errors


async def on_update(
    old: Node,
    new: Node,
    kind: JobKind,
    context: Context,
    *,
    was_suspended: bool,
    is_suspended: bool,
) -> list[FieldError]:
    """Return which labels and annotations of a job must not have changed as they did.

    Args:
        old: The job before.
        new: The job after.
        kind: Its kind.
        context: Where it stands.
        was_suspended: Whether the old one is suspended.
        is_suspended: Whether the new one is.

    Raises:
        LookupFailed: The default LocalQueue could not be read.
    """
    options = context.options
    errors = await _queue_change(old, new, context, is_suspended)
    if is_suspended or is_elastic(old, options):
        errors += _prebuilt(new, kind, options)
    else:
        errors += _prebuilt_change(old, new, options)
    before, after = (labels_of(job).get(names.MAX_EXEC_TIME_LABEL) for job in (old, new))
    if before != after and not (was_suspended and is_suspended):
        errors.append(invalid(MAX_EXEC_PATH, after or "", IMMUTABLE))
    errors += priority_class_change(old, new, is_suspended=is_suspended)
    if is_elastic(old, options) != is_elastic(new, options):
        shown = annotations_of(new).get(names.ELASTIC_JOB, "")
        errors.append(invalid(ELASTIC_PATH, shown, IMMUTABLE))
    if options.gate(Gate.ADMISSION_GATED_BY):
        errors += gated_by.on_update(annotations_of(old), annotations_of(new))
    return errors


async def _queue_change(
    old: Node, new: Node, context: Context, is_suspended: bool
) -> list[FieldError]:
    before, after = (labels_of(job).get(names.QUEUE_LABEL, "") for job in (old, new))
    if before == after:
        return []
    errors: list[FieldError] = []
    if not is_suspended:
        errors.append(invalid(QUEUE_PATH, after, IMMUTABLE))
    if not after and await context.lookups.local_queue_exists(
        context.namespace, names.DEFAULT_LOCAL_QUEUE
    ):
        detail = "queue-name must not be empty in namespace with default queue"
        errors.append(invalid(QUEUE_PATH, after, detail))
    return errors


def priority_class_change(old: Node, new: Node, *, is_suspended: bool) -> list[FieldError]:
    """Return the errors of a changed priority class; another class may be named at any time."""
    before, after = (labels_of(job).get(names.PRIORITY_CLASS_LABEL, "") for job in (old, new))
    if before and not after:
        return [invalid(PRIORITY_CLASS_PATH, after, "must not be removed")]
    if after and not before and not is_suspended:
        detail = "must not be added while the job is not suspended"
        return [invalid(PRIORITY_CLASS_PATH, after, detail)]
    return []


def _prebuilt_name(job: Node, options: Options) -> tuple[str, str] | None:
    """Return path and name of the Workload to adopt; the annotation goes before the label."""
    name = annotations_of(job).get(names.PREBUILT_WORKLOAD, "")
    # Names that no label can hold are taken from the annotation even with the gate off.
    is_too_long = len(name.encode()) > _LABEL_VALUE_BYTES_MAX
    if name and (options.gate(Gate.WORKLOAD_IDENTIFIER_ANNOTATIONS) or is_too_long):
        return key("metadata.annotations", names.PREBUILT_WORKLOAD), name
    labels: Mapping[str, str] = labels_of(job)
    if names.PREBUILT_WORKLOAD in labels:
        return key("metadata.labels", names.PREBUILT_WORKLOAD), labels[names.PREBUILT_WORKLOAD]
    return None


def _prebuilt(job: Node, kind: JobKind, options: Options) -> list[FieldError]:
    found = _prebuilt_name(job, options)
    if found is None:
        return []
    path, name = found
    errors = check(path, name, dns_subdomain)
    if not kind.prebuilt:
        errors.append(forbidden(path, f"prebuilt Workloads are not supported for {kind.kind}"))
    return errors


def _prebuilt_change(old: Node, new: Node, options: Options) -> list[FieldError]:
    before, after = _prebuilt_name(old, options), _prebuilt_name(new, options)
    if (before and before[1]) == (after and after[1]):
        return []
    path = after[0] if after else before[0] if before else ""
    return [invalid(path, after[1] if after else "", IMMUTABLE)]
