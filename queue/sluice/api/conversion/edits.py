"""Small edits of JSON objects that leave the original alone. Used by the converters."""

from collections.abc import Callable
from typing import Any

Object = dict[str, Any]


def edited(obj: Object, field: str, edit: Callable[[Object], Object]) -> Object:
    """Return the object with one of its objects edited, if it has it."""
    value = obj.get(field)
    if value is None:
        return obj
    changed = edit(value)
    return obj if changed is value else {**obj, field: changed}


def edited_items(obj: Object, field: str, edit: Callable[[Object], Object]) -> Object:
    """Return the object with each item of one of its lists edited, if it has it."""
    items = obj.get(field)
    if not items:
        return obj
    changed = [edit(item) for item in items]
    if all(new is old for new, old in zip(changed, items, strict=True)):
        return obj
    return {**obj, field: changed}


def without(obj: Object, *fields: str) -> Object:
    """Return the object without some fields."""
    if not any(field in obj for field in fields):
        return obj
    return {key: value for key, value in obj.items() if key not in fields}


def renamed(obj: Object, old: str, new: str) -> Object:
    """Return the object with a field under another name."""
    if old not in obj:
        return obj
    return {new if key == old else key: value for key, value in obj.items()}
