"""When a CreditPolicy works and when it is inert (docs/spec/credits.md 4)."""

from dataclasses import replace

import pytest
from tests.support.builders import cohort, cq, wl
from tests.support.credit_builders import policy
from tests.support.harness import Harness, queues

from sluice.api import wire_credit
from sluice.api.names import CohortName
from sluice.api.records import Kind
from sluice.api.records_credit import UNIT_HOUR, AccountId, AccountState, OwnQuota
from sluice.engine.credits import queries, service

CREDITS = "credits"
HOUR_MS = 3_600_000


def state_of(harness: Harness, name: str = CREDITS) -> service.PolicyState:
    state = harness.engine.credits.state(name)
    assert state is not None
    return state


def balance(harness: Harness, queue: str) -> float:
    book = harness.engine.credits.book(CREDITS)
    assert book is not None
    return next(a.balance for a in book.accounts.values() if a.id.name == queue) / UNIT_HOUR


def test_a_policy_may_come_before_its_cohort() -> None:
    harness = Harness(policy())
    harness.cycle()
    assert (state_of(harness).is_active, state_of(harness).reason) == (False, "CohortNotFound")
    harness.observe(*queues(cq("A", "R", cpu="1")))
    harness.cycle()
    assert state_of(harness).is_active


def test_the_cohort_must_be_a_root() -> None:
    harness = Harness(*queues(cohort("top"), cohort("R", "top"), cq("A", "R", cpu="1")), policy())
    harness.cycle()
    assert state_of(harness).reason == "NotRoot"
    assert "top" in state_of(harness).message
    harness.observe(cohort("R"))
    harness.cycle()
    assert state_of(harness).is_active


def test_a_cycle_of_cohorts_is_no_tree() -> None:
    harness = Harness(*queues(cohort("R", "S"), cohort("S", "R"), cq("A", "R", cpu="1")), policy())
    harness.cycle()
    assert state_of(harness).reason == "CohortCycle"


def test_the_older_of_two_policies_works() -> None:
    younger = replace(policy(name="a"), created_ms=policy().created_ms + 1)
    harness = Harness(*queues(cq("A", "R", cpu="1")), younger, policy(name="z"))
    harness.cycle()
    assert state_of(harness, "z").is_active
    assert state_of(harness, "a").reason == "Conflict"
    harness.gone(Kind.CREDIT_POLICY, "z")
    harness.cycle()
    assert state_of(harness, "a").is_active


def test_an_inert_ledger_stands_still() -> None:
    harness = Harness(*queues(cohort("R", cpu="2"), cq("A", "R", cpu="0")), policy(balances={}))
    harness.cycle()
    harness.now_ms += HOUR_MS
    harness.cycle()
    assert balance(harness, "A") == pytest.approx(2, abs=0.1)
    earned = balance(harness, "A")
    harness.observe(cohort("top"), cohort("R", "top", cpu="2"))
    harness.cycle()
    assert not state_of(harness).is_active
    harness.now_ms += 30 * HOUR_MS
    harness.cycle()
    harness.observe(cohort("R", cpu="2"))
    harness.cycle()
    assert state_of(harness).is_active
    assert balance(harness, "A") == pytest.approx(earned, abs=0.1)


@pytest.mark.slow
def test_more_accounts_than_a_status_holds_make_it_inert() -> None:
    names = [f"q{i:04}" for i in range(wire_credit.ACCOUNTS_MAX)]
    harness = Harness(*queues(*[cq(name, "R") for name in names]), policy())
    harness.cycle()
    assert state_of(harness).is_active
    harness.observe(*queues(cq("one-more", "R")))
    harness.cycle()
    assert state_of(harness).reason == "TooLarge"
    assert "2001 accounts" in state_of(harness).message


@pytest.mark.slow
def test_a_status_beyond_its_size_makes_it_inert() -> None:
    names = [f"q{i:04}-{'x' * 600}" for i in range(wire_credit.ACCOUNTS_MAX)]
    balances = dict.fromkeys(names, 1.0)
    harness = Harness(*queues(*[cq(name, "R") for name in names]), policy(balances=balances))
    harness.cycle()
    assert state_of(harness).reason == "TooLarge"
    assert "bytes" in state_of(harness).message


def test_the_bound_of_the_size_is_never_below_the_size() -> None:
    harness = Harness(*queues(cohort("R", cpu="5"), cq("A" * 60, "R", cpu="7"), cq("B", "R")))
    harness.observe(policy(balances={"gone": 10**6, "B": -(10**9)}))
    harness.cycle()
    harness.observe(wl("w", "A" * 60, cpu="9"))
    harness.cycle()
    harness.now_ms += 20 * HOUR_MS
    harness.cycle()
    book = harness.engine.credits.book(CREDITS)
    assert book is not None
    saved = queries.checkpoint(book.ledger)
    assert saved is not None
    bound = wire_credit.size_bound(len(saved.accounts), len(book.priced), book.names_bytes)
    assert wire_credit.encoded_size(saved) <= bound < 8_000


def test_another_policy_of_the_name_begins_anew() -> None:
    harness = Harness(*queues(cohort("R", cpu="2"), cq("A", "R", cpu="0")), policy(balances={}))
    harness.cycle()
    harness.now_ms += HOUR_MS
    harness.cycle()
    harness.observe(replace(policy(), uid="another"))
    harness.cycle()
    assert balance(harness, "A") == 0


def test_terms_change_at_the_next_boundary() -> None:
    harness = Harness(*queues(cohort("R", cpu="1"), cq("A", "R", cpu="0")), policy(balances={}))
    harness.cycle()
    harness.now_ms += 30_000
    free = policy(balances={}, weights={"cpu": 0})
    harness.observe(replace(free, generation=2))
    harness.now_ms += HOUR_MS
    harness.cycle()
    assert balance(harness, "A") == pytest.approx(1 / 60)


def test_a_resumed_account_without_its_object_is_frozen() -> None:
    harness = Harness(
        *queues(cq("A", "R", cpu="1"), cq("B", "R", cpu="1")), policy(balances={"A": 1, "gone": 5})
    )
    harness.cycle()
    harness.now_ms += 120_000
    harness.cycle()
    book = harness.engine.credits.book(CREDITS)
    assert book is not None
    identity = AccountId("gone", "ClusterQueue", "R")
    assert book.ledger.frozen[identity].balance == 5 * UNIT_HOUR
    # B is new: it joins at the mean of those that are there.
    assert balance(harness, "B") == pytest.approx(1)
    harness.observe(*queues(cq("gone", "R", cpu="1")))
    harness.cycle()
    assert balance(harness, "gone") == 5


def test_what_is_frozen_too_long_is_forgotten() -> None:
    harness = Harness(*queues(cq("A", "R", cpu="1")))
    base = policy(balances={"A": 0})
    assert base.checkpoint is not None
    old = AccountState(
        id=AccountId("old", "ClusterQueue", "R"),
        balance=9,
        frozen_ms=base.checkpoint.settled_ms - 30 * 24 * HOUR_MS,
    )
    accounts = (*base.checkpoint.accounts, old)
    harness.observe(replace(base, checkpoint=replace(base.checkpoint, accounts=accounts)))
    harness.cycle()
    book = harness.engine.credits.book(CREDITS)
    assert book is not None
    assert old.id in book.ledger.frozen
    harness.now_ms += 120_000
    harness.cycle()
    assert old.id not in book.ledger.frozen


def test_a_checkpoint_ahead_of_the_clock_stands_still_until_then() -> None:
    harness = Harness(*queues(cohort("R", cpu="2"), cq("A", "R", cpu="0")))
    harness.now_ms -= HOUR_MS
    harness.observe(policy(balances={"A": 3}))
    harness.cycle()
    assert balance(harness, "A") == 3
    harness.now_ms += HOUR_MS // 2
    harness.cycle()
    assert balance(harness, "A") == 3
    harness.now_ms += HOUR_MS
    harness.cycle()
    assert balance(harness, "A") == pytest.approx(4, abs=0.1)


def test_unlimited_quota_is_neither_lent_nor_borrowed() -> None:
    unlimited = str(2**63)
    harness = Harness(
        *queues(cq("A", "R", flavors={"default": {"cpu": unlimited}}), cq("B", "R", cpu="1")),
        policy(balances={"A": 0, "B": 0}),
    )
    harness.observe(wl("b", "B", cpu="5"))
    harness.cycle()
    harness.now_ms += HOUR_MS
    harness.cycle()
    # B pays for what it borrows; there is nobody to pay it to.
    assert balance(harness, "A") == 0
    assert balance(harness, "B") == pytest.approx(-4, abs=0.1)


def test_another_tree_means_other_accounts() -> None:
    harness = Harness(*queues(cq("A", "R", cpu="1"), cq("B", "S", cpu="1")), policy())
    harness.cycle()
    harness.observe(replace(policy(), cohort=CohortName("S"), generation=2))
    harness.cycle()
    book = harness.engine.credits.book(CREDITS)
    assert book is not None
    assert [a.id.name for a in book.accounts.values()] == ["B"]


def resumed(days: float, *, was_active: bool) -> Harness:
    """A ledger whose checkpoint is some days old, of a pool of two cores."""
    harness = Harness(*queues(cohort("R", cpu="2"), cq("A", "R", cpu="0")))
    saved = policy(balances={"A": 3}).checkpoint
    assert saved is not None
    saved = replace(
        saved,
        settled_ms=saved.settled_ms - round(days * 24 * HOUR_MS),
        own=(OwnQuota("R", "default", "cpu", 2000),),
    )
    harness.observe(replace(policy(), checkpoint=saved, was_active=was_active))
    harness.cycle()
    return harness


def test_the_time_of_a_restart_counts() -> None:
    assert balance(resumed(0.5, was_active=True), "A") == 3 + 2 * 12


def test_of_a_long_absence_the_last_day_counts() -> None:
    harness = resumed(3, was_active=True)
    assert balance(harness, "A") == 3 + 2 * 24
    first = harness.engine.credits.take_settlements()[0].settlement
    assert first.skipped_ms == 48 * HOUR_MS


def test_time_in_which_a_policy_was_inert_does_not_count() -> None:
    assert balance(resumed(0.5, was_active=False), "A") == 3


def test_leading_again_goes_on_from_what_another_manager_wrote() -> None:
    harness = Harness(*queues(cq("A", "R", cpu="1")), policy(balances={"A": 1}))
    harness.cycle()
    harness.observe(replace(policy(balances={"A": 7}), resource_version="2"))
    harness.cycle()
    assert balance(harness, "A") == 1
    harness.engine.credits.restart()
    harness.cycle()
    assert balance(harness, "A") == 7
