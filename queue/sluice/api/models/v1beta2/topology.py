"""Topology in v1beta2 (docs/spec/api.md 1.6)."""

from typing import Annotated, Literal

from sluice.api.models.base import Model
from sluice.api.models.levels import HOSTNAME_LAST_RULE, UNIQUE_RULE, BoundedLevels
from sluice.api.models.meta import ObjectMeta
from sluice.api.models.schema import ATOMIC_LIST, cel, rules

_MUTABLE_ABOVE_HOSTNAME = cel(
    "self == oldSelf || (self[size(self) - 1].nodeLabel == 'kubernetes.io/hostname'"
    " && oldSelf[size(oldSelf) - 1].nodeLabel == 'kubernetes.io/hostname')",
    "levels are mutable only when kubernetes.io/hostname is the lowest level both before and after"
    " the change",
)


class TopologySpec(Model):
    """The hierarchy of nodes."""

    levels: Annotated[
        BoundedLevels,
        ATOMIC_LIST,
        rules(_MUTABLE_ABOVE_HOSTNAME, UNIQUE_RULE, HOSTNAME_LAST_RULE),
    ]
    """The levels, widest first. Can change only while kubernetes.io/hostname is the last level."""


class Topology(Model):
    """How nodes are grouped, for placement of pods near each other."""

    api_version: Literal["kueue.x-k8s.io/v1beta2"]
    kind: Literal["Topology"]
    metadata: ObjectMeta | None = None
    spec: TopologySpec | None = None
    """The hierarchy of nodes."""
