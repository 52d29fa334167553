"""Which schemas of a CRD are refused before they are compiled."""

from typing import Any

import pytest

from sluice.local.apiserver.structural import check_structural

ITEM = {"type": "object", "properties": {"name": {"type": "string"}}}


def root(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    "schema",
    [
        root(),
        root(a={"type": "string"}),
        root(a={"x-kubernetes-int-or-string": True}),
        root(a={"x-kubernetes-preserve-unknown-fields": True}),
        root(a={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        root(a={"type": "object", "additionalProperties": {"type": "integer"}}),
        root(
            a={
                "type": "array",
                "items": ITEM,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            }
        ),
    ],
)
def test_structural_schemas(schema: dict[str, Any]) -> None:
    assert list(check_structural(schema, "s")) == []


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ([], "s"),
        ({}, "s.type"),
        ({"type": "string"}, "s.type"),
        (root(a={}), "s.properties[a].type"),
        (root(a="x"), "s.properties[a]"),
        (root(a={"type": "nope"}), "s.properties[a].type"),
        (root(a={"type": "array"}), "s.properties[a].items"),
        (root(a={"type": "array", "items": {}}), "s.properties[a].items.type"),
        (
            root(a={"type": "object", "additionalProperties": {}}),
            "s.properties[a].additionalProperties.type",
        ),
        (
            {**root(a={"type": "string"}), "additionalProperties": {"type": "string"}},
            "s.additionalProperties",
        ),
        (root(a={"type": "string", "$ref": "#/x"}), "s.properties[a].$ref"),
        (
            root(a={"type": "array", "items": ITEM, "uniqueItems": True}),
            "s.properties[a].uniqueItems",
        ),
        (
            root(a={"type": "array", "items": ITEM, "x-kubernetes-list-type": "bag"}),
            "s.properties[a].x-kubernetes-list-type",
        ),
        (
            root(a={"type": "array", "items": ITEM, "x-kubernetes-list-type": "map"}),
            "s.properties[a].x-kubernetes-list-map-keys",
        ),
        (
            root(a={"type": "array", "items": ITEM, "x-kubernetes-list-map-keys": ["other"]}),
            "s.properties[a].x-kubernetes-list-map-keys[0]",
        ),
    ],
)
def test_schemas_that_are_not_structural(schema: Any, field: str) -> None:
    assert [cause.field for cause in check_structural(schema, "s")] == [field]
