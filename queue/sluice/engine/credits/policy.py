"""The terms of a ledger, in its own units.

A balance is an exact integer in thousandths of a weighted unit times milliseconds: one GPU of
weight 1 for one minute is 60,000,000. Source: docs/spec/credits.md 1 and 4. Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sluice.api.quantity import CPU, is_binary

UNIT_HOUR: Final = 1000 * 3_600_000
"""Ledger units in one weighted unit-hour."""

FlavorResource = tuple[str, str]
"""(flavor, resource)."""


def thousandths(value: Fraction) -> int:
    """Return a number in thousandths, half rounded up."""
    return (value * 2000 + 1).__floor__() // 2


def unit_of(resource: str) -> int:
    """Return how many of the resource's accounting units make one billed unit.

    Cores for cpu (kept in milli), GiB for memory, ephemeral storage and huge pages (kept in bytes),
    and the unit itself for the rest.
    """
    if resource == CPU:
        return 1000
    return 1 << 30 if is_binary(resource) else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingWeight:
    """What one unit of a resource costs, in thousandths; of one flavor or, without, of all."""

    resource: str
    weight: int
    flavor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a CreditPolicy sets.

    Attributes:
        weights: Overrides of the default weights.
        period_ms: Time between settlements.
        horizon_ms: How far ahead present borrowing is counted.
        initial: Balance of the first account of a cohort, and where decay leads, in ledger units.
        floor: Least balance that a charge may lead to, None for none.
        ceiling: Greatest balance, None for none.
        half_life_ms: Half-life of the distance to ``initial``, None for no decay.
    """

    weights: tuple[BillingWeight, ...] = ()
    period_ms: int = 60_000
    horizon_ms: int = 3_600_000
    initial: int = 0
    floor: int | None = None
    ceiling: int | None = None
    half_life_ms: int | None = None


class Weights:
    """Resolved weights by flavor-resource, in thousandths."""

    __slots__ = ("_by_flavor", "_by_resource", "_cpu_default")

    def __init__(self, terms: Terms, covered: Iterable[str]) -> None:
        """Resolve the weights for a tree.

        Args:
            terms: The policy's terms.
            covered: Names of all resources that the tree has quota for.
        """
        self._by_resource = {w.resource: w.weight for w in terms.weights if w.flavor is None}
        self._by_flavor = {
            (w.flavor, w.resource): w.weight for w in terms.weights if w.flavor is not None
        }
        self._cpu_default = 0 if any("/" in resource for resource in covered) else 1000

    def of(self, fr: FlavorResource) -> int:
        """Return the weight of a flavor-resource; its flavor's entry wins."""
        flavor, resource = fr
        own = self._by_flavor.get((flavor, resource))
        if own is not None:
            return own
        named = self._by_resource.get(resource)
        if named is not None:
            return named
        if "/" in resource:
            return 1000
        return self._cpu_default if resource == CPU else 0
