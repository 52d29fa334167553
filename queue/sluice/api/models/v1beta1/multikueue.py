"""MultiKueueConfig and MultiKueueCluster in v1beta1 (docs/spec/api.md 1.10, 1.11)."""

from typing import Annotated, Literal

from pydantic import Field

from sluice.api.models.base import Model
from sluice.api.models.meta import ObjectMeta, UnboundedConditions
from sluice.api.models.schema import REQUIRED, SET_LIST
from sluice.api.models.v1beta2.multikueue import ClusterProfileReference


class MultiKueueConfigSpec(Model):
    """Which clusters take Workloads."""

    clusters: Annotated[list[str], Field(min_length=1, max_length=20), SET_LIST]
    """The MultiKueueClusters to which Workloads can be sent."""


class MultiKueueConfig(Model):
    """Parameters of the check that sends Workloads to other clusters."""

    api_version: Literal["kueue.x-k8s.io/v1beta1"]
    kind: Literal["MultiKueueConfig"]
    metadata: ObjectMeta | None = None
    spec: MultiKueueConfigSpec | None = None
    """Which clusters take Workloads."""


class KubeConfig(Model):
    """Where the kubeconfig of a cluster is."""

    location: str
    """The name of the Secret (its key is kubeconfig) or the path of the file. Empty means that
    the cluster is reached by clusterProfileRef."""
    location_type: Annotated[Literal["Secret", "Path"], REQUIRED] = "Secret"
    """Whether location names a Secret in the manager's namespace or a file."""


class MultiKueueClusterSpec(Model):
    """How the cluster is reached."""

    kube_config: KubeConfig
    """By a kubeconfig."""
    cluster_profile_ref: ClusterProfileReference | None = None
    """By a ClusterProfile."""


class MultiKueueClusterStatus(Model):
    """Whether the cluster is reached."""

    conditions: UnboundedConditions | None = None
    """The state of the connection, in type Active."""


class MultiKueueCluster(Model):
    """A cluster to which Workloads can be sent."""

    api_version: Literal["kueue.x-k8s.io/v1beta1"]
    kind: Literal["MultiKueueCluster"]
    metadata: ObjectMeta | None = None
    spec: MultiKueueClusterSpec | None = None
    """How the cluster is reached."""
    status: MultiKueueClusterStatus | None = None
    """Whether the cluster is reached."""
