"""Replay itself: it finds divergences, tells why, and refuses what it can't read."""

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from sluice.api.errors import ConfigError
from sluice.cli import replay as command
from sluice.simulator import replay

SINGLE = Path(__file__).parent / "single.json.gz"


def first() -> dict[str, Any]:
    return copy.deepcopy(dict(replay.load(SINGLE)[0]))


def test_a_wrong_admission_is_a_divergence_at_level_1() -> None:
    recorded = first()
    at = next(i for i, e in enumerate(recorded["expected"]) if e["admitted"])
    key = recorded["expected"][at]["admitted"].pop()["workload"]
    outcome = replay.check(recorded)

    assert outcome.level_1 is not None
    assert (outcome.level_1.step, outcome.level_1.level) == (at, 1)
    assert outcome.level_2 == outcome.level_1
    assert outcome.level_1.why[0].startswith(f"{key}: reserved: QuotaReserved")


def test_a_wrong_list_is_a_divergence_at_level_2_only() -> None:
    recorded = first()
    recorded["expected"][0]["pending"]["cq0"] = ["ns/nobody"]
    outcome = replay.check(recorded)

    assert outcome.level_1 is None
    assert outcome.level_2 is not None
    assert outcome.level_2.level == 2
    assert "ns/nobody: unknown" in outcome.level_2.why


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[1]", b"\x1f\x8bnot gzip", b'[{"scenario": {}}]'],
    ids=["empty", "object", "numbers", "broken gzip", "no expectation"],
)
def test_a_file_that_is_no_list_of_scenarios_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)

    with pytest.raises(ConfigError, match=r"broken\.json"):
        replay.load(path)


@pytest.mark.parametrize("field", ["now", "steps", "clusterQueues"])
def test_a_scenario_of_a_wrong_form_is_refused(field: str) -> None:
    recorded = first()
    recorded["scenario"][field] = 7

    with pytest.raises(ConfigError, match="cannot be replayed"):
        replay.check(recorded)


def run(*paths: Path) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(command.replay_command)
    result = CliRunner().invoke(app, ["--check", *map(str, paths)])
    return result.exit_code, result.output


def test_the_command_says_one_line_per_file_and_a_total(tmp_path: Path) -> None:
    plain = tmp_path / "one.more.json"
    plain.write_bytes(json.dumps([first()]).encode())

    code, output = run(SINGLE, plain)

    assert code == 0
    assert output.splitlines() == [
        "single: level 1 40/40, level 2 40/40",
        "one: level 1 1/1, level 2 1/1",
        "total: level 1 41/41, level 2 41/41",
    ]


def test_the_command_fails_when_anything_diverges(tmp_path: Path) -> None:
    recorded = first()
    recorded["expected"][0]["pending"] = {"cq0": ["ns/nobody"]}
    path = tmp_path / "bad.json.gz"
    path.write_bytes(gzip.compress(json.dumps([recorded]).encode()))

    code, output = run(path)

    assert code == 1
    assert "step 0 differs at level 2" in output
    assert output.splitlines()[-1] == "total: level 1 1/1, level 2 0/1"
