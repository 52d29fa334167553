"""Cohort in v1beta2 (docs/spec/api.md 1.2)."""

from typing import Literal

from sluice.api.models.base import Model, SubdomainName
from sluice.api.models.meta import ObjectMeta
from sluice.api.models.quota import FairSharing, FairSharingStatus, ResourceGroups


class CohortSpec(Model):
    """Place in the tree of cohorts, and quota shared by all members."""

    parent_name: SubdomainName | None = None
    """The parent Cohort. Absent means that this is the root of its tree. Cohorts that form a
    cycle admit nothing."""
    resource_groups: ResourceGroups | None = None
    """Quota that belongs to the cohort itself and that its members may borrow."""
    fair_sharing: FairSharing | None = None
    """The weight of this cohort among its siblings."""


class CohortStatus(Model):
    """What the cohort holds at present."""

    fair_sharing: FairSharingStatus | None = None
    """The current share; only while fair sharing is configured."""


class Cohort(Model):
    """A group of ClusterQueues and Cohorts that lend each other unused quota."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"]
    kind: Literal["Cohort"]
    metadata: ObjectMeta | None = None
    spec: CohortSpec | None = None
    """Place in the tree of cohorts, and quota shared by all members."""
    status: CohortStatus | None = None
    """What the cohort holds at present."""
