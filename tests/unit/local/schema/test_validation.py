"""Value validation: Kubernetes' texts, paths and causes."""

from typing import Any

import pytest
from tests.unit.local.schema.conftest import Compile, texts

CASES: list[tuple[str, dict[str, Any], Any, list[str]]] = [
    ("wrong type", {"type": "integer"}, "x",
     ['spec.f: Invalid value: "string": spec.f in body must be of type integer: "string"']),
    ("null", {"type": "string"}, None,
     ['spec.f: Invalid value: "null": spec.f in body must be of type string: "null"']),
    ("nullable", {"type": "string", "nullable": True}, None, []),
    ("bool is no integer", {"type": "integer"}, True,
     ['spec.f: Invalid value: "boolean": spec.f in body must be of type integer: "boolean"']),
    ("whole float is an integer", {"type": "integer"}, 2.0, []),
    ("integer is a number", {"type": "number"}, 2, []),
    ("enum", {"type": "string", "enum": ["a", "b"]}, "c",
     ['spec.f: Unsupported value: "c": supported values: "a", "b"']),
    ("maxLength", {"type": "string", "maxLength": 3}, "abcd",
     ["spec.f: Too long: may not be more than 3 bytes"]),
    ("minLength", {"type": "string", "minLength": 1}, "",
     ['spec.f: Invalid value: "": spec.f in body should be at least 1 chars long']),
    ("pattern", {"type": "string", "pattern": "^[a-z]+$"}, "A",
     ["spec.f: Invalid value: \"A\": spec.f in body should match '^[a-z]+$'"]),
    ("pattern ends at the end", {"type": "string", "pattern": "^a$"}, "a\n",
     ["spec.f: Invalid value: \"a\\n\": spec.f in body should match '^a$'"]),
    ("minimum", {"type": "integer", "minimum": 0}, -1,
     ["spec.f: Invalid value: -1: spec.f in body should be greater than or equal to 0"]),
    ("exclusive maximum", {"type": "integer", "maximum": 5, "exclusiveMaximum": True}, 5,
     ["spec.f: Invalid value: 5: spec.f in body should be less than 5"]),
    ("int32", {"type": "integer", "format": "int32"}, 2**31,
     ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in '
      "spec.f"]),
    ("int64", {"type": "integer", "format": "int64"}, 2**63 - 1, []),
    ("date-time", {"type": "string", "format": "date-time"}, "yesterday",
     ['spec.f: Invalid value: "yesterday": spec.f in body must be of type date-time: '
      '"yesterday"']),
    ("date-time with zone", {"type": "string", "format": "date-time"},
     "2026-01-01T10:00:00.123+01:00", []),
    ("unknown format", {"type": "string", "format": "poem"}, "x", []),
    ("multipleOf", {"type": "integer", "multipleOf": 5}, 7,
     ["spec.f: Invalid value: 7: spec.f in body should be a multiple of 5"]),
    ("maxItems", {"type": "array", "maxItems": 1, "items": {"type": "string"}}, ["a", "b"],
     ["spec.f: Too many: 2: must have at most 1 item"]),
    ("minItems", {"type": "array", "minItems": 1, "items": {"type": "string"}}, [],
     ["spec.f: Invalid value: 0: spec.f in body should have at least 1 items"]),
    ("item type", {"type": "array", "items": {"type": "string"}}, ["a", 2],
     ['spec.f[1]: Invalid value: "integer": spec.f[1] in body must be of type string: '
      '"integer"']),
    ("maxProperties",
     {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}},
     {"a": "1", "b": "2"}, ["spec.f: Too many: 2: must have at most 1 item"]),
    ("required", {"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}},
     {}, ["spec.f.x: Required value"]),
    ("set", {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
     ["a", "b", "a", "a"], ['spec.f[2]: Duplicate value: "a"']),
    ("map", {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
             "items": {"type": "object", "required": ["n"],
                       "properties": {"n": {"type": "string"}}}},
     [{"n": "a"}, {"n": "a"}], ['spec.f[1]: Duplicate value: {"n":"a"}']),
    ("int-or-string takes both", {"x-kubernetes-int-or-string": True,
                                  "anyOf": [{"type": "integer"}, {"type": "string"}]}, 5, []),
    ("int-or-string takes no list", {"x-kubernetes-int-or-string": True}, [],
     ['spec.f: Invalid value: "array": spec.f in body must be of type integer,string: "array"']),
    ("oneOf none", {"type": "object", "properties": {"a": {"type": "string"}},
                    "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {},
     ['<nil>: Invalid value: "": "spec.f" must validate one and only one schema (oneOf). '
      "Found none valid", "spec.f.a: Required value"]),
    ("oneOf two", {"type": "object", "additionalProperties": {"type": "string"},
                   "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": "", "b": ""},
     ['<nil>: Invalid value: "": "spec.f" must validate one and only one schema (oneOf). '
      "Found 2 valid alternatives"]),
    ("not", {"type": "string", "not": {"enum": ["bad"]}}, "bad",
     ['<nil>: Invalid value: "": "spec.f" must not validate the schema (not)']),
]  # fmt: skip


@pytest.mark.parametrize(
    ("node", "value", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_one_field(
    compile_spec: Compile, node: dict[str, Any], value: Any, expected: list[str]
) -> None:
    assert texts(compile_spec({"f": node}), {"f": value}) == expected


def test_causes_carry_wire_reasons(compile_spec: Compile) -> None:
    schema = compile_spec({"a": {"type": "integer"}, "b": {"type": "string", "enum": ["x"]}})
    found = schema.validate({"spec": {"a": "1", "b": "y"}}, None)
    assert [cause.to_json()["reason"] for cause in found] == [
        "FieldValueTypeInvalid",
        "FieldValueNotSupported",
    ]


def test_an_update_is_not_blamed_for_what_it_left_alone(compile_spec: Compile) -> None:
    schema = compile_spec({"a": {"type": "string", "enum": ["x"]}, "b": {"type": "string"}})
    assert texts(schema, {"a": "old", "b": "new"}, {"a": "old", "b": "b"}) == []
    assert texts(schema, {"a": "other"}, {"a": "old"}) == [
        'spec.a: Unsupported value: "other": supported values: "x"'
    ]


def test_unchanged_items_of_a_map_list_are_let_pass_wherever_they_stand(
    compile_spec: Compile,
) -> None:
    item = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "size": {"type": "integer", "maximum": 5}},
    }
    node = {
        "type": "array", "items": item, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }  # fmt: skip
    schema = compile_spec({"f": node})
    old = {"f": [{"name": "a", "size": 9}]}
    assert texts(schema, {"f": [{"name": "b", "size": 1}, {"name": "a", "size": 9}]}, old) == []
    assert texts(schema, {"f": [{"name": "b", "size": 9}]}, old) == [
        "spec.f[0].size: Invalid value: 9: spec.f[0].size in body should be less than or equal to 5"
    ]
