"""Credits from docs/spec/credits.md alone, the slow way, to compare the ledger with.

Nothing of `sluice` is imported: every flow of every account is integrated at every event with exact
fractions, every cohort is settled at every boundary. A tree is a dict of `Node`; usage is given at
the leaves.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from math import floor

DAY_MS = 86_400_000
GIB = 2**30
Fr = tuple[str, str]


@dataclass
class Node:
    """A ClusterQueue or cohort: own quota and lending limits by flavor-resource."""

    kind: str
    name: str
    parent: str | None
    nominal: dict[Fr, int] = field(default_factory=dict)
    lending: dict[Fr, int] = field(default_factory=dict)
    weight: Fraction = Fraction(1)
    usage: dict[Fr, int] = field(default_factory=dict)


@dataclass
class Rules:
    """A CreditPolicy in ledger units."""

    weights: dict[tuple[str | None, str], Fraction] = field(default_factory=dict)
    period: int = 60_000
    horizon: int = 3_600_000
    initial: int = 0
    floor: int | None = None
    ceiling: int | None = None
    half_life: int | None = None


class Shape:
    """Q, G, usage and S of a tree (algorithm.md 1.1), computed from the leaves up."""

    def __init__(self, nodes: dict[tuple[str, str], Node]) -> None:
        self.nodes = nodes
        self.frs = sorted({fr for n in nodes.values() for fr in n.nominal})

    def children(self, name: str) -> list[Node]:
        return [n for n in self.nodes.values() if n.parent == name]

    def quota(self, node: Node, fr: Fr) -> int:
        total = node.nominal.get(fr, 0)
        if node.kind == "Cohort":
            total += sum(self.quota(c, fr) - self.kept(c, fr) for c in self.children(node.name))
        return total

    def kept(self, node: Node, fr: Fr) -> int:
        limit = node.lending.get(fr)
        return 0 if limit is None else max(0, self.quota(node, fr) - limit)

    def usage(self, node: Node, fr: Fr) -> int:
        if node.kind == "ClusterQueue":
            return node.usage.get(fr, 0)
        return sum(max(0, self.usage(c, fr) - self.kept(c, fr)) for c in self.children(node.name))

    def borrowed(self, node: Node, fr: Fr) -> int:
        return max(0, self.usage(node, fr) - self.quota(node, fr))

    def idle(self, node: Node, fr: Fr) -> int:
        return max(0, self.quota(node, fr) - max(self.usage(node, fr), self.kept(node, fr)))


def half_up(value: Fraction) -> int:
    """Round to the nearest integer, halves up."""
    return floor(value + Fraction(1, 2))


def weight(rules: Rules, fr: Fr, resources: set[str]) -> int:
    """Return the billing weight of a flavor-resource in thousandths."""
    flavor, resource = fr
    for key in ((flavor, resource), (None, resource)):
        if key in rules.weights:
            return half_up(rules.weights[key] * 1000)
    if "/" in resource:
        return 1000
    has_devices = any("/" in r for r in resources)
    return 1000 if resource == "cpu" and not has_devices else 0


def per_unit(resource: str) -> int:
    """Return how many accounting units a billed unit has."""
    if resource == "cpu":
        return 1000
    is_bytes = resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    return GIB if is_bytes else 1


@dataclass
class Account:
    """One account and its open integrals."""

    balance: int
    weight: Fraction
    b: dict[Fr, int] = field(default_factory=dict)
    d: dict[Fr, int] = field(default_factory=dict)
    is_gone: bool = False
    frozen: int | None = None
    totals: dict[str, int] = field(default_factory=dict)

    def count(self, what: str, amount: int) -> None:
        self.totals[what] = self.totals.get(what, 0) + amount


Key = tuple[str, str, str]
"""(parent, name, kind)."""


class Reference:
    """The ledger of one tree."""

    def __init__(self, rules: Rules, shape: Shape, now: int) -> None:
        self.rules = self.next_rules = rules
        self.accounts: dict[Key, Account] = {}
        self.traded: dict[tuple[str, Fr], int] = {}
        self.own: dict[tuple[str, Fr], int] = {}
        self.now = self.began = now
        self.boundary = (now // rules.period + 1) * rules.period
        self.shape = shape
        self.resources = {r for _, r in shape.frs}
        self.change(shape)

    def change(self, shape: Shape) -> None:
        """Take over a changed tree now; accounts join and go in order of parent, name, kind."""
        self.shape = shape
        present = {(n.parent, n.name, n.kind): n for n in shape.nodes.values() if n.parent}
        for key in sorted(self.accounts):
            if key not in present and self.accounts[key].frozen is None:
                self.accounts[key].is_gone = True
        for key in sorted(present):
            account = self.accounts.get(key)
            if account is None:
                live = [
                    a.balance
                    for k, a in self.accounts.items()
                    if k[0] == key[0] and a.frozen is None and not a.is_gone
                ]
                mean = sum(live) // len(live) if live else self.rules.initial
                account = self.accounts[key] = Account(mean, present[key].weight)
            account.frozen, account.is_gone = None, False
            account.weight = present[key].weight

    def to(self, now: int) -> None:
        """Let time pass."""
        if now <= self.now:
            return
        if now - self.now > DAY_MS:
            lost = now - self.now - DAY_MS
            self.now += lost
            self.began += lost
            self.boundary = (self.now // self.rules.period + 1) * self.rules.period
        while self.boundary <= now:
            self._integrate(self.boundary)
            self._settle()
            self.boundary = (self.now // self.rules.period + 1) * self.rules.period
        self._integrate(now)

    def _integrate(self, now: int) -> None:
        span, shape = now - self.now, self.shape
        for node in shape.nodes.values():
            for fr in shape.frs:
                if node.parent:
                    account = self.accounts[(node.parent, node.name, node.kind)]
                    account.b[fr] = account.b.get(fr, 0) + span * shape.borrowed(node, fr)
                    account.d[fr] = account.d.get(fr, 0) + span * shape.idle(node, fr)
                if node.kind == "Cohort":
                    at = (node.name, fr)
                    below = shape.children(node.name)
                    traded = min(
                        sum(shape.borrowed(c, fr) for c in below),
                        sum(shape.idle(c, fr) for c in below),
                    )
                    self.traded[at] = self.traded.get(at, 0) + span * traded
                    self.own[at] = self.own.get(at, 0) + span * node.nominal.get(fr, 0)
        self.now = now

    def _billed(self, integral: int, fr: Fr) -> int:
        return integral * weight(self.rules, fr, self.resources) // per_unit(fr[1])

    def _settle(self) -> None:
        for key in [k for k, a in self.accounts.items() if a.frozen is not None]:
            if self.now - (self.accounts[key].frozen or 0) > 30 * DAY_MS:
                del self.accounts[key]
        for cohort in sorted({k[0] for k in self.accounts}):
            keys = [k for k in self.accounts if k[0] == cohort and self.accounts[k].frozen is None]
            if keys:
                self._settle_cohort(cohort, sorted(keys))
        for account in self.accounts.values():
            account.b, account.d = {}, {}
            if account.is_gone:
                account.frozen, account.is_gone = self.now, False
        self.traded, self.own = {}, {}
        self.began, self.rules = self.now, self.next_rules
        self.resources = {r for _, r in self.shape.frs}

    def _settle_cohort(self, cohort: str, keys: list[Key]) -> None:
        accounts = [self.accounts[k] for k in keys]
        frs = sorted({fr for a in accounts for fr in a.b})
        owed = [{fr: self._billed(a.b.get(fr, 0), fr) for fr in frs} for a in accounts]
        paid = []
        for account, debts in zip(accounts, owed, strict=True):
            due = sum(debts.values())
            can = due
            if self.rules.floor is not None:
                can = min(due, max(0, account.balance - self.rules.floor))
            account.balance -= can
            account.count("spent", can)
            account.count("unpaid", due - can)
            paid.append(
                {
                    fr: Fraction(part * can, due) if due else Fraction(0)
                    for fr, part in debts.items()
                }
            )
        for fr in frs:
            total = sum(debts[fr] for debts in owed)
            if total:
                offered = self._billed(self.traded.get((cohort, fr), 0), fr)
                pool = floor(offered * sum(p[fr] for p in paid) / total)
                self._give(accounts, [self._billed(a.d.get(fr, 0), fr) for a in accounts], pool)
        self._pour(cohort, accounts)
        self._decay_and_clip(accounts)

    def _give(self, accounts: list[Account], caps: list[int], pool: int) -> None:
        pool = min(pool, sum(caps))
        low, high = min(a.balance for a in accounts), max(a.balance for a in accounts) + pool

        def raised(level: int) -> list[int]:
            return [
                min(cap, max(0, level - a.balance)) for a, cap in zip(accounts, caps, strict=True)
            ]

        while low < high:
            middle = (low + high + 1) // 2
            if sum(raised(middle)) <= pool:
                low = middle
            else:
                high = middle - 1
        gifts = raised(low)
        for i, more in enumerate(raised(low + 1)):
            if sum(gifts) < pool and more > gifts[i]:
                gifts[i] += 1
        for account, gift in zip(accounts, gifts, strict=True):
            account.balance += gift
            account.count("earned", gift)

    def _pour(self, cohort: str, accounts: list[Account]) -> None:
        # Over all the cohort's own quota: an account that went at once has integrals of nothing.
        inflow = sum(
            self._billed(own, fr) for (name, fr), own in self.own.items() if name == cohort
        )
        weights = [half_up(a.weight * 1000) for a in accounts]
        if sum(weights) == 0:
            return
        parts = [inflow * w // sum(weights) for w in weights]
        for i, w in enumerate(weights):
            if sum(parts) < inflow and w > 0:
                parts[i] += 1
        for account, part in zip(accounts, parts, strict=True):
            account.balance += part
            account.count("inflow", part)

    def _decay_and_clip(self, accounts: list[Account]) -> None:
        rules = self.rules
        for account in accounts:
            if rules.half_life is not None:
                k = round(10**9 * (1 - 2 ** (-(self.now - self.began) / rules.half_life)))
                lost = (account.balance - rules.initial) * k // 10**9
                account.balance -= lost
                account.count("decayed", lost)
            if rules.ceiling is not None and account.balance > rules.ceiling:
                account.count("clipped", account.balance - rules.ceiling)
                account.balance = rules.ceiling

    def projected(self, key: Key) -> int:
        """Return the balance that decisions look at (section 3)."""
        account = self.accounts[key]
        node = next(n for n in self.shape.nodes.values() if (n.parent, n.name, n.kind) == key)
        value = account.balance
        for fr in self.shape.frs:
            value -= self._billed(account.b.get(fr, 0), fr)
            value -= self._billed(self.shape.borrowed(node, fr) * self.rules.horizon, fr)
        return value
