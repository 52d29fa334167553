"""The ledger does what docs/spec/credits.md says, as an independent model of it understands it."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.credit_reference import Node, Rules
from tests.support.credit_worlds import HOUR_MS, Step, Twins, node_lists, play, rule_sets, steps

from sluice.engine.credits import queries
from sluice.engine.credits.settle import water_fill

GPU = ("f", "nvidia.com/gpu")
GOES_AT_ONCE = [
    Node(kind="Cohort", name="root", parent=None),
    Node(kind="Cohort", name="n", parent="root", nominal={GPU: 1}),
    Node(kind="ClusterQueue", name="b", parent="n"),
    Node(kind="ClusterQueue", name="a", parent="root"),
]
"""A queue that goes before any time passed is settled as if it were there: it gets the inflow."""


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@example(GOES_AT_ONCE, Rules(period=60_000), [("drop", "b"), ("time", 1)], 59_999)
@given(node_lists(), rule_sets(), steps(), st.integers(0, 3 * HOUR_MS))
def test_balances_are_those_of_the_reference_model(
    nodes: list[Node], rules: Rules, happenings: list[Step], start_ms: int
) -> None:
    twins = Twins(nodes, rules, start_ms)
    for step in happenings:
        play(twins, step)
        assert twins.balances() == twins.expected(), step
    for account in twins.live():
        key = (account.id.parent, account.id.name, account.id.kind)
        assert queries.projected(twins.ledger, account) == twins.reference.projected(key)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(node_lists(), rule_sets(), steps(), st.lists(st.integers(1, 50_000), max_size=30))
def test_looking_in_between_changes_no_balance(
    nodes: list[Node], rules: Rules, happenings: list[Step], looks_ms: list[int]
) -> None:
    twins = Twins(nodes, rules)
    for step in happenings:
        if step[0] == "time" and 0 < step[1] < 24 * HOUR_MS:
            until = twins.now + step[1]
            for look_ms in looks_ms:
                if twins.ledger.now_ms + look_ms < until:
                    twins.ledger.advance(twins.ledger.now_ms + look_ms)
        play(twins, step)
        assert twins.balances() == twins.expected()


def _one_by_one(balances: list[int], caps: list[int], pool: int) -> list[int]:
    given_out = [0] * len(balances)
    for _ in range(min(pool, sum(caps))):
        open_to = [i for i in range(len(caps)) if given_out[i] < caps[i]]
        poorest = min(open_to, key=lambda i: (balances[i] + given_out[i], i))
        given_out[poorest] += 1
    return given_out


@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 8)), min_size=1, max_size=6),
    st.integers(0, 60),
)
def test_water_fill_is_giving_one_by_one_to_the_poorest(
    donors: list[tuple[int, int]], pool: int
) -> None:
    balances, caps = [b for b, _ in donors], [c for _, c in donors]
    assert water_fill(balances, caps, pool) == _one_by_one(balances, caps, pool)
