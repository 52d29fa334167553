"""Topology in v1beta1: levels never change (docs/spec/api.md 1.6)."""

from typing import Annotated, Literal

from sluice.api.models.base import Model
from sluice.api.models.levels import HOSTNAME_LAST_RULE, UNIQUE_RULE, BoundedLevels
from sluice.api.models.meta import ObjectMeta
from sluice.api.models.schema import ATOMIC_LIST, cel, rules


class TopologySpec(Model):
    """The hierarchy of nodes."""

    levels: Annotated[
        BoundedLevels,
        ATOMIC_LIST,
        rules(cel("self == oldSelf", "field is immutable"), UNIQUE_RULE, HOSTNAME_LAST_RULE),
    ]
    """The levels, widest first. Can't change."""


class Topology(Model):
    """How nodes are grouped, for placement of pods near each other."""

    api_version: Literal["kueue.x-k8s.io/v1beta1"]
    kind: Literal["Topology"]
    metadata: ObjectMeta | None = None
    spec: TopologySpec | None = None
    """The hierarchy of nodes."""
