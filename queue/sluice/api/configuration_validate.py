"""The rules of the Configuration file that its shape alone cannot hold. Pure.

Source: docs/spec/api.md section 6. Called by ``sluice.api.configuration``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Final

from sluice.api.configuration_models import (
    INCREMENTAL,
    AdmissionFairSharing,
    Configuration,
    Integrations,
    LeaderElection,
    MultiKueue,
    Selector,
    Tls,
    WaitForPodsReady,
)
from sluice.api.configuration_resources import resource_errors
from sluice.api.errors import FieldError, duplicate, forbidden, invalid, not_supported
from sluice.api.feature_gates import FeatureGates
from sluice.api.names import NAMESPACE_NAME_LABEL
from sluice.api.selectors import compile_selector
from sluice.api.validate.node import Node
from sluice.api.validate.syntax import (
    NEGATIVE,
    check,
    dns_subdomain,
    label_selector,
    label_value,
    qualified_name,
)

FRAMEWORKS: Final = (
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "kubeflow.org/mpijob",
    "kubeflow.org/pytorchjob",
    "kubeflow.org/tfjob",
    "kubeflow.org/xgboostjob",
    "kubeflow.org/paddlejob",
    "kubeflow.org/jaxjob",
    "trainer.kubeflow.org/trainjob",
    "ray.io/rayjob",
    "ray.io/raycluster",
    "ray.io/rayservice",
    "workload.codeflare.dev/appwrapper",
    "sparkoperator.k8s.io/sparkapplication",
    "pod",
    "deployment",
    "statefulset",
    "leaderworkerset.x-k8s.io/leaderworkerset",
)
"""Names that ``integrations.frameworks`` takes (docs/spec/api.md 2.4)."""

STRATEGIES: Final = (
    ("LessThanOrEqualToFinalShare",),
    ("LessThanInitialShare",),
    ("LessThanOrEqualToFinalShare", "LessThanInitialShare"),
)
TLS_VERSIONS: Final = ("VersionTLS12", "VersionTLS13")
_KIND_VERSION_GROUP: Final = re.compile(
    r"[A-Z][A-Za-z0-9]*\.v[a-z0-9]+\.[a-z0-9]([-a-z0-9.]*[a-z0-9])?"
)
_LABEL_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def validate(config: Configuration, gates: FeatureGates) -> list[FieldError]:
    """Return every broken rule, in the order of the fields."""
    errors = _namespace_errors(config)
    if config.leader_election.leader_elect:
        errors += _election_errors(config.leader_election)
    errors += _address_errors(config)
    errors += _tls_errors(config.tls)
    if config.internal_cert_management.enable:
        errors += _certificate_errors(config)
    if config.wait_for_pods_ready is not None:
        errors += _ready_errors(config.wait_for_pods_ready)
    errors += _integration_errors(config.integrations, gates)
    errors += _multikueue_errors(config.multi_kueue)
    if config.fair_sharing is not None:
        strategies = config.fair_sharing.preemption_strategies
        if strategies not in STRATEGIES:
            allowed = [", ".join(names) for names in STRATEGIES]
            errors.append(
                not_supported("fairSharing.preemptionStrategies", list(strategies), allowed)
            )
    if config.admission_fair_sharing is not None:
        errors += _admission_fair_sharing_errors(config.admission_fair_sharing)
    errors += resource_errors(config.resources, gates)
    errors += _retention_errors(config)
    return errors + _visibility_errors(config)


def _namespace_errors(config: Configuration) -> list[FieldError]:
    path = "managedJobsNamespaceSelector"
    errors = [
        *check("namespace", config.namespace, dns_subdomain),
        *_selector_errors(path, config.managed_jobs_namespace_selector),
    ]
    if errors:
        return errors
    selector = compile_selector(config.managed_jobs_namespace_selector.to_json())
    for name in dict.fromkeys(("kube-system", config.namespace)):
        if selector.matches({NAMESPACE_NAME_LABEL: name}):
            shown = config.managed_jobs_namespace_selector.model_dump(
                mode="json", by_alias=True, exclude_unset=True
            )
            detail = (
                f'must not select the namespace "{name}": exclude it with'
                f" {NAMESPACE_NAME_LABEL} NotIn [{name}]"
            )
            errors.append(invalid(path, shown, detail))
    return errors


def _selector_errors(path: str, selector: Selector) -> list[FieldError]:
    return label_selector(Node(selector.to_json(), path))


def _election_errors(election: LeaderElection) -> list[FieldError]:
    errors = []
    if election.resource_lock != "leases":
        errors.append(
            not_supported("leaderElection.resourceLock", election.resource_lock, ["leases"])
        )
    errors += check("leaderElection.resourceName", election.resource_name, dns_subdomain)
    if election.resource_namespace:
        errors += check(
            "leaderElection.resourceNamespace", election.resource_namespace, dns_subdomain
        )
    if election.retry_period_ms <= 0:
        errors.append(_too_small("leaderElection.retryPeriod", election.retry_period_ms, "0s"))
    if election.renew_deadline_ms <= election.retry_period_ms * 1.2:
        detail = "must be greater than 1.2 times retryPeriod"
        errors.append(
            invalid("leaderElection.renewDeadline", _text(election.renew_deadline_ms), detail)
        )
    if election.lease_duration_ms <= election.renew_deadline_ms:
        detail = "must be greater than renewDeadline"
        errors.append(
            invalid("leaderElection.leaseDuration", _text(election.lease_duration_ms), detail)
        )
    return errors


def _address_errors(config: Configuration) -> Iterable[FieldError]:
    for path, address in (
        ("metrics.bindAddress", config.metrics.bind_address),
        ("health.healthProbeBindAddress", config.health.health_probe_bind_address),
    ):
        _, separator, port = address.rpartition(":")
        if address in ("", "0"):
            continue
        if not separator or not port.isdecimal() or int(port) > 65535:
            yield invalid(path, address, 'must be host:port, :port, or "0" to turn it off')
    selector = config.metrics.local_queue_metrics.local_queue_selector
    if selector is not None:
        yield from _selector_errors("metrics.localQueueMetrics.localQueueSelector", selector)


def _tls_errors(tls: Tls) -> Iterable[FieldError]:
    if tls.min_version and tls.min_version not in TLS_VERSIONS:
        yield not_supported("tls.minVersion", tls.min_version, TLS_VERSIONS)
    if tls.cipher_suites and tls.min_version == "VersionTLS13":
        yield forbidden("tls.cipherSuites", "TLS 1.3 has no choice of cipher suites: remove it")
    for i, suite in enumerate(tls.cipher_suites):
        if not suite.startswith("TLS_"):
            yield invalid(f"tls.cipherSuites[{i}]", suite, "must be an IANA name such as TLS_...")


def _certificate_errors(config: Configuration) -> Iterable[FieldError]:
    names = config.internal_cert_management
    if not _LABEL_NAME.fullmatch(names.webhook_service_name):
        yield invalid(
            "internalCertManagement.webhookServiceName",
            names.webhook_service_name,
            "must be the name of a Service: lower case letters, digits and '-', at most 63",
        )
    path = "internalCertManagement.webhookSecretName"
    yield from check(path, names.webhook_secret_name, dns_subdomain)


def _ready_errors(ready: WaitForPodsReady) -> Iterable[FieldError]:
    path = "waitForPodsReady"
    yield from _negative(f"{path}.timeout", ready.timeout_ms)
    yield from _negative(f"{path}.recoveryTimeout", ready.recovery_timeout_ms)
    strategy = ready.requeuing_strategy
    for name, value in (
        ("backoffLimitCount", strategy.backoff_limit_count),
        ("backoffBaseSeconds", strategy.backoff_base_s),
        ("backoffMaxSeconds", strategy.backoff_max_s),
    ):
        if value is not None and value < 0:
            yield invalid(f"{path}.requeuingStrategy.{name}", value, NEGATIVE)


def _integration_errors(integrations: Integrations, gates: FeatureGates) -> Iterable[FieldError]:
    path = "integrations.frameworks"
    seen: set[str] = set()
    for i, name in enumerate(integrations.frameworks):
        if name not in FRAMEWORKS:
            yield not_supported(f"{path}[{i}]", name, FRAMEWORKS)
        elif name in seen:
            yield duplicate(f"{path}[{i}]", name)
        elif name.startswith("sparkoperator") and not gates.enabled("SparkApplicationIntegration"):
            yield forbidden(f"{path}[{i}]", "needs the feature gate SparkApplicationIntegration")
        seen.add(name)
    yield from _external_errors(
        "integrations.externalFrameworks", "", integrations.external_frameworks, seen
    )
    for i, key in enumerate(integrations.label_keys_to_copy):
        yield from check(f"integrations.labelKeysToCopy[{i}]", key, qualified_name)


def _external_errors(
    path: str, field: str, names: Iterable[str], built_in: Iterable[str]
) -> Iterable[FieldError]:
    """Check names of the form Kind.version.group, unique and none of the built-in ones."""
    known = {name.rpartition("/")[::2] for name in built_in}
    seen: set[str] = set()
    for i, name in enumerate(names):
        at = f"{path}[{i}]{field}"
        kind, _, rest = name.partition(".")
        if not _KIND_VERSION_GROUP.fullmatch(name):
            yield invalid(at, name, "must be Kind.version.group, such as Foo.v1.example.com")
        elif name in seen:
            yield duplicate(at, name)
        elif (rest.partition(".")[2], kind.lower()) in known:
            yield invalid(at, name, "is a built-in integration that is enabled already")
        seen.add(name)


def _multikueue_errors(multi: MultiKueue) -> Iterable[FieldError]:
    yield from _negative("multiKueue.gcInterval", multi.gc_interval_ms)
    yield from _negative("multiKueue.workerLostTimeout", multi.worker_lost_timeout_ms)
    yield from check("multiKueue.origin", multi.origin, label_value)
    path = "multiKueue.incrementalDispatcherConfig"
    if multi.incremental_dispatcher_config is not None:
        if multi.dispatcher_name != INCREMENTAL:
            yield forbidden(path, f"is only for dispatcherName {INCREMENTAL}")
        elif multi.incremental_dispatcher_config.step_size < 1:
            size = multi.incremental_dispatcher_config.step_size
            yield invalid(f"{path}.stepSize", size, "must be greater than or equal to 1")
    names = [framework.name for framework in multi.external_frameworks]
    yield from _external_errors("multiKueue.externalFrameworks", ".name", names, FRAMEWORKS)
    profile = multi.cluster_profile
    if profile is not None and profile.access_providers and profile.credentials_providers:
        yield forbidden(
            "multiKueue.clusterProfile.credentialsProviders",
            "is the deprecated name of accessProviders: keep only that one",
        )


def _admission_fair_sharing_errors(sharing: AdmissionFairSharing) -> Iterable[FieldError]:
    path = "admissionFairSharing"
    yield from _negative(f"{path}.usageHalfLifeTime", sharing.usage_half_life_ms)
    if sharing.usage_sampling_interval_ms <= 0:
        interval_ms = sharing.usage_sampling_interval_ms
        yield _too_small(f"{path}.usageSamplingInterval", interval_ms, "0s")
    for name, weight in _sorted(sharing.resource_weights):
        if not weight >= 0:
            yield invalid(f"{path}.resourceWeights[{name}]", weight, NEGATIVE)


def _retention_errors(config: Configuration) -> Iterable[FieldError]:
    policies = config.object_retention_policies
    if policies is None or policies.workloads is None:
        return
    path = "objectRetentionPolicies.workloads"
    yield from _negative(f"{path}.afterFinished", policies.workloads.after_finished_ms)
    yield from _negative(f"{path}.afterDeactivatedByKueue", policies.workloads.after_deactivated_ms)


def _visibility_errors(config: Configuration) -> list[FieldError]:
    server, errors = config.visibility_server, []
    if server.bind_address:
        try:
            ipaddress.ip_address(server.bind_address)
        except ValueError:
            detail = "must be an IP address"
            errors.append(invalid("visibilityServer.bindAddress", server.bind_address, detail))
    if not 1 <= server.bind_port <= 65535:
        detail = "must be between 1 and 65535, inclusive"
        errors.append(invalid("visibilityServer.bindPort", server.bind_port, detail))
    return errors


def _sorted(weights: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(weights.items())


def _negative(path: str, value_ms: int | None) -> Iterable[FieldError]:
    if value_ms is not None and value_ms < 0:
        yield invalid(path, _text(value_ms), NEGATIVE)


def _too_small(path: str, value_ms: int, than: str) -> FieldError:
    return invalid(path, _text(value_ms), f"must be greater than {than}")


def _text(value_ms: int) -> str:
    return f"{value_ms / 1000:g}s"
