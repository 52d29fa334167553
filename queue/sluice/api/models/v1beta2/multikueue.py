"""MultiKueueConfig and MultiKueueCluster in v1beta2 (docs/spec/api.md 1.10)."""

from typing import Annotated, Literal

from pydantic import Field

from sluice.api.models.base import Model
from sluice.api.models.meta import Conditions, ObjectMeta
from sluice.api.models.schema import ATOMIC_LIST, cel, object_rules, rules


class MultiKueueConfigSpec(Model):
    """Which clusters take Workloads."""

    clusters: Annotated[
        list[Annotated[str, Field(max_length=256)]],
        Field(min_length=1, max_length=20),
        ATOMIC_LIST,
        rules(cel("self.all(x, self.exists_one(y, x == y))", "must be unique")),
    ]
    """The MultiKueueClusters to which Workloads can be sent."""
    quota_management: Literal["Manual", "Automated"] | None = None
    """Whether the quota here is set by hand or follows that of the clusters."""


class MultiKueueConfig(Model):
    """Parameters of the check that sends Workloads to other clusters."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"]
    kind: Literal["MultiKueueConfig"]
    metadata: ObjectMeta | None = None
    spec: MultiKueueConfigSpec | None = None
    """Which clusters take Workloads."""


class KubeConfig(Model):
    """Where the kubeconfig of a cluster is."""

    location: Annotated[str, Field(min_length=1, max_length=256)]
    """The name of the Secret (its key is kubeconfig) or the path of the file."""
    location_type: Literal["Secret", "Path"] = "Secret"
    """Whether location names a Secret in the manager's namespace or a file."""


class ClusterProfileReference(Model):
    """A ClusterProfile that tells how to reach a cluster."""

    name: Annotated[str, Field(min_length=1, max_length=256)]
    """The ClusterProfile, in the manager's namespace."""


class ClusterSource(Model):
    """How the cluster is reached; exactly one way is given."""

    model_config = object_rules(
        cel(
            "has(self.kubeConfig) != has(self.clusterProfileRef)",
            "exactly one of the fields in [kubeConfig clusterProfileRef] must be set",
        )
    )

    kube_config: KubeConfig | None = None
    """By a kubeconfig."""
    cluster_profile_ref: ClusterProfileReference | None = None
    """By a ClusterProfile."""


class MultiKueueClusterSpec(Model):
    """How the cluster is reached."""

    cluster_source: ClusterSource
    """How the cluster is reached."""


class MultiKueueClusterStatus(Model):
    """Whether the cluster is reached."""

    conditions: Conditions | None = None
    """The state of the connection, in type Active."""


class MultiKueueCluster(Model):
    """A cluster to which Workloads can be sent."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"]
    kind: Literal["MultiKueueCluster"]
    metadata: ObjectMeta | None = None
    spec: MultiKueueClusterSpec | None = None
    """How the cluster is reached."""
    status: MultiKueueClusterStatus | None = None
    """Whether the cluster is reached."""
