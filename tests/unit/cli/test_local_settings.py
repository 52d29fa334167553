"""A Configuration file for a local control plane: addresses are replaced, all else holds."""

import pytest

from sluice.api.errors import ConfigError
from sluice.cli.local_settings import local_settings, read_settings, replaced_fields

HEADER = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
FILE = f"""{HEADER}
namespace: kueue-system
webhook: {{host: 0.0.0.0, port: 9443}}
metrics: {{bindAddress: ":8443", enableClusterQueueResources: true}}
health: {{healthProbeBindAddress: ":8081", readinessEndpointName: ready}}
leaderElection: {{leaderElect: true}}
internalCertManagement: {{enable: false}}
manageJobsWithoutQueueName: true
waitForPodsReady: {{timeout: 7m}}
featureGates: {{PartialAdmission: false}}
"""


def test_addresses_certificates_and_election_are_local() -> None:
    config = local_settings(read_settings("f", FILE), 1234).configuration
    assert (config.webhook.host, config.webhook.port) == ("127.0.0.1", 1234)
    assert config.metrics.bind_address == "127.0.0.1:0"
    assert config.health.health_probe_bind_address == "127.0.0.1:0"
    assert config.leader_election.leader_elect is False
    assert config.internal_cert_management.enable is True
    assert config.namespace == "sluice-system"


def test_all_else_of_the_file_holds() -> None:
    settings = local_settings(read_settings("f", FILE), 1234)
    config = settings.configuration
    assert config.manage_jobs_without_queue_name is True
    assert config.metrics.enable_cluster_queue_resources is True
    assert config.health.readiness_endpoint_name == "ready"
    assert config.wait_for_pods_ready is not None
    assert config.wait_for_pods_ready.timeout_ms == 7 * 60_000
    assert not settings.gates.enabled("PartialAdmission")


def test_what_is_replaced_is_named_if_the_file_sets_it() -> None:
    assert replaced_fields(read_settings("f", FILE)) == (
        "namespace",
        "webhook",
        "metrics.bindAddress",
        "health.healthProbeBindAddress",
        "leaderElection",
        "internalCertManagement",
    )
    assert replaced_fields(read_settings("f", f"{HEADER}metrics: {{}}\n")) == ()


def test_without_a_file_the_defaults_hold() -> None:
    config = local_settings(None, 1234).configuration
    assert config.webhook.port == 1234
    assert config.manage_jobs_without_queue_name is False


@pytest.mark.parametrize("line", ["webhook: {port: 99999}", "webhok: {}", "namespace: [x]"])
def test_a_wrong_file_is_named_with_its_field(line: str) -> None:
    field = line.partition(":")[0]
    with pytest.raises(ConfigError, match=f"--config kueue.yaml: .*{field}"):
        read_settings("kueue.yaml", f"{HEADER}{line}\n")
