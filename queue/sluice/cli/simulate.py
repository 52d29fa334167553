"""``sluice simulate SCENARIO.yaml``: a scenario on the real engine, in virtual time.

Prints a table per period and totals, or everything as JSON. The file format is described in
docs/simulator.md. The command is registered by `sluice.cli.main`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from sluice.api import times
from sluice.api.errors import ConfigError
from sluice.simulator.play import play
from sluice.simulator.report import Report
from sluice.simulator.scenario import JsonObject, Scenario, parse

BYTES_MAX = 64 << 20


class ScenarioFiles:
    """Reads files relative to the scenario that names them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def manifests(self, path: str) -> Sequence[JsonObject]:
        """Return the objects of a YAML or JSON file; of a List, its items."""
        objects: list[JsonObject] = []
        for document in _documents(self._folder / path):
            if document is None:
                continue
            if not isinstance(document, dict):
                raise ConfigError(f"{self._folder / path}: holds something else than objects")
            objects.extend(document.get("items", [document]))
        return objects

    def table(self, path: str) -> object:
        """Return the content of a JSON file."""
        return next(iter(_documents(self._folder / path)), None)


def _documents(path: Path) -> list[Any]:
    try:
        if path.stat().st_size > BYTES_MAX:
            raise ConfigError(f"{path}: larger than {BYTES_MAX >> 20} MiB")
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            return [json.loads(text)]
        return list(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot read this: {error}") from error


def load(path: Path, seed: int | None = None) -> Scenario:
    """Return the scenario of a file.

    Raises:
        ConfigError: The file can't be read, or a field is not right.
    """
    documents = [d for d in _documents(path) if d is not None]
    if len(documents) != 1:
        raise ConfigError(f"{path}: must hold one YAML document, not {len(documents)}")
    try:
        return parse(documents[0], ScenarioFiles(path.parent), seed)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def simulate_command(
    file: Annotated[Path, typer.Argument(help="The scenario.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    seed: Annotated[
        int | None, typer.Option(help="In place of the scenario's seed.", show_default=False)
    ] = None,
    length: Annotated[
        str | None, typer.Option(help="In place of the scenario's length.", show_default=False)
    ] = None,
    rows: Annotated[int, typer.Option(help="Rows of the table; 0 prints totals only.")] = 40,
) -> None:
    """Play a scenario of queues and work on the real engine, in virtual time."""
    scenario = load(file, seed)
    if length is not None:
        try:
            scenario = replace(scenario, length_ms=times.duration_ms(length))
        except ValueError as error:
            raise ConfigError(f"--length: {error}") from error
    report = play(scenario)
    if as_json:
        typer.echo(json.dumps(as_data(report), indent=2))
        return
    for line in as_table(report, rows):
        typer.echo(line)


def as_data(report: Report) -> dict[str, Any]:
    """Return a report as plain data; balances are exact, in ledger units, as text."""
    return {
        "name": report.name,
        "measure": report.measure,
        "periodMs": report.period_ms,
        "rows": [
            {
                "end": times.from_ms(row.end_ms),
                "accounts": {
                    name: {
                        "demand": account.demand,
                        "used": float(account.used),
                        "waiting": account.waiting,
                        **({} if account.balance is None else {"balance": str(account.balance)}),
                    }
                    for name, account in row.accounts.items()
                },
            }
            for row in report.rows
        ],
        "totals": {
            name: {
                "demand": total.demand,
                "used": float(total.used),
                "admissions": len(total.waits_ms),
                "evictions": total.evictions,
                "longestWaitMs": max(total.waits_ms, default=0),
            }
            for name, total in report.totals.items()
        },
        "balances": [
            {"cohort": cohort, "kind": kind, "name": name, "balance": str(balance)}
            for (cohort, kind, name), balance in sorted(report.balances.items())
        ],
        "minOverMax": report.min_over_max,
        "jain": report.jain,
        "settlements": report.settlements_count,
        "cycles": report.cycles_count,
    }


def as_table(report: Report, rows_max: int) -> list[str]:
    """Return a report as lines: per period and ClusterQueue demand, usage and balance."""
    names = list(report.totals)
    with_credits = bool(report.balances)
    width = max([len(name) for name in names] + [17 if with_credits else 11])
    lines = []
    head = f"{'end':20}" + "".join(f"  {name:>{width}}" for name in names)
    kinds = "demand/used/credit" if with_credits else "demand/used"
    if rows_max:
        lines = [head, f"{kinds:20}"]
    for row in report.rows[:rows_max]:
        cells = []
        for name in names:
            account = row.accounts[name]
            cell = f"{account.demand}/{_number(float(account.used))}"
            if account.balance is not None:
                cell += f"/{_balance(report, account.balance)}"
            cells.append(f"  {cell:>{width}}")
        lines.append(f"{times.from_ms(row.end_ms):20}" + "".join(cells))
    if len(report.rows) > rows_max > 0:
        lines.append(f"... {len(report.rows) - rows_max} more periods; see --rows and --json")
    used = "".join(f"  {_number(float(t.used)):>{width}}" for t in report.totals.values())
    lines.append(f"{head}" if not rows_max else "")
    lines.append(f"{'used in all':20}{used}")
    for (cohort, kind, name), balance in sorted(report.balances.items()):
        lines.append(f"credits of {kind} {name} in {cohort}: {_balance(report, balance)}")
    lines.append(f"min/max {report.min_over_max:.4f}, Jain index {report.jain:.4f}")
    return lines


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _balance(report: Report, amount: int) -> str:
    return _number(amount / (1000 * report.balances_in_ms))
