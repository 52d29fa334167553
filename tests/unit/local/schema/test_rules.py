"""CEL rules: where they run, what they see, and what they say."""

from typing import Any

import pytest
from tests.unit.local.schema.conftest import Compile, texts

from sluice.local.apiserver.status import ApiError

TEXT = {"type": "string", "maxLength": 20}


def rule(expression: str, **more: Any) -> list[dict[str, Any]]:
    return [{"rule": expression, **more}]


def ruled(node: dict[str, Any], expression: str, **more: Any) -> dict[str, Any]:
    return {**node, "x-kubernetes-validations": rule(expression, **more)}


CASES: list[tuple[str, dict[str, Any], Any, Any, list[str]]] = [
    ("a scalar shows its value", {"f": ruled(TEXT, "self == 'x'", message="must be x")},
     {"f": "y"}, None, ['spec.f: Invalid value: "y": must be x']),
    ("without a message the rule is named", {"f": ruled(TEXT, "self == 'x'")}, {"f": "y"}, None,
     ["spec.f: Invalid value: \"y\": failed rule: self == 'x'"]),
    ("an object is not shown", {"f": ruled({"type": "object", "properties": {"a": TEXT}},
                                           "has(self.a)", message="a is needed")}, {"f": {}}, None,
     ["spec.f: Invalid value: a is needed"]),
    ("message expression", {"f": ruled(TEXT, "self == 'x'",
                                       messageExpression="'not ' + self", message="plain")},
     {"f": "y"}, None, ['spec.f: Invalid value: "y": not y']),
    ("failing message expression", {"f": ruled(TEXT, "self == 'x'", message="plain",
                                               messageExpression="self.nope")},
     {"f": "y"}, None, ['spec.f: Invalid value: "y": plain']),
    ("field path and reason", {"f": ruled({"type": "object", "properties": {"a": TEXT}}, "false",
                                          fieldPath=".a", reason="FieldValueForbidden",
                                          message="no")}, {"f": {}}, None,
     ["spec.f.a: Forbidden: no"]),
    ("missing key", {"f": ruled({"type": "object", "properties": {"a": TEXT}}, "self.a == 'x'")},
     {"f": {}}, None,
     ["spec.f: Invalid value: \"object\": no such key: a evaluating rule: self.a == 'x'"]),
    ("transition rule on create", {"f": ruled(TEXT, "self == oldSelf")}, {"f": "a"}, None, []),
    ("transition rule on a new field", {"f": ruled(TEXT, "self == oldSelf")}, {"f": "a"}, {}, []),
    ("transition rule", {"f": ruled(TEXT, "self == oldSelf", message="field is immutable")},
     {"f": "b"}, {"f": "a"}, ['spec.f: Invalid value: "b": field is immutable']),
    ("oldSelf in a string is none", {"f": ruled(TEXT, "self != 'oldSelf'")}, {"f": "oldSelf"},
     None, ["spec.f: Invalid value: \"oldSelf\": failed rule: self != 'oldSelf'"]),
    ("optional oldSelf on create",
     {"f": ruled(TEXT, "oldSelf.hasValue() || self == 'first'", optionalOldSelf=True,
                 message="start with first")}, {"f": "b"}, None,
     ['spec.f: Invalid value: "b": start with first']),
    ("optional oldSelf on update",
     {"f": ruled(TEXT, "oldSelf.hasValue() || self == 'first'", optionalOldSelf=True)},
     {"f": "b"}, {"f": "a"}, []),
    ("keywords and dashes are escaped",
     {"f": ruled({"type": "object", "properties": {"namespace": TEXT, "a-b": TEXT}},
                 "self.__namespace__ == 'n' && self.a__dash__b == 'x'")},
     {"f": {"namespace": "n", "a-b": "x"}}, None, []),
    ("map values", {"f": {"type": "object", "maxProperties": 5,
                          "additionalProperties": ruled(TEXT, "self == 'x'")}},
     {"f": {"k": "y"}}, None, ["spec.f[k]: Invalid value: \"y\": failed rule: self == 'x'"]),
    ("list items", {"f": {"type": "array", "maxItems": 5, "items": ruled(TEXT, "self == 'x'")}},
     {"f": ["x", "y"]}, None, ["spec.f[1]: Invalid value: \"y\": failed rule: self == 'x'"]),
    ("uniqueness", {"f": ruled({"type": "array", "items": TEXT, "maxItems": 5},
                               "self.all(x, self.exists_one(y, x == y))", message="unique")},
     {"f": ["a", "a"]}, None, ["spec.f: Invalid value: unique"]),
    ("null is not validated", {"f": ruled({**TEXT, "nullable": True}, "false")}, {"f": None},
     None, []),
    ("unchanged values are let pass", {"f": ruled(TEXT, "self == 'x'"), "g": TEXT},
     {"f": "bad", "g": "new"}, {"f": "bad", "g": "old"}, []),
    ("quantities", {"f": ruled(TEXT,
                               "quantity(self).isGreaterThan(quantity('500m')) && "
                               "quantity(self) == quantity('1000m') && isQuantity(self)")},
     {"f": "1"}, None, []),
    ("lists and regular expressions",
     {"f": ruled({"type": "array", "items": TEXT, "maxItems": 5},
                 "self.isSorted() && self.max() == 'b' && self[0].find('a+') == 'aa'")},
     {"f": ["aa", "b"]}, None, []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("properties", "new", "old", "expected"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_rules(
    compile_spec: Compile, properties: dict[str, Any], new: Any, old: Any, expected: list[str]
) -> None:
    assert texts(compile_spec(properties), new, old) == expected


def test_items_of_a_map_list_correlate_by_their_keys(compile_spec: Compile) -> None:
    item = ruled(
        {"type": "object", "properties": {"name": TEXT, "size": {"type": "integer"}}},
        "self.size >= oldSelf.size", message="must not shrink",
    )  # fmt: skip
    schema = compile_spec({"f": {
        "type": "array", "items": item, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }})  # fmt: skip
    old = {"f": [{"name": "a", "size": 5}, {"name": "b", "size": 1}]}
    assert texts(schema, {"f": [{"name": "b", "size": 2}, {"name": "a", "size": 5}]}, old) == []
    assert texts(schema, {"f": [{"name": "c", "size": 0}, {"name": "a", "size": 4}]}, old) == [
        "spec.f[1]: Invalid value: must not shrink"
    ]


def test_rules_wait_for_a_well_formed_object(compile_spec: Compile) -> None:
    schema = compile_spec({"f": TEXT}, **{"x-kubernetes-validations": rule("self.f == 'x'")})
    assert texts(schema, {"f": 5}) == [
        'spec.f: Invalid value: "integer": spec.f in body must be of type string: "integer"',
        "<nil>: Invalid value: null: some validation rules were not checked because the object "
        "was invalid; correct the existing errors to complete validation",
    ]


def test_a_rule_that_does_not_compile_refuses_the_crd(compile_spec: Compile) -> None:
    with pytest.raises(ApiError) as caught:
        compile_spec({"f": ruled(TEXT, "self.")})
    assert caught.value.code == 422
    field = caught.value.to_status()["details"]["causes"][0]["field"]
    assert field == (
        "openAPIV3Schema.properties[spec].properties[f].x-kubernetes-validations[0].rule"
    )
