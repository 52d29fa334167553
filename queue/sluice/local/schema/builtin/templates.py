"""Rules of kinds with a selector and a pod template: Deployments and their kin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice.local.apiserver.status import Cause
from sluice.local.schema import causes
from sluice.local.schema.builtin import pods
from sluice.local.schema.correlation import same

View = Mapping[str, Any]


def validate(new: View, old: View | None) -> list[Cause]:
    """Return what is wrong with selector, replicas and template."""
    spec = new.get("spec") or {}
    selector = spec.get("selector")
    found: list[Cause] = []
    replicas = spec.get("replicas")
    if replicas is not None and replicas < 0:
        detail = "must be greater than or equal to 0"
        found.append(causes.invalid("spec.replicas", replicas, detail))
    if selector is None:
        found.append(causes.required("spec.selector"))
    if old is not None and not same((old.get("spec") or {}).get("selector"), selector):
        found.append(causes.invalid("spec.selector", selector, "field is immutable"))
    found += validate_labels(spec)
    pod_spec = (spec.get("template") or {}).get("spec") or {}
    policy = pod_spec.get("restartPolicy")
    if policy in ("OnFailure", "Never"):
        at = "spec.template.spec.restartPolicy"
        found.append(causes.not_supported(at, policy, ("Always",)))
    return found + validate_pod_spec(pod_spec)


def validate_labels(spec: View) -> list[Cause]:
    """Return that the selector doesn't match the template's labels, if so."""
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    matched = (spec.get("selector") or {}).get("matchLabels") or {}
    if all(labels.get(name) == value for name, value in matched.items()):
        return []
    detail = "`selector` does not match template `labels`"
    return [causes.invalid("spec.template.metadata.labels", labels, detail)]


def validate_pod_spec(pod_spec: View) -> list[Cause]:
    """Return what is wrong with the pods of a template."""
    path = "spec.template.spec"
    found: list[Cause] = []
    if not pod_spec.get("containers"):
        found.append(causes.required(f"{path}.containers"))
    for field in ("initContainers", "containers"):
        for index, container in enumerate(pod_spec.get(field) or ()):
            if not container.get("image"):
                found.append(causes.required(f"{path}.{field}[{index}].image"))
    return found + pods.validate_spec(pod_spec, path)
