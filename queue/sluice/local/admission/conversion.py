"""Conversion of custom resources by webhook (ConversionReview). Implements `seams.Converter`."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

import orjson

from sluice.local.admission.calls import CallFailed, ServiceResolver, WebhookCaller
from sluice.local.apiserver.seams import Json, JsonView
from sluice.local.apiserver.status import ApiError, Reason

_API_VERSION: Final = "apiextensions.k8s.io/v1"
_TIMEOUT_S: Final = 30
_CHANGEABLE: Final = ("labels", "annotations")
"""All of metadata that a conversion may touch."""


class WebhookConverter:
    """Asks conversion webhooks.

    Args:
        resolve: Finds Services that CRDs refer to.
    """

    def __init__(self, resolve: ServiceResolver) -> None:
        self._caller = WebhookCaller(resolve)

    async def close(self) -> None:
        """Close connections."""
        await self._caller.close()

    async def convert(
        self, conversion: JsonView, objects: Sequence[Json], desired_api_version: str
    ) -> list[Json]:
        """Return the objects in another version; see `seams.Converter`."""
        if not objects:
            return []
        config = (conversion.get("webhook") or {}).get("clientConfig") or {}
        uid = str(uuid.uuid4())
        body = orjson.dumps(
            {
                "kind": "ConversionReview",
                "apiVersion": _API_VERSION,
                "request": {
                    "uid": uid,
                    "desiredAPIVersion": desired_api_version,
                    "objects": list(objects),
                },
            }
        )
        try:
            reply = await self._caller.post(config, body, _TIMEOUT_S)
            converted = _converted(reply, uid, objects, desired_api_version)
        except CallFailed as error:
            first = objects[0]
            what = f"{first.get('apiVersion')}, Kind={first.get('kind')}"
            text = f"conversion webhook for {what} failed: {error}"
            raise ApiError(Reason.INTERNAL_ERROR, f"Internal error occurred: {text}") from error
        return [_with_metadata(new, old) for new, old in zip(converted, objects, strict=True)]


def _converted(
    reply: Any, uid: str, objects: Sequence[Json], desired_api_version: str
) -> list[Json]:
    """Return the converted objects of a believable reply.

    Raises:
        CallFailed: It is none, or reports a failure.
    """
    response = reply.get("response") if isinstance(reply, dict) else None
    if not isinstance(response, dict):
        raise CallFailed("no response provided")
    if response.get("uid") != uid:
        raise CallFailed(f'expected response.uid="{uid}", got "{response.get("uid") or ""}"')
    result = response.get("result") or {}
    if result.get("status") != "Success":
        message = result.get("message") or "response.result.status was not Success"
        raise CallFailed(str(message))
    converted = response.get("convertedObjects")
    if not isinstance(converted, list) or len(converted) != len(objects):
        count = len(converted) if isinstance(converted, list) else 0
        raise CallFailed(f"webhook returned {count} objects, expected {len(objects)}")
    for index, (new, old) in enumerate(zip(converted, objects, strict=True)):
        where = f"invalid converted object at index {index}"
        got = new.get("apiVersion") if isinstance(new, dict) else None
        if got != desired_api_version:
            why = f"invalid groupVersion, expected {desired_api_version}, got {got}"
            raise CallFailed(f"{where}: {why}")
        if new.get("kind") != old.get("kind"):
            raise CallFailed(f"{where}: invalid kind, expected {old.get('kind')}")
        before, after = old.get("metadata") or {}, new.get("metadata") or {}
        for name in ("name", "namespace", "uid"):
            if before.get(name) != after.get(name):
                raise CallFailed(f"{where}: invalid metadata of object: metadata.{name} changed")
    return converted


def _with_metadata(new: Json, old: Json) -> Json:
    """Return the converted object with the metadata of the original, but for what may change."""
    after = new.get("metadata") or {}
    metadata = {k: v for k, v in (old.get("metadata") or {}).items() if k not in _CHANGEABLE}
    metadata |= {name: after[name] for name in _CHANGEABLE if name in after}
    return {**new, "metadata": metadata}
