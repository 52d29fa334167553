"""Behaviours of Namespace, ConfigMap, Secret, Service, Node and LimitRange."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable, Sequence

from sluice.local.apiserver.kinds.jobs import immutable
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
        obj["metadata"].pop("deletionGracePeriodSeconds", None)
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}

    def prepare_update(self, new: Json, old: JsonView) -> None:
        """Keep `spec.finalizers`: only the finalize subresource changes them."""
        if old.get("spec") is not None:
            new["spec"] = {**(new.get("spec") or {}), **old["spec"]}


DATA_BYTES_MAX = 1024 * 1024
"""Kubernetes' limit for what a ConfigMap or Secret holds."""


def _check_size(sizes: Iterable[int], field: str) -> list[Cause]:
    if sum(sizes) <= DATA_BYTES_MAX:
        return []
    message = f"Too long: may not be more than {DATA_BYTES_MAX} bytes"
    return [Cause(reason="FieldValueTooLong", message=message, field=field)]


class ConfigMapBehaviour(NoGeneration):
    """ConfigMap: its size, and immutability when it asks for it."""

    def validate(self, new: JsonView, old: JsonView | None) -> Sequence[Cause]:
        """Refuse too much data, and changes of an immutable one."""
        values = [*(new.get("data") or {}).values(), *(new.get("binaryData") or {}).values()]
        causes = _check_size((len(str(value).encode()) for value in values), "[]")
        if old is not None and old.get("immutable"):
            for field in ("immutable", "data", "binaryData"):
                if new.get(field) != old.get(field):
                    causes.append(_fixed(field))
        return causes


def _fixed(field: str) -> Cause:
    message = "Forbidden: field is immutable when `immutable` is set"
    return Cause(reason="FieldValueForbidden", message=message, field=field)


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
        data = new.get("data") or {}
        causes = _check_size((len(value) * 3 // 4 for value in data.values()), "data")
        for key, value in data.items():
            # The schema lets lists pass where it asks for base64 text.
            try:
                base64.b64decode(value if isinstance(value, str) else "?", validate=True)
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
                causes.append(_fixed("data"))
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


class LimitRangeBehaviour(NoGeneration):
    """LimitRange: what a container's limits and requests default to."""

    def default(self, obj: Json) -> None:
        """Take `max` as the default limit, that or `min` as the default request."""
        for item in (obj.get("spec") or {}).get("limits") or ():
            if item.get("type") != "Container":
                continue
            limits = {**(item.get("max") or {}), **(item.get("default") or {})}
            requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
            if limits:
                item["default"] = limits
            if requests:
                item["defaultRequest"] = requests
