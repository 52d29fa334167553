"""The spec of ResourceFlavor, the same in both versions (docs/spec/api.md 1.5)."""

from typing import Annotated

from sluice.api.models.base import Model, SubdomainName
from sluice.api.models.meta import NodeLabels, Taints, Tolerations
from sluice.api.models.schema import cel, object_rules, rules

TAINT_RULE = rules(
    cel(
        "self.all(t, t.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",
        "effect must be one of NoSchedule, PreferNoSchedule, NoExecute",
    )
)


class ResourceFlavorSpec(Model):
    """Which nodes the flavor stands for."""

    model_config = object_rules(
        cel(
            "!has(self.topologyName) || (has(self.nodeLabels) && size(self.nodeLabels) > 0)",
            "at least one nodeLabel is required when topology is set",
        ),
        cel(
            "!has(oldSelf.topologyName) || (has(self.topologyName)"
            " && self.topologyName == oldSelf.topologyName)",
            "topologyName is immutable when topologyName is set",
        ),
    )

    node_labels: NodeLabels | None = None
    """Labels of the nodes; pods that get this flavor are sent to nodes with all of them."""
    node_taints: Annotated[Taints, TAINT_RULE] | None = None
    """Taints of the nodes; only pods that tolerate them can get this flavor."""
    tolerations: Tolerations | None = None
    """Tolerations added to the pods that get this flavor."""
    topology_name: SubdomainName | None = None
    """The Topology of the nodes, for placement of pods near each other. Can't change once set."""
