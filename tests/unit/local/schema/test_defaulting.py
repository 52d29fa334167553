"""Defaults: nested, in lists and maps, and nulls."""

from typing import Any

import pytest
from tests.unit.local.schema.conftest import Compile

CASES: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("missing", {"type": "string", "default": "x"}, {}, {"f": "x"}),
    ("given", {"type": "string", "default": "x"}, {"f": "y"}, {"f": "y"}),
    ("false is a default", {"type": "boolean", "default": False}, {}, {"f": False}),
    ("null where none is taken", {"type": "string", "default": "x"}, {"f": None}, {"f": "x"}),
    ("null that is taken", {"type": "string", "default": "x", "nullable": True}, {"f": None},
     {"f": None}),
    ("null without a default is dropped", {"type": "string"}, {"f": None}, {}),
    ("below a default object", {"type": "object", "default": {}, "properties": {
        "g": {"type": "integer", "default": 3}}}, {}, {"f": {"g": 3}}),
    ("no object, no nested default", {"type": "object", "properties": {
        "g": {"type": "integer", "default": 3}}}, {}, {}),
    ("in list items", {"type": "array", "items": {"type": "object", "properties": {
        "g": {"type": "integer", "default": 3}}}}, {"f": [{}, {"g": 1}]},
     {"f": [{"g": 3}, {"g": 1}]}),
    ("in map values", {"type": "object", "additionalProperties": {"type": "object", "properties": {
        "g": {"type": "integer", "default": 3}}}}, {"f": {"k": {}}}, {"f": {"k": {"g": 3}}}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("node", "spec", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_defaults(compile_spec: Compile, node: dict[str, Any], spec: Any, expected: Any) -> None:
    obj = {"spec": spec}
    compile_spec({"f": node}).default(obj)
    assert obj == {"spec": expected}


def test_defaults_are_copies(compile_spec: Compile) -> None:
    schema = compile_spec({"f": {"type": "object", "default": {}, "properties": {
        "g": {"type": "array", "items": {"type": "string"}, "default": []}}}})  # fmt: skip
    first: dict[str, Any] = {"spec": {}}
    schema.default(first)
    first["spec"]["f"]["g"].append("changed")
    second: dict[str, Any] = {"spec": {}}
    schema.default(second)
    assert second == {"spec": {"f": {"g": []}}}
