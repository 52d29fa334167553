"""ResourceFlavor in v1beta2 (docs/spec/api.md 1.5)."""

from typing import Literal

from sluice.api.models.base import Model
from sluice.api.models.flavor import ResourceFlavorSpec
from sluice.api.models.meta import ObjectMeta


class ResourceFlavor(Model):
    """A kind of node that offers resources, such as a GPU model or spot capacity."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"]
    kind: Literal["ResourceFlavor"]
    metadata: ObjectMeta | None = None
    spec: ResourceFlavorSpec | None = None
    """Which nodes the flavor stands for."""
