"""Delete and deletecollection: preconditions, grace, finalizers and propagation.

An object with finalizers, or a pod with a grace period, is only marked; it goes when the last
finalizer is taken off (see `preparing.is_to_be_removed`) or when it is deleted again without grace.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from sluice.local.apiserver.ages import format_time
from sluice.local.apiserver.backend import Backend
from sluice.local.apiserver.bodies import check_media_type, decode
from sluice.local.apiserver.calls import Answer, Call, parse_integer
from sluice.local.apiserver.preparing import is_to_be_removed
from sluice.local.apiserver.reading import Filter, render_list
from sluice.local.apiserver.seams import Json, Operation
from sluice.local.apiserver.status import (
    STALE,
    ApiError,
    Cause,
    bad_request,
    conflict,
    invalid_options,
    not_found,
)
from sluice.local.apiserver.store import Key, Stored
from sluice.local.apiserver.writing import ATTEMPTS_MAX, admission_request

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_POLICIES = ("Foreground", "Background", "Orphan")
_RETURNED_WHOLE = ("Pod", "Service", "ServiceAccount", "PersistentVolumeClaim")
_BODY_TYPES = ("", "application/json", "application/yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """What a client asks of a delete; None and "" stand for what it left out."""

    grace_period_s: int | None = None
    policy: str = ""
    uid: str = ""
    resource_version: str = ""


def parse_options(call: Call) -> DeleteOptions:
    """Read DeleteOptions from body and query (the body wins, as in Kubernetes).

    Raises:
        ApiError: 400 or 422 for values that no API server takes.
    """
    body: Json = {}
    if call.body:
        check_media_type(call.content_type, _BODY_TYPES)
        decoded = decode(call.body, call.content_type)
        if not isinstance(decoded, dict):
            raise bad_request("the body of a delete must be DeleteOptions")
        if decoded.get("kind") not in (None, "", "DeleteOptions"):
            raise bad_request(f"expected DeleteOptions, got {decoded['kind']}")
        body = decoded
    grace = body.get("gracePeriodSeconds")
    if grace is None:
        grace = parse_integer(call.query, "gracePeriodSeconds")
    policy = body.get("propagationPolicy") or call.query.get("propagationPolicy", "")
    orphan = body.get("orphanDependents")
    if orphan is not None and not policy:
        policy = "Orphan" if orphan else "Background"
    if policy not in ("", *_POLICIES):
        cause = Cause(
            reason="FieldValueNotSupported",
            message=f'Unsupported value: "{policy}": supported values: "Foreground", '
            '"Background", "Orphan"',
            field="propagationPolicy",
        )
        raise invalid_options("DeleteOptions", [cause])
    if grace is not None and (not isinstance(grace, int) or grace < 0):
        raise bad_request(f"gracePeriodSeconds: must be an integer of at least 0, got {grace!r}")
    wanted = body.get("preconditions") or {}
    return DeleteOptions(
        grace_period_s=grace,
        policy=policy,
        uid=wanted.get("uid") or "",
        resource_version=wanted.get("resourceVersion") or "",
    )


async def delete(backend: Backend, call: Call) -> Answer:
    """Handle DELETE of one object."""
    options = parse_options(call)
    resource = call.resource
    state, is_gone = await delete_object(backend, call, options)
    if not is_gone or resource.kind in _RETURNED_WHOLE:
        body = (await backend.show_raw(resource, call.version.name, [state]))[0]
        return Answer(body=body, code=200, warnings=tuple(call.warnings))
    details = {"name": call.name, "kind": resource.plural, "uid": state.uid}
    if resource.group:
        details["group"] = resource.group
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
    return Answer(body=orjson.dumps(status), warnings=tuple(call.warnings))


async def delete_object(
    backend: Backend, call: Call, options: DeleteOptions
) -> tuple[Stored, bool]:
    """Mark or remove one object.

    Returns:
        Its state afterwards (the last one when it is gone), and whether it is gone.

    Raises:
        ApiError: 404, 409 for a failed precondition, or what admission refuses.
    """
    resource = call.resource
    key = Key(call.namespace if resource.namespaced else "", call.name)
    behaviour = resource.behaviour
    if behaviour.orphan_warning and not options.policy:
        call.warnings.append(behaviour.orphan_warning)
    for _ in range(ATTEMPTS_MAX):
        seen = backend.find(resource, call.namespace, call.name)
        if seen is None:
            raise not_found(resource.group, resource.plural, call.name)
        _check_preconditions(call, options, seen)
        old = (await backend.show(resource, call.version.name, [seen]))[0]
        request = admission_request(backend, call, Operation.DELETE, None, old, "DeleteOptions")
        await backend.admission.mutate(request)
        await backend.admission.validate(request)
        if backend.find(resource, call.namespace, call.name) is not seen:
            continue
        marked = seen.load()
        changed = _mark(backend, call, options, marked)
        if call.is_dry_run:
            return seen, not marked["metadata"].get("finalizers")
        if is_to_be_removed(marked):
            return backend.remove(resource, key, marked), True
        return (backend.put(resource, marked) if changed else seen), False
    raise conflict(resource.group, resource.plural, call.name, STALE)


def _check_preconditions(call: Call, options: DeleteOptions, seen: Stored) -> None:
    resource = call.resource
    checks = (
        ("UID", options.uid, seen.uid, "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, str(seen.revision), "modified"),
    )
    for what, wanted, found, happened in checks:
        if wanted and wanted != found:
            raise conflict(
                resource.group,
                resource.kind,
                call.name,
                f"the {what} in the precondition ({wanted}) does not match the {what} in record "
                f"({found}). The object might have been {happened}",
            )


def _finalizers(call: Call, options: DeleteOptions, current: list[str]) -> list[str]:
    """Return the finalizers with those of the propagation policy put on or taken off."""
    policy = options.policy
    if not policy:
        if FOREGROUND in current or ORPHAN in current:
            return current
        if not call.resource.behaviour.orphans_by_default:
            return current
        policy = "Orphan"
    kept = [f for f in current if f not in (FOREGROUND, ORPHAN)]
    if policy == "Foreground":
        kept.append(FOREGROUND)
    elif policy == "Orphan":
        kept.append(ORPHAN)
    return kept


def _mark(backend: Backend, call: Call, options: DeleteOptions, obj: Json) -> bool:
    """Set deletion time, grace and finalizers in place; return whether anything changed."""
    before = orjson.dumps(obj)
    metadata = obj["metadata"]
    metadata_finalizers = _finalizers(call, options, list(metadata.get("finalizers") or ()))
    if metadata_finalizers:
        metadata["finalizers"] = metadata_finalizers
    else:
        metadata.pop("finalizers", None)
    grace_s = call.resource.behaviour.grace_period_s(obj, options.grace_period_s)
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = format_time(backend.now_s + grace_s)
        metadata["deletionGracePeriodSeconds"] = grace_s
        if metadata.get("generation"):
            metadata["generation"] += 1
        call.resource.behaviour.mark_deleted(obj)
    elif options.grace_period_s is not None and grace_s < metadata.get(
        "deletionGracePeriodSeconds", 0
    ):
        # A second delete may only shorten the wait; a kubelet confirms with grace 0.
        metadata["deletionTimestamp"] = format_time(backend.now_s + grace_s)
        metadata["deletionGracePeriodSeconds"] = grace_s
    return orjson.dumps(obj) != before


async def delete_collection(backend: Backend, call: Call) -> Answer:
    """Handle DELETE on a collection: each object that the selectors take."""
    options = parse_options(call)
    wanted = Filter(call)
    collection = backend.collection(call.resource)
    states = [state for state in collection.select(call.namespace) if wanted.takes(state)]
    limit = parse_integer(call.query, "limit")
    for state in states[:limit] if limit else states:
        await _delete_one(backend, call, options, state)
    list_metadata: Json = {"resourceVersion": str(backend.store.revision)}
    return Answer(
        body=await render_list(backend, call, states, list_metadata),
        warnings=tuple(call.warnings),
    )


async def _delete_one(backend: Backend, call: Call, options: DeleteOptions, state: Stored) -> None:
    single = Call(
        method=call.method,
        resource=call.resource,
        version=call.version,
        namespace=state.key.namespace,
        name=state.key.name,
        subresource="",
        query=call.query,
        shape=call.shape,
        content_type=call.content_type,
        body=b"",
        user=call.user,
        user_agent=call.user_agent,
        warnings=call.warnings,
    )
    try:
        await delete_object(backend, single, options)
    except ApiError as error:
        if error.code != 404:
            raise
