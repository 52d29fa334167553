"""Defaults of a pod's specification, shared by Pod and by each kind with a pod template.

Values are those of Kubernetes' API reference for `PodSpec` and `Container`.
"""

from __future__ import annotations

from typing import Any

from sluice.local.apiserver.seams import Json

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_DEFAULTS = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}
_FILE_MODE = 0o644
_VOLUMES_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")


def default_pod_spec(spec: Json) -> None:
    """Fill in the defaults of a pod's specification in place."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    for listed in CONTAINER_LISTS:
        for container in spec.get(listed) or ():
            if isinstance(container, dict):
                _default_container(container)
    for volume in spec.get("volumes") or ():
        if isinstance(volume, dict):
            _default_volume(volume)


def _default_container(container: Json) -> None:
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", _pull_policy(str(container.get("image", ""))))
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for name in _PROBES:
        probe = container.get(name)
        if isinstance(probe, dict):
            for field, value in _PROBE_DEFAULTS.items():
                probe.setdefault(field, value)
            if isinstance(probe.get("httpGet"), dict):
                probe["httpGet"].setdefault("path", "/")
                probe["httpGet"].setdefault("scheme", "HTTP")
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if isinstance(reference, dict):
            reference.setdefault("apiVersion", "v1")


def _pull_policy(image: str) -> str:
    name = image.rsplit("/", 1)[-1]
    if "@" in name:
        return "IfNotPresent"
    _, _, tag = name.partition(":")
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _default_volume(volume: Json) -> None:
    sources = [key for key in volume if key != "name"]
    if not sources:
        volume["emptyDir"] = {}
    for kind in _VOLUMES_WITH_MODE:
        source = volume.get(kind)
        if isinstance(source, dict):
            source.setdefault("defaultMode", _FILE_MODE)
    if isinstance(volume.get("hostPath"), dict):
        volume["hostPath"].setdefault("type", "")


def default_requests(spec: Json) -> None:
    """Take the limit as the request of each resource that has only a limit (Pods only)."""
    for listed in CONTAINER_LISTS:
        for container in spec.get(listed) or ():
            resources = container.get("resources") or {}
            limits = resources.get("limits")
            if limits:
                requests: dict[str, Any] = resources.setdefault("requests", {})
                for name, value in limits.items():
                    requests.setdefault(name, value)


def default_template(obj: Json, *path: str) -> None:
    """Fill in the defaults of a pod template, e.g. at `spec.template`."""
    node: Any = obj
    for part in path:
        node = node.get(part)
        if not isinstance(node, dict):
            return
    spec = node.setdefault("spec", {})
    if isinstance(spec, dict):
        default_pod_spec(spec)
