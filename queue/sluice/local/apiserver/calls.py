"""One request as the handlers see it: what its path, query and headers ask for.

Parsing stands here so that no handler touches HTTP; `server` makes a `Call` of each request and a
response of each `Answer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import unquote

from sluice.local.apiserver.resources import Resource, Version
from sluice.local.apiserver.seams import UserInfo
from sluice.local.apiserver.status import (
    ApiError,
    Cause,
    Reason,
    bad_request,
    invalid_options,
)

BODY_BYTES_MAX = 3 * 1024 * 1024
"""Kubernetes' limit for the body of a write."""

MANAGER_LENGTH_MAX = 128

JSON_TYPES = ("application/json", "application/*", "*/*")


class Shape(StrEnum):
    """What a client asks to be shown (`as=` in its Accept header)."""

    WHOLE = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"


_SHAPES = {
    "": Shape.WHOLE,
    "Table": Shape.TABLE,
    "PartialObjectMetadata": Shape.METADATA,
    "PartialObjectMetadataList": Shape.METADATA,
}


def parse_accept(header: str) -> Shape:
    """Return the first shape of an Accept header that this server can give.

    Raises:
        ApiError: 406 when the client takes no JSON (protobuf or CBOR only).
    """
    for part in (header or "*/*").split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        if media not in JSON_TYPES:
            continue
        options = dict(p.split("=", 1) for p in parameters if "=" in p)
        wanted = options.get("as", "")
        if wanted in _SHAPES and options.get("v", "v1") == "v1":
            return _SHAPES[wanted]
    raise ApiError(
        Reason.NOT_ACCEPTABLE,
        "only the following media types are accepted: application/json",
        details={},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a resource path names; empty strings stand for parts it lacks."""

    group: str
    version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""


_NAMESPACE_SUBRESOURCES = ("status", "finalize")


def parse_path(path: str) -> Target | None:
    """Return what a path under /api or /apis names, or None for any other path."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) >= 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces":
        of_itself = not group and len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES
        if not of_itself:
            namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    plural, name, subresource = (*rest, "", "", "")[:3]
    return Target(
        group=group,
        version=version,
        plural=plural,
        namespace=namespace,
        name=name,
        subresource=subresource,
    )


class FieldValidation(StrEnum):
    """What happens to fields that the schema does not know."""

    STRICT = "Strict"
    WARN = "Warn"
    IGNORE = "Ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request for a resource.

    `warnings` collects what goes into `Warning` headers of the answer.
    """

    method: str
    resource: Resource
    version: Version
    namespace: str
    name: str
    subresource: str
    query: Mapping[str, str]
    shape: Shape
    content_type: str
    body: bytes
    user: UserInfo
    user_agent: str
    warnings: list[str] = field(default_factory=list)

    @property
    def api_version(self) -> str:
        """Return the apiVersion that the request speaks."""
        return self.resource.api_version(self.version.name)

    @property
    def manager(self) -> str:
        """Return the field manager: the query's, else the program name of the user agent."""
        named = self.query.get("fieldManager", "")
        return named or self.user_agent.split("/", 1)[0][:MANAGER_LENGTH_MAX] or "unknown"

    @property
    def is_dry_run(self) -> bool:
        """Tell whether nothing may be stored."""
        return self.query.get("dryRun", "") == "All"

    @property
    def field_validation(self) -> FieldValidation:
        """Return how unknown fields are treated; Kubernetes warns by default."""
        return FieldValidation(self.query.get("fieldValidation", "") or "Warn")

    def check_options(self, kind: str) -> None:
        """Check the query parameters of a write.

        Args:
            kind: The options that they are, e.g. `CreateOptions`.

        Raises:
            ApiError: 422.
        """
        causes = []
        dry_run = self.query.get("dryRun", "")
        if dry_run not in ("", "All"):
            causes.append(_unsupported("dryRun", f'["{dry_run}"]', '"All"'))
        validation = self.query.get("fieldValidation", "")
        if validation and validation not in list(FieldValidation):
            supported = '"", "Ignore", "Strict", "Warn"'
            causes.append(_unsupported("fieldValidation", f'"{validation}"', supported))
        manager = self.query.get("fieldManager", "")
        if len(manager) > MANAGER_LENGTH_MAX:
            message = f"Too long: may not be more than {MANAGER_LENGTH_MAX} bytes"
            causes.append(Cause(reason="FieldValueTooLong", message=message, field="fieldManager"))
        if causes:
            raise invalid_options(kind, causes)


def _unsupported(field: str, value: str, supported: str) -> Cause:
    return Cause(
        reason="FieldValueNotSupported",
        message=f"Unsupported value: {value}: supported values: {supported}",
        field=field,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reply with a JSON body."""

    body: bytes
    code: int = 200
    warnings: tuple[str, ...] = ()


def is_true(value: str | None) -> bool:
    """Tell whether a boolean query parameter is set."""
    return value in ("1", "true", "True")


def parse_integer(query: Mapping[str, str], name: str) -> int | None:
    """Return an integer query parameter, or None when it is absent or empty.

    Raises:
        ApiError: 400 for what isn't an integer.
    """
    text = query.get(name, "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'query parameter {name}: "{text}" is not an integer') from None


def parse_revision(text: str) -> int | None:
    """Return a resourceVersion as a number; None when it is empty.

    Raises:
        ApiError: 400 for a value that no server gave out.
    """
    if not text:
        return None
    if not text.isdecimal():
        raise bad_request(
            f'invalid resource version "{text}": strconv.ParseUint: parsing "{text}": '
            "invalid syntax"
        )
    return int(text)
