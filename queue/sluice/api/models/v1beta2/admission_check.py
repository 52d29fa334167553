"""AdmissionCheck in v1beta2 (docs/spec/api.md 1.7)."""

from typing import Annotated, Literal

from pydantic import Field

from sluice.api.models.base import KIND_PATTERN, LABEL_PATTERN, SUBDOMAIN_PATTERN, Model
from sluice.api.models.meta import Conditions, ObjectMeta
from sluice.api.models.schema import cel, rules

CONTROLLER_IMMUTABLE = rules(cel("self == oldSelf", "field is immutable"))


class AdmissionCheckParametersReference(Model):
    """The object that holds the parameters of the check."""

    api_group: Annotated[str, Field(min_length=1, max_length=253, pattern=SUBDOMAIN_PATTERN)]
    """The API group of the object."""
    kind: Annotated[str, Field(min_length=1, max_length=63, pattern=KIND_PATTERN)]
    """The kind of the object."""
    name: Annotated[str, Field(min_length=1, max_length=63, pattern=LABEL_PATTERN)]
    """The name of the object."""


class AdmissionCheckSpec(Model):
    """Who performs the check, and how."""

    controller_name: Annotated[str, Field(min_length=1, max_length=253), CONTROLLER_IMMUTABLE]
    """The controller that performs the check. Can't change."""
    parameters: AdmissionCheckParametersReference | None = None
    """The object that holds the parameters of the check."""


class AdmissionCheckStatus(Model):
    """Whether the check can be performed."""

    conditions: Conditions | None = None
    """The state of the check; type Active says whether its controller is ready."""


class AdmissionCheck(Model):
    """A test that Workloads must pass after they got quota and before they are admitted."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"]
    kind: Literal["AdmissionCheck"]
    metadata: ObjectMeta | None = None
    spec: AdmissionCheckSpec | None = None
    """Who performs the check, and how."""
    status: AdmissionCheckStatus | None = None
    """Whether the check can be performed."""
