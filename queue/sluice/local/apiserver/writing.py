"""Create, update and patch: the order of steps that `seams` promises to the parts.

Webhooks are awaited between reading and storing, so an object may change meanwhile; a write that
names no resourceVersion is then done again on the newer state, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from sluice.local.apiserver.backend import Backend
from sluice.local.apiserver.bodies import check_media_type, check_shape, decode, decode_object
from sluice.local.apiserver.calls import Answer, Call, is_true
from sluice.local.apiserver.metadata import check_name, random_suffix
from sluice.local.apiserver.plugins import admit
from sluice.local.apiserver.preparing import (
    check_namespace,
    check_preconditions,
    fill_defaults,
    finish_create,
    finish_update,
    is_to_be_removed,
    name_of,
    sanitize,
    validate,
    writer,
)
from sluice.local.apiserver.seams import AdmissionRequest, Json, JsonView, Operation, PatchType
from sluice.local.apiserver.status import (
    STALE,
    Cause,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    invalid_options,
    not_found,
)
from sluice.local.apiserver.store import Key, Stored

ATTEMPTS_MAX = 5
"""How often a write is done again when the object changed under it; Kubernetes' number."""

NAME_ATTEMPTS_MAX = 8
"""How many generated names are tried."""

APPLY = "application/apply-patch+yaml"

Mutation = Callable[[Json], Awaitable[Json]]
"""Makes the new object of the stored one (in the request's version), which it may not change."""


def admission_request(
    backend: Backend,
    call: Call,
    operation: Operation,
    obj: Json | None,
    old: JsonView | None,
    options_kind: str,
) -> AdmissionRequest:
    """Return what admission is told of a write."""
    resource, version = call.resource, call.version.name
    options: Json = {"kind": options_kind, "apiVersion": "meta.k8s.io/v1"}
    if call.query.get("fieldManager"):
        options["fieldManager"] = call.query["fieldManager"]
    if call.query.get("fieldValidation"):
        options["fieldValidation"] = call.query["fieldValidation"]
    if call.is_dry_run:
        options["dryRun"] = ["All"]

    async def convert(wanted: Json, api_version: str) -> Json:
        return (await backend.convert(resource, [wanted], api_version))[0]

    shown = obj if obj is not None else old
    return AdmissionRequest(
        operation=operation,
        kind=resource.gvk(version),
        resource=resource.gvr(version),
        subresource=call.subresource,
        namespace=call.namespace,
        name=call.name or (name_of(shown) if shown and shown["metadata"].get("name") else ""),
        obj=obj,
        old_obj=old,
        options=options,
        dry_run=call.is_dry_run,
        user=call.user,
        equivalents=backend.registry.equivalents(resource, version),
        convert=convert,
        warnings=call.warnings,
    )


async def _mutate(
    backend: Backend, call: Call, operation: Operation, obj: Json, old: JsonView | None, kind: str
) -> Json:
    """Run mutating admission, then bring what it made back into the schema."""
    before = orjson.dumps(obj)
    request = admission_request(backend, call, operation, obj, old, kind)
    mutated = await backend.admission.mutate(request)
    if mutated is None:
        return obj
    if orjson.dumps(mutated) != before:
        check_shape(mutated, call.resource.gvk(call.version.name), call.namespace, call.name)
        call.version.schema.prune(mutated)
        fill_defaults(call.resource, call.version, mutated)
    return mutated


async def answer(backend: Backend, call: Call, stored: Stored, code: int = 200) -> Answer:
    """Return a stored object as the reply to a write."""
    body = (await backend.show_raw(call.resource, call.version.name, [stored]))[0]
    return Answer(body=body, code=code, warnings=tuple(call.warnings))


def dry_answer(call: Call, obj: Json, code: int = 200) -> Answer:
    """Return the object that a dry run would have stored."""
    return Answer(body=orjson.dumps(obj), code=code, warnings=tuple(call.warnings))


async def create(backend: Backend, call: Call) -> Answer:
    """Handle POST on a collection."""
    if call.name:
        raise bad_request("name must not be given in the path of a create")
    obj = decode_object(call)
    sanitize(call, obj)
    backend.merger.record_update(None, obj, call.version.schema.source, writer(call, backend.now()))
    return await create_object(backend, call, obj)


async def create_object(backend: Backend, call: Call, obj: Json) -> Answer:
    """Admit, complete and store an object that is decoded, defaulted and has managedFields."""
    resource = call.resource
    if resource.is_terminating:
        raise forbidden(
            resource.group,
            resource.plural,
            name_of(obj),
            "create not allowed while custom resource definition is terminating",
        )
    check_namespace(backend, resource, call.namespace, name_of(obj))
    admit(backend, call, obj)
    obj = await _mutate(backend, call, Operation.CREATE, obj, None, "CreateOptions")
    metadata = obj["metadata"]
    if not metadata.get("name") and not metadata.get("generateName"):
        raise invalid(resource.group, resource.kind, "", list(check_name(resource, "")))
    generated = not metadata.get("name")
    for attempt in range(NAME_ATTEMPTS_MAX):
        if generated:
            # 63 - 5 characters, so that the name still fits a label.
            metadata["name"] = metadata["generateName"][:58] + random_suffix()
        taken = backend.find(resource, call.namespace, metadata.get("name", ""))
        if taken is None:
            break
        if not generated or attempt == NAME_ATTEMPTS_MAX - 1:
            raise already_exists(resource.group, resource.plural, metadata["name"])
    finish_create(backend, call, obj)
    await backend.admission.validate(
        admission_request(backend, call, Operation.CREATE, obj, None, "CreateOptions")
    )
    if call.is_dry_run:
        return dry_answer(call, obj, 201)
    stored_form = await backend.to_storage(resource, orjson.loads(orjson.dumps(obj)))
    # Admission was awaited: the name may be taken, or the namespace may end, since the checks.
    check_namespace(backend, resource, call.namespace, metadata["name"])
    if backend.find(resource, call.namespace, metadata["name"]) is not None:
        raise already_exists(resource.group, resource.plural, metadata["name"])
    return await answer(backend, call, backend.put(resource, stored_form), 201)


async def update(backend: Backend, call: Call) -> Answer:
    """Handle PUT on an object or its status."""
    sent = decode_object(call)
    sanitize(call, sent)
    raw = orjson.dumps(sent)

    async def mutation(old: Json) -> Json:
        new: Json = orjson.loads(raw)
        check_preconditions(call, new, old, is_put=True)
        _record(backend, call, old, new)
        return new

    named = sent["metadata"].get("resourceVersion") or sent["metadata"].get("uid")
    return await _write(backend, call, mutation, is_retried=not named)


def _record(backend: Backend, call: Call, old: JsonView, new: Json) -> None:
    backend.merger.record_update(old, new, call.version.schema.source, writer(call, backend.now()))


async def patch(backend: Backend, call: Call) -> Answer:
    """Handle PATCH of any content type on an object or its status."""
    accepted = (*(str(kind) for kind in PatchType), APPLY)
    check_media_type(call.content_type, accepted)
    body = decode(call.body, call.content_type)
    if call.content_type == APPLY:
        return await _apply(backend, call, body)
    if "force" in call.query:
        cause = Cause(
            reason="FieldValueForbidden",
            message="Forbidden: may not be specified for non-apply patch",
            field="force",
        )
        raise invalid_options("PatchOptions", [cause])
    kind = PatchType(call.content_type)

    async def mutation(old: Json) -> Json:
        source = call.version.schema.source
        new = backend.merger.patch(kind, old, body, source)
        check_shape(new, call.resource.gvk(call.version.name), call.namespace, call.name)
        check_preconditions(call, new, old, is_put=False)
        sanitize(call, new)
        _record(backend, call, old, new)
        return new

    return await _write(backend, call, mutation, is_retried=True)


async def _apply(backend: Backend, call: Call, body: Any) -> Answer:
    if not call.query.get("fieldManager"):
        cause = Cause(
            reason="FieldValueRequired",
            message="Required value: is required for apply patch",
            field="fieldManager",
        )
        raise invalid_options("PatchOptions", [cause])
    gvk = call.resource.gvk(call.version.name)
    config = check_shape(body, gvk, call.namespace, call.name)
    if config["metadata"].get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    raw = orjson.dumps(config)
    force = is_true(call.query.get("force"))

    def merge(live: Json | None) -> Json:
        source, by = call.version.schema.source, writer(call, backend.now())
        new = backend.merger.apply(live, orjson.loads(raw), source, by, force=force)
        # What an open map of the schema let through, and what an earlier schema had.
        call.version.schema.prune(new)
        fill_defaults(call.resource, call.version, new)
        return new

    async def mutation(old: Json) -> Json:
        check_preconditions(call, orjson.loads(raw), old, is_put=False)
        return merge(old)

    exists = backend.find(call.resource, call.namespace, call.name) is not None
    if not exists and not call.subresource:
        return await create_object(backend, call, merge(None))
    return await _write(backend, call, mutation, is_retried=True)


async def _write(backend: Backend, call: Call, mutation: Mutation, *, is_retried: bool) -> Answer:
    """Read, change, admit, check and store; again when the object changed meanwhile."""
    resource = call.resource
    key = Key(call.namespace, call.name)
    for _ in range(ATTEMPTS_MAX):
        seen = backend.find(resource, call.namespace, call.name)
        if seen is None:
            raise not_found(resource.group, resource.plural, call.name)
        # Each step gets a copy of its own, so that no webhook or merge can touch the old state.
        old = (await backend.show(resource, call.version.name, [seen]))[0]
        new = await mutation(orjson.loads(orjson.dumps(old)))
        new = await _mutate(backend, call, Operation.UPDATE, new, old, "UpdateOptions")
        causes = finish_update(call, new, old)
        validate(resource, call.version, new, old, causes)
        await backend.admission.validate(
            admission_request(backend, call, Operation.UPDATE, new, old, "UpdateOptions")
        )
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if call.is_dry_run:
            return dry_answer(call, new)
        if new == old:
            return await answer(backend, call, seen)
        is_gone = is_to_be_removed(new)
        stored_form = await backend.to_storage(resource, orjson.loads(orjson.dumps(new)))
        if backend.find(resource, call.namespace, call.name) is seen:
            if is_gone:
                return await answer(backend, call, backend.remove(resource, key, stored_form))
            return await answer(backend, call, backend.put(resource, stored_form))
        if not is_retried:
            break
        call.warnings.clear()
    raise conflict(resource.group, resource.plural, call.name, STALE)
