"""What is known of nodes, pods, topologies and flavors, and the trees built from it.

Trees are built when first needed after a change of shape; changes of room only touch the leaf.
Source: docs/spec/algorithm.md 6.1.
"""

from typing import Final, final

from sluice.api.names import FlavorName
from sluice.api.quantity import canonical
from sluice.api.records import Node, Pod, ResourceFlavor, Topology
from sluice.engine.requests import RequestRules
from sluice.engine.topology.tree import (
    PODS,
    CellBook,
    ResourceIndex,
    Tree,
    TreeNode,
    add_times,
    build,
)

_NOTHING: Final[frozenset[FlavorName]] = frozenset()


@final
class Landscape:
    """Nodes and the trees over them."""

    __slots__ = (
        "_allocatable", "_nodes", "_others", "_pods", "_rules", "_topologies", "_trees", "book",
        "flavors", "resources", "version",
    )  # fmt: skip

    def __init__(self, *, share_hosts: bool) -> None:
        self.book = CellBook(share_hosts=share_hosts)
        self.resources = ResourceIndex()
        # Stored pods carry overhead and defaults already, so no rules apply to them here.
        self._rules = RequestRules((), ())
        self.flavors: dict[FlavorName, ResourceFlavor] = {}
        self._topologies: dict[str, tuple[str, ...]] = {}
        self._nodes: dict[str, Node] = {}
        self._allocatable: dict[str, list[int]] = {}
        self._pods: dict[str, Pod] = {}
        self._others: dict[str, list[int]] = {}
        self._trees: dict[FlavorName, Tree] = {}
        self.version = 0
        """Grows whenever a tree is thrown away, so that what was counted on it is too."""

    # Facts ------------------------------------------------------------------------------------

    def set_flavor(self, flavor: ResourceFlavor) -> frozenset[FlavorName]:
        """Take in a flavor; return it if its tree may differ now."""
        old = self.flavors.get(flavor.name)
        self.flavors[flavor.name] = flavor
        if old is not None and _same_tree(old, flavor):
            return _NOTHING
        return self._forget_trees({flavor.name})

    def drop_flavor(self, name: FlavorName) -> frozenset[FlavorName]:
        """Forget a flavor."""
        known = self.flavors.pop(name, None) is not None
        return self._forget_trees({name}) if known else _NOTHING

    def set_topology(self, topology: Topology) -> frozenset[FlavorName]:
        """Take in a topology; return the flavors whose trees differ now."""
        if self._topologies.get(topology.name) == topology.levels:
            return _NOTHING
        self._topologies[topology.name] = topology.levels
        return self._forget_trees(self._flavors_of(topology.name))

    def drop_topology(self, name: str) -> frozenset[FlavorName]:
        """Forget a topology."""
        if self._topologies.pop(name, None) is None:
            return _NOTHING
        return self._forget_trees(self._flavors_of(name))

    def set_node(self, node: Node) -> frozenset[FlavorName]:
        """Take in a node; return the flavors that it is or was a node of, if anything changed."""
        old = self._nodes.get(node.name)
        if old is not None and _same_node(old, node):
            self._nodes[node.name] = node
            return _NOTHING
        touched = self._flavors_with(old) | self._flavors_with(node)
        self._nodes[node.name] = node
        self._allocatable[node.name] = self.resources.vector(
            {name: canonical(name, text) for name, text in node.allocatable}
        )
        return self._forget_trees(touched)

    def drop_node(self, name: str) -> frozenset[FlavorName]:
        """Forget a node."""
        old = self._nodes.pop(name, None)
        self._allocatable.pop(name, None)
        return _NOTHING if old is None else self._forget_trees(self._flavors_with(old))

    def set_pod(self, pod: Pod) -> frozenset[FlavorName]:
        """Take in a pod; return the flavors that have more room now."""
        key = f"{pod.namespace}/{pod.name}"
        old = self._pods.get(key)
        self._pods[key] = pod
        freed = self._charge(old, -1)
        taken = self._charge(pod, 1)
        if not freed or (taken == freed and old is not None and old.template == pod.template):
            return _NOTHING
        return self._flavors_on(freed)

    def drop_pod(self, key: str) -> frozenset[FlavorName]:
        """Forget a pod; return the flavors that have more room now."""
        return self._flavors_on(self._charge(self._pods.pop(key, None), -1))

    def _charge(self, pod: Pod | None, times: int) -> str:
        """Count a pod outside the topology on its node; return the node, empty for none."""
        if pod is None or not pod.node or pod.is_terminated or pod.uses_topology:
            return ""
        vector = self._vector(pod)
        add_times(self._others.setdefault(pod.node, []), vector, times)
        for tree in self._trees.values():
            leaf = tree.leaf_of_node.get(pod.node, -1)
            if leaf >= 0:
                for node in tree.nodes[leaf]:
                    if node.name == pod.node:
                        add_times(node.free, vector, -times)
                tree.refresh(leaf)
                self.book.touch(tree.cells[leaf])
        return pod.node

    def _vector(self, pod: Pod) -> list[int]:
        amounts: dict[str, int] = dict(self._rules.of(pod.template, "").raw)
        amounts[PODS] = amounts.get(PODS, 0) + 1
        return self.resources.vector(amounts)

    # Trees ------------------------------------------------------------------------------------

    def levels(self, name: FlavorName) -> tuple[str, ...] | None:
        """Return the level keys of a flavor, None when it has no topology or it is unknown."""
        flavor = self.flavors.get(name)
        if flavor is None or flavor.topology is None:
            return None
        return self._topologies.get(flavor.topology)

    def tree(self, name: FlavorName) -> Tree | None:
        """Return the tree of a flavor, None when it has no topology or it is unknown."""
        found = self._trees.get(name)
        if found is not None:
            return found
        levels = self.levels(name)
        if levels is None:
            return None
        wanted = self.flavors[name].node_labels
        nodes = []
        for node in self._nodes.values():
            if node.is_ready and not node.is_unschedulable:
                labels = dict(node.labels)
                if all(labels.get(key) == value for key, value in wanted):
                    nodes.append(self._tree_node(node, labels))
        tree = build(levels, nodes, self.book, name)
        self._trees[name] = tree
        return tree

    def _tree_node(self, node: Node, labels: dict[str, str]) -> TreeNode:
        free = list(self._allocatable[node.name])
        add_times(free, self._others.get(node.name, []), -1)
        return TreeNode(node.name, labels, node.taints, free)

    def _flavors_of(self, topology: str) -> set[FlavorName]:
        return {f.name for f in self.flavors.values() if f.topology == topology}

    def _flavors_with(self, node: Node | None) -> set[FlavorName]:
        if node is None:
            return set()
        labels = dict(node.labels)
        return {
            f.name
            for f in self.flavors.values()
            if f.topology is not None
            and all(labels.get(key) == value for key, value in f.node_labels)
        }

    def _flavors_on(self, node: str) -> frozenset[FlavorName]:
        return frozenset(self._flavors_with(self._nodes.get(node))) if node else _NOTHING

    def _forget_trees(self, names: set[FlavorName]) -> frozenset[FlavorName]:
        for name in names:
            if self._trees.pop(name, None) is not None:
                self.version += 1
        return frozenset(names)


def _same_tree(old: ResourceFlavor, new: ResourceFlavor) -> bool:
    return (
        old.topology == new.topology
        and old.node_labels == new.node_labels
        and old.tolerations == new.tolerations
        and old.node_taints == new.node_taints
    )


def _same_node(old: Node, new: Node) -> bool:
    return (
        old.labels == new.labels
        and old.taints == new.taints
        and old.allocatable == new.allocatable
        and old.is_ready == new.is_ready
        and old.is_unschedulable == new.is_unschedulable
    )
