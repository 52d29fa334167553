"""API requests as plain data: verb, path, query and body, before anything is sent. Pure.

Keeping them apart from the sender lets the rules (which verb may be repeated, how a patch is typed)
be read and tested without a socket. Used by ``client``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlencode

from sluice.kube.resources import Resource

_JSON: Final = "application/json"


class Verb(StrEnum):
    """What a request does, by the words RBAC uses."""

    GET = "get"
    LIST = "list"
    WATCH = "watch"
    CREATE = "create"
    UPDATE = "update"
    PATCH = "patch"
    DELETE = "delete"


class PatchType(StrEnum):
    """Patch formats by their content type."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


METHODS: Final[Mapping[Verb, str]] = {
    Verb.GET: "GET",
    Verb.LIST: "GET",
    Verb.WATCH: "GET",
    Verb.CREATE: "POST",
    Verb.UPDATE: "PUT",
    Verb.PATCH: "PATCH",
    Verb.DELETE: "DELETE",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request.

    Attributes:
        verb: What it does.
        resource: ``plural.group`` with ``/subresource``, for limits and metrics.
        path: URL path, already quoted.
        query: Query parameters; empty values are left out.
        body: JSON value of the body, if any.
        content_type: Media type of the body.
    """

    verb: Verb
    resource: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    content_type: str = _JSON

    @property
    def target(self) -> str:
        """Return path and query as they stand in the URL."""
        query = urlencode({name: value for name, value in self.query.items() if value})
        return f"{self.path}?{query}" if query else self.path

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing, so that it may be sent again after an unknown outcome."""
        return self.verb in (Verb.GET, Verb.LIST, Verb.WATCH)

    def __str__(self) -> str:
        """Return what error messages call it."""
        return f"{self.verb} {self.path}"


def build(
    verb: Verb,
    resource: Resource,
    namespace: str = "",
    name: str = "",
    *,
    subresource: str = "",
    query: Mapping[str, str] | None = None,
    body: object = None,
    content_type: str = _JSON,
) -> Request:
    """Return the request for a kind's collection, object or subresource."""
    label = f"{resource.full_name}/{subresource}" if subresource else resource.full_name
    return Request(
        verb=verb,
        resource=label,
        path=resource.path(namespace, name, subresource),
        query=query or {},
        body=body,
        content_type=content_type,
    )


def delete_options(
    *, propagation: str, uid: str, resource_version: str, grace_period_s: int | None
) -> dict[str, Any] | None:
    """Return the DeleteOptions body of a delete, or None when nothing is set.

    Args:
        propagation: Background, Foreground or Orphan; empty for the kind's default.
        uid: Delete only this incarnation of the object.
        resource_version: Delete only this version of the object.
        grace_period_s: Seconds until it is forced; None for the object's own.
    """
    preconditions = {
        key: value for key, value in (("uid", uid), ("resourceVersion", resource_version)) if value
    }
    options: dict[str, Any] = {}
    if propagation:
        options["propagationPolicy"] = propagation
    if preconditions:
        options["preconditions"] = preconditions
    if grace_period_s is not None:
        options["gracePeriodSeconds"] = grace_period_s
    return {"apiVersion": "v1", "kind": "DeleteOptions", **options} if options else None
