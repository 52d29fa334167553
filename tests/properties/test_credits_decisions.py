"""What credits must come to on any demand (docs/spec/credits.md 5), played on the real engine."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.simulator.play import play
from sluice.simulator.report import Report
from sluice.simulator.scenario import Scenario, parse

QUANTUM = 60_000_000
"""Ledger units in one GPU-quantum."""
NAMES = "abcd"


class NoFiles:
    """These scenarios name no files."""

    def manifests(self, path: str) -> Any:
        raise AssertionError(path)

    def table(self, path: str) -> object:
        raise AssertionError(path)


def queue(name: str, quota: dict[str, str], cohort: str) -> dict[str, Any]:
    resource = {"name": "nvidia.com/gpu", **quota}
    group = {
        "coveredResources": ["nvidia.com/gpu"],
        "flavors": [{"name": "default", "resources": [resource]}],
    }
    spec = {"cohortName": cohort, "namespaceSelector": {}, "resourceGroups": [group]}
    return {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}


def pool(name: str, own: int, parent: str | None = None) -> dict[str, Any]:
    resource = {"name": "nvidia.com/gpu", "nominalQuota": own}
    group = {
        "coveredResources": ["nvidia.com/gpu"],
        "flavors": [{"name": "default", "resources": [resource]}],
    }
    spec: dict[str, Any] = {"resourceGroups": [group]}
    if parent is not None:
        spec["parentName"] = parent
    return {"kind": "Cohort", "metadata": {"name": name}, "spec": spec}


def scenario(manifests: list[dict[str, Any]], demand: dict[str, list[int]]) -> Scenario:
    quanta = len(next(iter(demand.values())))
    spec = {"cohortName": "all", "settlementPeriod": "60s", "horizon": "60s"}
    policy = {"kind": "CreditPolicy", "metadata": {"name": "credits"}, "spec": spec}
    return parse(
        {
            "length": f"{quanta}m",
            "manifests": [*manifests, policy],
            "sources": [{"demand": {"amounts": demand}}],
        },
        NoFiles(),
    )


def flat(nominal: list[int], own: int, demand: list[list[int]]) -> Scenario:
    manifests = [pool("all", own)]
    manifests += [
        queue(name, {"nominalQuota": str(n)}, "all")
        for name, n in zip(NAMES, nominal, strict=False)
    ]
    rows = dict(zip(NAMES, map(list, zip(*demand, strict=True)), strict=False))
    return scenario(manifests, rows)


def used(report: Report) -> list[list[int]]:
    return [[int(a.used) for a in row.accounts.values()] for row in report.rows]


def balances(report: Report) -> list[int]:
    return [report.balances[("all", "ClusterQueue", name)] for name in report.totals]


class Karma:
    """Karma per quantum, in the ledger's integers (docs/spec/credits.md 5, last paragraph)."""

    def __init__(self, guaranteed: list[int], own: int) -> None:
        self.guaranteed = guaranteed
        self.own = own
        self.credits = [0] * len(guaranteed)

    def quantum(self, demand: list[int]) -> list[int]:
        n = len(demand)
        got = [min(d, g) for d, g in zip(demand, self.guaranteed, strict=True)]
        donated = [g - x for g, x in zip(self.guaranteed, got, strict=True)]
        borrowed = [0] * n
        balance = list(self.credits)
        for _ in range(sum(donated) + self.own):
            want = [i for i in range(n) if got[i] < demand[i]]
            if not want:
                break
            i = min(want, key=lambda i: (-balance[i], borrowed[i], i))
            got[i] += 1
            borrowed[i] += 1
            balance[i] -= QUANTUM
        self._pay(balance, donated, min(sum(borrowed), sum(donated)) * QUANTUM)
        inflow = self.own * QUANTUM
        parts = [inflow // n + (i < inflow % n) for i in range(n)]
        self.credits = [b + p for b, p in zip(balance, parts, strict=True)]
        return got

    def _pay(self, balance: list[int], donated: list[int], amount: int) -> None:
        """Raise the poorest donors together, each by what it donated at most."""
        room = [d * QUANTUM for d in donated]
        while amount:
            donors = [i for i in range(len(balance)) if room[i]]
            low = min(balance[i] for i in donors)
            poorest = [i for i in donors if balance[i] == low]
            above = [balance[i] - low for i in donors if balance[i] > low]
            step = min([*(room[i] for i in poorest), *above, amount // len(poorest)])
            if step == 0:
                for i in poorest[:amount]:
                    balance[i] += 1
                    room[i] -= 1
                return
            for i in poorest:
                balance[i] += step
                room[i] -= step
            amount -= step * len(poorest)


@st.composite
def flats(draw: st.DrawFn, quanta: int = 8) -> tuple[list[int], int, list[list[int]]]:
    """Draw nominal quotas, the cohort's own quota, and demand per quantum."""
    count = draw(st.integers(2, 4))
    nominal = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    row = st.lists(st.integers(0, 6), min_size=count, max_size=count)
    demand = draw(st.lists(row, min_size=1, max_size=quanta))
    return nominal, draw(st.integers(0, 5)), demand


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(flats())
def test_a_flat_tree_is_karma(case: tuple[list[int], int, list[list[int]]]) -> None:
    nominal, own, demand = case
    report = play(flat(nominal, own, demand))
    karma = Karma(nominal, own)
    assert used(report) == [karma.quantum(row) for row in demand]
    assert balances(report) == karma.credits


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(flats(), st.data())
def test_asking_for_more_than_one_needs_gains_nothing(
    case: tuple[list[int], int, list[list[int]]], data: st.DataObject
) -> None:
    nominal, _, demand = case
    count = len(nominal)
    own = count * data.draw(st.integers(0, 2), label="pool per account")
    liar = data.draw(st.integers(0, count - 1), label="liar")
    share = nominal[liar] + own // count
    asked = [[max(share, d) if i == liar else d for i, d in enumerate(row)] for row in demand]

    def useful(report: Report) -> int:
        return sum(min(got[liar], row[liar]) for got, row in zip(used(report), demand, strict=True))

    assert useful(play(flat(nominal, own, asked))) <= useful(play(flat(nominal, own, demand)))


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[str]]:
    """Draw a tree of two levels with limits."""
    manifests = [pool("all", draw(st.integers(0, 4)))]
    cohorts = ["all"]
    if draw(st.booleans()):
        cohorts.append("sub")
        manifests.append(pool("sub", draw(st.integers(0, 3)), "all"))
    names = list(NAMES[: draw(st.integers(2, 4))])
    for name in names:
        nominal = draw(st.integers(0, 4))
        quota = {"nominalQuota": str(nominal)}
        if draw(st.booleans()):
            quota["borrowingLimit"] = str(draw(st.integers(0, 3)))
        if draw(st.booleans()):
            quota["lendingLimit"] = str(draw(st.integers(0, nominal)))
        manifests.append(queue(name, quota, draw(st.sampled_from(cohorts))))
    return manifests, names


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(trees(), st.data())
def test_no_capacity_is_idle_while_a_head_that_fits_waits(
    tree: tuple[list[dict[str, Any]], list[str]], data: st.DataObject
) -> None:
    manifests, names = tree
    row = st.lists(st.integers(0, 6), min_size=4, max_size=4)
    demand = {name: data.draw(row, label=name) for name in names}
    report = play(scenario(manifests, demand))
    for at, got in enumerate(used(report)):
        left = _fits_one_more(manifests, dict(zip(report.totals, got, strict=True)))
        waiting = {name for name in names if demand[name][at] > got[names.index(name)]}
        assert not (left & waiting)


def _fits_one_more(manifests: list[dict[str, Any]], usage: dict[str, int]) -> set[str]:
    """Return the queues that one more unit fits in (docs/spec/algorithm.md 1.2)."""
    own: dict[str, int] = {}
    quota: dict[str, tuple[str, int, int | None, int | None]] = {}
    above: dict[str, str] = {}
    for manifest in manifests:
        spec, name = manifest["spec"], manifest["metadata"]["name"]
        if manifest["kind"] == "CreditPolicy":
            continue
        entry = spec["resourceGroups"][0]["flavors"][0]["resources"][0]
        if manifest["kind"] == "Cohort":
            own[name] = int(entry["nominalQuota"])
            if "parentName" in spec:
                above[name] = spec["parentName"]
            continue
        limits = [entry.get("borrowingLimit"), entry.get("lendingLimit")]
        borrow, lend = (None if x is None else int(x) for x in limits)
        quota[name] = (spec["cohortName"], int(entry["nominalQuota"]), borrow, lend)

    def kept(name: str) -> int:
        _, nominal, _, lend = quota[name]
        return 0 if lend is None else nominal - lend

    def free(cohort: str) -> int:
        members = [q for q in quota if quota[q][0] == cohort]
        room = own[cohort] + sum(quota[q][1] - kept(q) for q in members)
        room -= sum(max(0, usage[q] - kept(q)) for q in members)
        for child in [c for c in above if above[c] == cohort]:
            room += free(child)
        return room

    fits = set()
    for name, (_, nominal, borrow, _) in quota.items():
        room = free("all")
        if borrow is not None:
            room = min(room, nominal - kept(name) - max(0, usage[name] - kept(name)) + borrow)
        if max(0, kept(name) - usage[name]) + room > 0:
            fits.add(name)
    return fits
