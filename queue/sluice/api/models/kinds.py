"""The kinds: their names, scope, versions and how kubectl shows them.

The eleven of Kueue's group (docs/spec/api.md 1.0) and ours (docs/spec/credits.md 4). Used by
`sluice.api.crds`, and by whoever needs a list of the kinds.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

from sluice.api.models import v1beta1, v1beta2
from sluice.api.models.base import GROUP, Model
from sluice.api.models.credit_policy import V1ALPHA1, CreditPolicy
from sluice.api.names import OWN_GROUP

Scope = Literal["Namespaced", "Cluster"]
OLD_VERSION: Final = "v1beta1"
STORED_VERSION: Final = "v1beta2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of `kubectl get`; priority 1 shows it only with `-o wide`."""

    name: str
    json_path: str
    description: str
    type: Literal["string", "integer", "date"] = "string"
    priority: Literal[0, 1] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of a kind."""

    name: str
    model: type[Model]
    stored: bool
    deprecated: bool = False
    columns: tuple[Column, ...] = ()
    selectable_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of an API group and its versions, oldest first."""

    kind: str
    plural: str
    scope: Scope
    short_names: tuple[str, ...]
    has_status: bool
    converts: bool
    versions: tuple[Version, ...]
    group: str = GROUP

    @property
    def stored(self) -> Version:
        """Return the version in which objects are stored."""
        return next(version for version in self.versions if version.stored)


def _condition_column(name: str, condition: str, description: str) -> Column:
    return Column(
        name=name,
        json_path=f".status.conditions[?(@.type=='{condition}')].status",
        description=description,
    )


AGE: Final = Column(
    name="Age",
    json_path=".metadata.creationTimestamp",
    type="date",
    description="How long ago the object was created",
)
PENDING: Final = Column(
    name="Pending Workloads",
    json_path=".status.pendingWorkloads",
    type="integer",
    description="Workloads that wait for quota",
)


def _admitted(priority: Literal[0, 1]) -> Column:
    return Column(
        name="Admitted Workloads",
        json_path=".status.admittedWorkloads",
        type="integer",
        priority=priority,
        description="Workloads that are admitted and not finished",
    )


def _cluster_queue_columns(cohort_field: str) -> tuple[Column, ...]:
    return (
        Column(
            name="Cohort",
            json_path=f".spec.{cohort_field}",
            description="Cohort that the queue shares quota with",
        ),
        Column(
            name="Strategy",
            json_path=".spec.queueingStrategy",
            priority=1,
            description="Whether a Workload that does not fit blocks those behind it",
        ),
        PENDING,
        _admitted(1),
    )


LOCAL_QUEUE_COLUMNS: Final = (
    Column(
        name="ClusterQueue",
        json_path=".spec.clusterQueue",
        description="ClusterQueue that backs the queue",
    ),
    PENDING,
    _admitted(0),
)
WORKLOAD_COLUMNS: Final = (
    Column(name="Queue", json_path=".spec.queueName", description="LocalQueue of the Workload"),
    Column(
        name="Reserved in",
        json_path=".status.admission.clusterQueue",
        description="ClusterQueue that the Workload holds quota of",
    ),
    _condition_column("Admitted", "Admitted", "Whether the Workload is admitted"),
    _condition_column("Finished", "Finished", "Whether the Workload is finished"),
    AGE,
)
CLUSTER_COLUMNS: Final = (
    _condition_column("Connected", "Active", "Whether the cluster is reached"),
    AGE,
)
VALUE_COLUMNS: Final = (
    Column(
        name="Value",
        json_path=".value",
        type="integer",
        description="Priority that Workloads of the class get",
    ),
)


def _versions(
    old: type[Model],
    stored: type[Model],
    *,
    columns: tuple[Column, ...] = (),
    old_columns: tuple[Column, ...] | None = None,
    **more: Any,
) -> tuple[Version, ...]:
    return (
        Version(
            name=OLD_VERSION,
            model=old,
            stored=False,
            deprecated=more.pop("deprecated", True),
            columns=columns if old_columns is None else old_columns,
        ),
        Version(name=STORED_VERSION, model=stored, stored=True, columns=columns, **more),
    )


KINDS: Final[tuple[Kind, ...]] = (
    Kind(
        kind="AdmissionCheck",
        plural="admissionchecks",
        scope="Cluster",
        short_names=("ac",),
        has_status=True,
        converts=False,
        versions=_versions(v1beta1.AdmissionCheck, v1beta2.AdmissionCheck),
    ),
    Kind(
        kind="ClusterQueue",
        plural="clusterqueues",
        scope="Cluster",
        short_names=("cq",),
        has_status=True,
        converts=True,
        versions=_versions(
            v1beta1.ClusterQueue,
            v1beta2.ClusterQueue,
            columns=_cluster_queue_columns("cohortName"),
            old_columns=_cluster_queue_columns("cohort"),
        ),
    ),
    Kind(
        kind="Cohort",
        plural="cohorts",
        scope="Cluster",
        short_names=("co",),
        has_status=True,
        converts=True,
        versions=_versions(v1beta1.Cohort, v1beta2.Cohort),
    ),
    Kind(
        kind="LocalQueue",
        plural="localqueues",
        scope="Namespaced",
        short_names=("queue", "queues", "lq"),
        has_status=True,
        converts=True,
        versions=_versions(v1beta1.LocalQueue, v1beta2.LocalQueue, columns=LOCAL_QUEUE_COLUMNS),
    ),
    Kind(
        kind="MultiKueueCluster",
        plural="multikueueclusters",
        scope="Cluster",
        short_names=("mkc",),
        has_status=True,
        converts=True,
        versions=_versions(
            v1beta1.MultiKueueCluster, v1beta2.MultiKueueCluster, columns=CLUSTER_COLUMNS
        ),
    ),
    Kind(
        kind="MultiKueueConfig",
        plural="multikueueconfigs",
        scope="Cluster",
        short_names=("mkconf",),
        has_status=False,
        converts=False,
        versions=_versions(v1beta1.MultiKueueConfig, v1beta2.MultiKueueConfig, deprecated=False),
    ),
    Kind(
        kind="ProvisioningRequestConfig",
        plural="provisioningrequestconfigs",
        scope="Cluster",
        short_names=("prc",),
        has_status=False,
        converts=False,
        versions=_versions(v1beta1.ProvisioningRequestConfig, v1beta2.ProvisioningRequestConfig),
    ),
    Kind(
        kind="ResourceFlavor",
        plural="resourceflavors",
        scope="Cluster",
        short_names=("flavor", "flavors", "rf"),
        has_status=False,
        converts=False,
        versions=_versions(v1beta1.ResourceFlavor, v1beta2.ResourceFlavor),
    ),
    Kind(
        kind="Topology",
        plural="topologies",
        scope="Cluster",
        short_names=("topo",),
        has_status=False,
        converts=False,
        versions=_versions(v1beta1.Topology, v1beta2.Topology),
    ),
    Kind(
        kind="Workload",
        plural="workloads",
        scope="Namespaced",
        short_names=("kwl", "kueueworkload", "kueueworkloads"),
        has_status=True,
        converts=True,
        versions=_versions(
            v1beta1.Workload,
            v1beta2.Workload,
            columns=WORKLOAD_COLUMNS,
            selectable_fields=(".status.admission.clusterQueue",),
        ),
    ),
    Kind(
        kind="WorkloadPriorityClass",
        plural="workloadpriorityclasses",
        scope="Cluster",
        short_names=("wpc",),
        has_status=False,
        converts=False,
        versions=_versions(
            v1beta1.WorkloadPriorityClass, v1beta2.WorkloadPriorityClass, columns=VALUE_COLUMNS
        ),
    ),
)
"""The eleven kinds of Kueue's group."""

OWN_KINDS: Final[tuple[Kind, ...]] = (
    Kind(
        group=OWN_GROUP,
        kind="CreditPolicy",
        plural="creditpolicies",
        scope="Cluster",
        short_names=("credits",),
        has_status=True,
        converts=False,
        versions=(
            Version(
                name=V1ALPHA1,
                model=CreditPolicy,
                stored=True,
                columns=(
                    Column(
                        name="Cohort",
                        json_path=".spec.cohortName",
                        description="Root of the tree whose accounts are kept",
                    ),
                    _condition_column("Active", "Active", "Whether the policy works"),
                    Column(
                        name="Settled",
                        json_path=".status.settledAt",
                        type="date",
                        description="How long ago balances were last written",
                    ),
                    AGE,
                ),
            ),
        ),
    ),
)
"""The kinds of our own group."""
