"""WorkloadPriorityClass in v1beta2 (docs/spec/api.md 1.8)."""

from typing import Annotated, Literal

from pydantic import Field

from sluice.api.models.base import Int32, Model
from sluice.api.models.meta import ObjectMeta


class WorkloadPriorityClass(Model):
    """A named priority for Workloads; it does not change the priority of their pods."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"]
    kind: Literal["WorkloadPriorityClass"]
    metadata: ObjectMeta | None = None
    value: Int32
    """The priority that Workloads of this class get; higher goes first. A change also changes the
    Workloads that have this class."""
    description: Annotated[str, Field(max_length=2048)] | None = None
    """When this class should be used, for people."""
