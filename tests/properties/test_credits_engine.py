"""The engine feeds its ledger: whatever happens to queues and Workloads, balances are right."""

from copy import deepcopy
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import builders
from tests.support.credit_builders import policy
from tests.support.credit_reference import Node, Reference, Rules, Shape
from tests.support.harness import Harness

from sluice.api.records import Kind

FR = ("default", "cpu")
QUEUES = ("a", "b", "c")
COHORTS = ("R", "M", "N")


class Pair:
    """An engine with a CreditPolicy, and the model of its ledger."""

    def __init__(self) -> None:
        self.nodes: dict[tuple[str, str], Node] = {("Cohort", "R"): Node("Cohort", "R", None)}
        self.harness = Harness(builders.cohort("R"), policy())
        self.count = 0
        for name in QUEUES[:2]:
            self.queue(name, "R", 2, None)
        self.model = Reference(Rules(weights={(None, "cpu"): Fraction(1)}), self.shape(), 0)
        self.model.now = self.model.began = self.harness.now_ms
        self.model.boundary = self.harness.now_ms + 60_000
        self.settle()

    def shape(self) -> Shape:
        return Shape(deepcopy(self.nodes))

    def settle(self) -> None:
        """Run a cycle and tell the model what the tree looks like from its time on."""
        at_ms = self.harness.now_ms
        self.harness.cycle()
        for (kind, name), node in self.nodes.items():
            if kind == "ClusterQueue":
                node.usage = {FR: self.harness.usage(name).get("default/cpu", 0)}
        self.model.to(at_ms)
        self.model.change(self.shape())

    def queue(self, name: str, cohort: str, cores: int, lends: int | None) -> None:
        quota: Any = str(cores) if lends is None else (str(cores), None, str(min(lends, cores)))
        self.harness.observe(builders.cq(name, cohort, cpu=quota), builders.lq(name))
        lending = {} if lends is None else {FR: 1000 * min(lends, cores)}
        self.nodes[("ClusterQueue", name)] = Node(
            "ClusterQueue", name, cohort, {FR: 1000 * cores}, lending
        )

    def cohort(self, name: str, cores: int) -> None:
        parent = None if name == "R" else "R"
        self.harness.observe(builders.cohort(name, parent, cpu=str(cores)))
        self.nodes[("Cohort", name)] = Node("Cohort", name, parent, {FR: 1000 * cores})

    def play(self, step: tuple[str, Any]) -> None:
        what, value = step
        if what == "submit":
            self.count += 1
            name, cores = value
            self.harness.observe(builders.wl(f"w{self.count}", name, cpu=str(cores)))
        elif what == "finish":
            holding = sorted(self.harness.holding())
            if holding:
                self.harness.finish(holding[value % len(holding)])
        elif what == "queue":
            name, cohort, cores, lends = value
            if ("Cohort", cohort) in self.nodes:
                self.queue(name, cohort, cores, lends)
        elif what == "cohort":
            self.cohort(*value)
        elif what == "drop":
            if ("ClusterQueue", value) in self.nodes:
                self.harness.gone(Kind.CLUSTER_QUEUE, value)
                del self.nodes[("ClusterQueue", value)]
        else:
            self.harness.now_ms += value
        self.settle()

    def check(self) -> None:
        book = self.harness.engine.credits.book("credits")
        assert book is not None
        ledger = book.ledger
        accounts = [a for f in ledger.funds.values() for a in f.accounts.values()]
        found = {
            (a.id.parent, a.id.name, a.id.kind): a.balance
            for a in (*accounts, *ledger.frozen.values())
        }
        assert found == {key: a.balance for key, a in self.model.accounts.items()}
        book.refresh()
        for account in book.accounts.values():
            key = (account.id.parent, account.id.name, account.id.kind)
            node = next(n for n, a in book.accounts.items() if a is account)
            assert book.projected(node) == self.model.projected(key)


steps = st.one_of(
    st.tuples(st.just("submit"), st.tuples(st.sampled_from(QUEUES), st.integers(1, 3))),
    st.tuples(st.just("submit"), st.tuples(st.sampled_from(QUEUES), st.integers(1, 3))),
    st.tuples(st.just("finish"), st.integers(0, 9)),
    st.tuples(st.just("time"), st.sampled_from([0, 500, 30_000, 61_000, 7_200_000])),
    st.tuples(
        st.just("queue"),
        st.tuples(
            st.sampled_from(QUEUES),
            st.sampled_from(COHORTS),
            st.integers(0, 4),
            st.none() | st.integers(0, 2),
        ),
    ),
    st.tuples(st.just("cohort"), st.tuples(st.sampled_from(COHORTS), st.integers(0, 3))),
    st.tuples(st.just("drop"), st.sampled_from(QUEUES)),
)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.lists(steps, max_size=25))
def test_balances_follow_the_tree(happenings: list[tuple[str, Any]]) -> None:
    pair = Pair()
    for step in happenings:
        pair.play(step)
        pair.check()
