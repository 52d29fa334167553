"""`x-kubernetes-validations`: rules of a schema, compiled once and evaluated for each object.

Each node's rules are compiled when its CRD is stored. Evaluation walks the object beside its old
version: transition rules (`oldSelf`) run where the two correlate, and a rule that fails on an
unchanged value is let pass (ratcheting). Called by `compiler`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sluice.local.apiserver.status import Cause
from sluice.local.schema import causes
from sluice.local.schema.cel.environment import CelError, Environment, Program
from sluice.local.schema.cel.escaping import to_cel
from sluice.local.schema.correlation import Old
from sluice.local.schema.structural import MISSING, Node

_LITERAL = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")
_OLD_SELF = re.compile(r"\boldSelf\b")
_PATH_STEP = re.compile(r"\.?([^.\[\]']+)|\['((?:\\.|[^'\\])*)'\]")
_OPTIONAL_FORM: Final = (
    "cel.bind(oldSelf, has_old_self ? optional.of(old_self_value) : optional.none(), {rule})"
)


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the environment of validation rules."""
    return Environment(("self", "oldSelf", "has_old_self", "old_self_value"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One compiled rule of a node."""

    program: Program
    message: str
    message_program: Program | None
    text: str
    field_path: str
    reason: str
    uses_old_self: bool
    is_old_self_optional: bool


def compile_rule(source: Mapping[str, Any]) -> Rule:
    """Return a compiled rule.

    Raises:
        CelError: The rule or its message expression does not compile.
    """
    expression = str(source.get("rule", "")).strip()
    is_optional = bool(source.get("optionalOldSelf"))
    form = _OPTIONAL_FORM.format(rule=expression) if is_optional else expression
    message_source = source.get("messageExpression")
    return Rule(
        program=environment().compile(form),
        message=str(source.get("message") or "").strip(),
        message_program=environment().compile(message_source) if message_source else None,
        text=expression,
        field_path=_normalized(str(source.get("fieldPath") or "")),
        reason=str(source.get("reason") or causes.INVALID),
        uses_old_self=_OLD_SELF.search(_LITERAL.sub('""', expression)) is not None,
        is_old_self_optional=is_optional,
    )


def _normalized(path: str) -> str:
    steps = []
    for dotted, quoted in _PATH_STEP.findall(path):
        steps.append(dotted or re.sub(r"\\(.)", r"\1", quoted))
    return ".".join(steps)


def evaluate_rules(
    compiled: Mapping[int, tuple[Rule, ...]], value: Any, root: Node, old: Old
) -> list[Cause]:
    """Return what the rules of a schema refuse.

    Args:
        compiled: The rules of each node, by the node's `id`.
        value: The new object.
        root: Its schema.
        old: The old object, or one that is missing.
    """
    walk = _Walk(compiled)
    walk.value(value, root, "", old)
    return walk.found


class _Walk:
    def __init__(self, compiled: Mapping[int, tuple[Rule, ...]]) -> None:
        self._compiled = compiled
        self.found: list[Cause] = []

    def value(self, value: Any, node: Node, path: str, old: Old) -> None:
        """Evaluate the rules at and below a value."""
        if value is None or not node.has_rules:
            return
        rules = self._compiled.get(id(node))
        if rules:
            self._evaluate(rules, value, node, path, old)
        if isinstance(value, dict):
            for name, item in value.items():
                child = node.properties.get(name)
                if child is not None:
                    below = f"{path}.{name}" if path else name
                    self.value(item, child, below, old.field(name, item, node))
                elif node.additional is not None:
                    self.value(
                        item, node.additional, f"{path}[{name}]", old.field(name, item, node)
                    )
        elif isinstance(value, list) and node.items is not None:
            for index, item in enumerate(value):
                self.value(item, node.items, f"{path}[{index}]", old.item(item, node))

    def _evaluate(
        self, rules: tuple[Rule, ...], value: Any, node: Node, path: str, old: Old
    ) -> None:
        has_old = old.value is not MISSING and old.value is not None
        bindings: dict[str, Any] = {"self": to_cel(value, node), "has_old_self": has_old}
        previous = to_cel(old.value, node) if has_old else None
        bindings["oldSelf"] = bindings["old_self_value"] = previous
        activation = environment().activation(bindings)
        for rule in rules:
            if rule.uses_old_self and not has_old and not rule.is_old_self_optional:
                continue
            if not rule.uses_old_self and old.is_unchanged:
                continue
            cause = _outcome(rule, activation, value, node, path)
            if cause is not None:
                self.found.append(cause)


def _outcome(rule: Rule, activation: Any, value: Any, node: Node, path: str) -> Cause | None:
    shown = causes.OMITTED if isinstance(value, dict | list) else value
    try:
        if rule.program.evaluate(activation) is True:
            return None
    except CelError as error:
        named = rule.message or rule.text
        if str(error).startswith("no such overload"):
            detail = (
                f"'{error}': call arguments did not match a supported operator, function or "
                f"macro signature for rule: {named}"
            )
        else:
            detail = f"{error} evaluating rule: {named}"
        return causes.invalid(path, node.type, detail)
    at = ".".join(part for part in (path, rule.field_path) if part)
    detail = _message(rule, activation)
    if rule.reason == causes.FORBIDDEN:
        return causes.forbidden(at, detail)
    if rule.reason == causes.REQUIRED:
        return causes.required(at, detail)
    if rule.reason == causes.DUPLICATE:
        return causes.duplicate(at, shown)
    return causes.invalid(at, shown, detail)


def _message(rule: Rule, activation: Any) -> str:
    if rule.message_program is not None:
        try:
            text = rule.message_program.evaluate(activation)
        except CelError:
            text = None
        if isinstance(text, str) and text.strip() and "\n" not in text:
            return text.strip()
    return rule.message or f"failed rule: {rule.text}"
