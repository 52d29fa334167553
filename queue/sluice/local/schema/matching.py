"""CEL of admission: match conditions and mutations over object, oldObject and request.

Lives beside the schema's CEL because webhook configurations are validated with it when they are
stored, and evaluated with it by `sluice.local.admission`.
"""

from __future__ import annotations

from functools import lru_cache

from sluice.local.schema.cel.environment import Environment, Program

VARIABLES = ("object", "oldObject", "request", "namespaceObject", "params", "variables")


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the environment of match conditions; there is no `authorizer`."""
    return Environment(VARIABLES)


@lru_cache(maxsize=1024)
def compile_condition(expression: str) -> Program:
    """Return the program of a match condition.

    Raises:
        CelError: It does not compile.
    """
    return environment().compile(expression)
