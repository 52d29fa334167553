"""Slotted records of fair-share credits: a CreditPolicy, its terms, and its ledger's checkpoint.

Amounts of credit are in ledger units: thousandths of a weighted unit times milliseconds. Amounts of
quota are in the resource's unit (milliCPU, bytes, count). Source: docs/spec/credits.md 1, 2, 4.
Made by `sluice.api.wire_credit` and by the engine's ledger. Pure.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from sluice.api.names import CohortName

UNIT_HOUR: Final = 1000 * 3_600_000
"""Ledger units in one weighted unit-hour."""

FlavorResource = tuple[str, str]
"""(flavor, resource)."""


class AccountId(NamedTuple):
    """Identity of an account, in the order accounts settle: name, then kind."""

    name: str
    kind: str
    parent: str


class Holding(NamedTuple):
    """What an account has of one flavor-resource; ``quota`` may be `amount.UNLIMITED`."""

    flavor: str
    resource: str
    usage: int
    quota: int
    guaranteed: int


class OwnQuota(NamedTuple):
    """What a cohort holds itself of one flavor-resource."""

    cohort: str
    flavor: str
    resource: str
    amount: int


class WeightInForce(NamedTuple):
    """Billing weight of one flavor-resource, in thousandths."""

    flavor: str
    resource: str
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingWeight:
    """What one unit of a resource costs, in thousandths; of one flavor or, without, of all."""

    resource: str
    weight: int
    flavor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditTerms:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
    """An account as the checkpoint holds it; amounts of credit in ledger units.

    Attributes:
        weight: Fair-sharing weight in thousandths.
        frozen_ms: Since when it is frozen because its object is gone; None for a live account.
        holdings: Billed flavor-resources, without those that are all zero.
    """

    id: AccountId
    balance: int
    weight: int = 1000
    earned: int = 0
    spent: int = 0
    inflow: int = 0
    unpaid: int = 0
    clipped: int = 0
    decayed: int = 0
    frozen_ms: int | None = None
    holdings: tuple[Holding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditCheckpoint:
    """Everything of a ledger that outlives a restart, right after a settlement."""

    settled_ms: int
    accounts: tuple[AccountState, ...] = ()
    own: tuple[OwnQuota, ...] = ()
    weights: tuple[WeightInForce, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditPolicy:
    """A CreditPolicy object.

    Attributes:
        cohort: Root of the tree it is meant for.
        checkpoint: Its status, None before the first settlement.
        was_active: Its Active condition is not False: time since the checkpoint counts.
    """

    name: str
    cohort: CohortName
    terms: CreditTerms = CreditTerms()
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    created_ms: int = 0
    checkpoint: CreditCheckpoint | None = None
    was_active: bool = True
