"""Behaviours of Lease, PriorityClass, RBAC bindings and webhook configurations."""

from __future__ import annotations

from collections.abc import Sequence

from sluice.local.apiserver.kinds.core import NoGeneration
from sluice.local.apiserver.resources import Behaviour
from sluice.local.apiserver.seams import Json, JsonView
from sluice.local.apiserver.status import Cause

RBAC_GROUP = "rbac.authorization.k8s.io"


class LeaseBehaviour(NoGeneration):
    """Lease: a duration above zero."""

    def validate(self, new: JsonView, old: JsonView | None) -> Sequence[Cause]:
        """Check the numbers."""
        spec = new.get("spec") or {}
        causes = []
        for field, least, text in (
            ("leaseDurationSeconds", 1, "must be greater than 0"),
            ("leaseTransitions", 0, "must be greater than or equal to 0"),
        ):
            value = spec.get(field)
            if value is not None and value < least:
                message = f"Invalid value: {value}: {text}"
                causes.append(
                    Cause(reason="FieldValueInvalid", message=message, field=f"spec.{field}")
                )
        return causes


class BindingBehaviour(NoGeneration):
    """RoleBinding and ClusterRoleBinding: the API group that a user or group is named in."""

    def default(self, obj: Json) -> None:
        """Fill in API groups."""
        for subject in obj.get("subjects") or ():
            if subject.get("kind") in ("User", "Group"):
                subject.setdefault("apiGroup", RBAC_GROUP)
        if isinstance(obj.get("roleRef"), dict):
            obj["roleRef"].setdefault("apiGroup", RBAC_GROUP)

    def validate(self, new: JsonView, old: JsonView | None) -> Sequence[Cause]:
        """Refuse another role."""
        if old is None or new.get("roleRef") == old.get("roleRef"):
            return []
        message = "Invalid value: cannot change roleRef"
        return [Cause(reason="FieldValueInvalid", message=message, field="roleRef")]


class PriorityClassBehaviour(Behaviour):
    """PriorityClass: its value never changes."""

    def default(self, obj: Json) -> None:
        """Fill in the preemption policy."""
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
        obj.setdefault("value", 0)

    def prepare_create(self, obj: Json) -> None:
        """Nothing but the generation, which the server sets."""

    def validate(self, new: JsonView, old: JsonView | None) -> Sequence[Cause]:
        """Refuse a change of value or policy, and values above the user range."""
        causes = []
        name = str(new["metadata"].get("name", ""))
        if old is not None:
            for field in ("value", "preemptionPolicy"):
                if new.get(field) != old.get(field):
                    causes.append(
                        Cause(
                            reason="FieldValueForbidden",
                            message="Forbidden: may not be changed in an update.",
                            field=field,
                        )
                    )
        elif new["value"] > 1_000_000_000 and not name.startswith("system-"):
            causes.append(
                Cause(
                    reason="FieldValueForbidden",
                    message="Forbidden: maximum allowed value of a user defined priority is "
                    "1000000000",
                    field="value",
                )
            )
        return causes


class WebhookConfigurationBehaviour(Behaviour):
    """Webhook configurations: defaults of each entry."""

    def __init__(self, *, is_mutating: bool) -> None:
        self._is_mutating = is_mutating

    def default(self, obj: Json) -> None:
        """Fill in policies, selectors and scope."""
        for webhook in obj.get("webhooks") or ():
            webhook.setdefault("failurePolicy", "Fail")
            webhook.setdefault("matchPolicy", "Equivalent")
            webhook.setdefault("namespaceSelector", {})
            webhook.setdefault("objectSelector", {})
            webhook.setdefault("timeoutSeconds", 10)
            if self._is_mutating:
                webhook.setdefault("reinvocationPolicy", "Never")
            for rule in webhook.get("rules") or ():
                rule.setdefault("scope", "*")
            service = (webhook.get("clientConfig") or {}).get("service")
            if isinstance(service, dict):
                service.setdefault("port", 443)

    def validate(self, new: JsonView, old: JsonView | None) -> Sequence[Cause]:
        """Refuse doubled names and unsupported review versions."""
        causes, seen = [], set()
        for i, webhook in enumerate(new.get("webhooks") or ()):
            name = webhook.get("name")
            if name in seen:
                causes.append(
                    Cause(
                        reason="FieldValueDuplicate",
                        message=f'Duplicate value: "{name}"',
                        field=f"webhooks[{i}].name",
                    )
                )
            seen.add(name)
            versions = webhook.get("admissionReviewVersions") or ()
            if "v1" not in versions:
                causes.append(
                    Cause(
                        reason="FieldValueInvalid",
                        message=f"Invalid value: {list(versions)}: must include v1",
                        field=f"webhooks[{i}].admissionReviewVersions",
                    )
                )
        return causes
