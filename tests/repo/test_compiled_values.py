"""No identity between values: compiled code keeps pairs and the like, ints and floats unboxed.

``a is b`` of two names for one tuple is true in plain Python and false once compiled, where each
use makes a new object. Type checkers accept it, so this looks at the types of all such comparisons.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from mypy import build
from mypy.modulefinder import BuildSource
from mypy.nodes import ComparisonExpr, Expression
from mypy.options import Options
from mypy.types import (
    Instance,
    LiteralType,
    TupleType,
    Type,
    TypeVarType,
    UnionType,
    get_proper_type,
)

ROOT = Path(__file__).parents[2]
UNBOXED = {"builtins.int", "builtins.float"}
"""Tuples of any length, strings and bools stay the objects that they are."""

WRONG = """
Key = tuple[int, str]
def is_same(a: Key, b: Key | None, c: int | None, d: bool, e: tuple[int, ...]) -> bool:
    return a is b or a is None or c is None or b is not a or d is (c == 1) or e is e
"""


def is_value(kind: Type | None) -> bool:
    """Tell whether a type has values that compiled code does not keep as objects."""
    proper = get_proper_type(kind)
    match proper:
        case TupleType():
            return True
        case Instance():
            names = {base.fullname for base in proper.type.mro}
            return (
                bool(names & UNBOXED) and not proper.type.is_enum and "builtins.bool" not in names
            )
        case LiteralType():
            return is_value(proper.fallback)
        case UnionType():
            return any(is_value(item) for item in proper.items)
        case TypeVarType():
            return is_value(proper.upper_bound)
        case _:
            return False


def identities_of_values(sources: list[BuildSource]) -> Iterator[str]:
    """Yield the line of each comparison by identity between values."""
    options = Options()
    options.export_types = True
    options.preserve_asts = True
    options.incremental = False
    options.python_version = (3, 11)
    options.mypy_path = [str(ROOT / "queue")]
    options.explicit_package_bases = True
    options.namespace_packages = True
    result = build.build(sources, options)
    assert not result.errors
    for compared in result.types:
        if not isinstance(compared, ComparisonExpr):
            continue
        for operator, left, right in compared.pairwise():
            sides = [get_proper_type(result.types.get(side)) for side in (left, right)]
            is_identity = operator in ("is", "is not")
            if is_identity and all(is_value(side) for side in sides):
                yield f"line {compared.line}: {name_of(left)} {operator} {name_of(right)}"


def name_of(side: Expression) -> str:
    """Return enough of an expression to find it."""
    return str(getattr(side, "name", side))


@pytest.mark.slow
def test_the_engine_compares_no_values_by_identity() -> None:
    folder = ROOT / "queue"
    sources = [
        BuildSource(str(path), ".".join(path.relative_to(folder).with_suffix("").parts))
        for path in sorted((folder / "sluice/engine").rglob("*.py"))
        if path.name != "__init__.py"
    ]
    assert len(sources) > 50
    assert list(identities_of_values(sources)) == []


@pytest.mark.slow
def test_such_a_comparison_is_found() -> None:
    assert list(identities_of_values([BuildSource(None, "wrong", WRONG)])) == [
        "line 4: a is b",
        "line 4: b is not a",
    ]
