"""LimitRanges of a namespace: what containers of a new pod default to, and may not leave.

Covers items of type Container; Pod and PersistentVolumeClaim items are stored only. The texts are
those of Kubernetes' LimitRanger admission.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sluice.api import quantity
from sluice.local.apiserver.seams import Json, JsonView

ANNOTATION = "kubernetes.io/limit-ranger"
_LISTS = (("containers", "container"), ("initContainers", "init container"))


def apply_limit_ranges(pod: Json, ranges: Sequence[JsonView]) -> list[str]:
    """Fill in default requests and limits of a new pod, in place.

    Args:
        pod: With sound types.
        ranges: The LimitRanges of its namespace, by name.

    Returns:
        What is outside the ranges, one sentence each.
    """
    items = [
        item
        for limit_range in ranges
        for item in (limit_range.get("spec") or {}).get("limits") or ()
        if item.get("type") == "Container"
    ]
    notes: list[str] = []
    for field, word in _LISTS:
        for container in pod["spec"].get(field) or ():
            for item in items:
                notes += _set_defaults(container, item, word)
    if notes:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[ANNOTATION] = "LimitRanger plugin set: " + "; ".join(notes)
    return [
        problem
        for field, _ in _LISTS
        for container in pod["spec"].get(field) or ()
        for item in items
        for problem in _problems(container, item)
    ]


def _set_defaults(container: Json, item: JsonView, word: str) -> Iterator[str]:
    resources = container.setdefault("resources", {})
    for field, source, shown in (
        ("requests", "defaultRequest", "request"),
        ("limits", "default", "limit"),
    ):
        values = dict(resources.get(field) or {})
        missing = {k: v for k, v in (item.get(source) or {}).items() if k not in values}
        if missing:
            resources[field] = {**values, **missing}
            yield f"{', '.join(sorted(missing))} {shown} for {word} {container['name']}"


def _problems(container: JsonView, item: JsonView) -> Iterator[str]:
    resources = container.get("resources") or {}
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, least in sorted((item.get("min") or {}).items()):
        rule = f"minimum {name} usage per Container is {least}"
        if name not in requests:
            yield f"{rule}.  No request is specified"
        elif quantity.parse(requests[name]) < quantity.parse(least):
            yield f"{rule}, but request is {requests[name]}"
    for name, most in sorted((item.get("max") or {}).items()):
        rule = f"maximum {name} usage per Container is {most}"
        if name not in limits:
            yield f"{rule}.  No limit is specified"
        elif quantity.parse(limits[name]) > quantity.parse(most):
            yield f"{rule}, but limit is {limits[name]}"
