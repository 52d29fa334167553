"""AdmissionCheck in v1beta1: what differs from v1beta2 (docs/spec/api.md 1.7)."""

from typing import Annotated, Literal

from pydantic import Field

from sluice.api.models.base import KIND_PATTERN, Int64, LabelName, Model, SubdomainName
from sluice.api.models.meta import ObjectMeta, UnboundedConditions
from sluice.api.models.v1beta2.admission_check import CONTROLLER_IMMUTABLE


class AdmissionCheckParametersReference(Model):
    """The object that holds the parameters of the check."""

    api_group: SubdomainName
    """The API group of the object."""
    kind: Annotated[str, Field(max_length=63, pattern=KIND_PATTERN)]
    """The kind of the object."""
    name: LabelName
    """The name of the object."""


class AdmissionCheckSpec(Model):
    """Who performs the check, and how."""

    controller_name: Annotated[str, CONTROLLER_IMMUTABLE]
    """The controller that performs the check. Can't change."""
    retry_delay_minutes: Int64 = 15
    """Has no effect, and is gone in v1beta2."""
    parameters: AdmissionCheckParametersReference | None = None
    """The object that holds the parameters of the check."""


class AdmissionCheckStatus(Model):
    """Whether the check can be performed."""

    conditions: UnboundedConditions | None = None
    """The state of the check; type Active says whether its controller is ready."""


class AdmissionCheck(Model):
    """A test that Workloads must pass after they got quota and before they are admitted."""

    api_version: Literal["kueue.x-k8s.io/v1beta1"]
    kind: Literal["AdmissionCheck"]
    metadata: ObjectMeta | None = None
    spec: AdmissionCheckSpec | None = None
    """Who performs the check, and how."""
    status: AdmissionCheckStatus | None = None
    """Whether the check can be performed."""
