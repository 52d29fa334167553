"""Scenario files: what is wrong is named; what is left out is added; what happens when."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sluice.api.errors import ConfigError
from sluice.cli.simulate import load
from sluice.simulator.loop import EventLoop, Rank
from sluice.simulator.play import play
from sluice.simulator.report import Report
from sluice.simulator.scenario import JsonObject, parse


class Files:
    def manifests(self, path: str) -> Sequence[JsonObject]:
        return [queue(path)]

    def table(self, path: str) -> object:
        return {"accounts": ["a"], "runs": [{"seed": 7, "demand": [[1], [2]]}]}


def queue(name: str, gpus: int = 2, **spec: Any) -> dict[str, Any]:
    resource = {"name": "nvidia.com/gpu", "nominalQuota": gpus}
    flavors = [{"name": "default", "resources": [resource]}]
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]
    body = {"namespaceSelector": {}, "resourceGroups": groups, **spec}
    return {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": body}


def run(*sources: JsonObject, manifests: Any = (), **fields: Any) -> Report:
    raw = {
        "length": "4m",
        "manifests": [queue("a")] if manifests == () else manifests,
        "sources": list(sources),
        **fields,
    }
    return play(parse(raw, Files()))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"length": None}, "scenario.length: required"),
        ({"length": "0s"}, "scenario.length: '0s' must be greater than 0"),
        ({"length": "long"}, "scenario.length: duration 'long'"),
        ({"speed": 2}, "scenario.speed: unknown field; known are name, about"),
        ({"start": "today"}, "scenario.start"),
        ({"balances": "day"}, "scenario.balances"),
        ({"by": "namespace"}, "scenario.by"),
        ({"seed": -1}, "scenario.seed: -1 must be a whole number"),
        ({"manifests": {}}, "scenario.manifests: must be a list"),
        ({"manifests": [{"spec": {}}]}, "scenario.manifests[0]: must be an object with a kind"),
        ({"manifests": [{"kind": "Potato", "metadata": {"name": "x"}}]}, "scenario.manifests[0]"),
        ({"sources": [{"a": {}, "b": {}}]}, "scenario.sources[0]: must have one key"),
        ({"sources": [{"storm": {}}]}, "scenario.sources[0].storm: unknown kind"),
        ({"sources": [{"demand": {"amounts": {"a": [-1]}}}]}, "demand.amounts.a[0]"),
        ({"sources": [{"demand": {"amounts": {"a": [1], "b": [1, 2]}}}]}, "b"),
        ({"sources": [{"demand": {"amounts": {"nobody": [1]}}}]}, "'nobody' has demand but no"),
        ({"sources": [{"jobs": {"queue": "x"}}]}, 'jobs.queue: required, "namespace/name"'),
        (
            {"sources": [{"jobs": {"queue": "x/y", "requests": {"cpu": "lots"}}}]},
            "jobs.requests.cpu: 'lots' is not a quantity",
        ),
        ({"sources": [{"trace": {"rows": [{"queue": "x/y", "amount": 0}]}}]}, "rows[0].amount"),
        ({"configuration": {"integrations": {}}}, "scenario.configuration.integrations"),
        ({"configuration": {"fairSharing": {"preemptionStrategies": ["Luck"]}}}, "Luck"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        run(**fields)
    assert message in str(refused.value)


def test_a_table_has_runs_by_seed() -> None:
    source = {"demand": {"table": "t.json"}}
    report = run(source, seed=7, length="2m")
    assert [row.accounts["a"].demand for row in report.rows] == [1, 2]
    with pytest.raises(ConfigError, match="no run of seed 8; there are 7"):
        run(source, seed=8)


def test_manifests_by_path() -> None:
    report = run(manifests=[{"path": "b"}])
    assert list(report.totals) == ["b"]


def test_unserved_demand_is_withdrawn() -> None:
    report = run({"demand": {"amounts": {"a": [5, 0]}, "repeat": 2}})
    used = [int(row.accounts["a"].used) for row in report.rows]
    assert used == [2, 0, 2, 0]
    assert report.totals["a"].gave_up == 6
    assert report.min_over_max == 1.0


def test_jobs_run_their_time_and_wait_for_each_other() -> None:
    jobs = {
        "queue": "simulation/a", "requests": {"nvidia.com/gpu": 2}, "runTime": "90s",
        "every": "60s", "count": 2,
    }  # fmt: skip
    report = run({"jobs": jobs})
    assert [float(row.accounts["a"].used) for row in report.rows] == [2, 2, 2, 0]
    assert report.totals["a"].waits_ms == [0, 30_000]


def test_a_trace_gives_up_after_its_patience() -> None:
    row = {"queue": "simulation/a", "amount": 2, "runTime": "100s"}
    rows = [row, {**row, "at": "10s"}, {**row, "at": "80s"}]
    report = run({"trace": {"rows": rows, "patience": "30s"}})
    assert report.totals["a"].waits_ms == [0, 30_000, 20_000]
    assert report.totals["a"].gave_up == 1


def test_a_victim_waits_again_and_begins_anew() -> None:
    rules = {"preemption": {"reclaimWithinCohort": "Any"}, "cohortName": "all"}
    manifests = [queue("a", 2, **rules), queue("b", 0, **rules)]
    job = {"requests": {"nvidia.com/gpu": 2}, "runTime": "2m"}
    report = run(
        {"jobs": {**job, "name": "b", "queue": "simulation/b"}},
        {"jobs": {**job, "name": "a", "queue": "simulation/a", "at": "60s", "runTime": "60s"}},
        manifests=manifests,
        length="5m",
    )
    assert report.totals["b"].evictions == 1
    assert [float(row.accounts["b"].used) for row in report.rows] == [2, 0, 2, 2, 0]


def test_reports_by_local_queue() -> None:
    metadata = {"name": "door", "namespace": "team"}
    door = {"kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": "a"}}
    row = {"queue": "team/door", "amount": 1, "runTime": "60s"}
    report = run({"trace": {"rows": [row]}}, manifests=[queue("a"), door], by="localQueue")
    assert float(report.totals["team/door"].used) == 1


def test_the_loop_keeps_the_order_of_an_instant() -> None:
    loop, seen = EventLoop(0), []
    loop.at(5, Rank.ARRIVE, lambda: seen.append("arrive"))
    loop.at(5, Rank.END, lambda: seen.append("end"))
    loop.at(5, Rank.SETTLE, lambda: seen.append("settle"))
    assert not loop.run_now()
    loop.now_ms = 5
    assert loop.run_now(Rank.SETTLE)
    assert seen == ["end", "settle"]
    assert loop.run_now()
    assert loop.next_ms() is None


def test_a_file_that_is_no_scenario(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    for text, message in (("a: [", "cannot read this"), ("--- 1\n--- 2\n", "must hold one YAML")):
        file.write_text(text)
        with pytest.raises(ConfigError, match=message):
            load(file)
    file.write_text("length: 1m\nmanifests: [{path: lost.yaml}]\n")
    with pytest.raises(ConfigError, match=r"lost\.yaml: cannot read this"):
        load(file)
