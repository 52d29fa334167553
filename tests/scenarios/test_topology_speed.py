"""A gang that has to preempt among 10,000 nodes is decided in under a second."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "bench_topology.py"


def run(*arguments: str) -> list[dict[str, Any]]:
    command = [sys.executable, str(BENCHMARK), "--json", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_the_longest_search_among_10_000_nodes() -> None:
    (result,) = run("--case", "scattered", "--limit-s", "1")
    assert result["nodes"] == 10_000
    assert result["candidates"] == 700
    assert result["victims"] > 0


@pytest.mark.slow
def test_every_case_decides_what_it_must() -> None:
    results = run("--blocks", "4", "--racks", "5", "--hosts", "13")
    assert [r["case"] for r in results] == ["packed", "scattered", "roomy", "spread"]
