"""What is wrong with a Configuration file is named with its path, and with the fix."""

import pytest

from sluice.api.configuration import parse
from sluice.api.errors import ConfigError

HEAD = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("- a", "must be a mapping"),
        ("a: [", "not valid YAML"),
        ("a: 1\n---\na: 2\n", "not valid YAML"),
        ("kind: Configuration", "apiVersion: Unsupported value: null"),
        (HEAD.replace("Configuration", "Config"), 'kind: Unsupported value: "Config"'),
        (HEAD.replace("v1beta2", "v1"), 'supported values: "config.kueue.x-k8s.io/v1beta2"'),
    ],
)
def test_what_is_no_configuration_file_says_so(text: str, message: str) -> None:
    assert message in refused(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("webhok: {}", 'unknown field "webhok"; did you mean webhook?'),
        ("webhook: {prt: 1}", 'unknown field "webhook.prt"; did you mean port?'),
        (
            "resources: {transformations: [{input: a, outpts: {}}]}",
            'unknown field "resources.transformations[0].outpts"; did you mean outputs?',
        ),
        ("lease_duration: 1", 'unknown field "lease_duration"'),
        ("webhook:\n  port: 1\n  port: 2", 'duplicate field "webhook.port" on line 5'),
        ("webhook: {port: '1'}", 'webhook.port: Invalid value: "1": must be integer'),
        ("webhook: {port: 70000}", "webhook.port: Invalid value: 70000"),
        ("webhook: []", "webhook: Invalid value"),
        ("integrations: {frameworks: pod}", "integrations.frameworks: Invalid value"),
        ("waitForPodsReady: {timeout: 30}", "must be a duration such as 30s"),
        ("waitForPodsReady: {timeout: 30x}", "duration '30x' is not of the form"),
        (
            "waitForPodsReady: {requeuingStrategy: {timestamp: Later}}",
            'timestamp: Unsupported value: "Later": supported values: "Eviction", "Creation"',
        ),
        ("fairSharing: {}", "fairSharing.preemptionStrategies: Required value"),
    ],
)
def test_shape(text: str, message: str) -> None:
    assert message in refused(HEAD + text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("leaderElection: {leaseDuration: 5s}", "leaderElection.leaseDuration: Invalid value"),
        ("leaderElection: {retryPeriod: 9s}", "leaderElection.renewDeadline: Invalid value"),
        ("leaderElection: {resourceLock: endpoints}", "leaderElection.resourceLock: Unsupported"),
        ("managedJobsNamespaceSelector: {}", 'must not select the namespace "kube-system"'),
        (
            "managedJobsNamespaceSelector: {matchExpressions: [{key: a, operator: Near}]}",
            "not a valid selector operator",
        ),
        ("metrics: {bindAddress: here}", "metrics.bindAddress: Invalid value"),
        ("health: {healthProbeBindAddress: ':x'}", "health.healthProbeBindAddress: Invalid value"),
        ("tls: {minVersion: VersionSSL}", "tls.minVersion: Unsupported value"),
        (
            "tls: {minVersion: VersionTLS13, cipherSuites: [TLS_A]}",
            "tls.cipherSuites: Forbidden",
        ),
        (
            "internalCertManagement: {enable: true, webhookServiceName: A_b}",
            "internalCertManagement.webhookServiceName: Invalid value",
        ),
        ("waitForPodsReady: {timeout: -1s}", "waitForPodsReady.timeout: Invalid value"),
        (
            "waitForPodsReady: {requeuingStrategy: {backoffLimitCount: -1}}",
            "backoffLimitCount: Invalid value: -1: must be greater than or equal to 0",
        ),
        ("integrations: {frameworks: [pod, pod]}", "integrations.frameworks[1]: Duplicate"),
        ("integrations: {frameworks: [cron]}", "integrations.frameworks[0]: Unsupported"),
        (
            "integrations: {frameworks: [sparkoperator.k8s.io/sparkapplication]}",
            "needs the feature gate SparkApplicationIntegration",
        ),
        ("integrations: {externalFrameworks: [Foo]}", "must be Kind.version.group"),
        (
            "integrations: {frameworks: [batch/job], externalFrameworks: [Job.v1.batch]}",
            "is a built-in integration",
        ),
        ("integrations: {labelKeysToCopy: ['a b']}", "integrations.labelKeysToCopy[0]"),
        ("multiKueue: {gcInterval: -1s}", "multiKueue.gcInterval: Invalid value"),
        (
            "multiKueue: {incrementalDispatcherConfig: {stepSize: 1}}",
            "multiKueue.incrementalDispatcherConfig: Forbidden",
        ),
        (
            "fairSharing: {preemptionStrategies: [LessThanInitialShare, LessThanInitialShare]}",
            "fairSharing.preemptionStrategies: Unsupported value",
        ),
        ("admissionFairSharing: {usageSamplingInterval: 0s}", "must be greater than 0s"),
        ("admissionFairSharing: {resourceWeights: {cpu: -1}}", "resourceWeights[cpu]"),
        (
            "resources: {transformations: [{input: a}, {input: a}]}",
            "resources.transformations[1].input: Duplicate",
        ),
        (
            "resources: {transformations: [{input: a, outputs: {b: 1x}}]}",
            "resources.transformations[0].outputs[b]: Invalid value",
        ),
        (
            "resources: {quotaCheckStrategy: IgnoreUndeclared, excludeResourcePrefixes: [a]}",
            "resources.excludeResourcePrefixes: Forbidden",
        ),
        (
            "resources: {deviceClassMappings: [{name: a, deviceClassNames: []}]}",
            "deviceClassNames: Required value",
        ),
        (
            "objectRetentionPolicies: {workloads: {afterFinished: -1s}}",
            "objectRetentionPolicies.workloads.afterFinished",
        ),
        ("visibilityServer: {bindAddress: here}", "visibilityServer.bindAddress"),
        ("visibilityServer: {bindPort: 0}", "must be between 1 and 65535"),
        ("metrics: {customLabels: [{name: a}]}", "needs the feature gate CustomMetricLabels"),
        ("featureGates: {Nope: true}", "unknown feature gate Nope"),
    ],
)
def test_rules(text: str, message: str) -> None:
    assert message in refused(HEAD + text)


LABELS = "featureGates: {CustomMetricLabels: true}\nmetrics: {customLabels: [%s]}"


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("{name: 1a}", "must match ^[a-zA-Z]"),
        ("{name: a}, {name: a}", "metrics.customLabels[1].name: Duplicate value"),
        ("{name: a, sourceLabelKey: x, sourceAnnotationKey: y}", "keep one"),
        ("{name: a, sourceKind: Workload}", "trackedValues: Required value"),
        ("{name: a, trackedValues: [x, x]}", "trackedValues[1]: Duplicate value"),
        (
            ", ".join(f"{{name: a{i}}}" for i in range(7)),
            "Too many: 7: must have at most 6 labels of kind ClusterQueue",
        ),
    ],
)
def test_rules_of_custom_labels(labels: str, message: str) -> None:
    assert message in refused(HEAD + LABELS % labels)


def test_everything_wrong_is_said_at_once() -> None:
    message = refused(HEAD + "webhok: {}\nmetrics: {bindAdress: x}\nhealth: {a: 1}")
    assert message.count("unknown field") == 3


def test_kueues_own_manifest_is_taken() -> None:
    parse(
        HEAD
        + """
health:
  healthProbeBindAddress: :8081
metrics:
  bindAddress: :8443
webhook: {port: 9443}
leaderElection: {leaderElect: true, resourceName: c1f6bfd2.kueue.x-k8s.io}
controller:
  groupKindConcurrency:
    Job.batch: 5
    Pod: 5
    Workload.kueue.x-k8s.io: 10
    LocalQueue.kueue.x-k8s.io: 5
    Cohort.kueue.x-k8s.io: 1
    ClusterQueue.kueue.x-k8s.io: 5
    ResourceFlavor.kueue.x-k8s.io: 1
clientConnection: {qps: 50, burst: 100}
integrations:
  frameworks:
    - batch/job
    - kubeflow.org/mpijob
    - ray.io/rayjob
    - ray.io/raycluster
    - ray.io/rayservice
    - jobset.x-k8s.io/jobset
    - workload.codeflare.dev/appwrapper
    - trainer.kubeflow.org/trainjob
    - pod
    - deployment
    - statefulset
    - leaderworkerset.x-k8s.io/leaderworkerset
"""
    )
