"""Levels of a Topology and the rules on them (docs/spec/api.md 1.6)."""

from typing import Annotated, Any

from pydantic import Field

from sluice.api.models.base import LABEL_KEY_PATTERN, Model
from sluice.api.models.schema import cel

UNIQUE_RULE: dict[str, Any] = cel(
    "self.all(x, self.exists_one(y, x.nodeLabel == y.nodeLabel))", "must be unique"
)
HOSTNAME_LAST_RULE: dict[str, Any] = cel(
    "size(self.filter(l, l.nodeLabel == 'kubernetes.io/hostname')) == 0"
    " || self[size(self) - 1].nodeLabel == 'kubernetes.io/hostname'",
    "kubernetes.io/hostname can only be the last level",
)


class TopologyLevel(Model):
    """One step of the hierarchy of nodes."""

    node_label: Annotated[str, Field(min_length=1, max_length=316, pattern=LABEL_KEY_PATTERN)]
    """The node label whose value names the domain at this level, such as a rack."""


BoundedLevels = Annotated[list[TopologyLevel], Field(min_length=1, max_length=16)]
