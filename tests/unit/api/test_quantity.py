"""Quantities: exact, canonical, and the same values as the reference parser."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity

from sluice.api import quantity

SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        ("cpu", "1", 1000),
        ("cpu", "500m", 500),
        ("cpu", "1u", 1),
        ("cpu", ".5", 500),
        ("cpu", "5.", 5000),
        ("cpu", "-1u", -1),
        ("memory", "1Gi", 1 << 30),
        ("memory", "1e3", 1000),
        ("memory", "1.5k", 1500),
        ("nvidia.com/gpu", "0.1", 1),
        ("nvidia.com/gpu", 8, 8),
        ("cpu", 1.5, 1500),
        ("cpu", "0", 0),
    ],
)
def test_canonical_amounts(resource: str, text: object, amount: int) -> None:
    assert quantity.canonical(resource, text) == amount


@pytest.mark.parametrize(
    "text", ["", "one", "1 Gi", "1K", "--1", "1e", "1e999", "0x10", None, True, []]
)
def test_other_text_is_refused(text: object) -> None:
    assert not quantity.is_quantity(text)
    with pytest.raises(ValueError, match="quantity"):
        quantity.parse(text)


@given(
    st.decimals(min_value=-(10**9), max_value=10**9, places=4),
    st.sampled_from(SUFFIXES),
)
def test_the_same_value_as_the_client_library(number: Decimal, suffix: str) -> None:
    text = f"{number:f}{suffix}"
    with localcontext(prec=60):  # the library's default precision rounds large binary quantities
        expected = Fraction(parse_quantity(text))
    assert quantity.parse(text) == expected


@given(st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]), st.integers(0, 2**62))
def test_text_of_an_amount_reads_back(resource: str, amount: int) -> None:
    assert quantity.canonical(resource, quantity.to_text(resource, amount)) == amount


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 2000, "2"),
        ("cpu", 1500, "1500m"),
        ("cpu", 1_000_000, "1k"),
        ("memory", 1 << 30, "1Gi"),
        ("memory", 1000, "1000"),
        ("nvidia.com/gpu", 8, "8"),
        ("pods", 1000, "1k"),
        ("cpu", 0, "0"),
    ],
)
def test_canonical_text(resource: str, amount: int, text: str) -> None:
    assert quantity.to_text(resource, amount) == text
