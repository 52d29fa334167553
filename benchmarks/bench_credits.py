"""Fair-share credits: the scenarios of docs/spec/credits.md 5 in full, and what a settlement costs.

The K table must come out exactly; the cost of a settlement must grow with the accounts of cohorts
that trade, not with those that are idle. Takes a few minutes.
"""

import gc
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "queue")]

from sluice.api.records_credit import AccountId, CreditTerms  # noqa: E402
from sluice.cli.simulate import load  # noqa: E402
from sluice.engine.credits.ledger import Ledger  # noqa: E402
from sluice.simulator.play import play  # noqa: E402
from sluice.simulator.report import Report  # noqa: E402

FOLDER = Path(__file__).parent / "scenarios"
QUANTUM_MS = 60_000
FR = ("default", "nvidia.com/gpu")


def run(name: str, quanta: int | None = None, seed: int | None = None) -> Report:
    """Play a scenario, cut to some quanta."""
    scenario = load(FOLDER / f"{name}.yaml", seed)
    if quanta is not None:
        scenario = replace(scenario, length_ms=quanta * QUANTUM_MS)
    return play(scenario)


def compare(name: str, seed: int) -> str:
    """Return what K4 and K5 come to beside their table; exits when they differ."""
    table = json.loads((FOLDER / f"{name}.json").read_bytes())
    expected: dict[str, Any] = next(r for r in table["runs"] if r["seed"] == seed)
    report = run(name, seed=seed)
    totals = [int(report.totals[a].used) for a in table["accounts"]]
    wanted = expected["balances"]
    if isinstance(wanted, list):
        wanted = dict(zip(table["accounts"], wanted, strict=True))
    found = {n: b / (1000 * QUANTUM_MS) for (_, _, n), b in report.balances.items()}
    if totals != expected["totals"] or found != wanted:
        sys.exit(f"{name} seed {seed}: {totals} {found}, expected {expected}")
    return f"{report.min_over_max:.4f}"


def k_table() -> None:
    """Print the K table as measured."""
    for name, periods, wanted in (
        ("K1", (1, 10, 100, 1000), (".5833", ".9417", ".9940", ".9994")),
        ("K1b", (1, 10, 100), (".5833", ".7889", ".8153")),
    ):
        for count, expected in zip(periods, wanted, strict=True):
            started_s = time.perf_counter()
            found = f"{run(name, 6 * count).min_over_max:.4f}"
            took_s = time.perf_counter() - started_s
            print(
                f"{name:4} {count:5} periods  min/max {found}  expected 0{expected}  {took_s:.1f}s"
            )
            if found != f"0{expected}":
                sys.exit(f"{name} differs")
    report = run("K2")
    print("K2   totals", [int(t.used) for t in report.totals.values()], "expected [9, 10, 9]")
    for name, seeds in (("K4", (1, 2, 3, 4, 5)), ("K5", (1, 2, 3))):
        print(name, "  exact, min/max", " ".join(compare(name, seed) for seed in seeds))


def ledger_of(trading: int, idle: int) -> Ledger:
    """Return a ledger with accounts that trade in one cohort and idle ones in others."""
    ledger = Ledger(CreditTerms(), 0, {FR[1]})
    for at in range(trading):
        account = ledger.join(AccountId(f"q{at:05}", "ClusterQueue", "busy"), 1000)
        ledger.hold(account, FR, 7 if at % 2 else 1, 4, 0)
    ledger.own_quota("busy", FR, 100)
    for at in range(idle):
        account = ledger.join(AccountId(f"i{at:05}", "ClusterQueue", f"idle{at // 50}"), 1000)
        ledger.hold(account, FR, 0, 4, 0)
    ledger.advance(QUANTUM_MS)
    return ledger


def settlement_ms(make: Callable[[], Ledger], periods: int = 20) -> float:
    """Return the CPU milliseconds of one settlement, the best of five runs."""
    best_s = float("inf")
    for _ in range(5):
        ledger = make()
        gc.collect()
        gc.disable()
        started_s = time.process_time()
        ledger.advance((periods + 1) * QUANTUM_MS)
        best_s = min(best_s, time.process_time() - started_s)
        gc.enable()
    return best_s / periods * 1000


def costs() -> None:
    """Print what settlements cost; exits when they don't follow the accounts that trade."""
    small = settlement_ms(lambda: ledger_of(1000, 0))
    large = settlement_ms(lambda: ledger_of(2000, 0))
    beside = settlement_ms(lambda: ledger_of(1000, 20_000))
    print(f"settlement of 1,000 trading accounts: {small:.2f} ms; of 2,000: {large:.2f} ms")
    print(f"settlement of 1,000 beside 20,000 idle accounts: {beside:.2f} ms")
    # Linear but for a sort; trials gave 2.0 to 2.5 and 1.0 to 1.4.
    if large > 3.2 * small or beside > 2.0 * small:
        sys.exit("the cost of a settlement does not follow the accounts that trade")


if __name__ == "__main__":
    costs()
    if "--quick" not in sys.argv:
        k_table()
