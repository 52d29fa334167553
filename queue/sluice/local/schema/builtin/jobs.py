"""Rules of a Job's modes, labels and status; counts and immutability stand in `apiserver.kinds`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice.local.apiserver.status import Cause
from sluice.local.schema import causes
from sluice.local.schema.builtin import templates
from sluice.local.schema.correlation import same

View = Mapping[str, Any]

_INDEXED: Final = "Indexed"
_INDEXED_PARALLELISM_MAX: Final = 100_000
_MANAGED_BY_LENGTH_MAX: Final = 63
_LABEL_LENGTH_MAX: Final = 63
_AUTOMATIC_LABELS: Final = {
    "batch.kubernetes.io/controller-uid": "uid",
    "controller-uid": "uid",
    "batch.kubernetes.io/job-name": "name",
    "job-name": "name",
}


def validate(new: View, old: View | None) -> list[Cause]:
    """Return what is wrong with a new or changed Job, or with a change of its status."""
    if old is not None and same(new.get("spec"), old.get("spec")):
        return _validate_status(new, old)
    spec = new.get("spec") or {}
    found = _validate_labels(new, spec) + _validate_mode(spec)
    managed_by = spec.get("managedBy")
    if managed_by is not None:
        found += _validate_managed_by(managed_by)
    replacement = spec.get("podReplacementPolicy")
    allowed = ("Failed",) if spec.get("podFailurePolicy") else ("Failed", "TerminatingOrFailed")
    if replacement is not None and replacement not in allowed:
        at = "spec.podReplacementPolicy"
        found.append(causes.not_supported(at, replacement, allowed))
    pod_spec = (spec.get("template") or {}).get("spec") or {}
    if spec.get("podFailurePolicy") and pod_spec.get("restartPolicy") == "OnFailure":
        at = "spec.template.spec.restartPolicy"
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        found.append(causes.invalid(at, "OnFailure", detail))
    name = (new.get("metadata") or {}).get("name", "")
    if spec.get("completionMode") == _INDEXED and spec.get("completions"):
        longest = f"{name}-{spec['completions'] - 1}"
        if len(longest) > _LABEL_LENGTH_MAX or "." in longest:
            detail = f"will not able to create pod with invalid DNS label: {longest}"
            found.append(causes.invalid("metadata.name", name, detail))
    return found + templates.validate_pod_spec(pod_spec)


def _validate_labels(new: View, spec: View) -> list[Cause]:
    found: list[Cause] = []
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if not spec.get("manualSelector"):
        at = "spec.template.metadata.labels"
        for label, source in _AUTOMATIC_LABELS.items():
            expected = new["metadata"].get(source)
            if label not in labels:
                found.append(causes.required(f"{at}[{label}]", f"must be '{expected}'"))
            elif labels[label] != expected:
                found.append(causes.invalid(at, labels, f"must be '{expected}'"))
    if spec.get("selector") is None:
        found.append(causes.required("spec.selector"))
    return found + templates.validate_labels(spec)


def _validate_managed_by(value: str) -> list[Cause]:
    domain, slash, rest = value.partition("/")
    found: list[Cause] = []
    if not (domain and slash and rest):
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        found.append(causes.invalid("spec.managedBy", value, detail))
    if len(value) > _MANAGED_BY_LENGTH_MAX:
        found.append(causes.too_long("spec.managedBy", _MANAGED_BY_LENGTH_MAX))
    return found


def _validate_mode(spec: View) -> list[Cause]:
    mode = spec.get("completionMode", "NonIndexed")
    if mode not in ("NonIndexed", _INDEXED):
        return [causes.not_supported("spec.completionMode", mode, ("NonIndexed", _INDEXED))]
    found: list[Cause] = []
    if mode != _INDEXED:
        for field in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
            if spec.get(field) is not None:
                detail = "requires indexed completion mode"
                found.append(causes.invalid(f"spec.{field}", spec[field], detail))
        return found
    if (spec.get("parallelism") or 0) > _INDEXED_PARALLELISM_MAX:
        detail = (
            f"must be less than or equal to {_INDEXED_PARALLELISM_MAX} "
            "when completion mode is Indexed"
        )
        found.append(causes.invalid("spec.parallelism", spec["parallelism"], detail))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        at = "spec.backoffLimitPerIndex"
        found.append(causes.required(at, "when maxFailedIndexes is specified"))
    return found


def is_true(obj: View, condition_type: str) -> bool:
    """Tell whether a Job has a condition with status True."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(
        condition.get("type") == condition_type and condition.get("status") == "True"
        for condition in conditions
    )


def is_false(obj: View, condition_type: str) -> bool:
    """Tell whether a Job has a condition with status False."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(
        condition.get("type") == condition_type and condition.get("status") == "False"
        for condition in conditions
    )


def _validate_status(new: View, old: View) -> list[Cause]:
    status, before = new.get("status") or {}, old.get("status") or {}
    if same(status, before):
        return []
    found: list[Cause] = []
    for field in ("active", "succeeded", "failed", "ready", "terminating"):
        value = status.get(field)
        if value is not None and value < 0:
            detail = "must be greater than or equal to 0"
            found.append(causes.invalid(f"status.{field}", value, detail))
    found += _validate_finished(new, status)
    for condition in ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"):
        if is_true(old, condition) and not is_true(new, condition):
            article = "the" if condition == "SuccessCriteriaMet" else "the terminal"
            found.append(_conditions(f"cannot disable {article} {condition}=True condition"))
    for field in ("failed", "succeeded"):
        if (status.get(field) or 0) < (before.get(field) or 0):
            detail = f"cannot decrease the {field} counter"
            found.append(causes.invalid(f"status.{field}", status.get(field, 0), detail))
    started = before.get("startTime")
    is_resuming = is_true(old, "Suspended") and is_false(new, "Suspended")
    is_fixed = not new["spec"].get("suspend") and not is_resuming
    if started and started != status.get("startTime") and is_fixed:
        detail = "field is immutable for unsuspended job once set"
        found.append(causes.invalid("status.startTime", status.get("startTime"), detail))
    return found


def _conditions(detail: str) -> Cause:
    return causes.invalid("status.conditions", causes.OMITTED, detail)


def _validate_finished(obj: View, status: View) -> list[Cause]:
    """Return what contradicts the conditions of a finished Job."""
    is_complete, is_failed = is_true(obj, "Complete"), is_true(obj, "Failed")
    found: list[Cause] = []
    if is_complete and is_failed:
        found.append(_conditions("cannot set Complete=True and Failed=true conditions"))
    if is_complete and is_true(obj, "FailureTarget"):
        found.append(_conditions("cannot set Complete=True and FailureTarget=true conditions"))
    if status.get("completionTime") is not None and not is_complete:
        detail = "cannot set completionTime when there is no Complete=True condition"
        found.append(causes.invalid("status.completionTime", status["completionTime"], detail))
    if status.get("completionTime") is None and is_complete:
        detail = "completionTime is required for Complete jobs"
        found.append(causes.required("status.completionTime", detail))
    if is_failed and not is_true(obj, "FailureTarget"):
        detail = "cannot set Failed=True condition without the FailureTarget=true condition"
        found.append(_conditions(detail))
    if is_complete and not is_true(obj, "SuccessCriteriaMet"):
        detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        found.append(_conditions(detail))
    if is_complete or is_failed:
        if status.get("active"):
            detail = "active>0 is invalid for finished job"
            found.append(causes.invalid("status.active", status["active"], detail))
        if status.get("startTime") is None:
            detail = "startTime is required for finished job"
            found.append(causes.required("status.startTime", detail))
    return found
