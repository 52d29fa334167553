"""Rules about the containers, tolerations and gates of a pod, in a Pod or a template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice.api import quantity
from sluice.local.apiserver.status import Cause
from sluice.local.schema import causes

View = Mapping[str, Any]

_QUANTITY_FORM: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_NOT_NEGATIVE: Final = "must be greater than or equal to 0"


_OPERATORS: Final = ("Equal", "Exists")
_UNKNOWN_RESOURCE: Final = (
    "must be a standard resource type or fully qualified",
    "must be a standard resource for containers",
)
_STANDARD_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")


def validate(new: View, old: View | None) -> list[Cause]:
    """Return what is wrong with a new Pod, or with the gates of a changed one."""
    spec = new.get("spec") or {}
    if old is None:
        found = validate_spec(spec, "spec")
        if spec.get("schedulingGates") and spec.get("nodeName"):
            detail = "cannot be set until all schedulingGates have been cleared"
            found.append(causes.forbidden("spec.nodeName", detail))
        return found
    before = (old.get("spec") or {}).get("schedulingGates") or ()
    gates = {gate.get("name") for gate in before}
    if any(gate.get("name") not in gates for gate in spec.get("schedulingGates") or ()):
        detail = "only deletion is allowed, but found new scheduling gate"
        return [causes.forbidden("spec.schedulingGates", detail)]
    return []


def validate_spec(spec: View, path: str) -> list[Cause]:
    """Return what is wrong with a PodSpec; that a Pod has containers is checked elsewhere."""
    found: list[Cause] = []
    names: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            at = f"{path}.{field}[{index}]"
            name = container.get("name", "")
            if not name:
                found.append(causes.required(f"{at}.name"))
            elif name in names:
                found.append(causes.duplicate(f"{at}.name", name))
            names.add(name)
            found += _validate_resources(container.get("resources") or {}, f"{at}.resources")
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        found += _validate_toleration(toleration, f"{path}.tolerations[{index}]")
    gates: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate.get("name") in gates:
            at = f"{path}.schedulingGates[{index}].name"
            found.append(causes.duplicate(at, gate.get("name")))
        gates.add(gate.get("name", ""))
    return found


def _validate_resources(resources: View, path: str) -> list[Cause]:
    found: list[Cause] = []
    limits = resources.get("limits") or {}
    for field in ("limits", "requests"):
        for name, amount in (resources.get(field) or {}).items():
            at = f"{path}.{field}[{name}]"
            is_known = name in _STANDARD_RESOURCES or name.startswith("hugepages-")
            if "/" not in name and not is_known:
                for detail in _UNKNOWN_RESOURCE:
                    found.append(causes.invalid(at, name, detail))
            elif not quantity.is_quantity(amount):
                found.append(causes.invalid(at, amount, _QUANTITY_FORM))
            elif quantity.parse(amount) < 0:
                found.append(causes.invalid(at, amount, _NOT_NEGATIVE))
    if found:
        return found
    for name, amount in (resources.get("requests") or {}).items():
        limit = limits.get(name)
        if limit is not None and quantity.parse(amount) > quantity.parse(limit):
            detail = f"must be less than or equal to {name} limit of {limit}"
            found.append(causes.invalid(f"{path}.requests", str(amount), detail))
        is_extended = "/" in name and "kubernetes.io/" not in name
        if is_extended and limit is None:
            detail = "Limit must be set for non overcommitable resources"
            found.append(causes.required(f"{path}.limits", detail))
    return found


def _validate_toleration(toleration: View, path: str) -> list[Cause]:
    found: list[Cause] = []
    operator = toleration.get("operator", "")
    if operator not in ("", *_OPERATORS):
        at = f"{path}.operator"
        return [causes.not_supported(at, operator, _OPERATORS)]
    if not toleration.get("key") and operator != "Exists":
        detail = (
            "operator must be Exists when `key` is empty, "
            'which means "match all values and all keys"'
        )
        found.append(causes.invalid(f"{path}.operator", operator, detail))
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(causes.invalid(f"{path}.effect", toleration.get("effect", ""), detail))
    if operator == "Exists" and toleration.get("value"):
        detail = "value must be empty when `operator` is 'Exists'"
        found.append(causes.invalid(f"{path}.operator", toleration["value"], detail))
    return found
