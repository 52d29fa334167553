"""Extract the structure of the built-in kinds from Kubernetes' published OpenAPI documents.

The embedded server needs the field names, types, list keys and merge keys of the kinds it serves;
they are facts of the API, published as `api/openapi-spec/v3/*.json` of module k8s.io/kubernetes.
This program keeps those facts and leaves all descriptions out. A developer runs it when the
supported Kubernetes version moves; nothing imports it:

    python -m sluice.local.apiserver.import_types SPEC_DIRECTORY VERSION
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

KINDS: dict[str, tuple[str, ...]] = {
    "api/v1": (
        "Binding", "ConfigMap", "Event", "LimitRange", "Namespace", "Node",
        "PersistentVolumeClaim", "Pod", "PodTemplate", "ResourceQuota", "Secret", "Service",
        "ServiceAccount",
    ),
    "apis/admissionregistration.k8s.io/v1": (
        "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
    ),
    "apis/apiextensions.k8s.io/v1": ("CustomResourceDefinition",),
    "apis/apps/v1": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "apis/authentication.k8s.io/v1": ("SelfSubjectReview", "TokenRequest", "TokenReview"),
    "apis/authorization.k8s.io/v1": (
        "LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview",
        "SubjectAccessReview",
    ),
    "apis/batch/v1": ("CronJob", "Job"),
    "apis/coordination.k8s.io/v1": ("Lease",),
    "apis/events.k8s.io/v1": ("Event",),
    "apis/networking.k8s.io/v1": ("NetworkPolicy",),
    "apis/node.k8s.io/v1": ("RuntimeClass",),
    "apis/policy/v1": ("Eviction", "PodDisruptionBudget"),
    "apis/rbac.authorization.k8s.io/v1": (
        "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
    ),
    "apis/resource.k8s.io/v1": (
        "DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice",
    ),
    "apis/scheduling.k8s.io/v1": ("PriorityClass",),
}  # fmt: skip

EXTRA = ("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",)
"""Definitions that no served kind refers to, yet the server reads."""

OPAQUE = (
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
)
"""Definitions whose content has no schema of its own: any JSON passes."""

REF = "#/components/schemas/"
COPIED = ("type", "format", "required", "enum", "default")


def shrink(node: dict[str, Any]) -> dict[str, Any]:
    """Return a schema node without descriptions, with `allOf: [$ref]` as a plain `$ref`."""
    out: dict[str, Any] = {}
    for part in node.get("allOf", ()):
        out["$ref"] = part["$ref"].removeprefix(REF)
    if "$ref" in node:
        out["$ref"] = node["$ref"].removeprefix(REF)
    for key in COPIED:
        # Empty defaults are an artefact of Go's zero values, not a default of the API.
        if key in node and not (key == "default" and node[key] in ({}, "", 0, False)):
            out[key] = node[key]
    for key, value in node.items():
        if key.startswith("x-kubernetes-"):
            out[key] = value
    if "properties" in node:
        out["properties"] = {name: shrink(child) for name, child in node["properties"].items()}
    if "items" in node:
        out["items"] = shrink(node["items"])
    if isinstance(node.get("additionalProperties"), dict):
        out["additionalProperties"] = shrink(node["additionalProperties"])
    if "oneOf" in node:
        out["oneOf"] = [shrink(child) for child in node["oneOf"]]
    return out


def references(node: Any) -> set[str]:
    """Return the names of all definitions that a shrunk node refers to."""
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(references(child) for child in node.values()))
    if isinstance(node, list):
        return set().union(*(references(child) for child in node))
    return set()


def definition(name: str, node: dict[str, Any]) -> dict[str, Any]:
    """Return one definition as it is stored."""
    out = shrink(node)
    if name in OPAQUE:
        return {"x-kubernetes-preserve-unknown-fields": True}
    if out.get("format") == "int-or-string":
        return {"x-kubernetes-int-or-string": True}
    out.pop("x-kubernetes-group-version-kind", None)
    return out


def extract(directory: Path, version: str) -> dict[str, Any]:
    """Return the data file's content.

    Args:
        directory: `api/openapi-spec/v3` of the Kubernetes source.
        version: Its version, e.g. `v1.36.3`; the server reports it in `/version`.
    """
    schemas: dict[str, Any] = {}
    for path in KINDS:
        document = json.loads((directory / f"{path.replace('/', '__')}_openapi.json").read_text())
        schemas |= document["components"]["schemas"]
    by_gvk = {
        (gvk["group"], gvk["version"], gvk["kind"]): name
        for name, node in schemas.items()
        for gvk in node.get("x-kubernetes-group-version-kind", ())
        if "properties" in node
    }
    kinds: dict[str, dict[str, str]] = {}
    wanted = list(EXTRA)
    for path, names in KINDS.items():
        version_name = path.split("/")[-1]
        group = path.split("/")[1] if path.startswith("apis/") else ""
        kinds[path] = {kind: by_gvk[group, version_name, kind] for kind in names}
        wanted.extend(kinds[path].values())
    definitions: dict[str, Any] = {}
    while wanted:
        name = wanted.pop()
        if name not in definitions:
            definitions[name] = definition(name, schemas[name])
            wanted.extend(references(definitions[name]))
    return {"version": version, "kinds": kinds, "definitions": dict(sorted(definitions.items()))}


if __name__ == "__main__":
    target = Path(__file__).with_name("builtin_types.json")
    content = extract(Path(sys.argv[1]), sys.argv[2])
    target.write_text(json.dumps(content, separators=(",", ":"), sort_keys=True) + "\n")
    print(f"{target}: {len(content['definitions'])} definitions, {target.stat().st_size} bytes")
