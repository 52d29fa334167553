"""Reads the generated CRDs in manifests/crds and walks their schemas. Used by tests only."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Schema = dict[str, Any]
CRD_DIRECTORY = Path(__file__).parents[2] / "manifests/crds"
SERVER_FIELDS = ("apiVersion", "kind", "metadata")
BELOW_TEMPLATE = (".template.metadata", ".template.spec")


@cache
def crds() -> dict[str, Schema]:
    """Return the definitions by kind; callers must not change them."""
    definitions = (
        yaml.load(path.read_text(), yaml.CSafeLoader)
        for path in sorted(CRD_DIRECTORY.glob("kueue.x-k8s.io_*.yaml"))
    )
    return {d["spec"]["names"]["kind"]: d for d in definitions}


def crd_version(kind: str, version: str) -> Schema:
    """Return one version of a definition."""
    versions = crds()[kind]["spec"]["versions"]
    found: Schema = next(v for v in versions if v["name"] == version)
    return found


def root_schema(kind: str, version: str) -> Schema:
    """Return the schema of a whole object."""
    schema: Schema = crd_version(kind, version)["schema"]["openAPIV3Schema"]
    return schema


def walk(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield (path, node) for every node that is ours, in the path form of fields.json.

    `.a.b` is a property, `[]` the items of a list, `{}` the values of a map. What the API server
    owns and what core defines below a pod template is left out.
    """
    yield path or ".", schema
    if path.endswith(BELOW_TEMPLATE):
        return
    for name, child in schema.get("properties", {}).items():
        if path or name not in SERVER_FIELDS:
            yield from walk(child, f"{path}.{name}")
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(schema["additionalProperties"], f"{path}{{}}")


def node_paths(schema: Schema) -> list[str]:
    """Return the paths of all nodes that are ours."""
    return [path for path, _ in walk(schema)]


def value_paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths that a value sets; a map counts both as properties and as a map."""
    yield path or "."
    if isinstance(value, dict):
        for key, child in value.items():
            yield from value_paths(child, f"{path}.{key}")
            yield from value_paths(child, f"{path}{{}}")
    elif isinstance(value, list):
        for child in value:
            yield from value_paths(child, f"{path}[]")
