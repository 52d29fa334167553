"""Structural schemas as a graph of nodes that the other modules of this package walk.

`compile_nodes` turns the OpenAPI v3 JSON of a CRD version or of a built-in kind (which may refer
to definitions, also recursively) into `Node`s once; defaulting, pruning, validation and field
ownership then read attributes instead of dictionaries. Nodes do not change once compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

JsonView = Mapping[str, Any]

METADATA: Final = frozenset({"apiVersion", "kind", "metadata"})
"""Fields that every embedded resource has, specified or not."""


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""Stands for a value that is not there, where None is a JSON null."""


@dataclass(slots=True, kw_only=True)
class Node:
    """One node of a schema.

    Attributes:
        type: JSON type, or "" when any is taken.
        type_name: Go's name for the struct of a built-in type, "" for what is none.
        additional: Schema of the values of a map; None when the keys are fixed.
        is_open: Unknown fields are kept at this level (`x-kubernetes-preserve-unknown-fields`,
            `additionalProperties: true`, or an object nothing is said about in built-in kinds).
        is_embedded: A whole object with apiVersion, kind and metadata stands here.
        default: Default value, or MISSING.
        list_type: `atomic`, `set` or `map`.
        map_type: `granular` or `atomic`.
        value: Keywords of value validation, as in the source.
        required: Names of required fields, for built-in kinds too, whose absence is not an error
            of the schema.
        rules: `x-kubernetes-validations`, as in the source.
        has_rules: This node or one below it has rules; only for schemas without references.
        has_escapes: This node or one below it has properties that CEL spells otherwise.
    """

    type: str = ""
    type_name: str = ""
    properties: dict[str, Node] = field(default_factory=dict)
    additional: Node | None = None
    items: Node | None = None
    is_open: bool = False
    is_nullable: bool = False
    is_int_or_string: bool = False
    is_quantity: bool = False
    is_embedded: bool = False
    default: Any = MISSING
    list_type: str = "atomic"
    map_keys: tuple[str, ...] = ()
    map_type: str = "granular"
    patch_strategies: frozenset[str] = frozenset()
    patch_merge_key: str = ""
    value: dict[str, Any] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    rules: tuple[JsonView, ...] = ()
    has_rules: bool = False
    has_escapes: bool = False

    def children(self) -> Iterator[tuple[str, Node]]:
        """Yield the nodes right below with their steps, such as `.spec`, `[*]` and `[]`."""
        for name, child in self.properties.items():
            yield f".{name}", child
        if self.additional is not None:
            yield "[*]", self.additional
        if self.items is not None:
            yield "[]", self.items


VALUE_KEYWORDS: Final = frozenset(
    {
        "format", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum",
        "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
        "uniqueItems", "minProperties", "maxProperties", "required", "allOf", "anyOf", "oneOf",
        "not",
    }
)  # fmt: skip
BUILTIN_KEYWORDS: Final = frozenset({"format", "enum"})
"""Value keywords that hold for built-in kinds; their other rules are code, not schema."""


def compile_nodes(
    root: JsonView, definitions: Mapping[str, JsonView], *, is_builtin: bool = False
) -> Node:
    """Return the graph for a schema; the definitions may refer to each other in cycles."""
    return _Compiler(definitions, is_builtin).node(root)


class _Compiler:
    def __init__(self, definitions: Mapping[str, JsonView], is_builtin: bool) -> None:
        self._definitions = definitions
        self._is_builtin = is_builtin
        self._named: dict[str, Node] = {}

    def node(self, source: JsonView) -> Node:
        """Return the node of a schema; a bare reference shares the node of its definition."""
        name = _reference(source)
        if name is None:
            node = Node()
            self._fill(node, source)
            return node
        beside = {key: value for key, value in source.items() if key not in ("$ref", "allOf")}
        target = self._definition(name)
        if not any(key in beside for key in _OVERRIDES):
            return target
        node = Node()
        self._fill(node, self._definitions.get(name, {}))
        node.type_name = _struct_name(name, node)
        self._override(node, beside)
        return node

    def _definition(self, name: str) -> Node:
        known = self._named.get(name)
        if known is None:
            known = self._named[name] = Node()
            self._fill(known, self._definitions.get(name, {}))
            known.type_name = _struct_name(name, known)
        return known

    def _fill(self, node: Node, source: JsonView) -> None:
        node.is_int_or_string = bool(source.get("x-kubernetes-int-or-string")) or (
            source.get("format") == "int-or-string"
        )
        node.is_quantity = self._is_builtin and _is_quantity(source)
        node.type = "" if node.is_int_or_string or node.is_quantity else source.get("type", "")
        node.is_nullable = bool(source.get("nullable"))
        node.is_embedded = bool(source.get("x-kubernetes-embedded-resource"))
        node.is_open = bool(source.get("x-kubernetes-preserve-unknown-fields"))
        node.properties = {
            name: self.node(child) for name, child in (source.get("properties") or {}).items()
        }
        additional = source.get("additionalProperties")
        if isinstance(additional, Mapping):
            node.additional = self.node(additional)
        elif additional is True or (
            self._is_builtin and node.type in ("object", "") and not node.properties
        ):
            node.is_open = node.is_open or not (node.is_int_or_string or node.is_quantity)
        if isinstance(source.get("items"), Mapping):
            node.items = self.node(source["items"])
        keywords = BUILTIN_KEYWORDS if self._is_builtin else VALUE_KEYWORDS
        node.value = {key: source[key] for key in keywords if source.get(key) is not None}
        for key in ("allOf", "anyOf", "oneOf"):
            if key in node.value:
                node.value[key] = tuple(self.node(item) for item in node.value[key])
        if "not" in node.value:
            node.value["not"] = self.node(node.value["not"])
        node.required = frozenset(source.get("required") or ())
        node.rules = tuple(source.get("x-kubernetes-validations") or ())
        self._override(node, source)

    def _override(self, node: Node, source: JsonView) -> None:
        """Take what a field says about the type it refers to."""
        default = source.get("default")
        # Generated built-in documents give every required struct an empty default; Kubernetes'
        # API server does not apply those.
        is_artefact = self._is_builtin and default in ({}, "", 0, False)
        if default is not None and not is_artefact:
            node.default = default
        if "x-kubernetes-list-type" in source:
            node.list_type = source["x-kubernetes-list-type"]
        if "x-kubernetes-list-map-keys" in source:
            node.map_keys = tuple(source["x-kubernetes-list-map-keys"])
        if "x-kubernetes-map-type" in source:
            node.map_type = source["x-kubernetes-map-type"]
        if "x-kubernetes-patch-strategy" in source:
            node.patch_strategies = frozenset(source["x-kubernetes-patch-strategy"].split(","))
        if "x-kubernetes-patch-merge-key" in source:
            node.patch_merge_key = source["x-kubernetes-patch-merge-key"]
        if source.get("nullable"):
            node.is_nullable = True


_OVERRIDES: Final = (
    "default",
    "nullable",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-patch-merge-key",
)


def _struct_name(name: str, node: Node) -> str:
    return name.rsplit(".", 1)[-1] if node.properties else ""


def _reference(source: JsonView) -> str | None:
    """Return the definition a node refers to, directly or as the only member of `allOf`."""
    reference = source.get("$ref")
    members = list(source.get("allOf") or [])
    if reference is None and len(members) == 1:
        reference = members[0].get("$ref")
    return None if reference is None else str(reference).rsplit("/", 1)[-1]


def _is_quantity(source: JsonView) -> bool:
    types = [member.get("type") for member in source.get("oneOf") or ()]
    return sorted(map(str, types)) == ["number", "string"] or source.get("format") == "quantity"
