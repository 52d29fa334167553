"""The CRDs against the list of facts in fields.json (docs/spec/api.md section 1), node for node."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
FIELDS: dict[str, Any] = json.loads(Path(__file__).with_name("fields.json").read_text())
DEFINITIONS: dict[str, Any] = {
    crd["spec"]["names"]["kind"]: crd
    for crd in (
        yaml.load(path.read_text(), yaml.CSafeLoader)
        for path in sorted((ROOT / "manifests/crds").glob("kueue.x-k8s.io_*.yaml"))
    )
}
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
BELOW_TEMPLATE = (".template.metadata", ".template.spec")

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


def walk(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every node as (path, facts), without what the API server owns or core defines."""
    yield path or ".", facts(schema)
    if path.endswith(BELOW_TEMPLATE):
        return
    for name, child in schema.get("properties", {}).items():
        if path or name not in ("apiVersion", "kind", "metadata"):
            yield from walk(child, f"{path}.{name}")
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(schema["additionalProperties"], f"{path}{{}}")


def version_of(kind: str, version: str) -> dict[str, Any]:
    """Return one version of a definition."""
    versions = DEFINITIONS[kind]["spec"]["versions"]
    found: dict[str, Any] = next(v for v in versions if v["name"] == version)
    return found


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
    ours = version_of(kind, version)
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
    ours = dict(walk(version_of(kind, version)["schema"]["openAPIV3Schema"]))
    differing = {
        path: {"ours": ours.get(path), "expected": expected.get(path)}
        for path in sorted(ours.keys() | expected.keys())
        if ours.get(path) != expected.get(path) and (kind, version, path) not in DEVIATIONS
    }
    assert differing == {}


@pytest.mark.parametrize("key", DEVIATIONS)
def test_deviations_still_deviate(key: tuple[str, str, str]) -> None:
    kind, version, path = key
    ours = dict(walk(version_of(kind, version)["schema"]["openAPIV3Schema"]))
    assert ours.get(path) != FIELDS[kind]["versions"][version]["fields"].get(path)
