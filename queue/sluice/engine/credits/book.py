"""One CreditPolicy at work: its ledger, bound to the quota tree that feeds it.

The tree tells the book what changed (`Book.feed`, at the cost of the tree's depth); decisions ask
it for projected balances on the present, possibly simulated, state of the tree. Source:
docs/spec/credits.md 1 and 3. Made by `sluice.engine.credits.service`. Pure.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, final

from sluice.api.amount import UNLIMITED
from sluice.api.records import ResourceGroup
from sluice.api.records_credit import AccountId, CreditPolicy, FlavorResource
from sluice.engine.credits import queries
from sluice.engine.credits.accounts import Account
from sluice.engine.credits.ledger import Ledger
from sluice.engine.credits.policy import unit_of
from sluice.engine.credits.restore import COHORT_KIND, QUEUE_KIND
from sluice.engine.tree import QuotaNode, Tree

if TYPE_CHECKING:
    from sluice.engine.credits.contest import Win

_THOUSAND: Final = 1000
_WINS_MAX: Final = 64


def kind_of(node: QuotaNode) -> str:
    """Return the kind of the object that a node stands for."""
    return QUEUE_KIND if node.is_queue else COHORT_KIND


def identity_of(node: QuotaNode) -> AccountId:
    """Return the identity of a node's account; the node is no root."""
    assert node.parent is not None
    return AccountId(node.name, kind_of(node), node.parent.name)


def weight_of(node: QuotaNode) -> int:
    """Return a node's fair-sharing weight in thousandths, half rounded up."""
    # Weights are written as decimals: their shortest form gives them back exactly.
    whole, _, part = f"{node.weight:.12f}".partition(".")
    scaled = int(whole) * 10**12 + int(part)
    return (scaled * 2 * _THOUSAND + 10**12) // (2 * 10**12)


@final
class Book:
    """The ledger of one policy and the tree it is bound to.

    Attributes:
        accounts: By node of the present tree; the root has none.
        priced: Billed flavor-resources with a weight: (number, weight in thousandths, unit).
        names_bytes: Length of all names that the status repeats per account.
        losses_count: How often a Workload that got nothing was told so, for metrics.
        wins: The latest admissions, to tell those that wait what they lost by.
    """

    __slots__ = (
        "_base", "_base_ms", "_billed", "_priced_period", "accounts", "ledger", "losses_count",
        "names_bytes", "policy", "priced", "tree", "wins",
    )  # fmt: skip

    def __init__(self, policy: CreditPolicy, ledger: Ledger) -> None:
        self.policy = policy
        self.ledger = ledger
        self.tree: Tree | None = None
        self.accounts: dict[QuotaNode, Account] = {}
        self.priced: list[tuple[int, int, int]] = []
        self.losses_count = 0
        self.names_bytes = 0
        self.wins: deque[Win] = deque(maxlen=_WINS_MAX)
        self._billed: dict[int, FlavorResource] = {}
        self._priced_period = -1
        self._base: dict[QuotaNode, int] = {}
        self._base_ms = -1

    # The tree feeds the ledger ----------------------------------------------------------------

    def bind(self, tree: Tree, groups: Iterable[Sequence[ResourceGroup]]) -> None:
        """Take over a tree that was built anew: accounts join and leave, quotas change.

        Args:
            tree: With all reservations booked.
            groups: Quotas of every object of the tree, to find out what is billed.
        """
        ledger = self.ledger
        covered, billed = _covered(groups)
        ledger.cover(covered)
        self.tree = tree
        self.wins.clear()
        tree.book = self
        self._billed = {number: pair for number, pair in enumerate(tree.pairs) if pair in billed}
        wanted = {identity_of(node): node for node in tree.nodes if node.parent is not None}
        for fund in list(ledger.funds.values()):
            for account in list(fund.accounts.values()):
                if account.id not in wanted:
                    ledger.leave(account.id)
        self.accounts = {}
        for identity in sorted(wanted, key=lambda i: (i.parent, i.name, i.kind)):
            node = wanted[identity]
            self.accounts[node] = ledger.join(identity, weight_of(node))
            for pair in [p for p in self.accounts[node].flows if p not in billed]:
                ledger.hold(self.accounts[node], pair, 0, 0, 0)
            self._feed_node(node, self._billed)
        self._feed_own(tree)
        ids = [*wanted, *ledger.frozen]
        per_account = sum(len(f.encode()) + len(r.encode()) for f, r in self._billed.values())
        self.names_bytes = sum(len(i.name.encode()) + len(i.parent.encode()) for i in ids)
        self.names_bytes += per_account * len(ids)
        self._priced_period = -1
        self._base_ms = -1

    def _feed_own(self, tree: Tree) -> None:
        cohorts = {node.name: node for node in tree.nodes if not node.is_queue}
        for name, fund in self.ledger.funds.items():
            if name not in cohorts:
                for pair in fund.pools:
                    self.ledger.own_quota(name, pair, 0)
        for name, node in cohorts.items():
            fund_now = self.ledger.funds.get(name)
            for pair in fund_now.pools if fund_now is not None else ():
                if pair not in tree.numbers:
                    self.ledger.own_quota(name, pair, 0)
            for number, pair in self._billed.items():
                own = node.nominal[number]
                self.ledger.own_quota(name, pair, 0 if own >= UNLIMITED else own)

    def feed(self, node: QuotaNode, numbers: Iterable[int]) -> None:
        """Note that usage of some flavor-resources changed at a ClusterQueue and above it."""
        for at in node.path[1:]:
            self._feed_node(at, numbers)

    def _feed_node(self, node: QuotaNode, numbers: Iterable[int]) -> None:
        account = self.accounts[node]
        for number in numbers:
            pair = self._billed.get(number)
            if pair is not None:
                quota, kept = node.quota[number], node.guaranteed[number]
                self.ledger.hold(account, pair, node.usage[number], quota, kept)
        self._base_ms = -1

    def misfed(self) -> Iterator[str]:
        """Yield where the ledger knows something else than the tree has; for tests."""
        for node, account in self.accounts.items():
            for number, pair in self._billed.items():
                flow = account.flows.get(pair)
                known = (0, 0, 0) if flow is None else (flow.usage, flow.quota, flow.guaranteed)
                present = node.usage[number], node.quota[number], node.guaranteed[number]
                if known != present:
                    yield f"the account of {node.name} has {known} of {pair}, not {present}"

    # Decisions ask for balances ---------------------------------------------------------------

    def refresh(self) -> None:
        """Look up weights again after a settlement; call before asking for balances."""
        ledger = self.ledger
        if self._priced_period != ledger.period:
            self._priced_period = ledger.period
            self.priced = [
                (number, weight, unit_of(pair[1]))
                for number, pair in self._billed.items()
                if (weight := ledger.weight_of(pair))
            ]
            self._base_ms = -1
        if self._base_ms != ledger.now_ms:
            self._base_ms = ledger.now_ms
            self._base = {}

    def projected(self, node: QuotaNode) -> int:
        """Return the projected balance of a node on the present state of its tree.

        `refresh` must have been called since time last moved on.
        """
        base = self._base.get(node)
        if base is None:
            account = self.accounts[node]
            base = self._base[node] = account.balance - queries.owed(self.ledger, account)
        horizon_ms = self.ledger.terms.horizon_ms
        usage, quota = node.usage, node.quota
        for number, weight, unit in self.priced:
            excess = usage[number] - quota[number]
            if excess > 0:
                base -= weight * excess * horizon_ms // unit
        return base

    def is_priced(self, number: int) -> bool:
        """Tell whether a flavor-resource is billed with a weight above 0."""
        pair = self._billed.get(number)
        return pair is not None and self.ledger.weight_of(pair) > 0


def _covered(
    groups: Iterable[Sequence[ResourceGroup]],
) -> tuple[set[str], set[FlavorResource]]:
    """Return the resources that have quota, and the flavor-resources with a finite one."""
    covered: set[str] = set()
    billed: set[FlavorResource] = set()
    for group in (g for owned in groups for g in owned):
        for flavor in group.flavors:
            for quota in flavor.resources:
                covered.add(quota.name)
                if quota.nominal < UNLIMITED:
                    billed.add((flavor.name, quota.name))
    return covered, billed
