"""Kubernetes' CEL functions beyond the standard ones: quantities, lists, regular expressions.

C++ CEL knows strings, math, optionals and bindings; Kubernetes adds what is declared here. A
quantity travels as a map with one canonical text, so that `==` means equal amounts. Called by
`environment` only. `indexOf` of lists (C++ CEL has it for text only) and the URL, IP, CIDR, format
and semver functions are not offered (docs/embedded.md).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from cel_expr_python import cel

from sluice.api import quantity

_QUANTITY: Final = "__quantity__"
_INT64_MAX: Final = 2**63 - 1


def _wrap(amount: Fraction) -> dict[str, str]:
    return {_QUANTITY: str(amount)}


def _unwrap(value: Any) -> Fraction:
    try:
        return Fraction(value[_QUANTITY])
    except (KeyError, TypeError) as error:
        raise ValueError("no such overload: not a quantity") from error


def _as_integer(value: Any) -> int:
    amount = _unwrap(value)
    if amount.denominator != 1 or abs(amount) > _INT64_MAX:
        raise ValueError("cannot convert value to integer")
    return int(amount)


def _is_integer(value: Any) -> bool:
    amount = _unwrap(value)
    return amount.denominator == 1 and abs(amount) <= _INT64_MAX


def _compare(left: Any, right: Any) -> int:
    first, second = _unwrap(left), _unwrap(right)
    return (first > second) - (first < second)


def _add(left: Any, right: Any) -> dict[str, str]:
    return _wrap(_unwrap(left) + (right if isinstance(right, int) else _unwrap(right)))


def _sub(left: Any, right: Any) -> dict[str, str]:
    return _wrap(_unwrap(left) - (right if isinstance(right, int) else _unwrap(right)))


def _sign(value: Any) -> int:
    amount = _unwrap(value)
    return (amount > 0) - (amount < 0)


def _is_sorted(items: list[Any]) -> bool:
    return all(left <= right for left, right in itertools.pairwise(items))


def _find(text: str, pattern: str) -> str:
    match = re.search(pattern, text)
    return match.group(0) if match else ""


def _find_all(text: str, pattern: str) -> list[str]:
    return [match.group(0) for match in re.finditer(pattern, text)]


def _find_some(text: str, pattern: str, limit: int) -> list[str]:
    found = _find_all(text, pattern)
    return found if limit < 0 else found[:limit]


def _function(
    name: str, parameters: list[Any], result: Any, call: Callable[..., Any], *, member: bool = True
) -> tuple[str, Any]:
    overload = cel.Overload(
        f"sluice_{name}_{len(parameters)}_{'_'.join(item.name() for item in parameters)}",
        return_type=result,
        parameters=parameters,
        is_member=member,
        impl=call,
    )
    return name, overload


def declarations() -> list[Any]:
    """Return the declarations with their implementations, for one environment."""
    kind = cel.Type
    amount = kind.Map(kind.STRING, kind.DYN)
    items = kind.List(kind.DYN)
    overloads = [
        _function("quantity", [kind.STRING], amount, lambda text: _wrap(quantity.parse(text)),
                  member=False),
        _function("isQuantity", [kind.STRING], kind.BOOL, quantity.is_quantity, member=False),
        _function("isInteger", [amount], kind.BOOL, _is_integer),
        _function("asInteger", [amount], kind.INT, _as_integer),
        _function("asApproximateFloat", [amount], kind.DOUBLE, lambda a: float(_unwrap(a))),
        _function("sign", [amount], kind.INT, _sign),
        _function("add", [amount, amount], amount, _add),
        _function("add", [amount, kind.INT], amount, _add),
        _function("sub", [amount, amount], amount, _sub),
        _function("sub", [amount, kind.INT], amount, _sub),
        _function("isGreaterThan", [amount, amount], kind.BOOL, lambda a, b: _compare(a, b) > 0),
        _function("isLessThan", [amount, amount], kind.BOOL, lambda a, b: _compare(a, b) < 0),
        _function("compareTo", [amount, amount], kind.INT, _compare),
        _function("isSorted", [items], kind.BOOL, _is_sorted),
        _function("sum", [items], kind.DYN, sum),
        _function("min", [items], kind.DYN, min),
        _function("max", [items], kind.DYN, max),
        _function("find", [kind.STRING, kind.STRING], kind.STRING, _find),
        _function("findAll", [kind.STRING, kind.STRING], kind.List(kind.STRING), _find_all),
        _function("findAll", [kind.STRING, kind.STRING, kind.INT], kind.List(kind.STRING),
                  _find_some),
    ]  # fmt: skip
    by_name: dict[str, list[Any]] = {}
    for name, overload in overloads:
        by_name.setdefault(name, []).append(overload)
    return [cel.FunctionDecl(name, group) for name, group in by_name.items()]
