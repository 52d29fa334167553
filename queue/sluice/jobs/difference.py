"""The smallest merge patch (RFC 7386) between two JSON objects, and equality as Kubernetes sees it.

A missing field, null, an empty map and an empty list say the same to Kubernetes, so a difference
between those is none: a patch that changes nothing is never sent. Pure; anyone may call it.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def is_empty(value: object) -> bool:
    """Tell whether a value says nothing: null, an empty map or an empty list."""
    return value is None or value == {} or value == []


def same(left: object, right: object) -> bool:
    """Tell whether two values say the same to Kubernetes.

    Complexity: O(size of the values).
    """
    if left is right or left == right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return all(same(left.get(key), right.get(key)) for key in left.keys() | right.keys())
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return _says_nothing(left) and _says_nothing(right)


def _says_nothing(value: object) -> bool:
    if isinstance(value, dict):
        return all(_says_nothing(item) for item in value.values())
    return is_empty(value)


def merge_patch(before: Json, after: Json) -> Json:
    """Return the merge patch that turns one object into the other; empty when they say the same.

    Lists are sent whole, as a merge patch must.
    """
    patch: Json = {}
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if same(old, new):
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            patch[key] = merge_patch(old, new)
        else:
            patch[key] = new
    return patch
