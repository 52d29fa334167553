"""Schemas of the embedded API server: defaults, pruning, validation, CEL, built-in rules."""

from sluice.local.schema.compiler import CompiledSchema, Compiler

__all__ = ["CompiledSchema", "Compiler"]
