"""Costs are held to ratios within one run, and every benchmark can be run by `make bench`."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from benchmarks import bench_engine

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
LIMITS = bench_engine.limits()
FIGURES = {"us_per_admission": 20.0, "us_per_cycle": 20.0, "us_per_head": 20.0, "loop_ms": 20.0}


def table(**changes: dict[str, float]) -> bench_engine.Table:
    """Return a table of all rows and both builds; ``changes`` by build."""
    return {
        (row.key, build): bench_engine.Measured(results=[FIGURES | changes.get(build, {})])
        for row in bench_engine.ROWS
        for build in ("plain", "compiled")
    }


def ratios(**changes: dict[str, float]) -> list[bench_engine.Ratio]:
    return list(bench_engine.ratios(list(bench_engine.ROWS), table(**changes)))


def test_every_ratio_has_a_limit_and_every_limit_a_ratio() -> None:
    assert {ratio.name for ratio in ratios()} == LIMITS.keys()


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_leaves_room_for_what_was_seen(name: str) -> None:
    limit = LIMITS[name]
    assert limit.keys() == {"limit", "seen", "spread", "trials", "margin"}
    assert limit["trials"] >= 3
    assert limit["margin"] >= limit["spread"]
    assert limit["limit"] == pytest.approx(limit["seen"] * (1 + limit["margin"]), abs=0.02)


@pytest.mark.parametrize(("build", "most"), [("plain", 1.0), ("compiled", 0.5)])
def test_the_limits_keep_the_promise_against_kueue(build: str, most: float) -> None:
    promised = {name: v["limit"] for name, v in LIMITS.items() if f"{build}/kueue" in name}
    assert len(promised) == 7
    assert max(promised.values()) <= most


def test_a_build_that_became_slow_is_named() -> None:
    broken = bench_engine.check(ratios(compiled={"us_per_admission": 400.0}))
    assert {line.split(":")[0] for line in broken} == {
        name for name in LIMITS if name.startswith("compiled/")
    }


def test_a_ratio_without_a_limit_is_a_mistake() -> None:
    (line,) = bench_engine.check([bench_engine.Ratio(name="new", values=(0.1,))])
    assert line == "new: no limit in budgets.toml"


@pytest.mark.slow
def test_plain_python_keeps_its_limits() -> None:
    rows = [row for row in bench_engine.ROWS if row.key in ("small-3", "busy-of-100")]
    rows += [row for row in bench_engine.ROWS if row.key == "busy-of-10000"]
    measured = bench_engine.measure(rows, {"plain": bench_engine.plain_python()}, trials=1)
    found = list(bench_engine.ratios(rows, measured))
    assert {ratio.name for ratio in found} == {
        "plain/kueue small-3",
        "busy-of-10000/busy-of-100 plain",
    }
    assert not bench_engine.check(found)


def imported(path: Path) -> set[str]:
    """Return the modules of benchmarks/ that one of them imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return {name for name in found if (BENCHMARKS / f"{name}.py").exists()}


def test_make_bench_reaches_everything() -> None:
    line = re.search(r"^BENCHMARKS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert line is not None
    reached: set[str] = set()
    left = [
        name if not (BENCHMARKS / f"bench_{name}.py").exists() else f"bench_{name}"
        for name in line[1].split()
    ]
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += imported(BENCHMARKS / f"{name}.py")
    # The engine's table runs this one in processes of its own.
    reached |= {"engine"} | imported(BENCHMARKS / "engine.py")
    assert reached == {path.stem for path in BENCHMARKS.glob("*.py")}


def test_the_documented_table_is_of_these_rows() -> None:
    text = (ROOT / "docs/benchmarks.md").read_text()
    missing: list[Any] = [row.title for row in bench_engine.ROWS if row.title not in text]
    assert not missing
