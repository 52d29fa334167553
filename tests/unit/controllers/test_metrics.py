"""Metrics of the process: what is counted, under which names and labels."""

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families as parse

from sluice.clock import ManualClock
from sluice.controllers.metrics import Metrics, Role
from sluice.kube.requests import Verb

Labels = dict[str, str]


async def samples(metrics: Metrics) -> dict[str, list[tuple[Labels, float]]]:
    found: dict[str, list[tuple[Labels, float]]] = {}
    for family in parse((await metrics.render()).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


async def test_requests_are_counted_by_verb_resource_and_code() -> None:
    metrics = Metrics(clock=ManualClock())
    metrics.api_request(Verb.PATCH, "workloads.kueue.x-k8s.io/status", 200, 0.01)
    metrics.api_request(Verb.PATCH, "workloads.kueue.x-k8s.io/status", 0, 1)
    found = await samples(metrics)
    status = {"verb": "patch", "resource": "workloads.kueue.x-k8s.io/status"}
    assert found["sluice_api_requests_total"] == [
        ({**status, "code": "200"}, 1.0),
        ({**status, "code": "<error>"}, 1.0),
    ]
    assert ({"code": "200", "method": "PATCH"}, 1.0) in found["rest_client_requests_total"]
    assert found["sluice_api_request_duration_seconds_count"] == [({"verb": "patch"}, 2.0)]


async def test_watches_do_not_spoil_the_latency() -> None:
    metrics = Metrics(clock=ManualClock())
    metrics.api_request(Verb.WATCH, "pods", 200, 300)
    found = await samples(metrics)
    assert "sluice_api_request_duration_seconds_count" not in found


async def test_webhook_requests() -> None:
    metrics = Metrics(clock=ManualClock())
    for allowed in (True, False):
        metrics.started("/validate-x")
        metrics.finished("/validate-x", 200, allowed, 0.002)
    metrics.started("/validate-x")
    found = await samples(metrics)
    labels = {"webhook": "/validate-x"}
    assert found["controller_runtime_webhook_requests_total"] == [({**labels, "code": "200"}, 2.0)]
    assert found["controller_runtime_webhook_requests_in_flight"] == [(labels, 1.0)]
    assert found["sluice_webhook_denials_total"] == [(labels, 1.0)]


async def test_cycles_carry_the_role_of_the_moment() -> None:
    role = Role.FOLLOWER
    metrics = Metrics(clock=ManualClock(), role=lambda: role)
    metrics.cycle(0.01, has_admitted=False)
    role = Role.LEADER
    metrics.cycle(0.01, has_admitted=True)
    found = await samples(metrics)
    assert found["kueue_admission_attempts_total"] == [
        ({"result": "inadmissible", "replica_role": "follower"}, 1.0),
        ({"result": "success", "replica_role": "leader"}, 1.0),
    ]


async def test_the_build_has_kueues_labels_and_no_role() -> None:
    found = await samples(Metrics(clock=ManualClock()))
    ((labels, value),) = found["kueue_build_info"]
    assert value == 1
    assert set(labels) == {
        "git_version",
        "git_commit",
        "build_date",
        "go_version",
        "compiler",
        "platform",
    }
    assert "process_resident_memory_bytes" in found


class Counting:
    """A source that tells how often it was asked."""

    def __init__(self) -> None:
        self.count = 0

    def snapshot(self) -> list[Metric]:
        self.count += 1
        return [GaugeMetricFamily("asked", "How often", value=self.count)]


async def test_sources_are_asked_at_most_once_a_second() -> None:
    clock, source = ManualClock(), Counting()
    metrics = Metrics(clock=clock)
    metrics.add_source(source)
    for _ in range(3):
        assert (await samples(metrics))["asked"] == [({}, 1.0)]
    clock.advance(1_000)
    assert (await samples(metrics))["asked"] == [({}, 2.0)]
