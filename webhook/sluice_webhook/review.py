"""The AdmissionReview codec: bytes to a request, an outcome to bytes.

Pure. A body that is no review raises MalformedReview with the reason; nothing here raises anything
else for bad input. Called by the application; handlers see only its dataclasses.
Source: Kubernetes' admission.k8s.io/v1 API, and docs/spec/api.md (conventions) for denials.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

from sluice.api.errors import FieldError, InvalidObject, SluiceError, aggregate
from sluice.api.validate.node import Node

_API_VERSION: Final = "admission.k8s.io/v1"
_KIND: Final = "AdmissionReview"


class MalformedReview(SluiceError):
    """A body that is no review of the expected form; the message says what is wrong."""


class Operation(StrEnum):
    """What is being done to the object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedKind:
    """Group, version and kind of a reviewed object."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        """Return ``group/version Kind``."""
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        return f"{api_version} {self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """What the API server asks about one object.

    Attributes:
        uid: Identity of the request, repeated in the answer.
        kind: Kind of the object.
        namespace: Its namespace; empty for cluster-scoped kinds.
        name: Its name; empty while the API server still has to generate it.
        operation: What is being done.
        obj: The object to be stored; may be changed by the receiver. Empty on DELETE.
        old: The stored object; empty on CREATE.
    """

    uid: str
    kind: ReviewedKind
    namespace: str
    name: str
    operation: Operation
    obj: dict[str, Any]
    old: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The object is taken, changed by a patch if there is one."""

    patch: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """The object is refused.

    Attributes:
        code: HTTP status that the API server gives its client.
        reason: Kubernetes' reason that goes with it.
        message: What the user reads after ``admission webhook "..." denied the request:``.
    """

    message: str
    code: int = 403
    reason: str = "Forbidden"


Outcome = Allowed | Denied


def denied_for(errors: Sequence[FieldError]) -> Outcome:
    """Return the outcome of a validation: allowed without errors."""
    return Denied(message=aggregate(errors)) if errors else Allowed()


def load(body: bytes, api_version: str, kind: str) -> Node:
    """Return the ``request`` of a review.

    Args:
        body: The HTTP body.
        api_version: apiVersion that it must have.
        kind: Kind that it must have.

    Raises:
        MalformedReview: It is not JSON, not a review of that kind, or has no request.
    """
    try:
        review = Node(orjson.loads(body))
        found = (review.text("apiVersion"), review.text("kind"))
        request = review.optional("request")
    except orjson.JSONDecodeError as error:
        raise MalformedReview(f"the body is not JSON: {error}") from error
    except InvalidObject as error:
        raise MalformedReview(f"not a {kind}: {error}") from error
    if found != (api_version, kind):
        shown = " ".join(part or "(none)" for part in found)
        raise MalformedReview(f"expected {api_version} {kind}, got {shown}")
    if request is None:
        raise MalformedReview(f"the {kind} has no request")
    return request


def decode(body: bytes) -> AdmissionRequest:
    """Return the request of an AdmissionReview.

    Raises:
        MalformedReview: The body is none.
    """
    request = load(body, _API_VERSION, _KIND)
    try:
        return _request(request)
    except InvalidObject as error:
        raise MalformedReview(f"malformed request: {error}") from error


def _request(request: Node) -> AdmissionRequest:
    uid, operation = request.text("uid"), request.text("operation")
    if not uid:
        raise MalformedReview("the request has no uid")
    if operation not in Operation.__members__:
        raise MalformedReview(
            f"request.operation is {operation!r}, not one of {', '.join(Operation.__members__)}"
        )
    kind = request.map("kind")
    obj, old = request.map("object").value, request.map("oldObject").value
    if operation in (Operation.CREATE, Operation.UPDATE) and not obj:
        raise MalformedReview(f"request.object is missing on {operation}")
    if operation == Operation.UPDATE and not old:
        raise MalformedReview(f"request.oldObject is missing on {operation}")
    return AdmissionRequest(
        uid=uid,
        kind=ReviewedKind(
            group=kind.text("group"), version=kind.text("version"), kind=kind.text("kind")
        ),
        namespace=request.text("namespace"),
        name=request.text("name"),
        operation=Operation(operation),
        obj=dict(obj),
        old=dict(old),
    )


def encode(uid: str, outcome: Outcome) -> bytes:
    """Return the body of the answer to a request."""
    response: dict[str, Any] = {"uid": uid, "allowed": isinstance(outcome, Allowed)}
    if isinstance(outcome, Denied):
        response["status"] = {
            "status": "Failure",
            "message": outcome.message,
            "reason": outcome.reason,
            "code": outcome.code,
        }
    elif outcome.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(outcome.patch)).decode()
    return orjson.dumps({"apiVersion": _API_VERSION, "kind": _KIND, "response": response})
