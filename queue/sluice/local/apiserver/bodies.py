"""Decoding of request bodies: JSON or YAML into objects of the right kind and a sound shape.

The checks here make sure that the code after them may index metadata without being surprised;
everything a schema says is checked later.
"""

from __future__ import annotations

from typing import Any

import orjson
import yaml

from sluice.local.apiserver.calls import Call
from sluice.local.apiserver.seams import Gvk, Json
from sluice.local.apiserver.status import ApiError, Reason, bad_request

_PROTOBUF_HINT = (
    ". This API server reads JSON only, and this command of kubectl sends protobuf: add "
    "--dry-run=client -o yaml to it and pipe its output to kubectl apply -f -"
)
_BODY_TYPES = ("", "application/json", "application/yaml")


class _PlainLoader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: a date is a string."""


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def decode(body: bytes, content_type: str) -> Any:
    """Return a body's JSON value; YAML is read where the content type allows it.

    Raises:
        ApiError: 400 for a body that doesn't parse.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if not content_type.endswith("yaml"):
            raise bad_request(f"the body of the request is not JSON: {error}") from error
    try:
        value = yaml.load(body, Loader=_PlainLoader)
        return orjson.loads(orjson.dumps(value))
    except (yaml.YAMLError, TypeError, ValueError) as error:
        raise bad_request(f"the body of the request is not YAML: {error}") from error


def check_media_type(content_type: str, accepted: tuple[str, ...] = _BODY_TYPES) -> None:
    """Refuse encodings that this server does not read.

    Raises:
        ApiError: 415, as Kubernetes answers to an encoding that it does not know.
    """
    if content_type not in accepted:
        listed = ", ".join(sorted(media for media in accepted if media))
        raise ApiError(
            Reason.UNSUPPORTED_MEDIA_TYPE,
            "the body of the request was in an unknown format - accepted media types include: "
            f"{listed}{_PROTOBUF_HINT if 'protobuf' in content_type else ''}",
            details={},
        )


def decode_object(call: Call, kind: Gvk | None = None) -> Json:
    """Return the object in the body of a create or update.

    Args:
        kind: What the body must be; the resource's own kind by default.

    Raises:
        ApiError: 400 or 415.
    """
    check_media_type(call.content_type)
    if not call.body:
        raise bad_request("the body of the request is empty; send the object as JSON")
    value = decode(call.body, call.content_type)
    expected = kind or call.resource.gvk(call.version.name)
    fill_in_kind(call, value, expected)
    return check_shape(value, expected, call.namespace, call.name)


def fill_in_kind(call: Call, value: Any, expected: Gvk) -> None:
    """Take the path's kind where a body says none, as Kubernetes does for built-in kinds."""
    if isinstance(value, dict) and not call.resource.crd_name:
        if not value.get("kind"):
            value["kind"] = expected.kind
        if not value.get("apiVersion"):
            value["apiVersion"] = expected.api_version


def check_shape(value: Any, expected: Gvk, namespace: str, name: str) -> Json:
    """Check kind, name, namespace and the types of metadata, and fill in what the path says.

    Raises:
        ApiError: 400 that says which part is wrong.
    """
    if not isinstance(value, dict):
        raise bad_request(f"the body must be a JSON object of kind {expected.kind}")
    api_version, kind = value.get("apiVersion"), value.get("kind")
    if not kind:
        raise bad_request(f"Object 'Kind' is missing; it must be {expected.kind}")
    if api_version != expected.api_version:
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API "
            f"version ({expected.api_version})"
        )
    if kind != expected.kind:
        raise bad_request(
            f'{kind} in version "{expected.version}" cannot be handled as a {expected.kind}'
        )
    metadata = value.get("metadata")
    if metadata is None:
        metadata = value["metadata"] = {}
    check_metadata(metadata)
    if name and not metadata.get("name"):
        metadata["name"] = name
    if name and metadata["name"] != name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL "
            f"({name})"
        )
    if namespace:
        if metadata.get("namespace") not in (None, "", namespace):
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on "
                "the request"
            )
        metadata["namespace"] = namespace
    return value


_STRINGS = (
    "name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp",
    "deletionTimestamp", "selfLink",
)  # fmt: skip
_MAPS = ("labels", "annotations")


def check_metadata(metadata: Any) -> None:
    """Check the types of ObjectMeta's fields and drop its nulls.

    Raises:
        ApiError: 400 with the path of the wrong field.
    """
    if not isinstance(metadata, dict):
        raise bad_request("metadata: must be an object")
    for key in [key for key, value in metadata.items() if value is None]:
        del metadata[key]
    for key in _STRINGS:
        if not isinstance(metadata.get(key, ""), str):
            raise bad_request(f"metadata.{key}: must be a string")
    for key in _MAPS:
        values = metadata.get(key, {})
        if not isinstance(values, dict):
            raise bad_request(f"metadata.{key}: must be a map of strings")
        for inner, value in list(values.items()):
            if value is None:
                values[inner] = ""
            elif not isinstance(value, str):
                raise bad_request(f"metadata.{key}.{inner}: must be a string")
    finalizers = metadata.get("finalizers", [])
    if not isinstance(finalizers, list) or not all(isinstance(f, str) for f in finalizers):
        raise bad_request("metadata.finalizers: must be a list of strings")
    for key in ("ownerReferences", "managedFields"):
        entries = metadata.get(key, [])
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise bad_request(f"metadata.{key}: must be a list of objects")
