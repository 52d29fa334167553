"""Four ways to share on the same seeded demand: what teams get, and how long the worst one waits.

Six teams with the same demand over two weeks, from steady to one big burst a week; jobs that have
not begun after a day are given up. Static split, max-min (fair sharing by present usage), usage
decay (admission fair sharing: one ClusterQueue, a LocalQueue per team) and credits; credits also
with half of each team's quota given to the cohort, since what is guaranteed is not up for credits.
Prints a table; with ``--plot FILE`` also a picture (needs matplotlib), with ``--week FILE`` the
picture of a week of three teams for docs/credits.md.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "queue")]

from sluice.simulator.play import play  # noqa: E402
from sluice.simulator.report import Report  # noqa: E402
from sluice.simulator.scenario import parse  # noqa: E402

Json = dict[str, Any]
HOUR = 60
"""Minutes."""
DAYS = 14
TEAMS = ("steady", "daily", "nightly", "often", "weekly", "bursty")
GPUS = 60
NOMINAL = GPUS // len(TEAMS)
SHAPES = {
    # (hours on, hours off): all teams ask for the same sum.
    "steady": (24, 0),
    "daily": (8, 16),
    "nightly": (6, 18),
    "often": (3, 9),
    "weekly": (24, 144),
    "bursty": (12, 156),
}
LOAD = 1.0
"""Mean demand over capacity."""


class NoFiles:
    """Everything is inline."""

    def manifests(self, path: str) -> Any:
        """Refuse."""
        raise FileNotFoundError(path)

    def table(self, path: str) -> object:
        """Refuse."""
        raise FileNotFoundError(path)


def quota(amount: int) -> list[Json]:
    """Return resource groups of one flavor with GPUs."""
    resource = {"name": "nvidia.com/gpu", "nominalQuota": str(amount)}
    flavors = [{"name": "default", "resources": [resource]}]
    return [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]


def queue(name: str, amount: int, cohort: str | None, **more: Any) -> Json:
    """Return a ClusterQueue."""
    spec: Json = {"namespaceSelector": {}, "resourceGroups": quota(amount), **more}
    if cohort is not None:
        spec["cohortName"] = cohort
    return {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}


def door(team: str, cluster_queue: str) -> Json:
    """Return a team's LocalQueue."""
    metadata = {"name": team, "namespace": "teams"}
    return {"kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": cluster_queue}}


def policy(**spec: Any) -> Json:
    """Return the CreditPolicy of cohort ``all``."""
    return {
        "kind": "CreditPolicy",
        "metadata": {"name": "credits"},
        "spec": {"cohortName": "all", **spec},
    }


def setups(teams: Iterable[str], nominal: int) -> dict[str, tuple[list[Json], Json]]:
    """Return manifests and configuration of each way to share."""
    teams = list(teams)
    doors = [door(team, team) for team in teams]
    apart = [queue(team, nominal, None) for team in teams]
    together = [queue(team, nominal, "all") for team in teams]
    scope = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}
    one = queue("all", nominal * len(teams), None, **scope)
    decay = {"usageHalfLifeTime": "168h", "usageSamplingInterval": "5m"}
    half = nominal // 2
    pooled = [queue(team, nominal - half, "all") for team in teams]
    pool = {
        "kind": "Cohort",
        "metadata": {"name": "all"},
        "spec": {"resourceGroups": quota(half * len(teams))},
    }
    return {
        "static split": ([*apart, *doors], {}),
        "max-min": ([*together, *doors], {"fairSharing": {}}),
        "usage decay": (
            [one, *[door(team, "all") for team in teams]],
            {"admissionFairSharing": decay},
        ),
        "max-min, half pooled": ([pool, *pooled, *doors], {"fairSharing": {}}),
        "credits": ([*together, *doors, policy(horizon="1h")], {}),
        "credits, half pooled": ([pool, *pooled, *doors, policy(horizon="1h")], {}),
    }


def demand(seed: int) -> list[Json]:
    """Return jobs as rows of a trace: every team the same sum, each in its own rhythm."""
    random = Random(seed)
    rows: list[Json] = []
    for team in TEAMS:
        on, off = SHAPES[team]
        start = random.randrange(on + off) * HOUR if off else 0
        turn = (on + off) * HOUR
        hours = [h for h in range(24 * DAYS) if (h * HOUR + start) % turn < on * HOUR]
        wanted = LOAD * NOMINAL * 24 * DAYS
        while wanted > 0:
            amount, run = random.choice((1, 1, 2, 4)), random.choice((20, 40, 60, 90, 120))
            at = random.choice(hours) * HOUR + random.randrange(HOUR)
            rows.append(
                {
                    "at": f"{at}m" if at else "0",
                    "queue": f"teams/{team}",
                    "amount": amount,
                    "runTime": f"{run}m",
                }
            )
            wanted -= amount * run / HOUR
    return sorted(rows, key=lambda row: (int(str(row["at"]).rstrip("m")), row["queue"]))


def scenario(manifests: list[Json], configuration: Json, sources: list[Json], hours: int) -> Any:
    """Return a scenario whose report is by LocalQueue and hour."""
    raw = {
        "length": f"{hours}h",
        "period": "1h",
        "by": "localQueue",
        "configuration": configuration,
        "manifests": manifests,
        "sources": sources,
    }
    return parse(raw, NoFiles())


def measure(report: Report, hours: int) -> dict[str, float]:
    """Return the figures of one run."""
    waits = {name: sorted(t.waits_ms) for name, t in report.totals.items()}
    mean = {n: sum(w) / len(w) / 3_600_000 if w else 0.0 for n, w in waits.items()}
    late = {n: w[int(0.95 * (len(w) - 1))] / 3_600_000 if w else 0.0 for n, w in waits.items()}
    used = sum(float(total.used) for total in report.totals.values())
    return {
        "utilisation": used / (GPUS * hours),
        "min/max": report.min_over_max,
        "Jain": report.jain,
        "worst mean wait, h": max(mean.values()),
        "worst p95 wait, h": max(late.values()),
        "given up": float(sum(total.gave_up for total in report.totals.values())),
    }


def compare(seeds: Iterable[int]) -> dict[str, dict[str, float]]:
    """Return the mean figures of each way to share over some seeds."""
    sums: dict[str, dict[str, float]] = {}
    count = 0
    for seed in seeds:
        count += 1
        trace = [{"trace": {"patience": "24h", "rows": demand(seed)}}]
        for name, (manifests, configuration) in setups(TEAMS, NOMINAL).items():
            hours = 24 * DAYS
            found = measure(play(scenario(manifests, configuration, trace, hours)), hours)
            into = sums.setdefault(name, dict.fromkeys(found, 0.0))
            for what, value in found.items():
                into[what] += value
    return {name: {w: v / count for w, v in figures.items()} for name, figures in sums.items()}


def week(name: str) -> Report:
    """Return a week of three teams: two busy all the time, one idle for six days."""
    teams = ("a", "b", "c")
    manifests, configuration = setups(teams, 8)[name]
    rows = []
    for hour in range(24 * 7):
        for team in teams:
            busy = 12 if team != "c" else (20 if hour >= 24 * 6 else 0)
            at = f"{hour}h" if hour else "0"
            row = {"at": at, "queue": f"teams/{team}", "amount": 1, "runTime": "1h"}
            rows += [row] * busy
    sources = [{"trace": {"patience": "1h", "rows": rows}}]
    return play(scenario(manifests, configuration, sources, 24 * 7))


def plot_week(path: str) -> None:
    """Draw the week with and without credits."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 1, sharex=True, figsize=(9, 5), layout="constrained")
    for axis, name in zip(axes, ("max-min, half pooled", "credits, half pooled"), strict=True):
        report = week(name)
        days = [at / 24 for at in range(len(report.rows))]
        for team, style in (("a", "-"), ("b", "--"), ("c", "-")):
            used = [float(row.accounts[f"teams/{team}"].used) for row in report.rows]
            axis.plot(days, used, style, label=f"team {team}", drawstyle="steps-post")
        title = "with credits" if name.startswith("credits") else "fair sharing by present usage"
        axis.set(title=title, ylabel="GPUs in use", ylim=(0, 25))
        axis.legend(loc="upper left", ncols=3)
    axes[1].set_xlabel("day")
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def plot_comparison(figures: dict[str, dict[str, float]], path: str) -> None:
    """Draw the table as bars."""
    from matplotlib import pyplot

    shown = ("utilisation", "min/max", "Jain", "worst mean wait, h")
    figure, axes = pyplot.subplots(1, len(shown), figsize=(12, 3.2), layout="constrained")
    for axis, what in zip(axes, shown, strict=True):
        axis.bar(list(figures), [found[what] for found in figures.values()])
        axis.set_title(what)
        axis.tick_params(axis="x", rotation=30)
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--plot", metavar="FILE")
    parser.add_argument("--week", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.week:
        plot_week(arguments.week)
        return
    figures = compare(range(1, arguments.seeds + 1))
    columns = list(next(iter(figures.values())))
    print(f"{'':22}" + "".join(f"{c:>20}" for c in columns))
    for name, found in figures.items():
        print(f"{name:22}" + "".join(f"{found[c]:>20.3f}" for c in columns))
    if arguments.plot:
        plot_comparison(figures, arguments.plot)


if __name__ == "__main__":
    main()
