"""Accounts and the cohorts they settle in.

Source: docs/spec/credits.md 1 and "Identity". Pure.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, final

from sluice.engine.credits.integrals import FlowMap, PoolMap

FROZEN_MS_MAX: Final = 30 * 86_400_000
"""How long the account of a deleted object is kept: 30 days."""


class AccountId(NamedTuple):
    """Identity of an account, in the order accounts settle: name, then kind."""

    name: str
    kind: str
    parent: str


@final
class Account:
    """A balance and what it is made of.

    Attributes:
        weight: Fair-sharing weight in thousandths.
        balance: As of the last settlement, in ledger units.
        frozen_ms: Since when its object is gone; None for a live account.
        is_leaving: Its object went during this period; it settles once more and is frozen then.
        left_ms: When it went.
        earned, spent, inflow, unpaid, clipped, decayed: Totals since it joined.
    """

    __slots__ = (
        "balance", "clipped", "decayed", "earned", "flows", "frozen_ms", "id", "inflow",
        "is_leaving", "left_ms", "spent", "unpaid", "weight",
    )  # fmt: skip

    def __init__(self, identity: AccountId, balance: int, weight: int) -> None:
        self.id = identity
        self.balance = balance
        self.weight = weight
        self.frozen_ms: int | None = None
        self.is_leaving = False
        self.left_ms = 0
        self.flows: FlowMap = {}
        self.earned = self.spent = self.inflow = 0
        self.unpaid = self.clipped = self.decayed = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountState:
    """An account as the checkpoint holds it; amounts in ledger units."""

    id: AccountId
    balance: int
    earned: int = 0
    spent: int = 0
    inflow: int = 0
    unpaid: int = 0
    clipped: int = 0
    decayed: int = 0
    frozen_ms: int | None = None


@final
class Fund:
    """The accounts of one cohort and its own quota.

    Attributes:
        accounts: Live and leaving accounts, in order of name, then kind.
        period: Number of the period that its integrals belong to.
        is_touched: Something may have to be settled at the next boundary.
    """

    __slots__ = ("accounts", "is_touched", "pools")

    def __init__(self) -> None:
        self.accounts: dict[AccountId, Account] = {}
        self.pools: PoolMap = {}
        self.is_touched = True

    def in_order(self) -> list[Account]:
        """Return the accounts in the order they settle."""
        return [self.accounts[identity] for identity in sorted(self.accounts)]


def state_of(account: Account) -> AccountState:
    """Return what a checkpoint keeps of an account."""
    return AccountState(
        id=account.id,
        balance=account.balance,
        earned=account.earned,
        spent=account.spent,
        inflow=account.inflow,
        unpaid=account.unpaid,
        clipped=account.clipped,
        decayed=account.decayed,
        frozen_ms=account.frozen_ms,
    )


def restore(state: AccountState, weight: int) -> Account:
    """Return the account of a checkpoint."""
    account = Account(state.id, state.balance, weight)
    account.earned, account.spent = state.earned, state.spent
    account.inflow, account.unpaid = state.inflow, state.unpaid
    account.clipped, account.decayed = state.clipped, state.decayed
    account.frozen_ms = state.frozen_ms
    return account
