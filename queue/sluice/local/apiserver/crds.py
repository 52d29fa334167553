"""CustomResourceDefinitions: defaults and rules of the kind, and the resources made of them.

A CRD is established in the write that stores it: its conditions are in the reply already, where a
real API server sets them a moment later.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sluice.local.apiserver.jsonpath import compile_path
from sluice.local.apiserver.kinds.columns import AGE, NAME
from sluice.local.apiserver.registry import Registry, priority
from sluice.local.apiserver.resources import Behaviour, Column, Resource, Version
from sluice.local.apiserver.seams import Json, JsonView, SchemaCompiler, TypeSchema
from sluice.local.apiserver.status import ApiError, Cause
from sluice.local.apiserver.structural import check_structural

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
GROUP, PLURAL = "apiextensions.k8s.io", "customresourcedefinitions"


class CrdBehaviour(Behaviour):
    """CustomResourceDefinition.

    Args:
        registry: Names that are taken, and the compiler that checks schemas.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def default(self, obj: Json) -> None:
        """Fill in names, scope and conversion."""
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        if names.get("kind"):
            names.setdefault("singular", names["kind"].lower())
            names.setdefault("listKind", names["kind"] + "List")
        conversion = spec.setdefault("conversion", {"strategy": "None"})
        service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
        if isinstance(service, dict):
            service.setdefault("port", 443)

    def prepare_create(self, obj: Json) -> None:
        """Establish it at once."""
        obj["status"] = {"storedVersions": []}
        self._establish(obj)

    def prepare_update(self, new: Json, old: JsonView) -> None:
        """Take over new names and versions."""
        self._establish(new)

    def mark_deleted(self, obj: Json) -> None:
        """Keep it until its objects are gone, and say that it ends."""
        metadata = obj["metadata"]
        # Unlike other kinds, a marked CRD keeps its generation and has no grace period.
        metadata.pop("deletionGracePeriodSeconds", None)
        metadata["generation"] -= 1
        finalizers = metadata.setdefault("finalizers", [])
        if CLEANUP_FINALIZER not in finalizers:
            finalizers.append(CLEANUP_FINALIZER)
        obj.setdefault("status", {}).setdefault("conditions", []).append(
            {
                "type": "Terminating",
                "status": "True",
                "reason": "InstanceDeletionInProgress",
                "message": "CustomResource deletion is in progress",
                "lastTransitionTime": obj["metadata"]["deletionTimestamp"],
            }
        )

    def _establish(self, obj: Json) -> None:
        spec, status = obj["spec"], obj.setdefault("status", {})
        names = spec.get("names") or {}
        taken = self._taken(obj)
        since = obj["metadata"]["creationTimestamp"]
        accepted = {
            "type": "NamesAccepted",
            "status": "False" if taken else "True",
            "reason": "KindConflict" if taken else "NoConflicts",
            "message": taken or "no conflicts found",
        }
        established = {
            "type": "Established",
            "status": "False" if taken else "True",
            "reason": "NotAccepted" if taken else "InitialNamesAccepted",
            "message": "not all names are accepted"
            if taken
            else "the initial names have been accepted",
        }
        old = {c["type"]: c for c in status.get("conditions") or ()}
        for condition in (accepted, established):
            same = old.get(condition["type"], {}).get("status") == condition["status"]
            condition["lastTransitionTime"] = (
                old[condition["type"]]["lastTransitionTime"] if same else since
            )
        others = [c for c in status.get("conditions") or () if c["type"] not in
                  ("NamesAccepted", "Established")]  # fmt: skip
        status["conditions"] = [*others, accepted, established]
        status["acceptedNames"] = {} if taken else dict(names)
        stored = status.setdefault("storedVersions", [])
        for version in spec.get("versions") or ():
            name = version.get("name")
            if version.get("storage") and name and name not in stored:
                stored.append(name)

    def _taken(self, obj: JsonView) -> str:
        spec = obj["spec"]
        names = spec.get("names") or {}
        other = self._registry.by_kind(spec.get("group", ""), names.get("kind", ""))
        if other is not None and other.crd_name != obj["metadata"].get("name"):
            return f'"{names.get("kind")}" is already in use'
        return ""

    def validate(self, new: JsonView, old: JsonView | None) -> Sequence[Cause]:
        """Check name, versions, schemas and what must not change."""
        spec = new["spec"]
        names = spec.get("names") or {}
        causes = _missing(spec)
        if causes:
            return causes
        expected = f"{names.get('plural', '')}.{spec.get('group', '')}"
        if new["metadata"]["name"] != expected:
            causes.append(
                _invalid(
                    "metadata.name",
                    new["metadata"]["name"],
                    'must be spec.names.plural+"."+spec.group',
                )
            )
        storage = [v.get("name") for v in spec.get("versions") or () if v.get("storage")]
        if len(storage) != 1:
            causes.append(
                _invalid(
                    "spec.versions",
                    storage,
                    "must have exactly one version marked as storage version",
                )
            )
        for i, version in enumerate(spec.get("versions") or ()):
            causes += self._check_version(spec, version, f"spec.versions[{i}]")
        if old is not None:
            for field in ("group", "scope"):
                if spec.get(field) != old["spec"].get(field):
                    causes.append(_invalid(f"spec.{field}", spec.get(field), "field is immutable"))
        return causes

    def _check_version(self, spec: JsonView, version: JsonView, path: str) -> list[Cause]:
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            return [
                Cause(
                    reason="FieldValueRequired",
                    message="Required value",
                    field=f"{path}.schema.openAPIV3Schema",
                )
            ]
        prefix = f"{path}.schema.openAPIV3Schema"
        problems = list(check_structural(schema, prefix))
        if problems:
            return problems
        try:
            self._registry.compiler.compile(_type_schema(spec, version))
        except ApiError as error:
            causes = (error.details or {}).get("causes") or [
                {"reason": "FieldValueInvalid", "message": error.message, "field": ""}
            ]
            return [
                Cause(
                    reason=cause.get("reason", "FieldValueInvalid"),
                    message=cause.get("message", ""),
                    field=_join(prefix, cause.get("field", "")),
                )
                for cause in causes
            ]
        for i, column in enumerate(version.get("additionalPrinterColumns") or ()):
            try:
                compile_path(column.get("jsonPath", ""))
            except ValueError as error:
                where = f"{path}.additionalPrinterColumns[{i}].jsonPath"
                return [_invalid(where, column.get("jsonPath"), str(error))]
        return []


_SCOPES = ("Cluster", "Namespaced")


def _missing(spec: JsonView) -> list[Cause]:
    """Return what a CRD must name and does not."""
    names = spec.get("names") or {}
    values = {
        "spec.group": spec.get("group"),
        "spec.names.plural": names.get("plural"),
        "spec.names.singular": names.get("singular"),
        "spec.names.kind": names.get("kind"),
        "spec.names.listKind": names.get("listKind"),
    }
    for i, version in enumerate(spec.get("versions") or ()):
        values[f"spec.versions[{i}].name"] = version.get("name")
    causes = [
        Cause(reason="FieldValueRequired", message="Required value", field=path)
        for path, value in values.items()
        if not value
    ]
    for path in ("spec.group", "spec.names.plural"):
        if values[path] and not _NAME.fullmatch(values[path] or ""):
            causes.append(_invalid(path, values[path], "must be a lowercase DNS name"))
    seen: set[str] = set()
    for i, version in enumerate(spec.get("versions") or ()):
        name = version.get("name") or ""
        if name in seen or (name and not _LABEL.fullmatch(name)):
            why = "must be unique" if name in seen else "must be a lowercase DNS label"
            causes.append(_invalid(f"spec.versions[{i}].name", name, why))
        seen.add(name)
    if spec.get("scope") not in _SCOPES:
        message = f'Unsupported value: "{spec.get("scope", "")}": supported values: ' + ", ".join(
            f'"{scope}"' for scope in _SCOPES
        )
        causes.append(Cause(reason="FieldValueNotSupported", message=message, field="spec.scope"))
    return causes


def _join(prefix: str, field: str) -> str:
    # The compiler knows the schema only, not where in the CRD it stands.
    field = field.removeprefix("openAPIV3Schema").removeprefix(".")
    if not field:
        return prefix
    return prefix + (field if field.startswith("[") else "." + field)


def _invalid(path: str, value: Any, why: str) -> Cause:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return Cause(reason="FieldValueInvalid", message=f"Invalid value: {shown}: {why}", field=path)


def _type_schema(spec: JsonView, version: JsonView) -> TypeSchema:
    return TypeSchema(
        group=spec.get("group", ""),
        version=version["name"],
        kind=(spec.get("names") or {}).get("kind", ""),
        root=version["schema"]["openAPIV3Schema"],
        definitions={},
        is_builtin=False,
    )


def is_established(crd: JsonView) -> bool:
    """Tell whether a CRD's resource is to be served."""
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def resource_of(crd: JsonView, compiler: SchemaCompiler) -> Resource:
    """Return the resource that a stored CRD defines."""
    spec = crd["spec"]
    names = spec["names"]
    versions = {}
    selectable = {}
    storage = ""
    for version in sorted(spec["versions"], key=lambda v: priority(v["name"])):
        if version.get("storage"):
            storage = version["name"]
        for field in version.get("selectableFields") or ():
            path = field["jsonPath"]
            selectable[path.lstrip(".")] = compile_path(path)
        versions[version["name"]] = Version(
            name=version["name"],
            schema=compiler.compile(_type_schema(spec, version)),
            columns=_columns(version),
            served=bool(version.get("served")),
            has_status="status" in (version.get("subresources") or {}),
            deprecation_warning=_warning(spec, version),
        )
    return Resource(
        group=spec["group"],
        plural=names["plural"],
        singular=names["singular"],
        kind=names["kind"],
        list_kind=names["listKind"],
        namespaced=spec["scope"] == "Namespaced",
        versions=versions,
        storage_version=storage,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        selectable=selectable,
        conversion=spec.get("conversion") or {},
        crd_name=crd["metadata"]["name"],
        is_terminating=bool(crd["metadata"].get("deletionTimestamp")),
    )


def _warning(spec: JsonView, version: JsonView) -> str:
    if not version.get("deprecated"):
        return ""
    given = version.get("deprecationWarning")
    if given:
        return str(given)
    group, kind = spec["group"], spec["names"]["kind"]
    newer = [
        other["name"]
        for other in spec["versions"]
        if other.get("served")
        and not other.get("deprecated")
        and priority(other["name"]) < priority(version["name"])
    ]
    use = f"; use {group}/{min(newer, key=priority)} {kind}" if newer else ""
    return f"{group}/{version['name']} {kind} is deprecated{use}"


def _columns(version: JsonView) -> tuple[Column, ...]:
    given = version.get("additionalPrinterColumns") or ()
    if not given:
        return (NAME, AGE)
    return (
        NAME,
        *(
            Column(
                name=column["name"],
                extract=compile_path(column["jsonPath"]),
                type=column["type"],
                format=column.get("format", ""),
                description=column.get("description", ""),
                priority=column.get("priority", 0),
                is_age=column["type"] == "date",
                absent=None,
            )
            for column in given
        ),
    )
