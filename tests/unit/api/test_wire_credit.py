"""CreditPolicies to records, and checkpoints to status JSON and back."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.api import amount, wire, wire_credit
from sluice.api.models.credit_policy import CreditPolicy as Model
from sluice.api.records_credit import (
    UNIT_HOUR,
    AccountId,
    AccountState,
    BillingWeight,
    CreditCheckpoint,
    CreditPolicy,
    Holding,
    OwnQuota,
    WeightInForce,
)

numbers = st.integers(-(10**30), 10**30)
amounts = st.integers(0, 2**62) | st.just(amount.UNLIMITED)
names = st.sampled_from(["a", "b", "spot", "x.y"])
times_ms = st.integers(0, 4 * 10**9).map(lambda s: s * 1000)
states = st.builds(
    AccountState,
    id=st.builds(AccountId, names, st.sampled_from(["ClusterQueue", "Cohort"]), names),
    balance=numbers,
    weight=st.integers(0, 10**6),
    earned=numbers,
    spent=numbers,
    inflow=numbers,
    unpaid=numbers,
    clipped=numbers,
    decayed=numbers,
    frozen_ms=st.none() | times_ms,
    holdings=st.lists(
        st.builds(Holding, names, names, st.integers(0, 2**62), amounts, amounts), max_size=2
    ).map(tuple),
)
checkpoints = st.builds(
    CreditCheckpoint,
    settled_ms=times_ms,
    accounts=st.lists(states, max_size=4).map(tuple),
    own=st.lists(st.builds(OwnQuota, names, names, names, amounts), max_size=3).map(
        lambda own: tuple(sorted(own, key=lambda o: o.cohort))
    ),
    weights=st.lists(st.builds(WeightInForce, names, names, st.integers(1, 10**9)), max_size=3).map(
        tuple
    ),
)


@given(checkpoints)
def test_a_status_gives_its_checkpoint_back(saved: CreditCheckpoint) -> None:
    encoded = wire_credit.encode_checkpoint(saved)
    assert wire_credit.decode_checkpoint(encoded) == saved


@given(checkpoints)
def test_a_status_is_what_the_definition_takes(saved: CreditCheckpoint) -> None:
    body = {
        "apiVersion": "sluicegate.io/v1alpha1",
        "kind": "CreditPolicy",
        "spec": {"cohortName": "all"},
        "status": wire_credit.encode_checkpoint(saved),
    }
    assert Model.model_validate(body).to_wire() == body


def test_zero_entries_are_left_out() -> None:
    state = AccountState(id=AccountId("a", "Cohort", "r"), balance=0)
    encoded = wire_credit.encode_checkpoint(CreditCheckpoint(settled_ms=0, accounts=(state,)))
    assert encoded == {
        "settledAt": "1970-01-01T00:00:00Z",
        "accounts": [{"parent": "r", "kind": "Cohort", "name": "a", "balance": "0"}],
    }


def test_a_policy() -> None:
    record = wire.decode(
        {
            "kind": "CreditPolicy",
            "metadata": {
                "name": "p",
                "uid": "u",
                "generation": 2,
                "creationTimestamp": "1970-01-01T00:00:01Z",
            },
            "spec": {
                "cohortName": "all",
                "billingWeights": [{"resource": "cpu", "flavor": "spot", "weight": "250m"}],
                "settlementPeriod": "30s",
                "horizon": "1h30m",
                "initialBalance": "0.5",
                "minBalance": -1,
                "maxBalance": "2k",
                "halfLife": "24h",
            },
            "status": {"conditions": [{"type": "Active", "status": "False"}]},
        }
    )
    assert isinstance(record, CreditPolicy)
    assert record.terms.weights == (BillingWeight(resource="cpu", flavor="spot", weight=250),)
    assert (record.terms.period_ms, record.terms.horizon_ms) == (30_000, 5_400_000)
    assert record.terms.initial == UNIT_HOUR // 2
    assert (record.terms.floor, record.terms.ceiling) == (-UNIT_HOUR, 2000 * UNIT_HOUR)
    assert record.terms.half_life_ms == 86_400_000
    assert (record.created_ms, record.was_active, record.checkpoint) == (1000, False, None)


@pytest.mark.parametrize(
    ("value", "expected"), [("0.0004", 0), ("0.0005", 1), ("1.2345", 1235), ("2", 2000)]
)
def test_weights_are_thousandths_halves_up(value: str, expected: int) -> None:
    assert wire_credit.thousandths(Fraction(value)) == expected
