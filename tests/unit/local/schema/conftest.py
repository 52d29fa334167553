"""Compiles the schema a test states."""

from collections.abc import Callable
from typing import Any

import pytest

from sluice.local.apiserver.seams import TypeSchema
from sluice.local.schema import CompiledSchema, Compiler

Compile = Callable[..., CompiledSchema]


@pytest.fixture
def compile_spec() -> Compile:
    """Return a compiler of CRD schemas whose `spec` has the given properties and keywords."""

    def compile_schema(properties: dict[str, Any], **keywords: Any) -> CompiledSchema:
        root = {
            "type": "object",
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
                "spec": {"type": "object", "properties": properties, **keywords},
            },
        }
        source = TypeSchema(
            group="example.com", version="v1", kind="Thing", root=root, definitions={},
            is_builtin=False,
        )  # fmt: skip
        return Compiler().compile(source)

    return compile_schema


def texts(schema: CompiledSchema, spec: Any, old: Any = None) -> list[str]:
    """Return the error texts of an object with this spec."""
    before = None if old is None else {"spec": old}
    return [cause.text() for cause in schema.validate({"spec": spec}, before)]
