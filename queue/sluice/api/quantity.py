"""Kubernetes quantities as exact integers.

A quantity is a decimal string with an optional suffix (``500m``, ``1Gi``, ``2e3``). Accounting uses
integers: cpu in milli-units, every other resource in whole units, rounded away from zero
(docs/spec/algorithm.md 0.2). Pure; anyone may call it.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -(2**63)
CPU: Final = "cpu"
PODS: Final = "pods"

PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""The pattern that Kubernetes puts in schemas."""

_FORM = re.compile(
    r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]+)?"
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPONENT_MAX = 64
_DECIMAL_SUFFIXES = ((18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k"))
_BINARY_SUFFIXES = ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"))


@lru_cache(maxsize=65536)
def _parse_text(text: str) -> Fraction:
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(
            f'quantity {text!r} is not a number with an optional suffix such as "500m"'
        )
    sign, digits, suffix = match.group(1), match.group(2), match.group(3) or ""
    number = Fraction(digits if not digits.endswith(".") else digits + "0")
    if suffix in _BINARY:
        number *= 1 << _BINARY[suffix]
    elif suffix in _DECIMAL:
        number *= Fraction(10) ** _DECIMAL[suffix]
    else:
        exponent = int(suffix[1:])
        if abs(exponent) > _EXPONENT_MAX:
            raise ValueError(f"quantity {text!r} has an exponent beyond {_EXPONENT_MAX}")
        number *= Fraction(10) ** exponent
    return -number if sign == "-" else number


def parse(value: object) -> Fraction:
    """Return the exact value of a quantity.

    Args:
        value: A quantity string, or the integer or float that JSON may carry in its place.

    Raises:
        ValueError: The text is not a quantity.
    """
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"quantity {value!r} is neither text nor a number")
    return Fraction(value) if isinstance(value, int) else _parse_text(repr(value))


def is_quantity(value: object) -> bool:
    """Tell whether the value parses as a quantity."""
    try:
        parse(value)
    except ValueError:
        return False
    return True


def round_away(number: Fraction) -> int:
    """Return the integer at or beyond the number, away from zero."""
    quotient, rest = divmod(abs(number.numerator), number.denominator)
    magnitude = quotient + (1 if rest else 0)
    return magnitude if number >= 0 else -magnitude


@lru_cache(maxsize=65536)
def _canonical_text(is_cpu: bool, text: str) -> int:
    number = _parse_text(text)
    return round_away(number * 1000 if is_cpu else number)


def canonical(resource: str, value: object) -> int:
    """Return a quantity in the resource's unit: milli for cpu, whole units otherwise.

    Rounds away from zero; not clamped to 64 bits.

    Raises:
        ValueError: The value is not a quantity.
    """
    if isinstance(value, str):
        return _canonical_text(resource == CPU, value)
    number = parse(value)
    return round_away(number * 1000 if resource == CPU else number)


def _decimal_text(number: int) -> str:
    for power, suffix in _DECIMAL_SUFFIXES:
        if number % 10**power == 0:
            return f"{number // 10**power}{suffix}"
    return str(number)


def _binary_text(number: int) -> str:
    if abs(number) >= 1024:
        for power, suffix in _BINARY_SUFFIXES:
            if number % (1 << power) == 0:
                return f"{number >> power}{suffix}"
    return str(number)


def is_binary(resource: str) -> bool:
    """Tell whether amounts of this resource are written with binary suffixes."""
    return resource in ("memory", "ephemeral-storage", "storage") or resource.startswith(
        "hugepages-"
    )


def to_text(resource: str, amount: int) -> str:
    """Return the canonical quantity string of an amount in the resource's unit."""
    if amount == 0:
        return "0"
    if resource == CPU:
        return _decimal_text(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    return _binary_text(amount) if is_binary(resource) else _decimal_text(amount)
