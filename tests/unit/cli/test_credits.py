"""``sluice simulate`` and ``sluice credits``: what they print."""

import json
from pathlib import Path
from typing import Any

import pytest

from sluice.api.records_credit import UNIT_HOUR
from sluice.api.wire_credit import decode_checkpoint
from sluice.cli.credits import bar, describe, hours
from sluice.cli.main import execute

SCENARIOS = Path(__file__).parents[3] / "benchmarks" / "scenarios"


def policy(**balances: int) -> dict[str, Any]:
    accounts = [
        {
            "parent": "all", "kind": "ClusterQueue", "name": name,
            "balance": str(hours * UNIT_HOUR), "spent": str(UNIT_HOUR // 2),
        }
        for name, hours in balances.items()
    ]  # fmt: skip
    accounts.append(
        {
            "parent": "all", "kind": "Cohort", "name": "gone", "balance": str(-UNIT_HOUR),
            "frozenSince": "2026-01-01T00:00:00Z",
        }
    )  # fmt: skip
    active = {"type": "Active", "status": "True", "reason": "Active", "message": ""}
    return {
        "metadata": {"name": "research"},
        "spec": {"cohortName": "all"},
        "status": {
            "settledAt": "2026-01-02T00:00:00Z",
            "accounts": accounts,
            "conditions": [active],
        },
    }


def shown(raw: dict[str, Any], before: dict[str, Any] | None = None) -> list[str]:
    saved = decode_checkpoint(raw["status"])
    earlier = None if before is None else decode_checkpoint(before["status"])
    now_ms = 1_767_312_000_000 + 75_000
    return describe(raw, saved, earlier, now_ms).splitlines()


def test_balances_with_bars_richest_first() -> None:
    assert shown(policy(a=-2, b=4)) == [
        "CreditPolicy research, cohort all: active",
        "settled at 2026-01-02T00:00:00Z, 1m15s ago; unit-hours",
        "COHORT   ACCOUNT   BALANCE                               EARNED   SPENT   INFLOW   UNPAID",
        "all      b         4.00                  |############   0        0.50    0        0",
        "all      a         -2.00           ######|               0        0.50    0        0",
        "frozen since 2026-01-01T00:00:00Z: Cohort gone in all, -1.00",
    ]


def test_what_moved_since_the_last_look() -> None:
    lines = shown(policy(a=1, b=4, c=2), policy(a=3, b=4))
    assert [line.split()[-1] for line in lines[2:6]] == ["MOVED", "0", "0", "-2.00"]


def test_a_policy_that_does_not_work_says_why() -> None:
    raw = policy()
    raw["status"] = {
        "conditions": [
            {"type": "Active", "status": "False", "reason": "NotRoot", "message": "not a root"}
        ]
    }
    assert shown(raw) == [
        "CreditPolicy research, cohort all: not active (NotRoot): not a root",
        "No settlement yet.",
    ]


def test_amounts_and_bars() -> None:
    assert (hours(0), hours(-1), hours(UNIT_HOUR, sign=True)) == ("0", "0", "+1.00")
    assert bar(0, 0) == " " * 12 + "|" + " " * 12


@pytest.mark.slow
def test_simulate_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["simulate", str(SCENARIOS / "K2.yaml"), "--rows", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["2026-01-05T00:01:00Z", "4/3/-1", "2/2/0", "1/1/1"]
    assert lines[3] == "... 4 more periods; see --rows and --json"
    assert lines[5].split() == ["used", "in", "all", "9", "10", "9"]


@pytest.mark.slow
def test_simulate_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["simulate", str(SCENARIOS / "K2.yaml"), "--json", "--length", "60s"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["rows"][0]["accounts"]["a"] == {
        "demand": 4, "used": 3.0, "waiting": 0, "balance": "-60000000"
    }  # fmt: skip
    assert data["settlements"] == 1


def test_simulate_names_what_is_wrong(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("length: 1m\nsources: [{demand: {amounts: {a: [x]}}}]\n")
    assert execute(["simulate", str(file)]) == 2
    assert "demand.amounts.a[0]: 'x' must be a whole number" in capsys.readouterr().err
    file.write_text("length: 1m\n")
    assert execute(["simulate", str(file), "--length", "ever"]) == 2
    assert "--length" in capsys.readouterr().err
