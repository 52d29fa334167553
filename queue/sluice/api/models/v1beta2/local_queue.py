"""LocalQueue in v1beta2 (docs/spec/api.md 1.3)."""

from typing import Annotated, Literal

from sluice.api.models.base import Model, StopPolicy, SubdomainName
from sluice.api.models.meta import Conditions, ObjectMeta
from sluice.api.models.quota import (
    FairSharing,
    FairSharingStatusWithHistory,
    FlavorUsages,
    WorkloadCounts,
)
from sluice.api.models.schema import cel, rules


class LocalQueueSpec(Model):
    """Where the queue leads."""

    cluster_queue: (
        Annotated[SubdomainName, rules(cel("self == oldSelf", "field is immutable"))] | None
    ) = None
    """The ClusterQueue that backs this queue. Can't change from one name to another."""
    stop_policy: StopPolicy = "None"
    """None admits; Hold admits nothing new and lets admitted Workloads run; HoldAndDrain also
    evicts them."""
    fair_sharing: FairSharing | None = None
    """The weight of this queue in admission fair sharing."""


class LocalQueueStatus(WorkloadCounts):
    """What came through the queue and is there at present."""

    conditions: Conditions | None = None
    """The state of the queue; type Active says whether its ClusterQueue can admit."""
    flavors_reservation: FlavorUsages | None = None
    """Quota held by Workloads with reserved quota, by flavor."""
    flavors_usage: FlavorUsages | None = None
    """Quota held by admitted Workloads, by flavor."""
    fair_sharing: FairSharingStatusWithHistory | None = None
    """Usage over time; only while admission fair sharing is configured."""


class LocalQueue(Model):
    """The door of a namespace to a ClusterQueue; Jobs name it in a label."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"]
    kind: Literal["LocalQueue"]
    metadata: ObjectMeta | None = None
    spec: LocalQueueSpec | None = None
    """Where the queue leads."""
    status: LocalQueueStatus | None = None
    """What came through the queue and is there at present."""
