"""Hypothesis strategies for objects that follow a CRD's schema. Used by tests only.

Strings are short and few, so that the interesting part is which fields are there. Pod templates are
small, and topology assignments are consistent with themselves, which a schema can't say.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import strategies as st
from tests.support.crd_schemas import BELOW_TEMPLATE, Schema, crds, root_schema

from sluice.api.topology_assignment import HOSTNAME_LEVEL, Domain, encode

_WORDS = ("a", "b1", "node-7", "team.x", "example.com/rack", "Ready", "0")
_QUANTITIES: st.SearchStrategy[Any] = st.one_of(
    st.integers(0, 500), st.sampled_from(["250m", "16Gi", "1.5", "3e2", "0"])
)
_ALWAYS = frozenset(
    {
        ".spec.podSets",
        ".spec.podSets[].count",
        ".status.admission.clusterQueue",
        ".status.admission.podSetAssignments",
        ".status.admission.podSetAssignments[].name",
    }
)
"""Fields that v1beta1 requires; v1beta2 may leave them out, but nobody does."""

_FREE_TEXT = {
    "admissionMode": ("UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing"),
    "delayedTopologyRequest": ("Pending", "Ready"),
}
"""Fields that are an enum in v1beta2 and any string in v1beta1."""

_NAMES = st.text(alphabet="ab-1", min_size=1, max_size=6)


def domain_lists(level_count: int, *, max_size: int = 12) -> st.SearchStrategy[list[Domain]]:
    """Return lists of domains with one value for each level."""
    values = st.tuples(*[_NAMES] * level_count)
    return st.lists(st.builds(Domain, values, st.integers(1, 3)), max_size=max_size)


@st.composite
def _old_topology(draw: st.DrawFn) -> dict[str, Any]:
    levels = draw(st.sampled_from([["rack"], ["rack", HOSTNAME_LEVEL], [HOSTNAME_LEVEL]]))
    domains = draw(domain_lists(len(levels)))
    return {
        "levels": levels,
        "domains": [{"values": list(d.values), "count": d.count} for d in domains],
    }


@st.composite
def _new_topology(draw: st.DrawFn) -> dict[str, Any]:
    levels = draw(st.sampled_from([["rack"], ["rack", HOSTNAME_LEVEL], [HOSTNAME_LEVEL]]))
    domains = draw(domain_lists(len(levels)))
    return encode(levels, domains, by_hostname_prefix=draw(st.booleans()))


def _template() -> st.SearchStrategy[Any]:
    spec = st.fixed_dictionaries({"containers": st.just([{"name": "main"}])})
    return st.fixed_dictionaries({}, optional={"spec": spec, "metadata": st.just({})})


def _priority_class_ref() -> st.SearchStrategy[Any]:
    # The rules of the CRD allow each kind in its own group only.
    kinds = (
        ("kueue.x-k8s.io", "WorkloadPriorityClass"),
        ("scheduling.k8s.io", "PriorityClass"),
    )
    return st.sampled_from([{"group": g, "kind": k, "name": "high"} for g, k in kinds])


def objects(kind: str, version: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects of a kind; any field may be missing that both versions call optional."""
    schema = root_schema(kind, version)
    head: dict[str, st.SearchStrategy[Any]] = {
        "apiVersion": st.just(f"{crds()[kind]['spec']['group']}/{version}"),
        "kind": st.just(kind),
        "metadata": st.just({"name": "sample", "annotations": {"note": "kept"}}),
    }
    parts = {
        name: _value(child, f".{name}")
        for name, child in schema["properties"].items()
        if name not in head
    }
    return st.fixed_dictionaries(head, optional=parts)


def _value(schema: Schema, path: str) -> st.SearchStrategy[Any]:
    if path.endswith(BELOW_TEMPLATE):
        raise AssertionError("the template is made whole")
    if path.endswith(".template"):
        return _template()
    if path.endswith(".priorityClassRef"):
        return _priority_class_ref()
    if path.endswith(".topologyAssignment"):
        return _old_topology() if "domains" in schema["properties"] else _new_topology()
    if schema.get("x-kubernetes-int-or-string"):
        return _QUANTITIES
    match schema["type"]:
        case "object":
            return _object(schema, path)
        case "array":
            return _array(schema, path)
        case "string":
            return _string(schema, path)
        case "integer":
            # v1beta2 has lower bounds of zero where v1beta1 has none.
            return st.integers(schema.get("minimum", 0), 2000)
        case "boolean":
            return st.booleans()
        case other:
            raise AssertionError(f"{path}: no strategy for {other}")


def _object(schema: Schema, path: str) -> st.SearchStrategy[Any]:
    if "additionalProperties" in schema:
        values = _value(schema["additionalProperties"], f"{path}{{}}")
        return st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), values, max_size=3)
    properties = {n: _value(s, f"{path}.{n}") for n, s in schema.get("properties", {}).items()}
    always = {name for name in properties if f"{path}.{name}" in _ALWAYS}
    required = always | set(schema.get("required", ()))
    return st.fixed_dictionaries(
        {name: s for name, s in properties.items() if name in required},
        optional={name: s for name, s in properties.items() if name not in required},
    )


def _keys_of(keys: list[str], item: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(item.get(key) for key in keys)


def _array(schema: Schema, path: str) -> st.SearchStrategy[Any]:
    keys = schema.get("x-kubernetes-list-map-keys")
    unique: Callable[[Any], object] | None = None
    if keys:
        unique = partial(_keys_of, keys)
    elif schema.get("x-kubernetes-list-type") == "set":
        unique = str
    items = _value(schema["items"], f"{path}[]")
    return st.lists(items, min_size=schema.get("minItems", 0), max_size=3, unique_by=unique)


def _string(schema: Schema, path: str) -> st.SearchStrategy[str]:
    if (words := _FREE_TEXT.get(path.rsplit(".", 1)[-1])) is not None:
        return st.sampled_from(words)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("format") == "date-time":
        return st.just("2030-01-31T12:00:00Z")
    # RE2 allows flags inside a pattern, Python only at its beginning.
    pattern = re.compile(schema.get("pattern", "").replace("(?i)", ""))
    return st.sampled_from([word for word in _WORDS if pattern.search(word)])
