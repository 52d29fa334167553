"""One settlement of one cohort: charge, pay out, inflow, decay, clip.

All integers but the decay factor. The sum of the balances changes by exactly what the returned
`Settled` records; `settle` checks it. Source: docs/spec/credits.md 2. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from sluice.api.errors import InvariantViolation
from sluice.engine.credits.policy import FlavorResource, Terms


@final
class Row:
    """One account at a settlement: what it brings, then what came of it.

    Attributes:
        balance: Before; after `settle`, the new balance.
        weight: Fair-sharing weight in thousandths.
        owed: Charge per flavor-resource in ledger units (B).
        offered: Idle quota per flavor-resource in ledger units (D).
        is_leaving: Settled a last time; no inflow, decay or clip.
    """

    __slots__ = (
        "balance", "clipped", "decayed", "earned", "inflow", "is_leaving", "offered", "owed",
        "paid", "unpaid", "weight",
    )  # fmt: skip

    def __init__(
        self,
        balance: int,
        weight: int,
        owed: dict[FlavorResource, int],
        offered: dict[FlavorResource, int],
        is_leaving: bool = False,
    ) -> None:
        self.balance = balance
        self.weight = weight
        self.owed = owed
        self.offered = offered
        self.is_leaving = is_leaving
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
    def moved(self) -> int:
        """Return the largest amount that moved, for deciding whether it is worth a line."""
        return max(self.paid, self.paid_out, self.inflow, abs(self.decayed), self.clipped)


def water_fill(balances: Sequence[int], caps: Sequence[int], pool: int) -> list[int]:
    """Return what each gets when the poorest are raised together until the pool is spent.

    Args:
        balances: Present balances, in the order that remainders go.
        caps: The most that each may get, at least 0.
        pool: What there is; what exceeds the sum of the caps is left over.
    """
    pool = min(pool, sum(caps))
    given = [0] * len(balances)
    if pool <= 0:
        return given
    low, high = min(balances), max(b + c for b, c in zip(balances, caps, strict=True))
    while low < high:
        level = (low + high + 1) // 2
        needed = sum(
            min(cap, max(0, level - balance)) for balance, cap in zip(balances, caps, strict=True)
        )
        if needed <= pool:
            low = level
        else:
            high = level - 1
    for i, (balance, cap) in enumerate(zip(balances, caps, strict=True)):
        given[i] = min(cap, max(0, low - balance))
    left = pool - sum(given)
    for i, balance in enumerate(balances):
        if left == 0:
            break
        if balance + given[i] == low and given[i] < caps[i]:
            given[i] += 1
            left -= 1
    return given


def _charge(rows: Sequence[Row], terms: Terms) -> None:
    for row in rows:
        total = sum(row.owed.values())
        if total == 0:
            continue
        room = total if terms.floor is None else max(0, row.balance - terms.floor)
        row.paid = min(total, room)
        row.unpaid = total - row.paid
        row.balance -= row.paid


def _pay_out(rows: Sequence[Row], traded: dict[FlavorResource, int]) -> None:
    for fr in sorted(traded):
        borrowed = sum(row.owed.get(fr, 0) for row in rows)
        if borrowed == 0:
            continue
        paid = sum(
            (
                Fraction(row.owed.get(fr, 0) * row.paid, sum(row.owed.values()))
                for row in rows
                if row.owed.get(fr, 0)
            ),
            start=Fraction(0),
        )
        pool = (traded[fr] * paid / borrowed).__floor__()
        donors = [row for row in rows if row.offered.get(fr, 0) > 0]
        if not donors:
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
    """Return the share of the distance that decays, in billionths."""
    return round(1_000_000_000 * (1.0 - float(2.0 ** (-elapsed_ms / half_life_ms))))


def settle(
    rows: Sequence[Row],
    traded: dict[FlavorResource, int],
    inflow: int,
    terms: Terms,
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
    _charge(rows, terms)
    _pay_out(rows, traded)
    staying = [row for row in rows if not row.is_leaving]
    for row, part in zip(staying, share_out(inflow, [r.weight for r in staying]), strict=True):
        row.inflow = part
        row.balance += part
    if terms.half_life_ms is not None:
        factor = decay_factor(elapsed_ms, terms.half_life_ms)
        for row in staying:
            row.decayed = (row.balance - terms.initial) * factor // 1_000_000_000
            row.balance -= row.decayed
    if terms.ceiling is not None:
        for row in staying:
            row.clipped = max(0, row.balance - terms.ceiling)
            row.balance -= row.clipped
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
    change = result.paid_out + given - result.paid - result.decayed - result.clipped
    if sum(row.balance for row in rows) - before != change:
        raise InvariantViolation("a settlement changed the sum of balances by more than it records")
    return result
