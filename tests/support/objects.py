"""Changing JSON objects in tables of tests: one valid object, and what differs from it."""

import copy
from typing import Any

Json = dict[str, Any]
DROP = object()


def changed(obj: Json, changes: dict[str, Any]) -> Json:
    """Return a copy with values at dotted paths; `DROP` removes.

    A step in brackets is a key with dots in it, a number a position: ``spec.podSets.0.name``,
    ``metadata.labels.[a.b/c]``. Objects missing on the way are made.
    """
    result = copy.deepcopy(obj)
    for path, value in changes.items():
        *way, last = steps(path)
        here: Any = result
        for step in way:
            here = here[step] if isinstance(here, list) else here.setdefault(step, {})
        if value is DROP:
            del here[last]
        elif isinstance(here, list) and last == len(here):
            here.append(copy.deepcopy(value))
        else:
            here[last] = copy.deepcopy(value)
    return result


def steps(path: str) -> list[Any]:
    """Return the steps of a dotted path."""
    result: list[Any] = []
    rest = path
    while rest:
        if rest.startswith("["):
            step, _, rest = rest[1:].partition("]")
            rest = rest.removeprefix(".")
            result.append(step)
        else:
            step, _, rest = rest.partition(".")
            result.append(int(step) if step.isdecimal() else step)
    return result
