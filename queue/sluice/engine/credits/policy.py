"""Billing weights: what the flavor-resources of a tree cost, in thousandths.

Source: docs/spec/credits.md 1. Used by the ledger. Pure.
"""

from collections.abc import Iterable
from typing import Final

from sluice.api.quantity import CPU
from sluice.api.records_credit import CreditTerms, FlavorResource, WeightInForce

_MILLI: Final = 1000
_GIB: Final = 1 << 30


def unit_of(resource: str) -> int:
    """Return how many of the resource's accounting units make one billed unit.

    Cores for cpu (kept in milli), GiB for memory, ephemeral-storage and huge pages (kept in bytes),
    and the unit itself for the rest.
    """
    if resource == CPU:
        return _MILLI
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return _GIB
    return 1


class Weights:
    """Resolved weights by flavor-resource, in thousandths."""

    __slots__ = ("_by_flavor", "_by_resource", "_cpu_default", "_fixed")

    def __init__(
        self,
        terms: CreditTerms,
        covered: Iterable[str],
        fixed: Iterable[WeightInForce] | None = None,
    ) -> None:
        """Resolve the weights for a tree.

        Args:
            terms: The policy's terms.
            covered: Names of all resources that the tree has quota for.
            fixed: Weights in force at a checkpoint: these alone count, all others are 0.
        """
        self._by_resource = {w.resource: w.weight for w in terms.weights if w.flavor is None}
        self._by_flavor = {
            (w.flavor, w.resource): w.weight for w in terms.weights if w.flavor is not None
        }
        self._cpu_default = 0 if any("/" in resource for resource in covered) else _MILLI
        self._fixed = None if fixed is None else {(w.flavor, w.resource): w.weight for w in fixed}

    def of(self, fr: FlavorResource) -> int:
        """Return the weight of a flavor-resource; its flavor's entry wins."""
        if self._fixed is not None:
            return self._fixed.get(fr, 0)
        flavor, resource = fr
        own = self._by_flavor.get((flavor, resource))
        if own is not None:
            return own
        named = self._by_resource.get(resource)
        if named is not None:
            return named
        if "/" in resource:
            return _MILLI
        return self._cpu_default if resource == CPU else 0

    def is_same(self, other: "Weights") -> bool:
        """Tell whether another set of weights gives the same for every flavor-resource."""
        return (
            self._fixed == other._fixed
            and self._cpu_default == other._cpu_default
            and self._by_resource == other._by_resource
            and self._by_flavor == other._by_flavor
        )
