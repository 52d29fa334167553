"""Tables and partial objects: what `kubectl get` asks for instead of whole objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sluice.local.apiserver.ages import UNKNOWN, age
from sluice.local.apiserver.resources import Column, Version
from sluice.local.apiserver.seams import Json, JsonView
from sluice.local.apiserver.status import bad_request


def _cell(column: Column, obj: JsonView, now_s: float) -> Any:
    value = column.timed(obj, now_s) if column.timed else column.extract(obj)
    if column.is_age and value != "<none>":
        return age(value, now_s) if value else UNKNOWN
    return column.absent if value is None and column.type == "string" else value


def partial(obj: JsonView) -> Json:
    """Return an object's metadata alone, as PartialObjectMetadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }


def partial_list(objects: Sequence[JsonView], list_metadata: Json) -> Json:
    """Return a list of metadata."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_metadata,
        "items": [partial(obj) for obj in objects],
    }


def table(
    version: Version,
    objects: Sequence[JsonView],
    list_metadata: Json,
    include: str,
    now_s: float,
) -> Json:
    """Return a Table with one row for each object.

    Args:
        now_s: The time that ages are shown for, seconds since 1970.
        include: The query's `includeObject`: `None`, `Metadata` (default) or `Object`.

    Raises:
        ApiError: 400 for another value of it.
    """
    if include not in ("", "None", "Metadata", "Object"):
        raise bad_request(
            f'unrecognized includeObject value: "{include}"; use None, Metadata or Object'
        )
    rows = []
    for obj in objects:
        row: Json = {"cells": [_cell(column, obj, now_s) for column in version.columns]}
        if include == "Object":
            row["object"] = obj
        else:
            row["object"] = None if include == "None" else partial(obj)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_metadata,
        "columnDefinitions": [
            {
                "name": column.name,
                "type": column.type,
                "format": column.format,
                "description": column.description,
                "priority": column.priority,
            }
            for column in version.columns
        ],
        "rows": rows,
    }
