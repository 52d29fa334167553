"""Cases derived from a CRD's schema: for each bound a value that breaks it and one that just fits.

The starting points are the samples, which set every field; a case changes one place in one of them.
Used by the tests that send the cases to an API server.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.crd_schemas import Schema, root_schema, walk
from tests.support.samples import samples

Object = dict[str, Any]
Place = tuple[str | int, ...]
Check = Callable[[Object], bool]
Part = tuple[str, Any, str]
"""(what is tried, the changed value, the reason of the refusal or "" when it is taken)."""

LARGE_LIST = 1000
"""Lists that may be longer than this are only tried with one item too many."""

COUPLED = {
    ".spec.resourceGroups[].coveredResources": "as many as each flavor has resources",
    ".spec.resourceGroups[].flavors[].resources": "as many as there are coveredResources",
    ".status.admission.podSetAssignments": "as many as there are PodSets while quota is reserved",
    ".topologyAssignment.levels": "as many as each slice has valuesPerLevel",
    ".slices[].valuesPerLevel": "as many as there are levels",
    ".slices[].domainCount": "as many as there are roots",
    ".slices[].podCounts.individual": "as many as there are domains",
    ".individual.roots": "as many as there are domains",
    ".podSets[].minCount": "no more than count",
    ".podSets[].count": "no less than minCount",
    ".spec.clusterSource.kubeConfig": "exactly one way to reach the cluster",
    ".spec.levels": "each label once",
    ".tolerations": "a key, or the operator Exists",
    ".nodeTaints": "one of three effects",
    ".priorityClassRef.group": "goes with one kind",
    ".priorityClassRef.kind": "goes with one group",
    ".spec.flavorFungibility.whenCanBorrow": "preference needs TryNextFlavor",
    ".spec.flavorFungibility.whenCanPreempt": "preference needs TryNextFlavor",
    ".spec.preemption.reclaimWithinCohort": "Never goes with borrowWithinCohort Never only",
    ".status.clusterName": "never changes once set",
}
"""Where a CEL rule ties a field to others, so that a value that fits its own bounds is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One changed sample and what the server must say to it.

    Attributes:
        title: Path and what is tried.
        obj: The object to send.
        in_status: Whether the change is in the status, which is written apart.
        field: The field that the refusal must name.
        reason: The reason of the refusal; empty when the object must be taken.
        place: Where the change is.
        default: What must be stored at the place although it is missing in the object.
    """

    title: str
    obj: Object
    in_status: bool
    field: str
    reason: str
    place: Place
    default: Any = None


def find(sample: Any, path: str) -> Iterator[Place]:
    """Yield the places in an object that a schema path stands for."""
    if path in ("", "."):
        yield ()
        return
    if path.startswith("[]"):
        steps: list[str | int] = list(range(len(sample))) if isinstance(sample, list) else []
        rest = path[2:]
    elif path.startswith("{}"):
        steps = list(sample) if isinstance(sample, dict) else []
        rest = path[2:]
    else:
        end = min(i for i in (*(path.find(c, 1) for c in ".[{"), len(path)) if i > 0)
        name, rest = path[1:end], path[end:]
        steps = [name] if isinstance(sample, dict) and name in sample else []
    for step in steps:
        for place in find(sample[step], rest):
            yield (step, *place)


def at(obj: Any, place: Place) -> Any:
    """Return what is at a place."""
    for step in place:
        obj = obj[step]
    return obj


def changed(obj: Object, place: Place, value: Any) -> Object:
    """Return the object with another value at a place; `...` removes what is there."""
    out = copy.deepcopy(obj)
    target = at(out, place[:-1])
    if value is ...:
        del target[place[-1]]
    else:
        target[place[-1]] = value
    return out


def field_of(place: Place) -> str:
    """Return a place as the API server writes it."""
    return "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in place).lstrip(".")


def cases(kind: str, version: str) -> Iterator[Case]:
    """Yield all cases of a kind in a version."""
    originals = samples(kind, version)
    for path, node in walk(root_schema(kind, version)):
        if path == ".":
            yield from _required(originals[0], (), node)
            continue
        original, place = next(
            (original, place) for original in originals for place in find(original, path)
        )
        for title, value, reason in _parts(node, at(original, place), coupled=_is_coupled(path)):
            yield Case(
                title=f"{path} {title}",
                obj=changed(original, place, value),
                in_status=path.startswith(".status"),
                field="" if title == "beyond its width" else field_of(place),
                reason=reason,
                place=place,
            )
        if "default" in node and not _is_coupled(path):
            yield Case(
                title=f"{path} missing",
                obj=changed(original, place, ...),
                in_status=path.startswith(".status"),
                field=field_of(place),
                reason="",
                place=place,
                default=_with_inner_defaults(node),
            )
        yield from _required(original, place, node)


def _with_inner_defaults(node: Schema) -> Any:
    """Return what the server fills in: an object's default gets the defaults of its fields."""
    default = copy.deepcopy(node["default"])
    if isinstance(default, dict):
        for name, child in node["properties"].items():
            if "default" in child and name not in default:
                default[name] = _with_inner_defaults(child)
    return default


def _required(original: Object, place: Place, node: Schema) -> Iterator[Case]:
    for name in node.get("required", ()):
        if "default" in node["properties"][name]:
            continue  # Defaulting comes first; the case of the default covers it.
        there = (*place, name)
        yield Case(
            title=f"{field_of(there)} required",
            obj=changed(original, there, ...),
            in_status=place[:1] == ("status",),
            field=field_of(there),
            reason="FieldValueRequired",
            place=there,
        )


def _is_coupled(path: str) -> bool:
    return any(path.endswith(end) for end in COUPLED)


def _parts(node: Schema, value: Any, *, coupled: bool) -> Iterator[Part]:
    """Yield the changes to one node; those that should be taken not where rules couple it."""
    for title, changed_value, reason in _all_parts(node, value):
        if reason or not coupled:
            yield title, changed_value, reason


def _all_parts(node: Schema, value: Any) -> Iterator[Part]:
    if node.get("x-kubernetes-int-or-string"):
        yield "not a quantity", "1 cpu", "FieldValueInvalid"
        yield "neither number nor text", True, "FieldValueTypeInvalid"
        yield "a number", 7, ""
        yield "text", "1500m", ""
        return
    yield "of another type", 5 if node["type"] == "string" else "x", "FieldValueTypeInvalid"
    match node["type"]:
        case "string":
            yield from _string_parts(node)
        case "integer":
            yield from _integer_parts(node)
        case "array":
            yield from _array_parts(node, value)
        case "object" if "maxProperties" in node:
            bound = node["maxProperties"]
            yield "too many entries", _entries(value, bound + 1), "FieldValueTooMany"
            yield "as many entries as fit", _entries(value, bound), ""


def _entries(value: dict[str, Any], count: int) -> dict[str, Any]:
    some = next(iter(value.values()))
    return {f"key{i}": some for i in range(count)}


def _string_parts(node: Schema) -> Iterator[Part]:
    if "enum" in node:
        yield "not in the enum", "Bogus", "FieldValueNotSupported"
        for choice in node["enum"]:
            yield f"as {choice!r}", choice, ""
        return
    if node.get("format") == "date-time":
        yield "not a time", "yesterday", "FieldValueTypeInvalid"
        yield "a time with a fraction", "2030-01-31T12:00:00.5+01:00", ""
    if "pattern" in node:
        yield "not of the pattern", "-", "FieldValueInvalid"
    if "maxLength" in node:
        yield "too long", "a" * (node["maxLength"] + 1), "FieldValueTooLong"
        yield "as long as fits", "a" * node["maxLength"], ""
    if "minLength" in node:
        yield "too short", "", "FieldValueInvalid"
        yield "as short as fits", "a", ""


def _integer_parts(node: Schema) -> Iterator[Part]:
    bits = {"int32": 31, "int64": 63}[node["format"]]
    yield "beyond its width", 2**bits, "FieldValueInvalid"
    yield "as large as fits", 2**bits - 1, ""
    if "minimum" in node:
        yield "too small", node["minimum"] - 1, "FieldValueInvalid"
        yield "as small as fits", node["minimum"], ""
    else:
        yield "negative", -(2**bits), ""


def _array_parts(node: Schema, value: list[Any]) -> Iterator[Part]:
    keys = node.get("x-kubernetes-list-map-keys", [])
    if node.get("x-kubernetes-list-type") in ("map", "set"):
        yield "with a repeated item", [value[0], value[0]], "FieldValueDuplicate"
    if "minItems" in node:
        yield "too few items", [], "FieldValueInvalid"
    if "maxItems" in node:
        bound = node["maxItems"]
        yield "too many items", _items(value[0], bound + 1, keys), "FieldValueTooMany"
        if bound <= LARGE_LIST:
            yield "as many items as fit", _items(value[0], bound, keys), ""


def _items(item: Any, count: int, keys: list[str]) -> list[Any]:
    """Return distinct copies of an item."""
    if isinstance(item, str):
        return [f"{item[:50]}{i}" for i in range(count)]
    if keys:
        return [{**item, keys[0]: f"{item[keys[0]][:50]}{i}"} for i in range(count)]
    return [item] * count
