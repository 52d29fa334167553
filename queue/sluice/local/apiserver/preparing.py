"""The steps of a write between decoding and storing that depend on no webhook.

Kept apart from `writing` because each is a plain function of objects: easy to test and to reuse
by the server's own writes.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sluice.local.apiserver.backend import Backend
from sluice.local.apiserver.calls import Call, FieldValidation
from sluice.local.apiserver.metadata import check_object_meta, keep_system_fields
from sluice.local.apiserver.resources import Resource, Version
from sluice.local.apiserver.seams import FieldWriter, Json, JsonView
from sluice.local.apiserver.status import (
    STALE,
    ApiError,
    Cause,
    Reason,
    bad_request,
    conflict,
    invalid,
    not_found,
    qualified,
)

_TYPE_REASONS = ("FieldValueTypeInvalid",)

BLIND_UPDATES_REFUSED = (
    "coordination.k8s.io", "apiextensions.k8s.io", "admissionregistration.k8s.io",
    "node.k8s.io",
)  # fmt: skip
"""Groups whose kinds, like custom resources, need a resourceVersion in a PUT."""


def sanitize(call: Call, obj: Json) -> None:
    """Drop or refuse unknown fields and fill in defaults, as the request asks.

    Raises:
        ApiError: 400 under strict validation, or for wrong types of a built-in kind.
    """
    if not call.resource.crd_name:
        drop_nulls(obj)
    check_fields(call, obj)
    fill_defaults(call.resource, call.version, obj)


_OPAQUE = ("openAPIV3Schema", "fieldsV1", "raw")


def drop_nulls(value: object) -> None:
    """Take null for absent at any depth, as Kubernetes does in built-in kinds."""
    if isinstance(value, dict):
        for key in [key for key, child in value.items() if child is None]:
            del value[key]
        for key, child in value.items():
            if key not in _OPAQUE:
                drop_nulls(child)
    elif isinstance(value, list):
        for child in value:
            drop_nulls(child)


def check_fields(call: Call, obj: Json) -> None:
    """Drop unknown fields; refuse them or warn of them, as the request asks.

    Raises:
        ApiError: 400 under strict validation.
    """
    unknown = call.version.schema.prune(obj)
    if not unknown or call.field_validation is FieldValidation.IGNORE:
        return
    texts = [f'unknown field "{path}"' for path in unknown]
    if call.field_validation is FieldValidation.STRICT:
        kind = call.resource.kind
        if call.method == "PATCH":
            cause = Cause(
                reason="FieldValueInvalid",
                message=f"Invalid value: strict decoding error: {', '.join(texts)}",
                field="patch",
            )
            raise invalid(call.resource.group, kind, call.name, [cause])
        raise bad_request(
            f'{kind} in version "{call.version.name}" cannot be handled as a {kind}: '
            f"strict decoding error: {', '.join(texts)}"
        )
    call.warnings.extend(texts)


def fill_defaults(resource: Resource, version: Version, obj: Json) -> None:
    """Fill in the defaults of schema and kind; afterwards a built-in object has sound types.

    Raises:
        ApiError: 400 for wrong types of a built-in kind.
    """
    version.schema.default(obj)
    if not resource.crd_name:
        # The hooks of built-in kinds index their objects, so types are checked before them.
        causes = version.schema.validate(obj, None)
        wrong = [cause.text() for cause in causes if cause.reason in _TYPE_REASONS]
        if wrong:
            kind = resource.kind
            raise bad_request(
                f'{kind} in version "{version.name}" cannot be handled as a {kind}: '
                f"{', '.join(wrong)}"
            )
    resource.behaviour.default(obj)


def name_of(obj: JsonView) -> str:
    """Return an object's name, or its generateName while it has none."""
    metadata = obj["metadata"]
    return str(metadata.get("name") or metadata.get("generateName") or "")


def writer(call: Call, now: str) -> FieldWriter:
    """Return who this request writes as, for managedFields."""
    ignored: tuple[tuple[str, ...], ...] = ()
    if call.subresource == "status":
        ignored = (("spec",),) if not call.resource.crd_name else (("spec",), ("metadata",))
    elif call.version.has_status:
        ignored = (("status",),)
    return FieldWriter(manager=call.manager, subresource=call.subresource, now=now, ignored=ignored)


def check_namespace(backend: Backend, resource: Resource, namespace: str, name: str) -> None:
    """Refuse a create in a namespace that is missing or ends.

    Raises:
        ApiError: 404 or 403, as Kubernetes' NamespaceLifecycle admission says it.
    """
    if not resource.namespaced:
        return
    found = backend.namespace(namespace)
    if found is None:
        raise not_found("", "namespaces", namespace)
    if found["metadata"].get("deletionTimestamp"):
        raise ApiError(
            Reason.FORBIDDEN,
            f'{qualified(resource.group, resource.plural)} "{name}" is forbidden: unable to '
            f"create new content in namespace {namespace} because it is being terminated",
            details={
                "name": name,
                "kind": resource.plural,
                "causes": [
                    {
                        "reason": "NamespaceTerminating",
                        "message": f"namespace {namespace} is being terminated",
                        "field": "metadata.namespace",
                    }
                ],
            },
        )


def finish_create(backend: Backend, call: Call, obj: Json) -> None:
    """Set what the system owns on a new object, then check all of it.

    Raises:
        ApiError: 422.
    """
    resource, metadata = call.resource, obj["metadata"]
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion",
                  "selfLink", "generation"):  # fmt: skip
        metadata.pop(field, None)
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = backend.now()
    if resource.behaviour.has_generation:
        metadata["generation"] = 1
    if resource.namespaced:
        metadata["namespace"] = call.namespace
    else:
        metadata.pop("namespace", None)
    if call.version.has_status:
        keeps = (resource.group, resource.kind) == ("", "Node")
        if not keeps:
            obj.pop("status", None)
            if not resource.crd_name:
                obj["status"] = {}
    resource.behaviour.prepare_create(obj)
    validate(resource, call.version, obj, None)


def validate(
    resource: Resource,
    version: Version,
    new: Json,
    old: JsonView | None,
    more: Sequence[Cause] = (),
) -> None:
    """Check metadata, schema and the kind's own rules.

    Raises:
        ApiError: 422 with all causes.
    """
    causes = [*more, *check_object_meta(resource, new["metadata"])]
    causes += version.schema.validate(new, old)
    if not causes:
        causes += resource.behaviour.validate(new, old)
    if causes:
        raise invalid(resource.group, resource.kind, name_of(new), causes)


def finish_update(call: Call, new: Json, old: JsonView) -> list[Cause]:
    """Carry over what this endpoint can't write, and count the generation.

    Returns:
        What was wrong with the system fields of metadata.
    """
    resource = call.resource
    metadata, old_metadata = new["metadata"], old["metadata"]
    causes = keep_system_fields(metadata, old_metadata)
    metadata["name"] = old_metadata["name"]
    if resource.namespaced:
        metadata["namespace"] = old_metadata["namespace"]
    metadata.pop("generation", None)
    if "generation" in old_metadata:
        metadata["generation"] = old_metadata["generation"]
    if call.subresource == "status":
        _keep_all_but_status(call, new, old)
    else:
        if call.version.has_status:
            _copy_field(new, old, "status")
        resource.behaviour.prepare_update(new, old)
        if resource.behaviour.has_generation and _body(call, new) != _body(call, old):
            metadata["generation"] = old_metadata.get("generation", 0) + 1
    return causes


def _copy_field(new: Json, old: JsonView, field: str) -> None:
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


def _keep_all_but_status(call: Call, new: Json, old: JsonView) -> None:
    for field in {*new, *old} - {"apiVersion", "kind", "metadata", "status"}:
        _copy_field(new, old, field)
    if call.resource.crd_name:
        # A custom resource's status endpoint takes nothing of metadata but managedFields.
        managed = new["metadata"].get("managedFields")
        new["metadata"] = dict(old["metadata"])
        if managed is not None:
            new["metadata"]["managedFields"] = managed


def _body(call: Call, obj: JsonView) -> Json:
    left_out = {"metadata", "status"} if call.version.has_status else {"metadata"}
    return {key: value for key, value in obj.items() if key not in left_out}


def check_preconditions(call: Call, new: Json, old: JsonView, *, is_put: bool) -> None:
    """Compare resourceVersion and uid of an update with the stored object's.

    Raises:
        ApiError: 409 when another state was meant, 422 when a PUT must name one and does not.
    """
    resource, metadata, stored = call.resource, new["metadata"], old["metadata"]
    asked = metadata.get("resourceVersion", "")
    if is_put and asked in ("", "0"):
        if resource.crd_name or resource.group in BLIND_UPDATES_REFUSED:
            cause = Cause(
                reason="FieldValueInvalid",
                message="Invalid value: 0: must be specified for an update",
                field="metadata.resourceVersion",
            )
            raise invalid(resource.group, resource.plural, call.name, [cause])
    elif asked and asked != stored["resourceVersion"]:
        raise conflict(resource.group, resource.plural, call.name, STALE)
    uid = metadata.get("uid", "")
    if uid and uid != stored["uid"]:
        raise conflict(
            resource.group,
            resource.plural,
            call.name,
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {stored['uid']}",
        )


def is_to_be_removed(obj: JsonView) -> bool:
    """Tell whether an object being deleted has nothing left to wait for."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if obj.get("kind") == "Namespace" and obj.get("apiVersion") == "v1":
        return not (obj.get("spec") or {}).get("finalizers")
    return not metadata.get("deletionGracePeriodSeconds")
