"""batch/v1: Job and CronJob."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from sluice.local.apiserver.kinds.podspec import CONTAINER_LISTS, default_template
from sluice.local.apiserver.metadata import check_labels
from sluice.local.apiserver.resources import Behaviour
from sluice.local.apiserver.seams import Json, JsonView
from sluice.local.apiserver.status import Cause

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
_LEGACY = {"controller-uid": CONTROLLER_UID, "job-name": JOB_NAME}

_BACKOFF_UNLIMITED = 2**31 - 1
_SCHEDULING = ("nodeSelector", "tolerations", "schedulingGates")
_IMMUTABLE = (
    "selector",
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)


def default_job_spec(spec: Json) -> None:
    """Fill in the defaults of `JobSpec` in place."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
        spec["parallelism"] = 1
    spec.setdefault("parallelism", 1)
    per_index = spec.get("backoffLimitPerIndex") is not None
    spec.setdefault("backoffLimit", _BACKOFF_UNLIMITED if per_index else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault(
        "podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    )
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern.setdefault("status", "True")


class JobBehaviour(Behaviour):
    """Job: generated selector, suspension, what may change while suspended."""

    orphans_by_default = True
    orphan_warning = (
        "child pods are preserved by default when jobs are deleted; set "
        "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress "
        "this warning"
    )

    def default(self, obj: Json) -> None:
        """Fill in defaults; labels come from the template when the Job has none."""
        spec = obj.setdefault("spec", {})
        if not isinstance(spec, dict):
            return
        default_job_spec(spec)
        default_template(obj, "spec", "template")
        labels = (_template(obj).get("metadata") or {}).get("labels")
        if labels and not obj["metadata"].get("labels"):
            # One map in two places, as in Kubernetes: unless a webhook changes the Job, it also
            # gets the labels that `prepare_create` adds to the template.
            obj["metadata"]["labels"] = labels

    def prepare_create(self, obj: Json) -> None:
        """Generate selector and template labels unless the user keeps them himself."""
        spec = obj.setdefault("spec", {})
        obj["status"] = {}
        if spec.get("manualSelector"):
            return
        identity = {CONTROLLER_UID: obj["metadata"]["uid"], JOB_NAME: obj["metadata"]["name"]}
        metadata = spec.setdefault("template", {}).setdefault("metadata", {})
        if metadata.get("labels") is None:
            metadata["labels"] = {}
        labels = metadata["labels"]
        for legacy, label in _LEGACY.items():
            labels.setdefault(legacy, identity[label])
            labels.setdefault(label, identity[label])
        if not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)
        selector = spec.get("selector") or {}
        spec["selector"] = {
            **selector,
            "matchLabels": {
                **(selector.get("matchLabels") or {}),
                CONTROLLER_UID: identity[CONTROLLER_UID],
            },
        }

    def validate(self, new: JsonView, old: JsonView | None) -> Sequence[Cause]:
        """Check counts, the template's labels and restart policy, and what an update may change."""
        spec = new.get("spec") or {}
        causes = list(_validate_counts(spec))
        # The Job's name is one of them, so it can't be longer than a label.
        labels = (_template(new).get("metadata") or {}).get("labels") or {}
        causes += check_labels(labels, "spec.template.labels")
        causes += _validate_restart_policy(_template(new))
        if old is not None:
            causes += _validate_update(spec, old)
        return causes


def _template(obj: JsonView) -> dict[str, Any]:
    found: dict[str, Any] = (obj.get("spec") or {}).get("template") or {}
    return found


def _validate_counts(spec: JsonView) -> list[Cause]:
    causes = []
    for field in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds",
                  "ttlSecondsAfterFinished"):  # fmt: skip
        value = spec.get(field)
        if isinstance(value, int) and value < 0:
            causes.append(
                Cause(
                    reason="FieldValueInvalid",
                    message=f"Invalid value: {value}: must be greater than or equal to 0",
                    field=f"spec.{field}",
                )
            )
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        causes.append(
            Cause(
                reason="FieldValueRequired",
                message="Required value: when completion mode is Indexed",
                field="spec.completions",
            )
        )
    return causes


def _validate_restart_policy(template: JsonView) -> list[Cause]:
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy in ("OnFailure", "Never"):
        return []
    if policy in (None, "", "Always"):
        return [
            Cause(
                reason="FieldValueRequired",
                message='Required value: valid values: "OnFailure", "Never"',
                field="spec.template.spec.restartPolicy",
            )
        ]
    return [
        Cause(
            reason="FieldValueNotSupported",
            message=f'Unsupported value: "{policy}": supported values: "OnFailure", "Never"',
            field="spec.template.spec.restartPolicy",
        )
    ]


def immutable(value: Any, path: str) -> Cause:
    """Return the cause for a field that must not change."""
    shown = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return Cause(
        reason="FieldValueInvalid",
        message=f"Invalid value: {shown}: field is immutable",
        field=path,
    )


def _is_true(status: JsonView, condition: str) -> bool:
    conditions = status.get("conditions") or ()
    return any(c.get("type") == condition and c.get("status") == "True" for c in conditions)


def _validate_update(spec: JsonView, old: JsonView) -> list[Cause]:
    old_spec = old.get("spec") or {}
    causes = [
        immutable(spec.get(field), f"spec.{field}")
        for field in _IMMUTABLE
        if spec.get(field) != old_spec.get(field)
    ]
    completions = spec.get("completions")
    if completions != old_spec.get("completions"):
        if spec.get("completionMode") != "Indexed":
            causes.append(immutable(completions, "spec.completions"))
        elif completions is not None and completions != spec.get("parallelism"):
            causes.append(
                Cause(
                    reason="FieldValueInvalid",
                    message=f"Invalid value: {completions}: can only be modified in tandem with "
                    "spec.parallelism",
                    field="spec.completions",
                )
            )
    template, old_template = spec.get("template") or {}, old_spec.get("template") or {}
    if template != old_template:
        is_suspended = bool(old_spec.get("suspend"))
        status = old.get("status") or {}
        # A suspended Job's template may change once its pods are gone: never started or, as the
        # controller has said, suspended; and no pod of it is left.
        is_stopped = status.get("startTime") is None or _is_true(status, "Suspended")
        may_change = is_suspended and is_stopped and not status.get("active")
        same = _fixed(template) == _fixed(old_template) if may_change else False
        if not same:
            causes.append(immutable(template, "spec.template"))
    return causes


def _fixed(template: JsonView) -> Any:
    """Return what of a suspended Job's template must not change."""
    copy: dict[str, Any] = orjson.loads(orjson.dumps(template))
    metadata = copy.get("metadata") or {}
    metadata.pop("labels", None)
    metadata.pop("annotations", None)
    spec = copy.get("spec") or {}
    for field in _SCHEDULING:
        spec.pop(field, None)
    if isinstance(spec.get("affinity"), dict):
        spec["affinity"].pop("nodeAffinity", None)
        if not spec["affinity"]:
            del spec["affinity"]
    for listed in CONTAINER_LISTS:
        for container in spec.get(listed) or ():
            container.pop("resources", None)
    return [metadata, spec]


class CronJobBehaviour(Behaviour):
    """CronJob: kept, but nothing starts its Jobs here."""

    def default(self, obj: Json) -> None:
        """Fill in defaults, of the Job template too."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("concurrencyPolicy", "Allow")
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        default_template(obj, "spec", "jobTemplate", "spec", "template")

    def validate(self, new: JsonView, old: JsonView | None) -> Sequence[Cause]:
        """Check the restart policy of the Jobs' pods."""
        template = ((new.get("spec") or {}).get("jobTemplate") or {}).get("spec") or {}
        prefix = "spec.jobTemplate."
        return [
            Cause(reason=cause.reason, message=cause.message, field=prefix + cause.field)
            for cause in _validate_restart_policy(template.get("template") or {})
        ]
