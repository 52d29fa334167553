"""The engine's table: plain and compiled side by side, against Kueue's own scheduler.

::

    python benchmarks/bench_engine.py                      # all rows, printed as a table
    python benchmarks/bench_engine.py --rows small --check # fails beyond benchmarks/budgets.toml

Each figure is a run of ``benchmarks/engine.py`` in a process of its own; plain and compiled take
turns, so that a machine that slows down slows both. The compiled engine is the one that
``make compiled`` installed; without it (or with ``--plain``) only plain is measured. Processor time
of the thread, so that a busy machine matters little; what is compared are ratios within one run.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = Path(__file__).with_name("engine.py")
BUDGETS = Path(__file__).with_name("budgets.toml")
COMPILED_PYTHON = ROOT / "build" / "compiled" / "venv" / "bin" / "python"
LOOP_MS = 21.0
"""The fixed loop on the machine class of Kueue's figures; elsewhere they are scaled by it."""
TIMEOUT_S = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One world and way to run it.

    Attributes:
        key: Its name in budgets.toml and in ``--rows``.
        arguments: For ``engine.py``.
        kueue_us: What an admission costs Kueue's scheduler there, None when not measured.
    """

    key: str
    title: str
    arguments: tuple[str, ...]
    kueue_us: float | None = None


def row(key: str, title: str, arguments: str, kueue_us: float | None = None) -> Row:
    """Return a row with its arguments as on a command line."""
    return Row(key=key, title=title, arguments=tuple(arguments.split()), kueue_us=kueue_us)


SMALL = "--queues 30 --cohorts 5 --workloads 15000"
LARGE = "--queues 1000 --cohorts 10 --workloads 50000"
BUSY = "--busy 10 --workloads 5000 --hold 1"
ROWS = (
    row("small-1", "30 / 15,000, hold 1", f"{SMALL} --hold 1", 145),
    row("small-3", "30 / 15,000, hold 3", f"{SMALL} --hold 3", 296),
    row("small-10", "30 / 15,000, hold 10", f"{SMALL} --hold 10", 688),
    row("large-1", "1,000 / 50,000, hold 1", f"{LARGE} --hold 1", 105),
    row("large-3", "1,000 / 50,000, hold 3", f"{LARGE} --hold 3", 147),
    row("preempt-1", "30 / 15,000, preemption, hold 1", f"{SMALL} --hold 1 --preemption", 185),
    row("preempt-3", "30 / 15,000, preemption, hold 3", f"{SMALL} --hold 3 --preemption", 266),
    row("busy-of-100", "10 of 100 queues have work", f"--queues 100 --cohorts 10 {BUSY}"),
    row("busy-of-10000", "10 of 10,000 queues have work", f"--queues 10000 --cohorts 1000 {BUSY}"),
    row("short", "30 / 3,000, hold 3", "--queues 30 --cohorts 5 --workloads 3000 --hold 3"),
    row("long", "30 / 60,000, hold 3", "--queues 30 --cohorts 5 --workloads 60000 --hold 3"),
)
COMPARED = (
    ("busy-of-10000", "busy-of-100", "us_per_cycle"),
    ("long", "short", "us_per_head"),
)
"""A cycle costs what its heads cost: not the queues without work, not the Workloads behind."""


@dataclass(slots=True, kw_only=True)
class Measured:
    """The trials of one row and build.

    Attributes:
        results: What ``engine.py --json`` printed.
    """

    results: list[dict[str, Any]] = field(default_factory=list)

    def median(self, name: str) -> float:
        """Return the median of a figure over the trials."""
        return statistics.median(float(result[name]) for result in self.results)

    def loops(self) -> list[float]:
        """Return what an admission costs in thousandths of the fixed loop, by trial."""
        return [r["us_per_admission"] / r["loop_ms"] for r in self.results]


Table = dict[tuple[str, str], Measured]
"""By row and build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A ratio of two figures of one run.

    Attributes:
        name: Its name in budgets.toml.
        values: By trial.
    """

    name: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """Return the median over the trials."""
        return statistics.median(self.values)

    @property
    def spread(self) -> float:
        """Return the distance of the extremes, as a part of the median."""
        return (max(self.values) - min(self.values)) / self.median


def run(python: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    """Run ``engine.py`` once and return its figures."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [python, str(SCRIPT), *arguments, "--json"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{python} {SCRIPT.name} {' '.join(arguments)}:\n{done.stderr}")
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def measure(rows: list[Row], pythons: dict[str, str], trials: int) -> Table:
    """Measure all rows; trial by trial, the builds one after the other."""
    table: Table = {(r.key, build): Measured() for r in rows for build in pythons}
    for at in rows:
        for _ in range(trials):
            for build, python in pythons.items():
                figures = run(python, at.arguments)
                if figures["build"] != build:
                    raise SystemExit(f"{python} runs the {figures['build']} engine, not {build}")
                table[(at.key, build)].results.append(figures)
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return table


def ratios(rows: list[Row], table: Table) -> Iterator[Ratio]:
    """Yield every ratio that these measurements allow, named as in budgets.toml."""
    builds = list(dict.fromkeys(build for _, build in table))
    for at in rows:
        loops = {build: table[(at.key, build)].loops() for build in builds}
        if at.kueue_us is not None:
            kueue = at.kueue_us / LOOP_MS
            for build in builds:
                values = tuple(value / kueue for value in loops[build])
                yield Ratio(name=f"{build}/kueue {at.key}", values=values)
        if "compiled" in builds:
            pairs = zip(loops["compiled"], loops["plain"], strict=True)
            values = tuple(compiled / plain for compiled, plain in pairs)
            yield Ratio(name=f"compiled/plain {at.key}", values=values)
    for of, to, figure in COMPARED:
        for build in builds:
            if (of, build) in table and (to, build) in table:
                both = (table[(key, build)].results for key in (of, to))
                values = tuple(o[figure] / t[figure] for o, t in zip(*both, strict=True))
                yield Ratio(name=f"{of}/{to} {build}", values=values)


def limits() -> dict[str, dict[str, Any]]:
    """Return what budgets.toml says, by name of the ratio."""
    return {entry.pop("name"): entry for entry in tomllib.loads(BUDGETS.read_text())["ratio"]}


def plain_python() -> str:
    """Return an interpreter of the plain build: that of the checkout's environment, or this one."""
    local = ROOT / ".venv" / "bin" / "python"
    return str(local) if local.exists() else sys.executable


def check(found: list[Ratio]) -> list[str]:
    """Return how the ratios break their limits; one without a limit is a mistake too."""
    known = limits()
    problems = []
    for ratio in found:
        limit = known.get(ratio.name)
        if limit is None:
            problems.append(f"{ratio.name}: no limit in {BUDGETS.name}")
        elif ratio.median > limit["limit"]:
            problems.append(f"{ratio.name}: {ratio.median:.2f} is more than {limit['limit']}")
    return problems


def show(rows: list[Row], table: Table, builds: list[str]) -> Iterator[str]:
    """Yield the table in Markdown."""
    kinds = [f"{build} us" for build in builds] + [f"{build} / Kueue" for build in builds]
    heads = ["queues / Workloads", "cycles", "heads", "Kueue us", *kinds, "loop ms"]
    yield "| " + " | ".join(heads) + " |"
    yield "|" + " --- |" * len(heads)
    for at in rows:
        first = table[(at.key, builds[0])]
        cells = [at.title, f"{first.median('cycles'):,.0f}", f"{first.median('heads'):,.0f}"]
        cells.append("" if at.kueue_us is None else f"{at.kueue_us:.0f}")
        cells += [f"{table[(at.key, b)].median('us_per_admission'):.1f}" for b in builds]
        for build in builds:
            loops = statistics.median(table[(at.key, build)].loops())
            part = "" if at.kueue_us is None else f"{loops * LOOP_MS / at.kueue_us:.2f}"
            cells.append(part)
        cells.append(" / ".join(f"{table[(at.key, b)].median('loop_ms'):.1f}" for b in builds))
        yield "| " + " | ".join(cells) + " |"


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", nargs="+", default=[""], help="only rows that begin with these")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--plain", action="store_true", help="leave the compiled engine out")
    parser.add_argument("--check", action="store_true", help=f"fail beyond {BUDGETS.name}")
    return parser.parse_args()


def main() -> None:
    """Measure, print, and check if asked to."""
    asked = arguments()
    rows = [r for r in ROWS if r.key.startswith(tuple(asked.rows))]
    pythons = {"plain": plain_python()}
    if COMPILED_PYTHON.exists() and not asked.plain:
        pythons["compiled"] = str(COMPILED_PYTHON)
    elif not asked.plain:
        print("`make compiled` builds the compiled engine; measuring plain only", file=sys.stderr)
    table = measure(rows, pythons, asked.trials)
    print("\n".join(show(rows, table, list(pythons))))
    found = list(ratios(rows, table))
    print()
    for ratio in found:
        print(f"{ratio.name:40} {ratio.median:6.2f}  spread {ratio.spread:.2f}")
    problems = check(found) if asked.check else []
    if problems:
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main()
