"""Deadlines of admitted Workloads."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.engine.lifecycle_worlds import (
    ADMITTED,
    NOW_MS,
    RESERVED,
    ago,
    condition,
    facts,
    settle,
    shown,
    step,
    workload,
)

from sluice.api import times
from sluice.engine import lifecycle_status as transitions
from sluice.engine.lifecycle_facts import LifecycleOptions, Requeuing
from sluice.engine.lifecycle_status import Moment
from sluice.engine.lifecycle_timeouts import backoff_ms

AT = Moment(now_ms=NOW_MS, generation=3)


def options(timeout_s: int, recovery_s: int | None = None, **more: Any) -> LifecycleOptions:
    recovery_ms = None if recovery_s is None else recovery_s * 1000
    return LifecycleOptions(
        pods_ready_timeout_ms=timeout_s * 1000,
        recovery_timeout_ms=recovery_ms,
        requeuing=Requeuing(**more),
    )


WAITING = condition("PodsReady", "False", "WaitForStart")
RECOVERING = condition("PodsReady", "False", "WaitForRecovery", since=ago(20))


@pytest.mark.parametrize(
    ("ready", "opts", "cause"),
    [
        pytest.param([], options(60), "WaitForStart", id="never told"),
        pytest.param([WAITING], options(60), "WaitForStart", id="since admission"),
        pytest.param([RECOVERING], options(1, 20), "WaitForRecovery", id="since the failure"),
    ],
)
def test_not_ready_in_time(ready: list[Any], opts: LifecycleOptions, cause: str) -> None:
    result = step(workload(RESERVED, ADMITTED, *ready), facts(), opts)
    assert result.status is not None
    message = "Exceeded the PodsReady timeout ns/wl"
    assert shown(result, "Evicted") == ("True", "PodsReadyTimeout", message)
    assert result.status["requeueState"]["count"] == 1
    assert result.status["requeueState"]["requeueAt"] == times.from_ms(NOW_MS + 60_000)
    stats = result.status["schedulingStats"]["evictions"]
    assert stats == [{"reason": "PodsReadyTimeout", "underlyingCause": cause, "count": 1}]


@pytest.mark.parametrize(
    ("ready", "opts", "due_s"),
    [
        pytest.param([WAITING], options(61), 1, id="start"),
        pytest.param([RECOVERING], options(1, 25), 5, id="recovery"),
        pytest.param([RECOVERING], options(1, 0), None, id="recovery without limit"),
        pytest.param([RECOVERING], options(1), None, id="recovery not limited"),
        pytest.param([condition("PodsReady")], options(1), None, id="ready"),
        pytest.param(
            [WAITING], LifecycleOptions(pods_ready_timeout_ms=None), None, id="switched off"
        ),
    ],
)
def test_still_time(ready: list[Any], opts: LifecycleOptions, due_s: int | None) -> None:
    result = step(workload(RESERVED, ADMITTED, *ready), facts(), opts)
    assert result.status is None
    assert result.look_again_ms == (None if due_s is None else NOW_MS + due_s * 1000)


def test_too_many_retries_deactivate() -> None:
    before = workload(RESERVED, ADMITTED, WAITING, requeueState={"count": 2})
    settled, steps = settle(before, facts(), options(1, count_max=2))
    assert steps[0].active is False
    assert shown(steps[1], "Evicted") == (
        "True",
        "DeactivatedDueToRequeuingLimitExceeded",
        "The workload is deactivated due to exceeding the maximum number of re-queuing retries",
    )
    assert "requeueState" not in settled["status"]


@given(st.integers(1, 200), st.text(max_size=5))
def test_backoff_doubles_up_to_its_bound(count: int, seed: str) -> None:
    requeuing = Requeuing(backoff_base_s=60, backoff_max_s=3600)
    delay_ms = backoff_ms(requeuing, count, seed)
    exact_ms = min(60 * 2 ** (count - 1), 3600) * 1000
    assert exact_ms <= delay_ms <= exact_ms * 1.0001 + 1
    assert delay_ms == backoff_ms(requeuing, count, seed)


@pytest.mark.parametrize(
    ("limit_s", "past_s", "over"), [(61, 0, False), (60, 0, True), (65, 5, True)]
)
def test_maximum_execution_time(limit_s: int, past_s: int, over: bool) -> None:
    before = workload(
        RESERVED,
        ADMITTED,
        condition("PodsReady"),
        spec={"maximumExecutionTimeSeconds": limit_s},
        accumulatedPastExecutionTimeSeconds=past_s,
    )
    result = step(before)
    if not over:
        assert result.status is None
        assert result.look_again_ms == NOW_MS + 1000
        return
    assert result.active is False
    assert result.status is not None
    assert "accumulatedPastExecutionTimeSeconds" not in result.status
    assert result.notes[0].message == f"The maximum execution time ({limit_s}s) exceeded"


@pytest.mark.parametrize(
    ("before", "admitted", "ready", "status", "reason"),
    [
        ([], True, False, "False", "WaitForStart"),
        ([WAITING], True, True, "True", "Started"),
        ([condition("PodsReady", reason="Started")], True, False, "False", "WaitForRecovery"),
        ([RECOVERING], True, False, "False", "WaitForRecovery"),
        ([RECOVERING], True, True, "True", "Recovered"),
        ([condition("PodsReady", reason="Recovered")], True, True, "True", "Recovered"),
        ([condition("PodsReady", reason="Started")], False, True, "False", "WaitForStart"),
    ],
)
def test_pods_ready_condition(
    before: list[Any], admitted: bool, ready: bool, status: str, reason: str
) -> None:
    present = workload(RESERVED, *([ADMITTED] if admitted else []), *before)["status"]
    after = transitions.pods_ready(present, AT, ready=ready)
    (found,) = (c for c in after["conditions"] if c["type"] == "PodsReady")
    assert (found["status"], found["reason"]) == (status, reason)
