"""Label selectors of webhook configurations (`metav1.LabelSelector`). Called by `hooks`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JsonView = Mapping[str, Any]


def selects(selector: JsonView | None, labels: Mapping[str, str] | None) -> bool:
    """Tell whether a selector matches a set of labels; an absent or empty one matches all."""
    held = labels or {}
    if not selector:
        return True
    if any(held.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(term, held) for term in selector.get("matchExpressions") or ())


def _holds(term: JsonView, labels: Mapping[str, str]) -> bool:
    value = labels.get(term["key"])
    values = term.get("values") or ()
    match term["operator"]:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False
