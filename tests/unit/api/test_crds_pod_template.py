"""The pod template inside the Workload CRD: core's, where core's is what Kubernetes accepts."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.crd_schemas import root_schema

from sluice.api.crds.pod_template import EMBEDDED_METADATA

Schema = dict[str, Any]


@pytest.fixture(params=["v1beta1", "v1beta2"])
def template(request: pytest.FixtureRequest) -> Schema:
    """The schema of podSets[].template."""
    spec = root_schema("Workload", request.param)["properties"]["spec"]
    found: Schema = spec["properties"]["podSets"]["items"]["properties"]["template"]
    return found


def at(schema: Schema, *path: str) -> Schema:
    """Return the schema of a property, looking through lists."""
    for name in path:
        schema = schema.get("items", schema)
        schema = schema["properties"][name]
    return schema


def nodes(schema: Schema) -> Iterator[Schema]:
    """Yield a schema and all below it."""
    yield schema
    for child in schema.get("properties", {}).values():
        yield from nodes(child)
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key])


def test_metadata_keeps_five_fields(template: Schema) -> None:
    assert at(template, "metadata") == EMBEDDED_METADATA
    claim = ("spec", "volumes", "ephemeral", "volumeClaimTemplate", "metadata")
    assert at(template, *claim) == EMBEDDED_METADATA


@pytest.mark.parametrize(
    "path",
    [
        ("spec", "containers", "resources", "requests"),
        ("spec", "initContainers", "resources", "limits"),
        ("spec", "resources", "requests"),
        ("spec", "overhead"),
        ("spec", "volumes", "ephemeral", "volumeClaimTemplate", "spec", "resources", "requests"),
    ],
    ids=".".join,
)
def test_resource_maps_hold_quantities(template: Schema, path: tuple[str, ...]) -> None:
    values = at(template, *path)["additionalProperties"]
    assert values["x-kubernetes-int-or-string"] is True
    assert "pattern" in values


@pytest.mark.parametrize(
    "path",
    [
        ("spec", "volumes", "emptyDir", "sizeLimit"),
        ("spec", "containers", "env", "valueFrom", "resourceFieldRef", "divisor"),
        ("spec", "containers", "livenessProbe", "httpGet", "port"),
        ("spec", "containers", "lifecycle", "preStop", "tcpSocket", "port"),
    ],
    ids=".".join,
)
def test_numbers_may_be_written_as_text(template: Schema, path: tuple[str, ...]) -> None:
    assert at(template, *path)["x-kubernetes-int-or-string"] is True


def test_integers_have_their_width(template: Schema) -> None:
    assert all("format" in node for node in nodes(template) if node.get("type") == "integer")
    assert at(template, "spec", "activeDeadlineSeconds")["format"] == "int64"
    assert at(template, "spec", "priority")["format"] == "int32"


def test_nothing_below_the_template_is_described(template: Schema) -> None:
    described = [node for node in nodes(template) if "description" in node]
    assert described == [template]


def test_required_fields_are_those_of_core(template: Schema) -> None:
    assert at(template, "spec")["required"] == ["containers"]
    assert at(template, "spec", "containers")["items"]["required"] == ["name"]
