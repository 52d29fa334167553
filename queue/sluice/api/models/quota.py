"""Quota shapes shared by ClusterQueue, Cohort and LocalQueue in both versions.

docs/spec/api.md 1.1 to 1.3. Used by the modules of this package.
"""

from typing import Annotated

from pydantic import Field

from sluice.api.models.base import Int32, Int64, Model, Quantity, SubdomainName, Timestamp
from sluice.api.models.schema import ATOMIC_LIST, cel, map_list, object_rules

BORROWING_NEEDS_COHORT = "borrowingLimit must be nil when cohort is empty"


class ResourceQuota(Model):
    """Quota of one resource in one flavor."""

    name: str
    """The resource, such as cpu or nvidia.com/gpu."""
    nominal_quota: Quantity
    """How much of the resource this queue owns in this flavor. Never negative."""
    borrowing_limit: Quantity | None = None
    """How much more than nominalQuota may be used from the unused quota of the cohort. Absent means
    without limit; only allowed inside a cohort."""
    lending_limit: Quantity | None = None
    """How much of nominalQuota the cohort may use while it is unused here. Absent means all of it;
    never more than nominalQuota and only allowed inside a cohort."""


class FlavorQuotas(Model):
    """Quotas of the group's resources in one flavor."""

    name: SubdomainName
    """The ResourceFlavor. While it does not exist, the queue admits nothing."""
    resources: Annotated[list[ResourceQuota], Field(min_length=1, max_length=64), map_list("name")]
    """One quota for each covered resource, in the same order."""


_FlavorList = Annotated[list[FlavorQuotas], Field(min_length=1, max_length=64), map_list("name")]


class ResourceGroup(Model):
    """Resources that are assigned together: a pod gets all of them from one flavor."""

    model_config = object_rules(
        cel(
            "self.flavors.all(f, size(f.resources) == size(self.coveredResources))",
            "flavors must have the same number of resources as the coveredResources",
        )
    )

    covered_resources: Annotated[list[str], Field(min_length=1, max_length=64), ATOMIC_LIST]
    """The resources of this group. A resource may be in one group only."""
    flavors: _FlavorList
    """The flavors that offer these resources, most preferred first."""


class ResourceGroupV1Beta1(ResourceGroup):
    """A resource group as v1beta1 has it; only list semantics differ."""

    covered_resources: Annotated[list[str], Field(min_length=1, max_length=64)]
    """The resources of this group. A resource may be in one group only."""


ResourceGroups = Annotated[list[ResourceGroup], Field(max_length=16), ATOMIC_LIST]
ResourceGroupsV1Beta1 = Annotated[list[ResourceGroupV1Beta1], Field(max_length=16), ATOMIC_LIST]


class FairSharing(Model):
    """How this queue or cohort is weighed against its siblings."""

    weight: Quantity = 1
    """The share of unused quota relative to siblings: twice the weight, twice the share. Zero
    means last in line for borrowed quota."""


class ResourceUsage(Model):
    """Amount of one resource that is in use in one flavor."""

    name: str
    """The resource."""
    total: Quantity | None = None
    """The amount in use, borrowed quota included."""


class ClusterResourceUsage(ResourceUsage):
    """Amount of one resource in use in one flavor of a ClusterQueue."""

    borrowed: Quantity | None = None
    """The part of total above nominalQuota, taken from the cohort."""


class FlavorUsage(Model):
    """Amounts in use in one flavor, as a LocalQueue reports them."""

    name: SubdomainName
    """The ResourceFlavor."""
    resources: Annotated[list[ResourceUsage], Field(max_length=64), map_list("name")]
    """Amounts by resource."""


class ClusterFlavorUsage(Model):
    """Amounts in use in one flavor, as a ClusterQueue reports them."""

    name: SubdomainName
    """The ResourceFlavor."""
    resources: Annotated[list[ClusterResourceUsage], Field(max_length=64), map_list("name")]
    """Amounts by resource."""


FlavorUsages = Annotated[list[FlavorUsage], Field(max_length=64), map_list("name")]
ClusterFlavorUsages = Annotated[list[ClusterFlavorUsage], Field(max_length=64), map_list("name")]


class FairSharingStatus(Model):
    """The share at which the scheduler currently sees this queue or cohort."""

    weighted_share: Int64
    """The largest ratio over resources of borrowed to lendable quota, in thousandths, divided by
    the weight. Zero means that nothing is borrowed; the largest int64 means weight zero and
    something borrowed."""


class AdmissionFairSharingStatus(Model):
    """What a queue has used over time, for admission in fair turns."""

    consumed_resources: dict[str, Quantity]
    """Usage by resource, decaying with the configured half life."""
    last_update: Timestamp
    """When consumedResources was last brought up to date."""


class FairSharingStatusWithHistory(FairSharingStatus):
    """A share together with the usage over time."""

    admission_fair_sharing_status: AdmissionFairSharingStatus | None = None
    """Present when admission fair sharing is configured."""


class WorkloadCounts(Model):
    """Counts of Workloads that every queue reports."""

    pending_workloads: Int32 | None = None
    """Workloads that wait for quota, those that can't fit at present included."""
    reserving_workloads: Int32 | None = None
    """Workloads that hold quota, admitted ones included."""
    admitted_workloads: Int32 | None = None
    """Workloads that are admitted and not finished."""
