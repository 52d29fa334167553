"""Parts of ProvisioningRequestConfig shared by both versions (docs/spec/api.md 1.9)."""

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from sluice.api.models.base import LABEL_KEY_PATTERN, Int32, Model
from sluice.api.models.schema import SET_LIST

DEFAULT_RETRY: Final[dict[str, Any]] = {
    "backoffBaseSeconds": 60,
    "backoffLimitCount": 3,
    "backoffMaxSeconds": 1800,
}


class ProvisioningRequestRetryStrategy(Model):
    """When a failed ProvisioningRequest is tried again."""

    backoff_limit_count: Int32 = 3
    """How many times to try again; after that the check is rejected."""
    backoff_base_seconds: Int32 = 60
    """The wait before the first retry, in seconds; it doubles with each retry."""
    backoff_max_seconds: Int32 = 1800
    """The longest wait between two tries, in seconds."""


class NodeSelectorUpdate(Model):
    """A node selector entry whose value the provisioner reports."""

    key: Annotated[str, Field(min_length=1, max_length=317, pattern=LABEL_KEY_PATTERN)]
    """The node label."""
    value_from_provisioning_class_detail: Annotated[str, Field(min_length=1, max_length=32768)]
    """The key in the ProvisioningRequest's provisioningClassDetails that holds the value."""


ManagedResources = Annotated[list[str], Field(max_length=100), SET_LIST]
Parameters = Annotated[dict[str, Annotated[str, Field(max_length=255)]], Field(max_length=100)]
MergePolicy = Literal["IdenticalPodTemplates", "IdenticalWorkloadSchedulingRequirements"]
