"""Pruning: what is dropped, what is kept, and the paths that are reported."""

from typing import Any

import pytest
from tests.unit.local.schema.conftest import Compile

OPEN = {"x-kubernetes-preserve-unknown-fields": True}
CASES: list[tuple[str, dict[str, Any], Any, Any, list[str]]] = [
    ("unknown field", {"a": {"type": "string"}}, {"a": "x", "b": 1}, {"a": "x"}, ["spec.b"]),
    ("in list items", {"l": {"type": "array", "items": {"type": "object", "properties": {}}}},
     {"l": [{}, {"x": 1}]}, {"l": [{}, {}]}, ["spec.l[1].x"]),
    ("map keys are kept", {"m": {"type": "object", "additionalProperties": {"type": "string"}}},
     {"m": {"any": "x"}}, {"m": {"any": "x"}}, []),
    ("open object", {"o": {"type": "object", **OPEN}}, {"o": {"a": {"b": 1}}},
     {"o": {"a": {"b": 1}}}, []),
    ("specified below an open one", {"o": {"type": "object", **OPEN, "properties": {
        "known": {"type": "object", "properties": {}}}}}, {"o": {"known": {"x": 1}, "y": 2}},
     {"o": {"known": {}, "y": 2}}, ["spec.o.known.x"]),
    ("embedded resource", {"e": {"type": "object", "x-kubernetes-embedded-resource": True,
                                 "properties": {"spec": {"type": "object", "properties": {}}}}},
     {"e": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "odd": 1},
            "spec": {"x": 1}, "y": 1}},
     {"e": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {}}},
     ["spec.e.metadata.odd", "spec.e.spec.x", "spec.e.y"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("properties", "spec", "expected", "dropped"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_prune(
    compile_spec: Compile, properties: dict[str, Any], spec: Any, expected: Any, dropped: list[str]
) -> None:
    obj = {"apiVersion": "example.com/v1", "kind": "Thing", "spec": spec}
    assert compile_spec(properties).prune(obj) == dropped
    assert obj["spec"] == expected


def test_the_objects_own_metadata_is_object_meta(compile_spec: Compile) -> None:
    metadata = {"name": "n", "labels": {"a": "b"}, "clusterName": "x",
                "ownerReferences": [{"uid": "u", "odd": 1}],
                "managedFields": [{"fieldsV1": {"f:spec": {}}}]}  # fmt: skip
    obj: dict[str, Any] = {"metadata": metadata, "extra": 1}
    dropped = compile_spec({}).prune(obj)
    assert dropped == ["extra", "metadata.clusterName", "metadata.ownerReferences[0].odd"]
    assert obj["metadata"]["managedFields"] == [{"fieldsV1": {"f:spec": {}}}]
