"""Pydantic's JSON schema -> the structural OpenAPI v3 schema of a CustomResourceDefinition.

A CRD schema has no references, no null alternatives and no titles; integers name their width in
`format` instead of bounds. Called by `sluice.api.crds.definitions` and `.pod_template`.
"""

from collections.abc import Mapping
from typing import Any, Final

from sluice.api.models.base import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN
from sluice.api.models.schema import INT_OR_STRING, POD_TEMPLATE_MARK, REQUIRED_MARK

Schema = dict[str, Any]

_DROPPED: Final = frozenset({"title", "$defs", "examples", REQUIRED_MARK})
_WIDTHS: Final = frozenset({INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX})
_INT_OR_STRING_TYPES: Final = [{"type": "integer"}, {"type": "string"}]


class NotStructural(ValueError):
    """A model uses something that a CRD schema can't say; the text names the place."""


def structural(root: Schema, pod_template: Schema) -> Schema:
    """Return the structural schema of a model.

    Args:
        root: What `model_json_schema(by_alias=True)` returned.
        pod_template: The schema that replaces nodes marked as a pod template.

    Raises:
        NotStructural: The model recurses, or has a union or tuple that a CRD can't express.
    """
    return _Builder(root.get("$defs", {}), pod_template).node(root, "", ())


def _described(schema: Schema) -> Schema:
    """Return a node's description on one line, if it has one."""
    text = schema.get("description")
    return {} if text is None else {"description": " ".join(text.split())}


def _sorted(schema: Schema) -> Schema:
    return dict(sorted(schema.items()))


class _Builder:
    """One walk over a JSON schema with its definitions."""

    def __init__(self, definitions: Mapping[str, Schema], pod_template: Schema) -> None:
        self._definitions = definitions
        self._pod_template = pod_template

    def node(self, schema: Schema, path: str, inside: tuple[str, ...]) -> Schema:
        """Return the structural form of one node; `inside` holds the types around it."""
        schema, inside = self._resolve(schema, path, inside)
        if POD_TEMPLATE_MARK in schema:
            return {**self._pod_template, **_described(schema)}
        if schema.get(INT_OR_STRING):
            kept = {k: v for k, v in schema.items() if k not in _DROPPED | {"type", "anyOf"}}
            return _sorted({**kept, **_described(schema), "anyOf": _INT_OR_STRING_TYPES})
        if "anyOf" in schema or "prefixItems" in schema or "oneOf" in schema:
            raise NotStructural(f"{path}: a CRD schema can't express this union or tuple")
        return self._plain(schema, path, inside)

    def _resolve(
        self, schema: Schema, path: str, inside: tuple[str, ...]
    ) -> tuple[Schema, tuple[str, ...]]:
        """Follow references and unwrap optional types until neither is left."""
        while True:
            if "$ref" in schema:
                name = schema["$ref"].rsplit("/", 1)[1]
                if name in inside:
                    raise NotStructural(f"{path}: {name} contains itself")
                beside = {k: v for k, v in schema.items() if k != "$ref"}
                schema, inside = {**self._definitions[name], **beside}, (*inside, name)
                continue
            choices = [c for c in schema.get("anyOf", ()) if c.get("type") != "null"]
            if len(choices) == 1:
                # The default of an optional field is None, which a CRD says by saying nothing.
                beside = {k: v for k, v in schema.items() if k != "anyOf" and v is not None}
                schema = {**choices[0], **beside}
                continue
            return schema, inside

    def _plain(self, schema: Schema, path: str, inside: tuple[str, ...]) -> Schema:
        out: Schema = {}
        for key, value in schema.items():
            match key:
                case "properties":
                    out[key] = {
                        name: self.node(child, f"{path}.{name}", inside)
                        for name, child in sorted(value.items())
                    }
                case "items":
                    out[key] = self.node(value, f"{path}[]", inside)
                case "additionalProperties":
                    if isinstance(value, dict):
                        out[key] = self.node(value, f"{path}{{}}", inside)
                case "description":
                    out |= _described(schema)
                case "const":
                    out["enum"] = [value]
                case "minimum" | "maximum" if value in _WIDTHS:
                    pass
                case _ if key in _DROPPED:
                    pass
                case _:
                    out[key] = value
        if "type" not in out:
            raise NotStructural(f"{path}: the type is missing")
        self._add_required(schema, out)
        return _sorted(out)

    def _add_required(self, schema: Schema, out: Schema) -> None:
        marked = {n for n, s in schema.get("properties", {}).items() if s.get(REQUIRED_MARK)}
        required = marked | set(schema.get("required", ()))
        if required:
            out["required"] = sorted(required)
