"""The registry entries of all built-in kinds.

Structure (fields, types, list and merge keys) comes from `builtin_types.json`, which
`import_types` extracts from Kubernetes' published OpenAPI documents; columns, selectors and rules
of a kind stand in the modules beside this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from sluice.local.apiserver.kinds import columns, columns_pods
from sluice.local.apiserver.kinds.behaviours import BEHAVIOURS
from sluice.local.apiserver.kinds.events import EVENTS_CODEC, STORED_FIELDS
from sluice.local.apiserver.resources import Behaviour, Column, Extract, Resource, Version, dig
from sluice.local.apiserver.seams import (
    Gvk,
    Json,
    JsonView,
    ObjectSchema,
    SchemaCompiler,
    TypeSchema,
)
from sluice.local.apiserver.status import Cause


@cache
def _types() -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads(
        Path(__file__).parents[1].joinpath("builtin_types.json").read_bytes()
    )
    return content


def kubernetes_version() -> str:
    """Return the Kubernetes version whose types are served, e.g. `v1.36.3`."""
    return str(_types()["version"])


def definitions() -> Mapping[str, JsonView]:
    """Return all schema definitions that built-in kinds refer to."""
    found: Mapping[str, JsonView] = _types()["definitions"]
    return found


def definition_name(group: str, version: str, kind: str) -> str | None:
    """Return the definition of a built-in kind, or None when it isn't one."""
    path = f"apis/{group}/{version}" if group else f"api/{version}"
    name: str | None = _types()["kinds"].get(path, {}).get(kind)
    return name


def type_schema(group: str, version: str, kind: str) -> TypeSchema:
    """Return the structure of a built-in kind."""
    name = definition_name(group, version, kind)
    if name is None:
        raise KeyError(f"{kind} of {group}/{version} is no built-in kind")
    return TypeSchema(
        group=group,
        version=version,
        kind=kind,
        root=definitions()[name],
        definitions=definitions(),
        is_builtin=True,
    )


class LazySchema:
    """A built-in kind's schema, compiled at its first use so that a server starts at once."""

    def __init__(self, compiler: SchemaCompiler, source: TypeSchema) -> None:
        self._compiler = compiler
        self._source = source
        self._compiled: ObjectSchema | None = None

    @property
    def source(self) -> TypeSchema:
        """What it is compiled from."""
        return self._source

    def _schema(self) -> ObjectSchema:
        if self._compiled is None:
            self._compiled = self._compiler.compile(self._source)
        return self._compiled

    def prune(self, obj: Json) -> Sequence[str]:
        """Drop unspecified fields; see `ObjectSchema`."""
        return self._schema().prune(obj)

    def default(self, obj: Json) -> None:
        """Fill in the schema's defaults; see `ObjectSchema`."""
        self._schema().default(obj)

    def validate(self, new: JsonView, old: JsonView | None) -> Sequence[Cause]:
        """Return what is wrong; see `ObjectSchema`."""
        return self._schema().validate(new, old)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One row of the table below."""

    group: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_status: bool = False
    subresources: Mapping[str, Gvk] = field(default_factory=dict)
    selectable: Mapping[str, Extract] = field(default_factory=dict)
    is_virtual: bool = False


def _paths(*paths: str) -> dict[str, Extract]:
    return {path: dig(*path.split(".")) for path in paths}


ALL = ("all",)
_POD_FIELDS = _paths(
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
    "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName",
)  # fmt: skip
_POD_FIELDS["spec.hostNetwork"] = lambda obj: bool(dig("spec", "hostNetwork")(obj))
_TOKEN = Gvk(group="authentication.k8s.io", version="v1", kind="TokenRequest")
_POD_SUBRESOURCES = {
    "binding": Gvk(group="", version="v1", kind="Binding"),
    "eviction": Gvk(group="policy", version="v1", kind="Eviction"),
}
_NODE_FIELDS: dict[str, Extract] = {
    "spec.unschedulable": lambda obj: bool(dig("spec", "unschedulable")(obj))
}
_JOB_FIELDS: dict[str, Extract] = {
    "status.successful": lambda obj: dig("status", "succeeded")(obj) or 0
}

ENTRIES = (
    _Entry(group="", kind="Namespace", plural="namespaces", namespaced=False,
           short_names=("ns",), has_status=True, selectable=_paths("status.phase"),
           subresources={"finalize": Gvk(group="", version="v1", kind="Namespace")}),
    _Entry(group="", kind="Pod", plural="pods", short_names=("po",), categories=ALL,
           has_status=True, subresources=_POD_SUBRESOURCES, selectable=_POD_FIELDS),
    _Entry(group="", kind="Node", plural="nodes", namespaced=False, short_names=("no",),
           has_status=True, selectable=_NODE_FIELDS),
    _Entry(group="", kind="Event", plural="events", short_names=("ev",),
           selectable=STORED_FIELDS),
    _Entry(group="", kind="Secret", plural="secrets", selectable=_paths("type")),
    _Entry(group="", kind="ConfigMap", plural="configmaps", short_names=("cm",)),
    _Entry(group="", kind="Service", plural="services", short_names=("svc",), categories=ALL,
           has_status=True, selectable=_paths("spec.clusterIP", "spec.type")),
    _Entry(group="", kind="ServiceAccount", plural="serviceaccounts", short_names=("sa",),
           subresources={"token": _TOKEN}),
    _Entry(group="", kind="LimitRange", plural="limitranges", short_names=("limits",)),
    _Entry(group="", kind="ResourceQuota", plural="resourcequotas", short_names=("quota",),
           has_status=True),
    _Entry(group="", kind="PersistentVolumeClaim", plural="persistentvolumeclaims",
           short_names=("pvc",), has_status=True),
    _Entry(group="", kind="PodTemplate", plural="podtemplates"),
    _Entry(group="batch", kind="Job", plural="jobs", categories=ALL, has_status=True,
           selectable=_JOB_FIELDS),
    _Entry(group="batch", kind="CronJob", plural="cronjobs", short_names=("cj",),
           categories=ALL, has_status=True),
    _Entry(group="apps", kind="Deployment", plural="deployments", short_names=("deploy",),
           categories=ALL, has_status=True),
    _Entry(group="apps", kind="ReplicaSet", plural="replicasets", short_names=("rs",),
           categories=ALL, has_status=True),
    _Entry(group="apps", kind="StatefulSet", plural="statefulsets", short_names=("sts",),
           categories=ALL, has_status=True),
    _Entry(group="apps", kind="DaemonSet", plural="daemonsets", short_names=("ds",),
           categories=ALL, has_status=True),
    _Entry(group="coordination.k8s.io", kind="Lease", plural="leases"),
    _Entry(group="events.k8s.io", kind="Event", plural="events", short_names=("ev",),
           selectable=STORED_FIELDS),
    _Entry(group="scheduling.k8s.io", kind="PriorityClass", plural="priorityclasses",
           namespaced=False, short_names=("pc",)),
    _Entry(group="node.k8s.io", kind="RuntimeClass", plural="runtimeclasses", namespaced=False),
    _Entry(group="policy", kind="PodDisruptionBudget", plural="poddisruptionbudgets",
           short_names=("pdb",), has_status=True),
    _Entry(group="networking.k8s.io", kind="NetworkPolicy", plural="networkpolicies",
           short_names=("netpol",)),
    _Entry(group="rbac.authorization.k8s.io", kind="Role", plural="roles"),
    _Entry(group="rbac.authorization.k8s.io", kind="RoleBinding", plural="rolebindings"),
    _Entry(group="rbac.authorization.k8s.io", kind="ClusterRole", plural="clusterroles",
           namespaced=False),
    _Entry(group="rbac.authorization.k8s.io", kind="ClusterRoleBinding",
           plural="clusterrolebindings", namespaced=False),
    _Entry(group="admissionregistration.k8s.io", kind="MutatingWebhookConfiguration",
           plural="mutatingwebhookconfigurations", namespaced=False,
           categories=("api-extensions",)),
    _Entry(group="admissionregistration.k8s.io", kind="ValidatingWebhookConfiguration",
           plural="validatingwebhookconfigurations", namespaced=False,
           categories=("api-extensions",)),
    _Entry(group="apiextensions.k8s.io", kind="CustomResourceDefinition",
           plural="customresourcedefinitions", namespaced=False, short_names=("crd", "crds"),
           categories=("api-extensions",), has_status=True),
    _Entry(group="resource.k8s.io", kind="DeviceClass", plural="deviceclasses",
           namespaced=False),
    _Entry(group="resource.k8s.io", kind="ResourceClaim", plural="resourceclaims",
           has_status=True),
    _Entry(group="resource.k8s.io", kind="ResourceClaimTemplate",
           plural="resourceclaimtemplates"),
    _Entry(group="resource.k8s.io", kind="ResourceSlice", plural="resourceslices",
           namespaced=False, selectable=_paths("spec.nodeName", "spec.driver")),
    _Entry(group="authentication.k8s.io", kind="TokenReview", plural="tokenreviews",
           namespaced=False, is_virtual=True),
    _Entry(group="authentication.k8s.io", kind="SelfSubjectReview",
           plural="selfsubjectreviews", namespaced=False, is_virtual=True),
    _Entry(group="authorization.k8s.io", kind="SubjectAccessReview",
           plural="subjectaccessreviews", namespaced=False, is_virtual=True),
    _Entry(group="authorization.k8s.io", kind="LocalSubjectAccessReview",
           plural="localsubjectaccessreviews", is_virtual=True),
    _Entry(group="authorization.k8s.io", kind="SelfSubjectAccessReview",
           plural="selfsubjectaccessreviews", namespaced=False, is_virtual=True),
    _Entry(group="authorization.k8s.io", kind="SelfSubjectRulesReview",
           plural="selfsubjectrulesreviews", namespaced=False, is_virtual=True),
)  # fmt: skip


def _columns(kind: str) -> tuple[Column, ...]:
    found = columns_pods.COLUMNS.get(kind) or columns.COLUMNS.get(kind)
    return found or (columns.NAME, columns.AGE)


def builtin_resources(compiler: SchemaCompiler) -> list[Resource]:
    """Return the registry entries of all built-in kinds."""
    made: list[Resource] = []
    for entry in ENTRIES:
        schema = LazySchema(compiler, type_schema(entry.group, "v1", entry.kind))
        version = Version(
            name="v1", schema=schema, columns=_columns(entry.kind), has_status=entry.has_status
        )
        behaviour = BEHAVIOURS.get((entry.group, entry.kind))
        made.append(
            Resource(
                group=entry.group,
                plural=entry.plural,
                singular=entry.kind.lower(),
                kind=entry.kind,
                list_kind=f"{entry.kind}List",
                namespaced=entry.namespaced,
                versions={"v1": version},
                storage_version="v1",
                short_names=entry.short_names,
                categories=entry.categories,
                subresources=entry.subresources,
                selectable=entry.selectable,
                behaviour=behaviour() if behaviour else Behaviour(),
                is_virtual=entry.is_virtual,
                codec=EVENTS_CODEC if entry.group == "events.k8s.io" else None,
            )
        )
    return made
