"""Every recorded decision, replayed through the real engine (docs/spec/algorithm.md 9).

The files hold what Kueue's scheduler decided on random scenarios. A scenario must match at level 1
(admissions, preemptions) and level 2 (what is pending, what is parked) at every step.
"""

from functools import cache
from pathlib import Path

import pytest

from sluice.simulator import replay

FOLDER = Path(__file__).parent
COUNTS = {
    "afs": 39,
    "cohort": 40,
    "fair": 40,
    "fairtree": 40,
    "fit": 40,
    "flavors": 40,
    "hierarchy": 40,
    "mixed": 40,
    "partial": 40,
    "preempt": 40,
    "single": 40,
    "tas": 40,
    "tasgroup": 40,
}
CASES = [
    pytest.param(theme, at, id=f"{theme}-{at:02}")
    for theme, count in COUNTS.items()
    for at in range(count)
]


@cache
def scenarios(theme: str) -> list[replay.JsonObject]:
    return replay.load(FOLDER / f"{theme}.json.gz")


@pytest.mark.parametrize(("theme", "at"), CASES)
def test_every_step_is_decided_as_recorded(theme: str, at: int) -> None:
    outcome = replay.check(scenarios(theme)[at])

    assert outcome.level_1 is None
    assert outcome.level_2 is None


@pytest.mark.parametrize("theme", COUNTS)
def test_no_recorded_scenario_is_left_out(theme: str) -> None:
    assert len(scenarios(theme)) == COUNTS[theme]
