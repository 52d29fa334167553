"""Kueue's Configuration file: what is read, defaulted, converted (docs/spec/api.md 6)."""

import pytest

from sluice.api.configuration import Configuration, default_settings, parse
from sluice.api.configuration_effect import GATES as EFFECTIVE_GATES
from sluice.api.configuration_effect import fields_without_effect
from sluice.api.errors import ConfigError
from sluice.api.feature_gates import GATES
from sluice.api.names import NAMESPACE_NAME_LABEL

HEAD = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
OLD_HEAD = "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\n"


def read(text: str, head: str = HEAD) -> Configuration:
    return parse(head + text).configuration


def test_an_empty_file_has_the_defaults_of_no_file() -> None:
    assert parse(HEAD).configuration == default_settings().configuration


def test_the_defaults() -> None:
    config = default_settings().configuration
    assert config.namespace == "kueue-system"
    assert (config.webhook.host, config.webhook.port) == ("", 9443)
    assert config.leader_election.resource_name == "c1f6bfd2.kueue.x-k8s.io"
    assert config.leader_election.lease_duration_ms == 15_000
    assert config.metrics.bind_address == ":8443"
    assert config.metrics.local_queue_metrics.enable
    assert config.health.health_probe_bind_address == ":8081"
    assert (config.client_connection.qps, config.client_connection.burst) == (300.0, 500)
    assert config.integrations.frameworks == ("batch/job",)
    assert config.wait_for_pods_ready is not None
    assert config.wait_for_pods_ready.timeout_ms == 1_800_000
    assert config.wait_for_pods_ready.recovery_timeout_ms == 1_800_000
    assert not config.wait_for_pods_ready.block_admission
    assert config.fair_sharing is None
    assert config.multi_kueue.worker_lost_timeout_ms == 900_000


def test_the_default_selector_leaves_out_the_system_and_ourselves() -> None:
    selected = parse(HEAD + "namespace: here").managed_namespaces
    assert selected.matches({NAMESPACE_NAME_LABEL: "team"})
    assert not selected.matches({NAMESPACE_NAME_LABEL: "kube-system"})
    assert not selected.matches({NAMESPACE_NAME_LABEL: "here"})


def test_values_are_read_and_durations_are_milliseconds() -> None:
    config = read(
        "waitForPodsReady: {timeout: 1h30m, recoveryTimeout: 0s}\n"
        "clientConnection: {qps: 50, burst: 100}\n"
        "webhook: {port: 0, host: 127.0.0.1}\n"
    )
    assert config.wait_for_pods_ready is not None
    assert config.wait_for_pods_ready.timeout_ms == 5_400_000
    assert config.wait_for_pods_ready.recovery_timeout_ms == 0
    assert config.client_connection.qps == 50.0
    assert config.webhook.port == 0


def test_a_timeout_of_zero_is_the_default_and_recovery_follows_it() -> None:
    zero = read("waitForPodsReady: {timeout: 0s}").wait_for_pods_ready
    short = read("waitForPodsReady: {timeout: 5m}").wait_for_pods_ready
    assert zero is not None
    assert short is not None
    assert zero.timeout_ms == 1_800_000
    assert short.recovery_timeout_ms == 300_000


def test_an_explicit_empty_section_of_local_queue_metrics_turns_them_off() -> None:
    assert not read("metrics: {localQueueMetrics: {}}").metrics.local_queue_metrics.enable


def test_null_counts_as_absent() -> None:
    assert read("webhook: null\nintegrations: {frameworks: null}") == read("")


def test_a_gate_turns_waiting_for_pods_off() -> None:
    text = "featureGates: {DisableWaitForPodsReady: true}"
    assert read(text).wait_for_pods_ready is None


def test_json_is_yaml() -> None:
    text = '{"apiVersion":"config.kueue.x-k8s.io/v1beta2","kind":"Configuration","namespace":"x"}'
    assert parse(text).configuration.namespace == "x"


@pytest.mark.parametrize(
    ("text", "is_on", "blocks"),
    [
        pytest.param("", False, False, id="absent"),
        pytest.param("waitForPodsReady: {enable: false}", False, False, id="off"),
        pytest.param("waitForPodsReady: {timeout: 5m}", False, False, id="not enabled"),
        pytest.param("waitForPodsReady: {enable: true}", True, True, id="on"),
        pytest.param(
            "waitForPodsReady: {enable: true, blockAdmission: false}", True, False, id="no block"
        ),
    ],
)
def test_waiting_for_pods_in_v1beta1(text: str, is_on: bool, blocks: bool) -> None:
    ready = read(text, OLD_HEAD).wait_for_pods_ready
    assert (ready is not None) is is_on
    assert (ready is not None and ready.block_admission) is blocks


@pytest.mark.parametrize(
    ("text", "strategies"),
    [
        ("", None),
        ("fairSharing: {enable: false}", None),
        (
            "fairSharing: {enable: true}",
            ("LessThanOrEqualToFinalShare", "LessThanInitialShare"),
        ),
        (
            "fairSharing: {enable: true, preemptionStrategies: [LessThanInitialShare]}",
            ("LessThanInitialShare",),
        ),
    ],
)
def test_fair_sharing_in_v1beta1(text: str, strategies: tuple[str, ...] | None) -> None:
    sharing = read(text, OLD_HEAD).fair_sharing
    assert (None if sharing is None else sharing.preemption_strategies) == strategies


def test_fields_of_v1beta1_that_are_gone_are_dropped() -> None:
    text = "queueVisibility: {updateIntervalSeconds: 5}\nintegrations: {podOptions: {}}"
    assert read(text, OLD_HEAD) == read("", OLD_HEAD)


def test_gates_come_from_one_place() -> None:
    assert parse(HEAD, gates={"PriorityBoost": True}).gates.enabled("PriorityBoost")
    with pytest.raises(ConfigError, match="both by --feature-gates and by featureGates"):
        parse(HEAD + "featureGates: {PriorityBoost: true}", gates={"PartialAdmission": False})


def test_what_has_no_effect_is_named_and_nothing_else() -> None:
    assert fields_without_effect(parse(HEAD)) == ()
    settings = parse(
        HEAD
        + "pprofBindAddress: :6060\n"
        + "namespace: x\n"
        + "integrations: {frameworks: [batch/job, pod]}\n"
        + "featureGates: {PriorityBoost: true, FailureRecoveryPolicy: true}\n"
    )
    assert fields_without_effect(settings) == (
        "featureGates[FailureRecoveryPolicy]",
        "integrations.frameworks[pod]",
        "pprofBindAddress",
    )


def test_gates_with_effect_exist() -> None:
    assert set(GATES) >= EFFECTIVE_GATES
