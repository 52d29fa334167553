"""Compiles the schema of a kind for the embedded API server: its `SchemaCompiler`.

Ties the package together: pruning, defaults, value validation, CEL rules, and for built-in kinds
the rules that Kubernetes has in code. One `CompiledSchema` lives as long as its CRD version.
"""

from __future__ import annotations

from collections.abc import Sequence

from sluice.local.apiserver.seams import Json, JsonView, TypeSchema
from sluice.local.apiserver.status import ApiError, Cause, invalid
from sluice.local.schema import builtin, causes
from sluice.local.schema.cel.environment import CelError
from sluice.local.schema.cel.escaping import needs_escape
from sluice.local.schema.cel.rules import Rule, compile_rule, evaluate_rules
from sluice.local.schema.correlation import compare, same
from sluice.local.schema.decoding import refuse_undecodable
from sluice.local.schema.defaulting import apply_defaults
from sluice.local.schema.objectmeta import object_meta
from sluice.local.schema.omitting import normalize
from sluice.local.schema.pruning import prune
from sluice.local.schema.structural import Node, compile_nodes
from sluice.local.schema.uniqueness import validate_lists
from sluice.local.schema.validation import validate, validate_part

_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation"
)


class CompiledSchema:
    """A compiled schema of one kind in one version (`seams.ObjectSchema`)."""

    def __init__(self, source: TypeSchema, root: Node, rules: dict[int, tuple[Rule, ...]]) -> None:
        self._source = source
        self._root = root
        self._rules = rules

    @property
    def source(self) -> TypeSchema:
        """What it was compiled from."""
        return self._source

    @property
    def root(self) -> Node:
        """The schema's graph."""
        return self._root

    def prune(self, obj: Json) -> Sequence[str]:
        """Drop unspecified fields in place and return their paths.

        Raises:
            ApiError: 400 for a built-in object that does not decode.
        """
        if self._source.is_builtin:
            refuse_undecodable(obj, self._root, self._source.kind, self._source.version)
        return prune(obj, self._root, object_meta())

    def default(self, obj: Json) -> None:
        """Fill in defaults in place; give it the form of a typed object."""
        apply_defaults(obj, self._root)
        if self._source.is_builtin:
            normalize(obj, self._root)
            if "spec" in self._root.properties and obj.get("spec") is None:
                # Go holds it by value, so that it is always written.
                obj["spec"] = {}
        elif isinstance(obj.get("metadata"), dict):
            apply_defaults(obj["metadata"], object_meta())
            normalize(obj["metadata"], object_meta())

    def validate(self, new: JsonView, old: JsonView | None) -> Sequence[Cause]:
        """Return what is wrong with an object about to be stored."""
        before = compare(old, new)
        if self._source.is_builtin:
            found = validate(new, self._root, before)
            return found or builtin.validate(self._source.group, self._source.kind, new, old)
        has_status = "status" in self._root.properties
        if old is not None and has_status and _is_status_write(new, old):
            status = before.field("status", new.get("status"), self._root)
            found = validate_part(
                "status", new.get("status"), self._root.properties["status"], status
            )
        else:
            found = validate(new, self._root, before)
            found += [
                Cause(reason=cause.reason, message=cause.message, field=f"metadata.{cause.field}")
                for cause in validate(
                    new.get("metadata") or {},
                    object_meta(),
                    before.field("metadata", new.get("metadata"), self._root),
                )
            ]
        doubled = validate_lists(new, self._root)
        # What was doubled already is not held against an update of something else.
        if doubled and (old is None or not validate_lists(old, self._root)):
            found += doubled
        if self._rules:
            if any(cause.reason in causes.BLOCKING for cause in found):
                found.append(causes.invalid("", None, _UNCHECKED))
            else:
                found += evaluate_rules(self._rules, new, self._root, before)
        return found


def _is_status_write(new: JsonView, old: JsonView) -> bool:
    """Tell whether nothing but status (and metadata) differs: a write to the subresource."""
    names = (set(new) | set(old)) - {"status", "metadata"}
    is_else_same = all(same(new.get(name), old.get(name)) for name in names)
    return is_else_same and "status" in new and not same(new.get("status"), old.get("status"))


class Compiler:
    """Compiles schemas (`seams.SchemaCompiler`)."""

    def compile(self, schema: TypeSchema) -> CompiledSchema:
        """Return the compiled schema.

        Raises:
            ApiError: 422 when a CEL rule does not compile.
        """
        root = compile_nodes(schema.root, schema.definitions, is_builtin=schema.is_builtin)
        if schema.is_builtin:
            return CompiledSchema(schema, root, {})
        root.is_embedded = True
        compiled: dict[int, tuple[Rule, ...]] = {}
        problems: list[Cause] = []
        _compile_rules(root, "openAPIV3Schema", compiled, problems)
        if problems:
            raise _refused(schema, problems)
        return CompiledSchema(schema, root, compiled)


def _compile_rules(
    node: Node, path: str, compiled: dict[int, tuple[Rule, ...]], problems: list[Cause]
) -> None:
    for step, child in node.children():
        below = (
            f".properties[{step[1:]}]"
            if step.startswith(".")
            else (".items" if step == "[]" else ".additionalProperties")
        )
        _compile_rules(child, path + below, compiled, problems)
        node.has_rules = node.has_rules or child.has_rules
    node.has_escapes = needs_escape(node)
    rules: list[Rule] = []
    for index, source in enumerate(node.rules):
        try:
            rules.append(compile_rule(source))
        except CelError as error:
            at = f"{path}.x-kubernetes-validations[{index}].rule"
            problems.append(causes.invalid(at, source.get("rule"), f"compilation failed: {error}"))
    if rules:
        compiled[id(node)] = tuple(rules)
        node.has_rules = True


def _refused(schema: TypeSchema, problems: list[Cause]) -> ApiError:
    name = f"{schema.kind}.{schema.group}"
    return invalid("apiextensions.k8s.io", "CustomResourceDefinition", name, problems)
