"""CEL environments and programs: compile once, evaluate with JSON.

Wraps `cel-expr-python` so that the rest of the embedded server sees one error type and plain
JSON. Used by the rules of schemas and by the match conditions of admission.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext.ext_bindings import ExtBindings
from cel_expr_python.ext.ext_encoders import ExtEncoders
from cel_expr_python.ext.ext_math import ExtMath
from cel_expr_python.ext.ext_optional import ExtOptional
from cel_expr_python.ext.ext_strings import ExtStrings

from sluice.local.schema.cel.library import declarations

_INDEX_ERROR = re.compile(r"Index error: index=(-?\d+)")


class CelError(Exception):
    """An expression that does not compile or whose evaluation fails."""


class Program:
    """A compiled expression."""

    def __init__(self, expression: Any, source: str) -> None:
        self._expression = expression
        self.source = source

    def evaluate(self, activation: Any) -> Any:
        """Return the JSON value of the expression.

        Args:
            activation: From the `Environment` that compiled it.

        Raises:
            CelError: No such key, no matching overload, division by zero and the like.
        """
        try:
            result = self._expression.eval(activation)
            if result.type() == cel.Type.ERROR:
                raise CelError(_runtime_text(str(result.plain_value())))
            return result.plain_value()
        except (RuntimeError, TypeError) as error:
            raise CelError(_runtime_text(str(error))) from error


class Environment:
    """Variables that expressions may use, all of dynamic type, and Kubernetes' functions."""

    def __init__(self, variables: Iterable[str]) -> None:
        self._env = cel.NewEnv(
            variables=dict.fromkeys(variables, cel.Type.DYN),
            extensions=[
                ExtStrings(), ExtOptional(), ExtBindings(), ExtMath(), ExtEncoders()
            ],
            functions=declarations(),
        )  # fmt: skip

    def compile(self, source: str) -> Program:
        """Return the program of an expression.

        Raises:
            CelError: It does not parse, or names something that does not exist.
        """
        try:
            return Program(self._env.compile(source), source)
        except RuntimeError as error:
            raise CelError(_compile_text(str(error))) from error

    def activation(self, data: Mapping[str, Any]) -> Any:
        """Return bindings that several programs may share."""
        return self._env.Activation(dict(data))


def _compile_text(text: str) -> str:
    return text.removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")


def _runtime_text(text: str) -> str:
    """Return the words that Kubernetes uses for the common failures."""
    missing = text.partition('Key not found in map : "')[2]
    if missing:
        return f"no such key: {missing.rstrip(chr(34))}"
    out_of_bounds = _INDEX_ERROR.search(text)
    if out_of_bounds is not None:
        return f"index out of bounds: {out_of_bounds.group(1)}"
    if "No matching overloads found" in text:
        return "no such overload"
    return text.partition(": ")[2] or text


@lru_cache(maxsize=1)
def _matching() -> tuple[Environment, Program]:
    environment = Environment(("text", "pattern"))
    return environment, environment.compile("text.matches(pattern)")


def matches(pattern: str, text: str) -> bool:
    """Tell whether the text contains a match of an RE2 pattern; False for an invalid pattern."""
    environment, program = _matching()
    try:
        return bool(program.evaluate(environment.activation({"text": text, "pattern": pattern})))
    except CelError:
        return False
