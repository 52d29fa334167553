"""The ConversionReview codec, and the conversion itself, for the path ``/convert``.

Pure. The API server sends all objects of a list in one review, so bodies are large and an answer
may take seconds: the application runs `answer` in a thread. Source: docs/spec/api.md 1.0 and 1.11.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from sluice.api.conversion import convert
from sluice.api.errors import InvalidObject
from sluice_webhook.review import MalformedReview, load

_API_VERSION: Final = "apiextensions.k8s.io/v1"
_KIND: Final = "ConversionReview"


def answer(body: bytes) -> bytes:
    """Return the answer to a ConversionReview: every object converted, or why one could not be.

    Raises:
        MalformedReview: The body is none.
    """
    request = load(body, _API_VERSION, _KIND)
    try:
        uid, version = request.text("uid"), request.text("desiredAPIVersion")
        objects = request.items("objects")
    except InvalidObject as error:
        raise MalformedReview(f"malformed request: {error}") from error
    if not uid or not version:
        raise MalformedReview("the request has no uid or no desiredAPIVersion")
    response: dict[str, Any] = {"uid": uid}
    try:
        response["convertedObjects"] = [convert(dict(obj.value), version) for obj in objects]
        response["result"] = {"status": "Success"}
    except InvalidObject as error:
        # One bad object fails the review; the API server takes all of them or none.
        response = {"uid": uid, "result": {"status": "Failure", "message": str(error)}}
    try:
        return orjson.dumps({"apiVersion": _API_VERSION, "kind": _KIND, "response": response})
    except orjson.JSONEncodeError as error:
        raise MalformedReview(f"an object cannot be written back as JSON: {error}") from error
