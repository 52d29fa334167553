"""Get and list, with paging, selectors and the meaning of resourceVersion.

A continue token names the revision of the first page and the key to go on after, so all pages
show one state; when history no longer holds that state the answer is 410.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

import orjson

from sluice.local.apiserver.backend import Backend
from sluice.local.apiserver.calls import Answer, Call, Shape, parse_integer, parse_revision
from sluice.local.apiserver.resources import Resource
from sluice.local.apiserver.seams import Json
from sluice.local.apiserver.selectors import Selector, matches, parse_fields, parse_labels
from sluice.local.apiserver.status import (
    ApiError,
    Cause,
    Reason,
    bad_request,
    invalid_options,
    not_found,
)
from sluice.local.apiserver.store import Key, Stored
from sluice.local.apiserver.tables import partial, partial_list, table

_ALWAYS_SELECTABLE = ("metadata.name", "metadata.namespace")


class Filter:
    """Which objects a request is about: namespace, name, labels and fields.

    Raises:
        ApiError: 400 for a selector that doesn't parse or a field that isn't selectable.
    """

    def __init__(self, call: Call) -> None:
        self._namespace = call.namespace
        self._name = call.name
        self._labels = parse_labels(call.query.get("labelSelector", ""))
        self._fields = parse_fields(call.query.get("fieldSelector", ""))
        _check_selectable(call.resource, self._fields)

    def takes(self, state: Stored) -> bool:
        """Tell whether the request is about an object in this state."""
        if self._namespace and state.key.namespace != self._namespace:
            return False
        if self._name and state.key.name != self._name:
            return False
        return matches(self._labels, state.labels) and matches(self._fields, state.fields)


def _check_selectable(resource: Resource, fields: Selector) -> None:
    for requirement in fields:
        if requirement.key not in _ALWAYS_SELECTABLE and requirement.key not in resource.selectable:
            if resource.crd_name:
                raise bad_request(f"field label not supported: {requirement.key}")
            raise bad_request(f'field label "{requirement.key}" not supported for {resource.kind}')


def _encode_continue(revision: int, after: Key) -> str:
    token = orjson.dumps({"v": 1, "rv": revision, "after": list(after)})
    return base64.urlsafe_b64encode(token).decode().rstrip("=")


def _decode_continue(text: str) -> tuple[int, Key]:
    try:
        token = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        namespace, name = token["after"]
        return int(token["rv"]), Key(str(namespace), str(name))
    except (binascii.Error, orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise bad_request("continue key is not valid: send one that a list returned") from error


def _candidates(backend: Backend, call: Call) -> tuple[int, Sequence[Stored], Key | None]:
    """Return the list's revision, its objects in key order, and the key to start after."""
    collection = backend.collection(call.resource)
    token = call.query.get("continue", "")
    revision = parse_revision(call.query.get("resourceVersion", ""))
    match = call.query.get("resourceVersionMatch", "")
    _check_match(match, has_revision=revision is not None)
    if token:
        if revision not in (None, 0):
            raise bad_request("specifying resource version is not allowed when using continue")
        at, after = _decode_continue(token)
        return at, _at(backend, call, at), after
    if revision is not None:
        backend.store.check_reached(revision)
        if match == "Exact" and revision != 0:
            return revision, _at(backend, call, revision), None
    return backend.store.revision, list(collection.select(call.namespace)), None


def _check_match(match: str, *, has_revision: bool) -> None:
    if match not in ("", "Exact", "NotOlderThan"):
        reason = "FieldValueNotSupported"
        message = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
    elif match and not has_revision:
        reason = "FieldValueForbidden"
        message = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
    else:
        return
    cause = Cause(reason=reason, message=message, field="resourceVersionMatch")
    raise invalid_options("ListOptions", [cause])


def _at(backend: Backend, call: Call, revision: int) -> Sequence[Stored]:
    """Return the objects of the namespace as they were at a revision."""
    backend.store.check_reached(revision)
    try:
        state = backend.collection(call.resource).snapshot(revision)
    except ApiError as error:
        if not call.query.get("continue"):
            raise
        raise ApiError(
            Reason.EXPIRED,
            "The provided continue parameter is too old to display a consistent list result. "
            "You must start a new list without the continue parameter.",
        ) from error
    keys = sorted(k for k in state if not call.namespace or k.namespace == call.namespace)
    return [state[key] for key in keys]


async def list_objects(backend: Backend, call: Call) -> Answer:
    """Handle GET on a collection."""
    wanted = Filter(call)
    limit = parse_integer(call.query, "limit") or 0
    revision, states, after = _candidates(backend, call)
    found = [s for s in states if (after is None or s.key > after) and wanted.takes(s)]
    list_metadata: Json = {"resourceVersion": str(revision)}
    if 0 < limit < len(found):
        list_metadata["continue"] = _encode_continue(revision, found[limit - 1].key)
        if not call.query.get("labelSelector") and not call.query.get("fieldSelector"):
            list_metadata["remainingItemCount"] = len(found) - limit
        found = found[:limit]
    return Answer(
        body=await render_list(backend, call, found, list_metadata), warnings=tuple(call.warnings)
    )


def _without_kind(body: bytes, call: Call) -> bytes:
    """Leave out an item's kind and apiVersion, as lists of built-in kinds do."""
    kind = call.resource.kind
    lead = f'{{"apiVersion":"{call.api_version}","kind":"{kind}",'.encode()
    return b"{" + body[len(lead) :] if body.startswith(lead) else body


async def render_list(
    backend: Backend, call: Call, states: Sequence[Stored], list_metadata: Json
) -> bytes:
    """Return a list in the shape that the client asked for."""
    resource, version = call.resource, call.version
    if call.shape is Shape.WHOLE:
        raw = await backend.show_raw(resource, version.name, states)
        if not resource.crd_name:
            raw = [_without_kind(body, call) for body in raw]
        head = {
            "kind": resource.list_kind,
            "apiVersion": call.api_version,
            "metadata": list_metadata,
        }
        return orjson.dumps(head)[:-1] + b',"items":[' + b",".join(raw) + b"]}"
    objects = await backend.show(resource, version.name, states)
    if call.shape is Shape.METADATA:
        return orjson.dumps(partial_list(objects, list_metadata))
    include = call.query.get("includeObject", "")
    return orjson.dumps(table(version, objects, list_metadata, include, backend.now_s))


async def get_object(backend: Backend, call: Call) -> Answer:
    """Handle GET on an object or its status."""
    revision = parse_revision(call.query.get("resourceVersion", ""))
    if revision:
        backend.store.check_reached(revision)
    resource, version = call.resource, call.version
    state = backend.find(resource, call.namespace, call.name)
    if state is None:
        raise not_found(resource.group, resource.plural, call.name)
    if call.shape is Shape.WHOLE:
        body = (await backend.show_raw(resource, version.name, [state]))[0]
    else:
        obj = (await backend.show(resource, version.name, [state]))[0]
        if call.shape is Shape.METADATA:
            body = orjson.dumps(partial(obj))
        else:
            include = call.query.get("includeObject", "")
            list_metadata = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            body = orjson.dumps(table(version, [obj], list_metadata, include, backend.now_s))
    return Answer(body=body, warnings=tuple(call.warnings))
