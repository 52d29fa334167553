"""The schema of ObjectMeta, which every CRD has without saying so. Called by `compiler`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from sluice.local.schema.structural import Node, compile_nodes

_TEXT: Final = {"type": "string"}
_TEXT_MAP: Final = {"type": "object", "additionalProperties": _TEXT}
_TIME: Final = {"type": "string", "format": "date-time"}

OBJECT_META: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "annotations": _TEXT_MAP,
        "creationTimestamp": _TIME,
        "deletionGracePeriodSeconds": {"type": "integer", "format": "int64"},
        "deletionTimestamp": _TIME,
        "finalizers": {
            "type": "array",
            "items": _TEXT,
            "x-kubernetes-list-type": "set",
            "x-kubernetes-patch-strategy": "merge",
        },
        "generateName": _TEXT,
        "generation": {"type": "integer", "format": "int64"},
        "labels": _TEXT_MAP,
        "managedFields": {
            "type": "array",
            "x-kubernetes-list-type": "atomic",
            "items": {
                "type": "object",
                "properties": {
                    "apiVersion": _TEXT,
                    "fieldsType": _TEXT,
                    "fieldsV1": {"x-kubernetes-preserve-unknown-fields": True},
                    "manager": _TEXT,
                    "operation": _TEXT,
                    "subresource": _TEXT,
                    "time": _TIME,
                },
            },
        },
        "name": _TEXT,
        "namespace": _TEXT,
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-patch-merge-key": "uid",
            "x-kubernetes-patch-strategy": "merge",
            "items": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "required": ["apiVersion", "kind", "name", "uid"],
                "properties": {
                    "apiVersion": _TEXT,
                    "blockOwnerDeletion": {"type": "boolean"},
                    "controller": {"type": "boolean"},
                    "kind": _TEXT,
                    "name": _TEXT,
                    "uid": _TEXT,
                },
            },
        },
        "resourceVersion": _TEXT,
        "selfLink": _TEXT,
        "uid": _TEXT,
    },
}


@lru_cache(maxsize=1)
def object_meta() -> Node:
    """Return the compiled schema of ObjectMeta."""
    return compile_nodes(OBJECT_META, {})
