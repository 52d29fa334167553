"""The shape of Kueue's Configuration file, v1beta2: fields, types, defaults. Pure.

Defaults and bounds are those of docs/spec/api.md section 6. What one field alone cannot tell is
checked by ``configuration_validate``; all others read it through ``sluice.api.configuration``.
Durations are integer milliseconds here and Go durations (``1h30m``) in the file.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from sluice.api.names import KUEUE_LEASE
from sluice.api.times import duration_ms

_MINUTE_MS: Final = 60_000
READY_TIMEOUT_MS: Final = 30 * _MINUTE_MS
"""Default of waitForPodsReady.timeout."""
KUEUE_NAMESPACE: Final = "kueue-system"
FRAMEWORKS_DEFAULT: Final = ("batch/job",)
ALL_AT_ONCE: Final = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"
INCREMENTAL: Final = "kueue.x-k8s.io/multikueue-dispatcher-incremental"


def _read_duration(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("must be a duration such as 30s, 5m or 1h30m")
    return duration_ms(value)


def _read_number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    return float(value)


def _read_list(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


DurationMs = Annotated[int, BeforeValidator(_read_duration)]
Number = Annotated[float, BeforeValidator(_read_number)]
Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Port = Annotated[int, Field(ge=0, le=65535)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_read_list)]
Json = dict[str, Any]


class Section(BaseModel):
    """Base of every object in the file: strict, closed, immutable, camelCase in the file."""

    model_config = ConfigDict(
        alias_generator=to_camel, strict=True, extra="forbid", frozen=True, populate_by_name=False
    )


class SelectorExpression(Section):
    """One expression of a label selector."""

    key: str
    operator: str
    values: Texts = ()


class Selector(Section):
    """A metav1.LabelSelector; empty takes everything."""

    match_labels: dict[str, str] = {}
    match_expressions: Annotated[tuple[SelectorExpression, ...], BeforeValidator(_read_list)] = ()

    def to_json(self) -> Json:
        """Return the JSON form, for `sluice.api.selectors.compile_selector`."""
        return self.model_dump(mode="json", by_alias=True)


class Webhook(Section):
    """Where the admission webhook listens."""

    port: Port = 9443
    host: str = ""
    cert_dir: str = "/tmp/k8s-webhook-server/serving-certs"


class LeaderElection(Section):
    """Which replica decides."""

    leader_elect: bool = True
    resource_lock: str = "leases"
    resource_name: str = KUEUE_LEASE
    resource_namespace: str = ""
    lease_duration_ms: DurationMs = Field(default=15_000, alias="leaseDuration")
    renew_deadline_ms: DurationMs = Field(default=10_000, alias="renewDeadline")
    retry_period_ms: DurationMs = Field(default=2_000, alias="retryPeriod")


class LocalQueueMetrics(Section):
    """Whether series of single LocalQueues are exported."""

    enable: bool = False
    local_queue_selector: Selector | None = None


class CustomLabel(Section):
    """A label of ours on Kueue's metrics."""

    name: str
    source_label_key: str = ""
    source_annotation_key: str = ""
    source_kind: Literal["ClusterQueue", "LocalQueue", "Cohort", "Workload"] = "ClusterQueue"
    tracked_values: Texts = ()


CustomLabels = Annotated[tuple[CustomLabel, ...], BeforeValidator(_read_list)]


class Metrics(Section):
    """The metrics endpoint and what it shows."""

    bind_address: str = ":8443"
    enable_cluster_queue_resources: bool = False
    local_queue_metrics: LocalQueueMetrics = LocalQueueMetrics.model_construct(enable=True)
    custom_labels: CustomLabels = ()


class Health(Section):
    """The probes."""

    health_probe_bind_address: str = ":8081"
    readiness_endpoint_name: str = "readyz"
    liveness_endpoint_name: str = "healthz"


class Controller(Section):
    """Controller-runtime's own settings."""

    group_kind_concurrency: dict[str, int] = {}
    cache_sync_timeout_ms: DurationMs = Field(default=2 * _MINUTE_MS, alias="cacheSyncTimeout")


class Tls(Section):
    """Limits on TLS of every server, by Go's names."""

    min_version: str = ""
    cipher_suites: Texts = ()
    curve_preferences: Annotated[tuple[Int32, ...], BeforeValidator(_read_list)] = ()


class InternalCertManagement(Section):
    """Whether certificates are made and rotated by the manager itself."""

    enable: bool = True
    webhook_service_name: str = "kueue-webhook-service"
    webhook_secret_name: str = "kueue-webhook-server-cert"


class ClientConnection(Section):
    """Limits of the client, for each kind of object."""

    qps: Number = 300.0
    burst: Int32 = 500


class RequeuingStrategy(Section):
    """What happens to a Workload whose pods were not ready in time."""

    timestamp: Literal["Eviction", "Creation"] = "Eviction"
    backoff_limit_count: Int32 | None = None
    backoff_base_s: Int32 = Field(default=60, alias="backoffBaseSeconds")
    backoff_max_s: Int32 = Field(default=3600, alias="backoffMaxSeconds")


class WaitForPodsReady(Section):
    """Deadline for the pods of an admitted Workload."""

    timeout_ms: DurationMs = Field(default=READY_TIMEOUT_MS, alias="timeout")
    block_admission: bool = False
    recovery_timeout_ms: DurationMs | None = Field(default=None, alias="recoveryTimeout")
    requeuing_strategy: RequeuingStrategy = RequeuingStrategy.model_construct()


class Integrations(Section):
    """Job kinds that are managed."""

    frameworks: Texts = FRAMEWORKS_DEFAULT
    external_frameworks: Texts = ()
    label_keys_to_copy: Texts = ()


class IncrementalDispatcher(Section):
    """Settings of the dispatcher that nominates clusters step by step."""

    step_size: Int32 = 3


class ExternalFramework(Section):
    """A job kind dispatched by a generic adapter."""

    name: str


class EnvVar(Section):
    """One variable for a credentials plugin."""

    name: str
    value: str = ""


class ExecConfig(Section):
    """How a credentials plugin is started."""

    command: str
    api_version: str
    args: Texts = ()
    env: Annotated[tuple[EnvVar, ...], BeforeValidator(_read_list)] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: Literal["Never", "IfAvailable", "Always"] = "Never"


class AccessProvider(Section):
    """A named credentials plugin."""

    name: str
    exec_config: ExecConfig


Providers = Annotated[tuple[AccessProvider, ...], BeforeValidator(_read_list)]


class ClusterProfile(Section):
    """Credentials for clusters named by ClusterProfile objects."""

    access_providers: Providers = ()
    credentials_providers: Providers = ()


class MultiKueue(Section):
    """Dispatching to worker clusters."""

    gc_interval_ms: DurationMs = Field(default=_MINUTE_MS, alias="gcInterval")
    origin: str = "multikueue"
    worker_lost_timeout_ms: DurationMs = Field(default=15 * _MINUTE_MS, alias="workerLostTimeout")
    dispatcher_name: str = ALL_AT_ONCE
    incremental_dispatcher_config: IncrementalDispatcher | None = None
    external_frameworks: Annotated[tuple[ExternalFramework, ...], BeforeValidator(_read_list)] = ()
    cluster_profile: ClusterProfile | None = None


class FairSharing(Section):
    """Fair sharing is on."""

    preemption_strategies: Texts


class AdmissionFairSharing(Section):
    """Usage-based order of LocalQueues."""

    usage_half_life_ms: DurationMs = Field(default=0, alias="usageHalfLifeTime")
    usage_sampling_interval_ms: DurationMs = Field(
        default=5 * _MINUTE_MS, alias="usageSamplingInterval"
    )
    resource_weights: dict[str, Number] = {}


class Transformation(Section):
    """How one requested resource turns into others."""

    input: str
    strategy: Literal["Retain", "Replace"] = "Retain"
    multiply_by: str = ""
    outputs: dict[str, int | float | str] = {}


class DeviceCounter(Section):
    """A counter of a DRA device that is charged."""

    name: str
    driver: str
    device_selector: str = ""


class DeviceSource(Section):
    """What of a DRA device is charged."""

    counter: DeviceCounter | None = None
    capacity: DeviceCounter | None = None


class DeviceClassMapping(Section):
    """DeviceClasses charged as one resource."""

    name: str
    device_class_names: Texts
    sources: Annotated[tuple[DeviceSource, ...], BeforeValidator(_read_list)] = ()


class Resources(Section):
    """How requests become amounts."""

    quota_check_strategy: Literal["BlockUndeclared", "IgnoreUndeclared"] | None = None
    exclude_resource_prefixes: Texts = ()
    transformations: Annotated[tuple[Transformation, ...], BeforeValidator(_read_list)] = ()
    device_class_mappings: Annotated[
        tuple[DeviceClassMapping, ...], BeforeValidator(_read_list)
    ] = ()


class WorkloadRetention(Section):
    """When finished or deactivated Workloads are deleted; None keeps them."""

    after_finished_ms: DurationMs | None = Field(default=None, alias="afterFinished")
    after_deactivated_ms: DurationMs | None = Field(default=None, alias="afterDeactivatedByKueue")


class RetentionPolicies(Section):
    """What is deleted by itself."""

    workloads: WorkloadRetention | None = None


class VisibilityServer(Section):
    """The aggregated API for pending Workloads."""

    bind_address: str = ""
    bind_port: Int32 = 8082


class Configuration(Section):
    """The whole file, defaults filled in."""

    api_version: str
    kind: str
    namespace: str = KUEUE_NAMESPACE
    manage_jobs_without_queue_name: bool = False
    managed_jobs_namespace_selector: Selector = Selector.model_construct()
    webhook: Webhook = Webhook.model_construct()
    leader_election: LeaderElection = LeaderElection.model_construct()
    metrics: Metrics = Metrics.model_construct()
    health: Health = Health.model_construct()
    pprof_bind_address: str = ""
    controller: Controller = Controller.model_construct()
    tls: Tls = Tls.model_construct()
    internal_cert_management: InternalCertManagement = InternalCertManagement.model_construct()
    client_connection: ClientConnection = ClientConnection.model_construct()
    wait_for_pods_ready: WaitForPodsReady | None = None
    integrations: Integrations = Integrations.model_construct()
    multi_kueue: MultiKueue = MultiKueue.model_construct()
    fair_sharing: FairSharing | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    resources: Resources = Resources.model_construct()
    object_retention_policies: RetentionPolicies | None = None
    visibility_server: VisibilityServer = VisibilityServer.model_construct()
    feature_gates: dict[str, bool] = {}
