"""A quota tree that both the ledger and its reference model follow, and random changes to it."""

from copy import deepcopy
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from tests.support.credit_reference import Fr, Key, Node, Reference, Rules, Shape, half_up

from sluice.api.quantity import CPU
from sluice.api.records_credit import AccountId, BillingWeight, CreditTerms
from sluice.engine.credits.accounts import Account
from sluice.engine.credits.ledger import Ledger

HOUR_MS = 3_600_000
FRS: list[Fr] = [
    ("f", "nvidia.com/gpu"), ("g", "nvidia.com/gpu"), ("f", "cpu"), ("f", "memory")
]  # fmt: skip
SCALE = {"nvidia.com/gpu": 1, CPU: 250, "memory": 3 * 2**29}
"""Amounts are drawn small and multiplied, so that cpu and memory are in odd parts of their unit."""


def terms_of(rules: Rules) -> CreditTerms:
    """Return a reference model's rules as the ledger's terms."""
    return CreditTerms(
        weights=tuple(
            BillingWeight(resource=resource, flavor=flavor, weight=half_up(w * 1000))
            for (flavor, resource), w in rules.weights.items()
        ),
        period_ms=rules.period,
        horizon_ms=rules.horizon,
        initial=rules.initial,
        floor=rules.floor,
        ceiling=rules.ceiling,
        half_life_ms=rules.half_life,
    )


class Twins:
    """One tree, one ledger, one reference model; every change goes to both."""

    def __init__(self, nodes: list[Node], rules: Rules, now: int = 0) -> None:
        self.nodes = {(n.kind, n.name): n for n in nodes}
        self.now = now
        shape = Shape(self.nodes)
        self.reference = Reference(rules, deepcopy(shape), now)
        self.ledger = Ledger(terms_of(rules), now, {r for _, r in shape.frs})
        self._feed(shape)

    def change(self) -> None:
        """Tell both that the tree looks as `nodes` says, from now on."""
        shape = Shape(self.nodes)
        self.reference.change(deepcopy(shape))
        self._feed(shape)

    def _feed(self, shape: Shape) -> None:
        ledger = self.ledger
        present = {AccountId(n.name, n.kind, n.parent) for n in shape.nodes.values() if n.parent}
        for account in self.live():
            if account.id not in present:
                ledger.leave(account.id)
        for identity in sorted(present, key=lambda a: (a.parent, a.name, a.kind)):
            node = shape.nodes[(identity.kind, identity.name)]
            account = ledger.join(identity, half_up(node.weight * 1000))
            for fr in FRS:
                # What has no quota anywhere in the tree is not billed.
                usage = shape.usage(node, fr) if fr in shape.frs else 0
                ledger.hold(account, fr, usage, shape.quota(node, fr), shape.kept(node, fr))
        for node in shape.nodes.values():
            if node.kind == "Cohort":
                for fr in FRS:
                    ledger.own_quota(node.name, fr, node.nominal.get(fr, 0))
        ledger.cover({r for _, r in shape.frs})

    def live(self) -> list[Account]:
        """Return the ledger's accounts that are not frozen."""
        return [
            a for f in self.ledger.funds.values() for a in f.accounts.values() if not a.is_leaving
        ]

    def set_rules(self, rules: Rules) -> None:
        """Change the policy."""
        self.reference.next_rules = rules
        self.ledger.change_terms(terms_of(rules))

    def to(self, now: int) -> None:
        """Let both see the clock."""
        self.now = now
        self.reference.to(now)
        self.ledger.advance(now)

    def balances(self) -> dict[Key, tuple[int, dict[str, int]]]:
        """Return balances and totals of the ledger, keyed as the reference model does."""
        found: dict[Key, tuple[int, dict[str, int]]] = {}
        accounts = [a for f in self.ledger.funds.values() for a in f.accounts.values()]
        for a in [*accounts, *self.ledger.frozen.values()]:
            totals = {
                "earned": a.earned, "spent": a.spent, "inflow": a.inflow,
                "unpaid": a.unpaid, "decayed": a.decayed, "clipped": a.clipped,
            }  # fmt: skip
            key = (a.id.parent, a.id.name, a.id.kind)
            found[key] = (a.balance, {name: n for name, n in totals.items() if n})
        return found

    def expected(self) -> dict[Key, tuple[int, dict[str, int]]]:
        """Return the same of the reference model."""
        return {
            key: (a.balance, {name: n for name, n in a.totals.items() if n})
            for key, a in self.reference.accounts.items()
        }


NAMES = ["a", "b", "m", "n"]
COHORTS = ["root", "m", "n"]

weights = st.sampled_from([Fraction(1), Fraction(0), Fraction(2), Fraction(1, 3), Fraction(5, 2)])


@st.composite
def rule_sets(draw: st.DrawFn) -> Rules:
    """Draw a policy."""
    billing = draw(
        st.dictionaries(
            st.tuples(st.sampled_from([None, "f", "g"]), st.sampled_from(sorted(SCALE))),
            st.sampled_from([Fraction(0), Fraction(1), Fraction(3, 2), Fraction(1, 2000)]),
            max_size=3,
        )
    )
    return Rules(
        weights=billing,
        period=draw(st.sampled_from([60_000, 60_000, 10_000, 450_000])),
        horizon=draw(st.sampled_from([60_000, HOUR_MS])),
        initial=draw(st.sampled_from([0, 7, -(10**7)])),
        floor=draw(st.sampled_from([None, None, 0, -(10**8)])),
        ceiling=draw(st.sampled_from([None, None, 10**9])),
        half_life=draw(st.sampled_from([None, None, HOUR_MS, 90_000])),
    )


def _amounts(draw: st.DrawFn, most: int) -> dict[Fr, int]:
    chosen = draw(st.lists(st.sampled_from(FRS), unique=True, max_size=3))
    return {fr: draw(st.integers(0, most)) * SCALE[fr[1]] for fr in chosen}


@st.composite
def node_lists(draw: st.DrawFn) -> list[Node]:
    """Draw a tree of one or two levels below the root."""
    nodes = [Node("Cohort", "root", None, _amounts(draw, 4))]
    for name in COHORTS[1:]:
        if draw(st.booleans()):
            lending = _amounts(draw, 6) if draw(st.booleans()) else {}
            parent = draw(st.sampled_from([c.name for c in nodes]))
            nodes.append(Node("Cohort", name, parent, _amounts(draw, 3), lending, draw(weights)))
    parents = [n.name for n in nodes]
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1)):
        nominal = _amounts(draw, 6)
        lending = {fr: min(n, SCALE[fr[1]]) for fr, n in nominal.items() if draw(st.booleans())}
        parent = draw(st.sampled_from(parents))
        nodes.append(Node("ClusterQueue", name, parent, nominal, lending, draw(weights)))
    return nodes


Step = tuple[str, Any]


def steps() -> st.SearchStrategy[list[Step]]:
    """Draw what happens: usage, time, quota, coming and going, other rules."""
    amount = st.tuples(st.sampled_from(NAMES), st.sampled_from(FRS), st.integers(0, 12))
    time_ms = st.one_of(
        st.integers(1, 200_000),
        st.sampled_from([60_000, 10_000, -5_000, 30 * HOUR_MS, 31 * 24 * HOUR_MS]),
    )
    return st.lists(
        st.one_of(
            st.tuples(st.just("use"), amount),
            st.tuples(st.just("use"), amount),
            st.tuples(st.just("time"), time_ms),
            st.tuples(st.just("time"), time_ms),
            st.tuples(st.just("quota"), amount),
            st.tuples(st.just("own"), amount),
            st.tuples(st.just("drop"), st.sampled_from(NAMES)),
            st.tuples(st.just("add"), st.tuples(st.sampled_from(NAMES), st.sampled_from(COHORTS))),
            st.tuples(st.just("weight"), st.tuples(st.sampled_from(NAMES), weights)),
            st.tuples(st.just("rules"), rule_sets()),
        ),
        max_size=25,
    )


def play(twins: Twins, step: Step) -> None:
    """Do one step."""
    what, value = step
    nodes = twins.nodes
    if what == "time":
        twins.to(twins.now + value)
        return
    if what == "rules":
        twins.set_rules(value)
        return
    if what == "drop":
        nodes.pop(("ClusterQueue", value), None)
    elif what == "add":
        name, parent = value
        if ("Cohort", parent) in nodes:
            nodes[("ClusterQueue", name)] = Node("ClusterQueue", name, parent, {FRS[0]: 2})
    elif what == "own":
        cohort = nodes[("Cohort", "root")]
        cohort.nominal[value[1]] = value[2] * SCALE[value[1][1]]
    else:
        node = nodes.get(("ClusterQueue", value[0]))
        if node is None:
            return
        if what == "weight":
            node.weight = value[1]
        else:
            into = node.usage if what == "use" else node.nominal
            into[value[1]] = value[2] * SCALE[value[1][1]]
    twins.change()
