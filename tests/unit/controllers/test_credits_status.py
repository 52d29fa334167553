"""What the manager writes, logs and counts of credits."""

from typing import Any

from tests.support.builders import cohort, cq, wl
from tests.support.credit_builders import policy
from tests.support.harness import Harness, queues

from sluice.api import wire_credit
from sluice.api.records import Kind
from sluice.controllers.credits_metrics import CreditMetrics
from sluice.controllers.credits_status import log_fields, moved_unit_hours, status_of
from sluice.controllers.metrics import Role

NAME = "credits"
HOUR_MS = 3_600_000


def started(*records: Any) -> Harness:
    harness = Harness(
        *queues(cohort("R", cpu="2"), cq("A", "R", cpu="1"), cq("B", "R", cpu="1")), *records
    )
    harness.cycle()
    return harness


def status(harness: Harness, present: dict[str, Any] | None = None) -> dict[str, Any] | None:
    return status_of(harness.engine.credits, NAME, present or {}, now_ms=harness.now_ms, seen=3)


def reasons(found: dict[str, Any] | None) -> dict[str, str]:
    assert found is not None
    return {c["type"]: c["reason"] for c in found["conditions"]}


def test_before_the_first_settlement_there_are_only_conditions() -> None:
    found = status(started(policy()))
    assert reasons(found) == {"Active": "Active", "Settled": "Pending"}
    assert found is not None
    assert set(found) == {"conditions"}


def test_nothing_is_said_before_a_cycle() -> None:
    harness = Harness(*queues(cq("A", "R", cpu="1")), policy())
    assert status(harness) is None
    assert status_of(harness.engine.credits, "other", {}, now_ms=0, seen=1) is None


def test_the_status_is_the_state_right_after_the_settlement() -> None:
    harness = started(policy())
    harness.now_ms += 2 * 60_000
    harness.cycle()
    before = status(harness)
    harness.observe(wl("a", "A", cpu="3"), *queues(cq("C", "R", cpu="1")))
    harness.cycle()
    assert harness.holding() == {"a"}
    # A reservation and a queue that came since are not in it.
    assert status(harness, before) == before
    harness.now_ms += 60_000
    harness.cycle()
    later = status(harness, before)
    assert later is not None
    assert {a["name"] for a in later["accounts"]} == {"A", "B", "C"}


def test_an_inert_policy_keeps_the_ledger_in_its_status() -> None:
    harness = started(policy())
    harness.now_ms += 2 * 60_000
    harness.cycle()
    before = status(harness)
    assert before is not None
    harness.observe(cohort("top"), cohort("R", "top"))
    harness.cycle()
    after = status(harness, before)
    assert reasons(after) == {"Active": "NotRoot", "Settled": "Settled"}
    assert after is not None
    assert {**after, "conditions": 0} == {**before, "conditions": 0}


def test_a_resumed_ledger_says_so() -> None:
    found = status(started(policy(balances={"A": 1})))
    assert reasons(found)["Settled"] == "Resumed"
    assert found is not None
    assert wire_credit.decode_checkpoint(found) is not None


def test_log_fields_are_in_unit_hours() -> None:
    harness = started(policy())
    harness.observe(wl("a", "A", cpu="3"))
    harness.cycle()
    harness.engine.credits.take_settlements()
    harness.now_ms += 60 * 60_000
    harness.cycle()
    done = harness.engine.credits.take_settlements()
    assert len(done) == 60
    last = done[-1]
    fields = log_fields(last.policy, last.settlement)
    # Two cores borrowed for a minute, one of them B's, and a pool of two.
    sums = {"paid": 0.033333, "paid_out": 0.016667, "inflow": 0.033333}
    assert fields["cohorts"] == {"R": sums}
    assert moved_unit_hours(last.settlement) < 0.04


def test_a_long_gap_is_recorded() -> None:
    harness = started(policy())
    harness.now_ms += 30 * HOUR_MS
    harness.cycle()
    first = harness.engine.credits.take_settlements()[0]
    # Thirty hours and the second that a cycle takes here, less the day that counts.
    assert log_fields(NAME, first.settlement)["skipped_s"] == 6 * 3600 + 1


def test_metrics() -> None:
    harness = started(policy(balances={"A": 2.5, "B": -1}))
    source = CreditMetrics(harness.engine, role=lambda: Role.LEADER)
    found = {
        (sample.name, sample.labels.get("name", "")): sample.value
        for family in source.snapshot()
        for sample in family.samples
    }
    assert found["sluice_credits_balance_unit_hours", "A"] == 2.5
    assert found["sluice_credits_balance_unit_hours", "B"] == -1
    assert found["sluice_credits_spent_unit_hours_total", "B"] == 0
    assert found["sluice_credit_policy_active", ""] == 1
    harness.gone(Kind.CREDIT_POLICY, NAME)
    assert list(source.snapshot()) == []


def test_the_clock_may_step_by_an_hour() -> None:
    harness = started(policy())
    harness.observe(wl("a", "A", cpu="3"))
    harness.cycle()
    harness.now_ms += 10 * 60_000
    harness.cycle()
    before = status(harness)
    start_ms = harness.now_ms
    for step_ms in (-HOUR_MS, 30_000, HOUR_MS - 30_000, 0):
        harness.now_ms = harness.now_ms - 1000 + step_ms
        harness.engine.cycle(harness.now_ms)
    assert status(harness, before) == before
    harness.now_ms = start_ms + HOUR_MS
    harness.cycle()
    book = harness.engine.credits.book(NAME)
    assert book is not None
    assert book.ledger.now_ms >= start_ms + HOUR_MS - 2000
