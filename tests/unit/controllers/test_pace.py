"""The pace of writes that only inform."""

from sluice.clock import ManualClock
from sluice.controllers.pace import BUSY_DECISIONS, Informing, Pace


def taken(pace: Pace, kind: Informing, tries: int) -> int:
    return sum(pace.wait_s(kind) == 0 for _ in range(tries))


def busy(pace: Pace) -> None:
    for _ in range(BUSY_DECISIONS):
        pace.decided()


def test_idle_lets_a_burst_through_and_then_keeps_the_idle_rate() -> None:
    clock = ManualClock()
    pace = Pace(clock)
    assert taken(pace, Informing.REASONS, 500) == 100
    clock.advance(1000)
    assert taken(pace, Informing.REASONS, 500) == 100, "200 a second, but no more than the burst"


def test_busy_is_when_decisions_flow_within_a_second() -> None:
    clock = ManualClock()
    pace = Pace(clock)
    assert not pace.is_busy
    busy(pace)
    assert pace.is_busy
    clock.advance(1001)
    assert not pace.is_busy


def test_while_busy_the_rate_is_small() -> None:
    clock = ManualClock()
    pace = Pace(clock)
    busy(pace)
    assert taken(pace, Informing.QUEUE_STATUS, 500) == 60
    clock.advance(500)
    assert pace.is_busy
    assert taken(pace, Informing.QUEUE_STATUS, 500) == 5


def test_kinds_do_not_take_from_each_other() -> None:
    pace = Pace(ManualClock())
    taken(pace, Informing.REASONS, 500)
    assert pace.wait_s(Informing.REASONS) > 0
    assert pace.wait_s(Informing.EVENTS) == 0
