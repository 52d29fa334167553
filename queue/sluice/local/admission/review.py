"""AdmissionReview: what a webhook is sent, and whether its answer can be believed.

Pure; called by `dispatcher`.
"""

from __future__ import annotations

import base64
import binascii
import uuid
from dataclasses import dataclass
from typing import Any, Final

import orjson

from sluice.local.admission.calls import CallFailed
from sluice.local.apiserver.seams import AdmissionRequest, Gvk, Gvr, Json, JsonView
from sluice.local.apiserver.status import ApiError

_API_VERSION: Final = "admission.k8s.io/v1"
_KIND: Final = "AdmissionReview"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a webhook decided."""

    is_allowed: bool
    result: JsonView
    patch: Any
    warnings: tuple[str, ...]


def request_json(
    request: AdmissionRequest,
    resource: Gvr,
    kind: Gvk,
    obj: JsonView | None,
    old_obj: JsonView | None,
) -> Json:
    """Return `request` of a review, as the given resource and kind; also CEL's `request`.

    Args:
        request: The request as it came in.
        resource: The resource as which the webhook sees it.
        kind: The kind as which the webhook sees it.
        obj: The object in that version.
        old_obj: The old object in that version.
    """
    content: Json = {
        "uid": str(uuid.uuid4()),
        "kind": _gvk(kind),
        "resource": _gvr(resource),
        "requestKind": _gvk(request.kind),
        "requestResource": _gvr(request.resource),
        "name": request.name,
        "operation": request.operation.value,
        "userInfo": request.user.to_json(),
        "object": obj,
        "oldObject": old_obj,
        "dryRun": request.dry_run,
        "options": dict(request.options) or None,
    }
    if request.namespace:
        content["namespace"] = request.namespace
    if request.subresource:
        content["subResource"] = content["requestSubResource"] = request.subresource
    return content


def encode(content: Json) -> bytes:
    """Return the body of a review."""
    return orjson.dumps({"kind": _KIND, "apiVersion": _API_VERSION, "request": content})


def _gvk(kind: Gvk) -> Json:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _gvr(resource: Gvr) -> Json:
    return {"group": resource.group, "version": resource.version, "resource": resource.resource}


def verdict(reply: Any, uid: str, *, is_mutating: bool) -> Verdict:
    """Return the decision in a reply.

    Raises:
        CallFailed: The reply is no answer to this review.
    """
    if not isinstance(reply, dict):
        raise _unbelievable("webhook response was absent")
    found = (reply.get("apiVersion"), reply.get("kind"))
    if found != (_API_VERSION, _KIND):
        got = f"{found[0] or ''}, Kind={found[1] or ''}"
        raise _unbelievable(f"expected webhook response of {_API_VERSION}, Kind={_KIND}, got {got}")
    response = reply.get("response")
    if not isinstance(response, dict):
        raise _unbelievable("webhook response was absent")
    if response.get("uid") != uid:
        raise _unbelievable(f'expected response.uid="{uid}", got "{response.get("uid") or ""}"')
    return Verdict(
        is_allowed=response.get("allowed") is True,
        result=response.get("status") or {},
        patch=_patch(response, is_mutating=is_mutating),
        warnings=tuple(str(text) for text in response.get("warnings") or ()),
    )


def _patch(response: Json, *, is_mutating: bool) -> Any:
    patch, patch_type = response.get("patch"), response.get("patchType")
    if not is_mutating:
        if patch:
            raise _unbelievable("validating webhook may not return response.patch")
        if patch_type is not None:
            raise _unbelievable("validating webhook may not return response.patchType")
        return None
    if patch and patch_type is None:
        raise _unbelievable("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise _unbelievable("webhook returned response.patchType but not response.patch")
    if not patch:
        return None
    if patch_type != "JSONPatch":
        raise CallFailed(f'unsupported patch type "{patch_type}"')
    try:
        return orjson.loads(base64.b64decode(patch, validate=True))
    except (binascii.Error, ValueError, TypeError) as error:
        raise CallFailed(f"received undecodable patch in webhook response: {error}") from error


def _unbelievable(why: str) -> CallFailed:
    return CallFailed(f"received invalid webhook response: {why}")


def denial(name: str, result: JsonView) -> ApiError:
    """Return the error of a request that a webhook did not allow."""
    text = f'admission webhook "{name}" denied the request'
    reason = str(result.get("reason") or "")
    message = str(result.get("message") or reason)
    text = f"{text}: {message}" if message else f"{text} without explanation"
    code = int(result.get("code") or 0)
    return ApiError(reason, text, details=result.get("details"), code=code if code >= 400 else 400)
