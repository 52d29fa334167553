"""Behaviours of Namespace, Service, Secret and other small built-in kinds."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Sequence

from sluice.local.apiserver.kinds.jobs import immutable
from sluice.local.apiserver.kinds.podspec import default_template
from sluice.local.apiserver.resources import Behaviour
from sluice.local.apiserver.seams import Json, JsonView
from sluice.local.apiserver.status import Cause

NAME_LABEL = "kubernetes.io/metadata.name"


class NoGeneration(Behaviour):
    """Kinds whose metadata.generation Kubernetes does not count."""

    has_generation = False


class NamespaceBehaviour(NoGeneration):
    """Namespace: its name as a label, the finalizer that keeps it until it is empty."""

    def default(self, obj: Json) -> None:
        """Set the label with its own name."""
        metadata = obj["metadata"]
        if metadata.get("name"):
            if metadata.get("labels") is None:
                metadata["labels"] = {}
            metadata["labels"].setdefault(NAME_LABEL, metadata["name"])

    def prepare_create(self, obj: Json) -> None:
        """Start active, with Kubernetes' own finalizer."""
        spec = obj.setdefault("spec", {})
        finalizers = spec.setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        obj["status"] = {"phase": "Active"}

    def mark_deleted(self, obj: Json) -> None:
        """Say that it ends."""
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}

    def prepare_update(self, new: Json, old: JsonView) -> None:
        """Keep `spec.finalizers`: only the finalize subresource changes them."""
        if old.get("spec") is not None:
            new["spec"] = {**(new.get("spec") or {}), **old["spec"]}


class SecretBehaviour(NoGeneration):
    """Secret: type, and `stringData` folded into `data`."""

    def default(self, obj: Json) -> None:
        """Fold plain strings into base64 data."""
        plain = obj.pop("stringData", None)
        if isinstance(plain, dict) and plain:
            data = dict(obj.get("data") or {})
            for key, value in plain.items():
                data[key] = base64.b64encode(str(value).encode()).decode()
            obj["data"] = data
        obj.setdefault("type", "Opaque")

    def validate(self, new: JsonView, old: JsonView | None) -> Sequence[Cause]:
        """Check base64 and immutability."""
        causes = []
        for key, value in (new.get("data") or {}).items():
            try:
                base64.b64decode(value or "", validate=True)
            except ValueError:
                causes.append(
                    Cause(
                        reason="FieldValueInvalid",
                        message="Invalid value: must be base64",
                        field=f"data[{key}]",
                    )
                )
        if old is not None:
            if new.get("type") != old.get("type"):
                causes.append(immutable(new.get("type"), "type"))
            if old.get("immutable") and new.get("data") != old.get("data"):
                causes.append(
                    Cause(
                        reason="FieldValueForbidden",
                        message="Forbidden: field is immutable when `immutable` is set",
                        field="data",
                    )
                )
        return causes


class ServiceBehaviour(NoGeneration):
    """Service: type and a cluster IP of its own; nothing routes to it here."""

    def __init__(self) -> None:
        self._next = itertools.count(1)

    def default(self, obj: Json) -> None:
        """Fill in type, affinity, ports."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        if spec["type"] != "ExternalName":
            spec.setdefault("internalTrafficPolicy", "Cluster")
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            port.setdefault("targetPort", port.get("port"))

    def prepare_create(self, obj: Json) -> None:
        """Hand out a cluster IP."""
        spec = obj["spec"]
        if spec["type"] != "ExternalName" and not spec.get("clusterIP"):
            number = next(self._next)
            spec["clusterIP"] = f"10.96.{number // 250 % 256}.{number % 250 + 1}"
        if spec.get("clusterIP"):
            spec["clusterIPs"] = [spec["clusterIP"]]
            spec.setdefault("ipFamilies", ["IPv4"])
            spec.setdefault("ipFamilyPolicy", "SingleStack")
        obj["status"] = {"loadBalancer": {}}

    def prepare_update(self, new: Json, old: JsonView) -> None:
        """Keep what was handed out."""
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if field in (old.get("spec") or {}):
                new["spec"].setdefault(field, old["spec"][field])


class NodeBehaviour(NoGeneration):
    """Node: `unschedulable` as a taint; a Node may be created with its status."""

    def default(self, obj: Json) -> None:
        """Take capacity as allocatable when only capacity is given."""
        obj.setdefault("spec", {})
        status = obj.get("status")
        if isinstance(status, dict) and status.get("capacity"):
            status.setdefault("allocatable", dict(status["capacity"]))


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
                    causes.append(immutable(new.get(field), field))
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


class TemplateBehaviour(Behaviour):
    """Kinds that hold a pod template and counts, but have no controller here."""

    def __init__(self) -> None:
        self.path: tuple[str, ...] = ("spec", "template")

    def default(self, obj: Json) -> None:
        """Fill in the template's defaults and one replica."""
        spec = obj.setdefault("spec", {})
        if obj.get("kind") != "DaemonSet":
            spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        default_template(obj, *self.path)


class DeploymentBehaviour(TemplateBehaviour):
    """Deployment: strategy and progress deadline."""

    def default(self, obj: Json) -> None:
        """Fill in rolling update defaults."""
        super().default(obj)
        spec = obj["spec"]
        strategy = spec.setdefault("strategy", {})
        strategy.setdefault("type", "RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxSurge", "25%")
            rolling.setdefault("maxUnavailable", "25%")
        spec.setdefault("progressDeadlineSeconds", 600)


class PodTemplateBehaviour(Behaviour):
    """PodTemplate: its template is not below a spec."""

    def default(self, obj: Json) -> None:
        """Fill in the template's defaults."""
        default_template(obj, "template")


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
