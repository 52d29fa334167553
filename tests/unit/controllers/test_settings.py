"""From the configuration file to the manager's options."""

import pytest

from sluice.api.configuration import default_settings, parse
from sluice.controllers.options import Workers
from sluice.controllers.settings import manager_options
from sluice.engine.options import FairStrategy, RequeuingTimestamp

HEAD = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"


def test_defaults() -> None:
    found = manager_options(default_settings(default_namespace="here"), identity="me")
    assert found.identity == "me"
    assert found.election is not None
    assert (found.election.namespace, found.election.name) == ("here", "manager.sluicegate.io")
    assert found.election.times.duration_s == 15
    assert found.lifecycle.pods_ready_timeout_ms == 1_800_000
    assert found.lifecycle.recovery_timeout_ms == 1_800_000
    assert found.jobs.frameworks == ("batch/job",)
    assert found.jobs.pods_ready
    assert not found.jobs.managed_namespaces.matches({"kubernetes.io/metadata.name": "kube-system"})
    assert found.engine.fair_sharing is None
    assert found.workers == Workers()


@pytest.mark.parametrize(
    ("given", "name"),
    [("c1f6bfd2.kueue.x-k8s.io", "manager.sluicegate.io"), ("mine", "mine")],
)
def test_lease_name(given: str, name: str) -> None:
    text = f"{HEAD}leaderElection: {{leaderElect: true, resourceName: {given}}}\n"
    found = manager_options(parse(text), identity="i")
    assert found.election is not None
    assert found.election.name == name


def test_what_a_file_says() -> None:
    text = f"""{HEAD}
leaderElection: {{leaderElect: false}}
manageJobsWithoutQueueName: true
waitForPodsReady:
  timeout: 5m
  recoveryTimeout: 0s
  blockAdmission: true
  requeuingStrategy: {{timestamp: Creation, backoffLimitCount: 3, backoffBaseSeconds: 10}}
fairSharing: {{preemptionStrategies: [LessThanInitialShare]}}
resources:
  excludeResourcePrefixes: [example.com]
  transformations:
  - {{input: nvidia.com/gpu, strategy: Replace, outputs: {{credits: "1.5"}}}}
objectRetentionPolicies: {{workloads: {{afterFinished: 1h}}}}
integrations: {{frameworks: [batch/job], labelKeysToCopy: [team]}}
controller: {{groupKindConcurrency: {{Job.batch: 7}}}}
featureGates: {{PartialAdmission: false}}
"""
    found = manager_options(parse(text), identity="i")
    assert found.election is None
    assert found.jobs.manages_unqueued
    assert found.lifecycle.pods_ready_timeout_ms == 300_000
    assert found.lifecycle.recovery_timeout_ms == 0
    assert found.lifecycle.requeuing.count_max == 3
    assert found.lifecycle.requeuing.backoff_base_s == 10
    assert found.lifecycle.retain_finished_ms == 3_600_000
    assert found.engine.block_admission
    assert found.engine.requeuing_timestamp is RequeuingTimestamp.CREATION
    assert found.engine.fair_sharing is not None
    assert found.engine.fair_sharing.strategies == (FairStrategy.INITIAL_SHARE,)
    (transformation,) = found.engine.transformations
    assert str(transformation.outputs[0][1]) == "3/2"
    assert not found.engine.gates.partial_admission
    assert not found.jobs.workload.partial_admission
    assert found.jobs.workload.label_keys_to_copy == ("team",)
    assert found.workers.jobs == 7


def test_pods_ready_switched_off() -> None:
    found = manager_options(
        parse(f"{HEAD}featureGates: {{DisableWaitForPodsReady: true}}\n"), identity="i"
    )
    assert found.lifecycle.pods_ready_timeout_ms is None
    assert not found.jobs.pods_ready
