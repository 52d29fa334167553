"""LocalQueue in v1beta1: what differs from v1beta2 (docs/spec/api.md 1.11)."""

from typing import Annotated, Literal

from pydantic import Field

from sluice.api.models.base import Model, SubdomainName
from sluice.api.models.meta import NodeLabels, ObjectMeta, Taints, UnboundedConditions
from sluice.api.models.quota import FairSharingStatusWithHistory, FlavorUsages, WorkloadCounts
from sluice.api.models.schema import ATOMIC_LIST, SET_LIST, map_list
from sluice.api.models.v1beta2.local_queue import LocalQueueSpec


class TopologyInfo(Model):
    """The topology of a flavor."""

    name: SubdomainName
    """The Topology."""
    levels: Annotated[list[str], Field(min_length=1, max_length=16), ATOMIC_LIST]
    """Its levels, widest first."""


class LocalQueueFlavor(Model):
    """A flavor that can be reached through this queue; no longer written."""

    name: SubdomainName
    """The ResourceFlavor."""
    resources: Annotated[list[str], Field(max_length=64), SET_LIST] | None = None
    """The resources that have quota in this flavor."""
    node_labels: NodeLabels | None = None
    """The labels of the flavor's nodes."""
    node_taints: Taints | None = None
    """The taints of the flavor's nodes."""
    topology: TopologyInfo | None = None
    """The topology of the flavor."""


class LocalQueueStatus(WorkloadCounts):
    """What came through the queue and is there at present."""

    conditions: UnboundedConditions | None = None
    """The state of the queue; type Active says whether its ClusterQueue can admit."""
    flavors_reservation: FlavorUsages | None = None
    """Quota held by Workloads with reserved quota, by flavor."""
    flavor_usage: FlavorUsages | None = None
    """Quota held by admitted Workloads, by flavor. v1beta2 calls it flavorsUsage."""
    flavors: Annotated[list[LocalQueueFlavor], Field(max_length=64), map_list("name")] | None = None
    """No longer written, and gone in v1beta2."""
    fair_sharing: FairSharingStatusWithHistory | None = None
    """Usage over time; only while admission fair sharing is configured."""


class LocalQueue(Model):
    """The door of a namespace to a ClusterQueue; Jobs name it in a label."""

    api_version: Literal["kueue.x-k8s.io/v1beta1"]
    kind: Literal["LocalQueue"]
    metadata: ObjectMeta | None = None
    spec: LocalQueueSpec | None = None
    """Where the queue leads."""
    status: LocalQueueStatus | None = None
    """What came through the queue and is there at present."""
