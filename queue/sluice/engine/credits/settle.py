"""One settlement of one cohort: charge, pay out, inflow, decay, clip.

All integers but the decay factor. The sum of the balances changes by exactly what the returned
`Settled` records; `settle` checks it. Source: docs/spec/credits.md 2. Used by the ledger. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from sluice.api.errors import InvariantViolation
from sluice.api.records_credit import CreditTerms, FlavorResource

_BILLION: Final = 1_000_000_000
_GUARD_BITS: Final = 128
"""Precision of the quick bounds of a pool; the exact sum is only taken when they disagree."""


@final
class Row:
    """One account at a settlement: what it brings, then what came of it.

    Attributes:
        balance: Before; after `settle`, the new balance.
        weight: Fair-sharing weight in thousandths.
        owed: Charge per flavor-resource in ledger units (B).
        offered: Idle quota per flavor-resource in ledger units (D).
    """

    __slots__ = (
        "balance", "clipped", "decayed", "earned", "inflow", "offered", "owed", "paid", "unpaid",
        "weight",
    )  # fmt: skip

    def __init__(
        self,
        balance: int,
        weight: int,
        owed: dict[FlavorResource, int],
        offered: dict[FlavorResource, int],
    ) -> None:
        self.balance = balance
        self.weight = weight
        self.owed = owed
        self.offered = offered
        self.paid = self.unpaid = self.earned = 0
        self.inflow = self.decayed = self.clipped = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Sums of one settlement of one cohort, in ledger units.

    Attributes:
        unassigned: Inflow that nobody got because every weight is 0.
    """

    paid: int
    unpaid: int
    paid_out: int
    inflow: int
    unassigned: int
    decayed: int
    clipped: int

    @property
    def change(self) -> int:
        """Return by how much the sum of the balances changed."""
        return self.paid_out + self.inflow - self.paid - self.decayed - self.clipped

    @property
    def moved(self) -> int:
        """Return the largest amount that moved, for deciding whether it is worth a line."""
        return max(self.paid, self.paid_out, self.inflow, abs(self.decayed), self.clipped)


def water_fill(balances: Sequence[int], caps: Sequence[int], pool: int) -> list[int]:
    """Return what each gets when the poorest are raised together until the pool is spent.

    Args:
        balances: Present balances, in the order that remainders go.
        caps: The most that each may get, at least 0.
        pool: What there is; what exceeds the sum of the caps is left over.

    Complexity: O(n log n).
    """
    pool = min(pool, sum(caps))
    given = [0] * len(balances)
    if pool <= 0:
        return given
    level = _level(balances, caps, pool)
    for i, (balance, cap) in enumerate(zip(balances, caps, strict=True)):
        if level > balance:
            given[i] = min(cap, level - balance)
    left = pool - sum(given)
    for i, balance in enumerate(balances):
        if left == 0:
            break
        if balance + given[i] == level and given[i] < caps[i]:
            given[i] += 1
            left -= 1
    return given


def _level(balances: Sequence[int], caps: Sequence[int], pool: int) -> int:
    """Return the highest level up to which all can be raised; ``pool`` is within the caps."""
    # Walking upwards, an account is raised from its balance to its balance plus its cap.
    steps = sorted(
        step
        for balance, cap in zip(balances, caps, strict=True)
        if cap > 0
        for step in ((balance, 1), (balance + cap, -1))
    )
    level = steps[0][0]
    raised = 0
    for at, change in steps:
        needed = raised * (at - level)
        if needed > pool:
            break
        pool -= needed
        level = at
        raised += change
    return level if raised == 0 else level + pool // raised


def _charge(rows: Sequence[Row], floor: int | None) -> None:
    for row in rows:
        total = sum(row.owed.values())
        if total == 0:
            continue
        row.paid = total if floor is None else min(total, max(0, row.balance - floor))
        row.unpaid = total - row.paid
        row.balance -= row.paid


def _pool_of(rows: Sequence[Row], fr: FlavorResource, traded: int) -> int:
    """Return what the borrowers of a flavor-resource pay to those who lent it.

    Floor of traded x paid / owed, where each row pays for each flavor-resource in proportion.
    """
    owed = whole = low = partial = 0
    for row in rows:
        part = row.owed.get(fr, 0)
        if part == 0:
            continue
        owed += part
        if row.unpaid == 0:
            whole += part
        elif row.paid:
            low += (part * row.paid << _GUARD_BITS) // (row.paid + row.unpaid)
            partial += 1
    if owed == 0:
        return 0
    if partial == 0:
        return traded * whole // owed
    # The exact sum of many fractions is costly; bounds that give the same floor are as good.
    low += whole << _GUARD_BITS
    least = (traded * low // owed) >> _GUARD_BITS
    most = (traded * (low + partial) // owed) >> _GUARD_BITS
    if least == most:
        return least
    exact = Fraction(whole)
    for row in rows:
        if row.unpaid and row.paid:
            exact += Fraction(row.owed.get(fr, 0) * row.paid, row.paid + row.unpaid)
    return (traded * exact / owed).__floor__()


def _pay_out(rows: Sequence[Row], traded: dict[FlavorResource, int]) -> None:
    for fr in sorted(traded):
        pool = _pool_of(rows, fr, traded[fr]) if traded[fr] else 0
        donors = [row for row in rows if row.offered.get(fr, 0) > 0]
        if pool == 0 or not donors:
            continue
        gifts = water_fill([d.balance for d in donors], [d.offered[fr] for d in donors], pool)
        for donor, gift in zip(donors, gifts, strict=True):
            donor.balance += gift
            donor.earned += gift


def share_out(amount: int, weights: Sequence[int]) -> list[int]:
    """Return an amount divided by weight, the remainder one by one to positive weights."""
    total = sum(weights)
    if total == 0:
        return [0] * len(weights)
    parts = [amount * weight // total for weight in weights]
    left = amount - sum(parts)
    for i, weight in enumerate(weights):
        if left == 0:
            break
        if weight > 0:
            parts[i] += 1
            left -= 1
    return parts


def decay_factor(elapsed_ms: int, half_life_ms: int) -> int:
    """Return the share of the distance that decays, in billionths: the one float."""
    return round(_BILLION * (1.0 - float(2.0 ** (-elapsed_ms / half_life_ms))))


def _decay(rows: Sequence[Row], terms: CreditTerms, elapsed_ms: int) -> None:
    if terms.half_life_ms is None:
        return
    factor = decay_factor(elapsed_ms, terms.half_life_ms)
    for row in rows:
        row.decayed = (row.balance - terms.initial) * factor // _BILLION
        row.balance -= row.decayed


def _clip(rows: Sequence[Row], ceiling: int | None) -> None:
    if ceiling is None:
        return
    for row in rows:
        if row.balance > ceiling:
            row.clipped = row.balance - ceiling
            row.balance = ceiling


def settle(
    rows: Sequence[Row],
    traded: dict[FlavorResource, int],
    inflow: int,
    terms: CreditTerms,
    elapsed_ms: int,
) -> Settled:
    """Settle one cohort.

    Args:
        rows: The accounts in order of name, then kind; changed in place.
        traded: What could be traded per flavor-resource, in ledger units (P).
        inflow: What the cohort's own quota brings, in ledger units (I).
        terms: The policy's terms.
        elapsed_ms: Length of the period.

    Raises:
        InvariantViolation: The balances don't add up; a fault of this module.
    """
    before = sum(row.balance for row in rows)
    _charge(rows, terms.floor)
    _pay_out(rows, traded)
    if inflow:
        for row, part in zip(rows, share_out(inflow, [r.weight for r in rows]), strict=True):
            row.inflow = part
            row.balance += part
    _decay(rows, terms, elapsed_ms)
    _clip(rows, terms.ceiling)
    given = sum(row.inflow for row in rows)
    result = Settled(
        paid=sum(row.paid for row in rows),
        unpaid=sum(row.unpaid for row in rows),
        paid_out=sum(row.earned for row in rows),
        inflow=given,
        unassigned=inflow - given,
        decayed=sum(row.decayed for row in rows),
        clipped=sum(row.clipped for row in rows),
    )
    if sum(row.balance for row in rows) - before != result.change:
        raise InvariantViolation("a settlement changed the sum of balances by more than it records")
    return result
