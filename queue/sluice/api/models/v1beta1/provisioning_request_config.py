"""ProvisioningRequestConfig in v1beta1 (docs/spec/api.md 1.9)."""

from typing import Annotated, Literal

from pydantic import Field

from sluice.api.models.base import Model, SubdomainName
from sluice.api.models.meta import ObjectMeta
from sluice.api.models.provisioning import (
    DEFAULT_RETRY,
    ManagedResources,
    MergePolicy,
    NodeSelectorUpdate,
    Parameters,
    ProvisioningRequestRetryStrategy,
)
from sluice.api.models.schema import default_of


class ProvisioningRequestPodSetUpdates(Model):
    """Changes to the pods, made from what the provisioner reports."""

    node_selector: Annotated[list[NodeSelectorUpdate], Field(max_length=8)] | None = None
    """Node selector entries that are added to the pods."""


class ProvisioningRequestConfigSpec(Model):
    """How ProvisioningRequests are made."""

    provisioning_class_name: SubdomainName
    """The class of the ProvisioningRequests, known to the autoscaler."""
    parameters: Parameters | None = None
    """Parameters passed to the provisioning class."""
    managed_resources: ManagedResources | None = None
    """Resources that need provisioning; pods that ask for none of them are left out. Empty means
    that all resources do."""
    retry_strategy: Annotated[ProvisioningRequestRetryStrategy, default_of(DEFAULT_RETRY)] = Field(
        default_factory=ProvisioningRequestRetryStrategy
    )
    """When a failed ProvisioningRequest is tried again."""
    pod_set_updates: ProvisioningRequestPodSetUpdates | None = None
    """Changes to the pods, made from what the provisioner reports."""
    pod_set_merge_policy: MergePolicy | None = None
    """Which PodSets are asked for together. Absent means that each is asked for on its own."""


class ProvisioningRequestConfig(Model):
    """Parameters of the provisioning check."""

    api_version: Literal["kueue.x-k8s.io/v1beta1"]
    kind: Literal["ProvisioningRequestConfig"]
    metadata: ObjectMeta | None = None
    spec: ProvisioningRequestConfigSpec | None = None
    """How ProvisioningRequests are made."""
