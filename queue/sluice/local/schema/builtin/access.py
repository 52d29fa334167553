"""Rules of roles, their bindings, and Services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice.local.apiserver.status import Cause
from sluice.local.schema import causes

View = Mapping[str, Any]

_SUBJECTS: Final = ("ServiceAccount", "User", "Group")


def validate_role(new: View, old: View | None) -> list[Cause]:
    """Return what is wrong with the rules of a Role or ClusterRole."""
    found: list[Cause] = []
    for index, rule in enumerate(new.get("rules") or ()):
        path = f"rules[{index}]"
        if not rule.get("verbs"):
            found.append(causes.required(f"{path}.verbs", "verbs must contain at least one value"))
        if rule.get("nonResourceURLs"):
            continue
        if not rule.get("apiGroups"):
            detail = "resource rules must supply at least one api group"
            found.append(causes.required(f"{path}.apiGroups", detail))
        if not rule.get("resources"):
            detail = "resource rules must supply at least one resource"
            found.append(causes.required(f"{path}.resources", detail))
    return found


def validate_binding(new: View, old: View | None) -> list[Cause]:
    """Return what is wrong with a RoleBinding or ClusterRoleBinding."""
    reference = new.get("roleRef") or {}
    found: list[Cause] = []
    is_cluster = new.get("kind") == "ClusterRoleBinding"
    roles = ("ClusterRole",) if is_cluster else ("Role", "ClusterRole")
    if reference.get("kind") not in roles:
        found.append(causes.not_supported("roleRef.kind", reference.get("kind", ""), roles))
    if not reference.get("name"):
        found.append(causes.required("roleRef.name"))
    for index, subject in enumerate(new.get("subjects") or ()):
        path = f"subjects[{index}]"
        if not subject.get("name"):
            found.append(causes.required(f"{path}.name"))
        if subject.get("kind") not in _SUBJECTS:
            kind = subject.get("kind", "")
            found.append(causes.not_supported(f"{path}.kind", kind, _SUBJECTS))
        elif subject["kind"] == "ServiceAccount" and not subject.get("namespace") and is_cluster:
            found.append(causes.required(f"{path}.namespace"))
    return found


def validate_service(new: View, old: View | None) -> list[Cause]:
    """Return what is wrong with the ports of a Service."""
    spec = new.get("spec") or {}
    ports = spec.get("ports") or ()
    if not ports and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None":
        return [causes.required("spec.ports")]
    found: list[Cause] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"spec.ports[{index}].name", port.get("name", "")
        if not name and len(ports) > 1:
            found.append(causes.required(path))
        elif name in names:
            found.append(causes.duplicate(path, name))
        names.add(name)
    return found
