"""Accounts and the cohorts they settle in.

Source: docs/spec/credits.md 1 and "Identity". Used by the ledger. Pure.
"""

from typing import Final, final

from sluice.api.records_credit import AccountId, AccountState, Holding
from sluice.engine.credits.integrals import FlowMap, PoolMap

FROZEN_MS_MAX: Final = 30 * 86_400_000
"""How long the account of a deleted object is kept: 30 days."""


@final
class Account:
    """A balance and what it is made of.

    Attributes:
        weight: Fair-sharing weight in thousandths.
        balance: As of the last settlement, in ledger units.
        frozen_ms: Since when it is frozen; None for a live account.
        is_leaving: Its object went during this period; it settles once more and is frozen then.
        joined_period: Number of the period in which it joined (or came back), -1 from a checkpoint.
        frozen_before_ms: Since when it was frozen before it came back in that period.
        earned, spent, inflow, unpaid, clipped, decayed: Totals since it joined.
    """

    __slots__ = (
        "balance", "clipped", "decayed", "earned", "flows", "frozen_before_ms", "frozen_ms", "id",
        "inflow", "is_leaving", "joined_period", "spent", "unpaid", "weight",
    )  # fmt: skip

    def __init__(self, identity: AccountId, balance: int, weight: int) -> None:
        self.id = identity
        self.balance = balance
        self.weight = weight
        self.frozen_ms: int | None = None
        self.frozen_before_ms: int | None = None
        self.is_leaving = False
        self.joined_period = -1
        self.flows: FlowMap = {}
        self.earned = self.spent = self.inflow = 0
        self.unpaid = self.clipped = self.decayed = 0


@final
class Fund:
    """The accounts of one cohort and its own quota.

    Attributes:
        accounts: Live and leaving accounts.
        total: What the balances must add up to, kept from what joins, leaves and is settled.
    """

    __slots__ = ("_order", "accounts", "name", "pools", "total")

    def __init__(self, name: str) -> None:
        self.name = name
        self.accounts: dict[AccountId, Account] = {}
        self.pools: PoolMap = {}
        self.total = 0
        self._order: list[Account] | None = None

    def add(self, account: Account) -> None:
        """Take an account in."""
        self.accounts[account.id] = account
        self.total += account.balance
        self._order = None

    def remove(self, account: Account) -> None:
        """Let an account go."""
        del self.accounts[account.id]
        self.total -= account.balance
        self._order = None

    def in_order(self) -> list[Account]:
        """Return the accounts in the order they settle: by name, then kind."""
        if self._order is None:
            self._order = [self.accounts[identity] for identity in sorted(self.accounts)]
        return self._order

    def entry_balance(self, initial: int) -> int:
        """Return what a new account starts with: the mean of its live siblings."""
        live = [a.balance for a in self.accounts.values() if not a.is_leaving]
        return sum(live) // len(live) if live else initial


def state_of(
    account: Account, frozen_ms: int | None, holdings: tuple[Holding, ...]
) -> AccountState:
    """Return what a checkpoint keeps of an account."""
    return AccountState(
        id=account.id,
        balance=account.balance,
        weight=account.weight,
        earned=account.earned,
        spent=account.spent,
        inflow=account.inflow,
        unpaid=account.unpaid,
        clipped=account.clipped,
        decayed=account.decayed,
        frozen_ms=frozen_ms,
        holdings=holdings,
    )


def restore(state: AccountState) -> Account:
    """Return the account of a checkpoint, without its holdings."""
    account = Account(state.id, state.balance, state.weight)
    account.earned, account.spent = state.earned, state.spent
    account.inflow, account.unpaid = state.inflow, state.unpaid
    account.clipped, account.decayed = state.clipped, state.decayed
    account.frozen_ms = state.frozen_ms
    return account
