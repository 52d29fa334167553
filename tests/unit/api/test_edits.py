"""Edits are made at once and kept as a minimal JSON patch."""

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.api import defaults
from sluice.api.edits import Edits, pointer
from sluice.api.errors import InvalidObject

KEYS = st.sampled_from(["a", "b", "x/y", "m~n", "", "~1"])
OBJECTS = st.recursive(
    st.none() | st.integers(0, 3),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=8,
).filter(lambda value: isinstance(value, dict))
PATHS = st.lists(KEYS, min_size=1, max_size=3)


@settings(deadline=None)
@given(OBJECTS, st.lists(st.tuples(st.booleans(), PATHS, st.integers(0, 3)), max_size=5))
def test_the_patch_makes_the_same_object(obj: Any, changes: list[Any]) -> None:
    before = copy.deepcopy(obj)
    edits = Edits(obj)
    for is_append, path, value in changes:
        try:
            if is_append:
                edits.append(path, value)
            else:
                edits.set(path, value)
        except InvalidObject:
            continue
    assert jsonpatch.apply_patch(before, edits.operations) == edits.obj


def test_nothing_is_recorded_for_a_value_that_is_there() -> None:
    edits = Edits({"spec": {"suspend": True}})
    edits.set(("spec", "suspend"), True)
    assert edits.operations == []


def test_true_is_not_one() -> None:
    edits = Edits({"a": 1})
    edits.set(("a",), True)
    assert edits.operations == [{"op": "replace", "path": "/a", "value": True}]


def test_two_labels_on_an_object_without_any_are_one_operation() -> None:
    edits = Edits({"metadata": {}})
    edits.set(("metadata", "labels", "a"), "1")
    edits.set(("metadata", "labels", "b"), "2")
    assert edits.operations == [
        {"op": "add", "path": "/metadata/labels", "value": {"a": "1", "b": "2"}}
    ]


def test_null_counts_as_absent() -> None:
    edits = Edits({"metadata": {"labels": None}})
    edits.set(("metadata", "labels", "a"), "1")
    assert edits.operations == [{"op": "replace", "path": "/metadata/labels", "value": {"a": "1"}}]


def test_pointers_escape_tilde_and_slash() -> None:
    assert pointer(("metadata", "labels", "a.b/c~d", 0)) == "/metadata/labels/a.b~1c~0d/0"


def test_what_is_no_object_is_named() -> None:
    with pytest.raises(InvalidObject, match="metadata: Invalid value: 5: must be an object"):
        Edits({"metadata": 5}).set(("metadata", "labels", "a"), "1")


@pytest.mark.parametrize("default", [defaults.cluster_queue, defaults.resource_flavor])
def test_the_finalizer_is_added_once(default: Any) -> None:
    edits = Edits({"metadata": {"name": "x"}})
    default(edits, {})
    assert edits.operations == [
        {"op": "add", "path": "/metadata/finalizers", "value": ["kueue.x-k8s.io/resource-in-use"]}
    ]
    again = Edits(edits.obj)
    default(again, {})
    assert again.operations == []
    other = Edits({"metadata": {"finalizers": ["a.io/b"]}})
    default(other, {})
    assert other.operations == [
        {"op": "add", "path": "/metadata/finalizers/-", "value": "kueue.x-k8s.io/resource-in-use"}
    ]


def test_min_counts_go_when_partial_admission_is_off() -> None:
    obj = {"spec": {"podSets": [{"count": 1}, {"minCount": 1}, {"minCount": None}]}}
    edits = Edits(copy.deepcopy(obj))
    defaults.workload(edits, {"PartialAdmission": False})
    assert edits.operations == [
        {"op": "remove", "path": "/spec/podSets/1/minCount"},
        {"op": "remove", "path": "/spec/podSets/2/minCount"},
    ]
    untouched = Edits(copy.deepcopy(obj))
    defaults.workload(untouched, {})
    assert untouched.operations == []
