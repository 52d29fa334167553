"""OpenAPI v3 documents: one for each group and version, for `kubectl explain`, `apply` and `diff`.

A document holds the schemas of its kinds and a PATCH operation for each, from which kubectl learns
that the server validates fields, and whether it takes strategic merge patches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import orjson

from sluice.local.apiserver.kinds.builtin import definition_name, definitions
from sluice.local.apiserver.registry import Registry
from sluice.local.apiserver.resources import Resource, Version
from sluice.local.apiserver.seams import Json, JsonView
from sluice.local.apiserver.status import no_such_resource

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_REF = "#/components/schemas/"

Describe = Callable[[str], JsonView]
"""Gives the descriptions of a built-in definition: `{"": of itself, "field": of a field}`."""

_MERGE_TYPES = ("application/json-patch+json", "application/merge-patch+json")
_APPLY_TYPE = "application/apply-patch+yaml"
_STRATEGIC_TYPE = "application/strategic-merge-patch+json"


V2_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def version_two(*, is_protobuf: bool) -> bytes:
    """Return an OpenAPI v2 document without any schema.

    kubectl asks for it, as protobuf, when a file holds a `List`: it then checks the items by the
    schemas it finds there, skips those it does not find, and lets the server validate each item.
    """
    title, version = "Sluice embedded API server", "v1"
    if not is_protobuf:
        info = {"title": title, "version": version}
        return orjson.dumps({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}})

    def field(number: int, content: bytes) -> bytes:
        # A length-delimited field of protobuf's wire format; all lengths here fit one byte.
        return bytes((number << 3 | 2, len(content))) + content

    info_message = field(1, title.encode()) + field(2, version.encode())
    return field(1, b"2.0") + field(2, info_message) + field(8, b"") + field(9, b"")


def _root(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


class Documents:
    """The OpenAPI documents of a registry, made at their first use.

    Args:
        registry: What is served; its generation says when a document is out of date.
        describe: Descriptions of built-in definitions.
    """

    def __init__(self, registry: Registry, describe: Describe) -> None:
        self._registry = registry
        self._describe = describe
        self._documents: dict[str, bytes] = {}
        self._generation = -1

    def index(self) -> Json:
        """Return the body of /openapi/v3; the hash changes with the registry."""
        self._refresh()
        paths = {}
        for group, versions in self._registry.group_versions().items():
            for version in versions:
                root = _root(group, version)
                seed = f"{root}:{self._registry.generation}".encode()
                digest = hashlib.sha256(seed).hexdigest().upper()[:32]
                paths[root] = {"serverRelativeURL": f"/openapi/v3/{root}?hash={digest}"}
        return {"paths": paths}

    def document(self, root: str) -> bytes:
        """Return the document of `api/v1` or `apis/GROUP/VERSION`.

        Raises:
            ApiError: 404.
        """
        self._refresh()
        if root not in self._documents:
            self._documents[root] = orjson.dumps(self._build(root))
        return self._documents[root]

    def _refresh(self) -> None:
        if self._generation != self._registry.generation:
            self._documents.clear()
            self._generation = self._registry.generation

    def _build(self, root: str) -> Json:
        paths: Json = {}
        schemas: Json = {}
        for resource in self._registry:
            for version in resource.versions.values():
                if version.served and _root(resource.group, version.name) == root:
                    self._add(resource, version, root, paths, schemas)
        if not paths:
            raise no_such_resource()
        return {
            "openapi": "3.0.0",
            "info": {"title": "Sluice embedded API server", "version": "v1"},
            "paths": paths,
            "components": {"schemas": dict(sorted(schemas.items()))},
        }

    def _add(
        self, resource: Resource, version: Version, root: str, paths: Json, schemas: Json
    ) -> None:
        gvk = resource.gvk(version.name)
        listed = {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
        builtin = definition_name(resource.group, version.name, resource.kind)
        if builtin is not None and not resource.crd_name:
            name = builtin
            self._define(builtin, schemas)
        else:
            name = ".".join([*reversed(resource.group.split(".")), version.name, resource.kind])
            schemas[name] = self._custom(version, schemas)
        schemas[name]["x-kubernetes-group-version-kind"] = [listed]
        content = {"schema": {"$ref": _REF + name}}
        types = [*_MERGE_TYPES, _APPLY_TYPE]
        if not resource.crd_name:
            types.append(_STRATEGIC_TYPE)
        middle = "/namespaces/{namespace}" if resource.namespaced else ""
        collection = f"/{root}{middle}/{resource.plural}"
        post = _operation("post", listed, {"application/json": content})
        paths[collection] = {"post": post}
        if not resource.is_virtual:
            paths[collection + "/{name}"] = {
                "put": _operation("put", listed, {"application/json": content}),
                "patch": _operation("patch", listed, dict.fromkeys(types, content)),
            }

    def _define(self, name: str, schemas: Json) -> None:
        """Add a built-in definition and all that it refers to."""
        if name in schemas:
            return
        node = definitions()[name]
        described = self._describe(name)
        shown: Json = _expand(node)
        if described.get(""):
            shown["description"] = described[""]
        for field, child in shown.get("properties", {}).items():
            if field in described:
                child["description"] = described[field]
        schemas[name] = shown
        for reference in _references(node):
            self._define(reference, schemas)

    def _custom(self, version: Version, schemas: Json) -> Json:
        self._define(OBJECT_META, schemas)
        root: Json = orjson.loads(orjson.dumps(version.schema.source.root))
        properties = root.setdefault("properties", {})
        properties.setdefault("apiVersion", {"type": "string"})
        properties.setdefault("kind", {"type": "string"})
        properties["metadata"] = {"allOf": [{"$ref": _REF + OBJECT_META}]}
        return root


def _operation(action: str, gvk: Json, content: Json) -> Json:
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in ("dryRun", "fieldManager", "fieldValidation")
    ]
    if action == "patch":
        parameters.append({"name": "force", "in": "query", "schema": {"type": "boolean"}})
    return {
        "parameters": parameters,
        "requestBody": {"content": content, "required": True},
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk,
    }


def _references(node: Any) -> set[str]:
    found: set[str] = set()
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str):
            found.add(reference)
        for child in node.values():
            found |= _references(child)
    elif isinstance(node, list):
        for child in node:
            found |= _references(child)
    return found


def _expand(node: Any) -> Any:
    """Return a stored node in OpenAPI's form: references wrapped in allOf, with full names."""
    if isinstance(node, list):
        return [_expand(child) for child in node]
    if not isinstance(node, dict):
        return node
    out = {key: _expand(value) for key, value in node.items() if key != "$ref"}
    if isinstance(node.get("$ref"), str):
        out["allOf"] = [{"$ref": _REF + node["$ref"]}]
    elif "$ref" in node:
        out["$ref"] = _expand(node["$ref"])
    return out
