"""Pod: defaults, graceful deletion, and the little of its specification that may change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from sluice.local.apiserver.kinds.podspec import (
    CONTAINER_LISTS,
    default_pod_spec,
    default_requests,
)
from sluice.local.apiserver.resources import Behaviour
from sluice.local.apiserver.seams import Json, JsonView
from sluice.local.apiserver.status import Cause

_QOS_RESOURCES = ("cpu", "memory")
_MUTABLE = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds")


class PodBehaviour(Behaviour):
    """Pod as the API server treats it; scheduling and running are others' business."""

    def default(self, obj: Json) -> None:
        """Fill in the defaults of pod and containers."""
        spec = obj.setdefault("spec", {})
        if not isinstance(spec, dict):
            return
        default_pod_spec(spec)
        default_requests(spec)
        spec.setdefault("enableServiceLinks", True)
        if spec.get("serviceAccountName") or spec.get("serviceAccount"):
            name = spec.get("serviceAccountName") or spec["serviceAccount"]
            spec["serviceAccountName"] = spec["serviceAccount"] = name

    def prepare_create(self, obj: Json) -> None:
        """Start pending, with the quality of service class of its requests."""
        status: Json = {"phase": "Pending", "qosClass": qos_class(obj["spec"])}
        if obj["spec"].get("schedulingGates"):
            status["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                    "lastTransitionTime": obj["metadata"]["creationTimestamp"],
                }
            ]
        obj["status"] = status

    def validate(self, new: JsonView, old: JsonView | None) -> Sequence[Cause]:
        """Require containers with images; refuse changes of most of the specification."""
        causes = []
        spec = new.get("spec") or {}
        if not spec.get("containers"):
            causes.append(
                Cause(
                    reason="FieldValueRequired", message="Required value", field="spec.containers"
                )
            )
        for i, container in enumerate(spec.get("containers") or ()):
            if not container.get("image"):
                causes.append(
                    Cause(
                        reason="FieldValueRequired",
                        message="Required value",
                        field=f"spec.containers[{i}].image",
                    )
                )
        if old is not None:
            old_spec = old.get("spec") or {}
            is_gated = bool(old_spec.get("schedulingGates"))
            if _fixed(spec, is_gated=is_gated) != _fixed(old_spec, is_gated=is_gated):
                causes.append(
                    Cause(
                        reason="FieldValueForbidden",
                        message="Forbidden: pod updates may not change fields other than "
                        "`spec.containers[*].image`, `spec.initContainers[*].image`, "
                        "`spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to "
                        "existing tolerations), `spec.terminationGracePeriodSeconds` (allow it "
                        "to be set to 1 if it was previously negative)",
                        field="spec",
                    )
                )
        return causes

    def grace_period_s(self, obj: JsonView, asked_s: int | None) -> int:
        """Return the time a kubelet has to stop the pod; none when it never ran or has ended."""
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        grace_s = spec.get("terminationGracePeriodSeconds", 30) if asked_s is None else asked_s
        if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
            return 0
        return max(int(grace_s), 0)


def qos_class(spec: JsonView) -> str:
    """Return Guaranteed, Burstable or BestEffort by the containers' requests and limits."""
    is_guaranteed, has_any = True, False
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in _QOS_RESOURCES:
            if name in requests or name in limits:
                has_any = True
            if name not in limits or requests.get(name, limits[name]) != limits[name]:
                is_guaranteed = False
    if not has_any:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed else "Burstable"


def _fixed(spec: JsonView, *, is_gated: bool) -> Any:
    copy: dict[str, Any] = orjson.loads(orjson.dumps(spec))
    for field in _MUTABLE:
        copy.pop(field, None)
    copy.pop("schedulingGates", None)
    if is_gated:
        # A gated pod may still be told where it should run.
        copy.pop("nodeSelector", None)
        (copy.get("affinity") or {}).pop("nodeAffinity", None)
        if not copy.get("affinity"):
            copy.pop("affinity", None)
    for listed in CONTAINER_LISTS:
        for container in copy.get(listed) or ():
            container.pop("image", None)
    return copy
