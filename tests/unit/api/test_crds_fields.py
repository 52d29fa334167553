"""The CRDs against the list of facts in fields.json (docs/spec/api.md section 1), node for node."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.crd_schemas import crd_version, crds, root_schema, walk

FIELDS: dict[str, Any] = json.loads(Path(__file__).with_name("fields.json").read_text())
DEFINITIONS = crds()
COMPARED = (
    "type",
    "format",
    "required",
    "default",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "uniqueItems",
    "nullable",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
)

DEVIATIONS: dict[tuple[str, str, str], str] = {}
"""(kind, version, path) -> why it differs on purpose. None at present."""

CASES = [(kind, version) for kind in FIELDS for version in FIELDS[kind]["versions"]]


def facts(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of one node in the form of fields.json."""
    node = {key: schema[key] for key in COMPARED if key in schema}
    if "required" in node:
        node["required"] = sorted(node["required"])
    if rules := schema.get("x-kubernetes-validations"):
        node["celRules"] = len(rules)
    return node


def nodes(kind: str, version: str) -> dict[str, dict[str, Any]]:
    """Return the facts of all nodes of a version that are ours, by path."""
    return {path: facts(node) for path, node in walk(root_schema(kind, version))}


def test_every_kind_has_a_definition() -> None:
    assert set(DEFINITIONS) == set(FIELDS)


@pytest.mark.parametrize("kind", FIELDS)
def test_names_and_scope(kind: str) -> None:
    spec = DEFINITIONS[kind]["spec"]
    names = spec["names"]
    assert {
        "plural": names["plural"],
        "singular": names["singular"],
        "shortNames": names["shortNames"],
        "categories": names.get("categories", []),
        "scope": spec["scope"],
    } == {key: value for key, value in FIELDS[kind].items() if key != "versions"}
    assert [v["name"] for v in spec["versions"]] == list(FIELDS[kind]["versions"])


@pytest.mark.parametrize(("kind", "version"), CASES)
def test_version_properties(kind: str, version: str) -> None:
    ours = crd_version(kind, version)
    columns = [
        {key: column.get(key, 0) for key in ("name", "jsonPath", "type", "priority")}
        for column in ours.get("additionalPrinterColumns", [])
    ]
    expected = FIELDS[kind]["versions"][version]
    assert {
        "served": ours["served"],
        "storage": ours["storage"],
        "subresources": list(ours.get("subresources", {})),
        "selectableFields": [f["jsonPath"] for f in ours.get("selectableFields", [])],
        "printerColumns": columns,
    } == {key: value for key, value in expected.items() if key != "fields"}


@pytest.mark.parametrize(("kind", "version"), CASES)
def test_every_node(kind: str, version: str) -> None:
    expected: dict[str, Any] = FIELDS[kind]["versions"][version]["fields"]
    ours = nodes(kind, version)
    differing = {
        path: {"ours": ours.get(path), "expected": expected.get(path)}
        for path in sorted(ours.keys() | expected.keys())
        if ours.get(path) != expected.get(path) and (kind, version, path) not in DEVIATIONS
    }
    assert differing == {}


def test_listed_deviations_still_deviate() -> None:
    for kind, version, path in DEVIATIONS:
        expected = FIELDS[kind]["versions"][version]["fields"].get(path)
        assert nodes(kind, version).get(path) != expected
