"""Rules of built-in kinds that their schemas can't say and `apiserver.kinds` doesn't hold.

Custom resources say all their rules in their schema; Jobs, Pods and the other built-in kinds have
code in the API server. Defaults, preparation and immutability stand with the server's kinds; here
are the rules about a pod's containers, a Job's modes and status, and webhook configurations.
Facts: the Kubernetes 1.36 API; what is left out is listed in docs/embedded.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from sluice.local.apiserver.status import Cause
from sluice.local.schema.builtin import access, jobs, pods, templates, webhooks

View = Mapping[str, Any]

_RULES: Final[dict[tuple[str, str], Callable[[View, View | None], list[Cause]]]] = {
    ("batch", "Job"): jobs.validate,
    ("", "Pod"): pods.validate,
    ("", "Service"): access.validate_service,
    ("rbac.authorization.k8s.io", "Role"): access.validate_role,
    ("rbac.authorization.k8s.io", "ClusterRole"): access.validate_role,
    ("rbac.authorization.k8s.io", "RoleBinding"): access.validate_binding,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): access.validate_binding,
    ("apps", "Deployment"): templates.validate,
    ("apps", "ReplicaSet"): templates.validate,
    ("apps", "StatefulSet"): templates.validate,
    ("apps", "DaemonSet"): templates.validate,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): webhooks.validate,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): webhooks.validate,
}


def validate(group: str, kind: str, new: View, old: View | None) -> list[Cause]:
    """Return what Kubernetes' own rules refuse in a built-in object about to be stored."""
    rule = _RULES.get((group, kind))
    return rule(new, old) if rule is not None else []


__all__ = ["validate"]
