"""What is known of nodes, pods, topologies and flavors, and the trees built from it.

Trees are built when first needed; nodes that come, go or change where the tree has a place for them
are put in and taken out in place. Source: docs/spec/algorithm.md 6.1.
"""

from typing import Final, final

from sluice.api.names import FlavorName, ResourceName
from sluice.api.quantity import canonical
from sluice.api.records import Node, Pod, PodTemplate, ResourceFlavor, Topology
from sluice.engine.requests import RequestRules
from sluice.engine.topology.tree import (
    Amounts,
    CellBook,
    ResourceIndex,
    Tree,
    TreeNode,
    add_list,
    add_times,
    build,
)

_NOTHING: Final[frozenset[FlavorName]] = frozenset()
_POD_CACHE_MAX: Final = 8192


@final
class Landscape:
    """Nodes and the trees over them.

    Attributes:
        version: Grows whenever what was counted on some tree says no longer what its nodes allow:
            other nodes, labels or taints. Changes of room go to the book's log instead.
    """

    __slots__ = (
        "_allocatable", "_charged", "_nodes", "_others", "_pod_amounts", "_rules", "_topologies",
        "_trees", "book", "flavors", "resources", "version",
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
        self._charged: dict[str, tuple[str, PodTemplate]] = {}
        """Node and template of each pod outside topologies that takes room, by key."""
        self._others: dict[str, list[int]] = {}
        """What such pods take, by node."""
        self._trees: dict[FlavorName, Tree] = {}
        self._pod_amounts: dict[tuple[tuple[ResourceName, int], ...], Amounts] = {}
        self.version = 0

    def pod_amounts(self, pod: tuple[tuple[ResourceName, int], ...]) -> Amounts:
        """Return what one pod takes: its requests and one unit of ``pods``."""
        found = self._pod_amounts.get(pod)
        if found is None:
            if len(self._pod_amounts) >= _POD_CACHE_MAX:
                self._pod_amounts.clear()
            found = self.resources.amounts(pod, with_pod=True)
            self._pod_amounts[pod] = found
        return found

    # Flavors and topologies -------------------------------------------------------------------

    def set_flavor(self, flavor: ResourceFlavor) -> frozenset[FlavorName]:
        """Take in a flavor; return it if its tree, or who may use its nodes, may differ now."""
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

    def _flavors_of(self, topology: str) -> set[FlavorName]:
        return {f.name for f in self.flavors.values() if f.topology == topology}

    def _forget_trees(self, names: set[FlavorName]) -> frozenset[FlavorName]:
        for name in names:
            if self._trees.pop(name, None) is not None:
                self.version += 1
        self.book.sweep(self._trees.values())
        return frozenset(names)

    # Nodes ------------------------------------------------------------------------------------

    def set_node(self, node: Node) -> frozenset[FlavorName]:
        """Take in a node; return the flavors that it is or was a node of, if anything changed."""
        old = self._nodes.get(node.name)
        if old is not None and _same_node(old, node):
            self._nodes[node.name] = node
            return _NOTHING
        self._take_out(node.name)
        self._nodes[node.name] = node
        room = [0] * len(self.resources.names)
        for name, text in node.allocatable:
            number = self.resources.of(name)
            if number >= len(room):
                room.extend([0] * (number + 1 - len(room)))
            room[number] = canonical(name, text)
        self._allocatable[node.name] = room
        before = set() if old is None else self._flavors_with(dict(old.labels))
        labels = dict(node.labels)
        after = self._flavors_with(labels)
        if node.is_ready and not node.is_unschedulable:
            self._put_in(node, labels, after)
        return frozenset(before | after)

    def drop_node(self, name: str) -> frozenset[FlavorName]:
        """Forget a node."""
        self._take_out(name)
        self._allocatable.pop(name, None)
        old = self._nodes.pop(name, None)
        return _NOTHING if old is None else frozenset(self._flavors_with(dict(old.labels)))

    def _take_out(self, name: str) -> None:
        """Take a node out of all trees."""
        room: list[int] | None = None
        for tree in self._trees.values():
            if name in tree.leaf_of_node:
                if room is None:
                    room = self._room(name)
                leaf = tree.take_out(name, room)
                self.book.touch(tree.cells[leaf])
                self.version += 1

    def _put_in(self, node: Node, labels: dict[str, str], flavors: set[FlavorName]) -> None:
        """Put a node into the trees of its flavors; a tree without a place for it is forgotten."""
        homeless: set[FlavorName] = set()
        room: list[int] | None = None
        for flavor in flavors:
            tree = self._trees.get(flavor)
            if tree is None or tree.path_of(labels) is None:
                continue
            if room is None:
                room = self._room(node.name)
            leaf = tree.put_in(TreeNode(node.name, labels, node.taints), room)
            if leaf < 0:
                homeless.add(flavor)
            else:
                self.book.touch(tree.cells[leaf])
                self.version += 1
        self._forget_trees(homeless)

    def _room(self, name: str) -> list[int]:
        """Return allocatable of a node less what pods outside topologies take there."""
        room = list(self._allocatable[name])
        others = self._others.get(name)
        if others is not None:
            add_list(room, others, -1)
        return room

    def _flavors_with(self, labels: dict[str, str]) -> set[FlavorName]:
        """Return the flavors with a topology whose node labels are among these."""
        return {
            f.name
            for f in self.flavors.values()
            if f.topology is not None
            and all(labels.get(key) == value for key, value in f.node_labels)
        }

    # Pods -------------------------------------------------------------------------------------

    def set_pod(self, pod: Pod) -> frozenset[FlavorName]:
        """Take in a pod; return the flavors that have more room now."""
        key = f"{pod.namespace}/{pod.name}"
        takes = bool(pod.node) and not pod.is_terminated and not pod.uses_topology
        now = (pod.node, pod.template) if takes else None
        old = self._charged.get(key)
        if old == now:
            return _NOTHING
        if old is not None:
            self._charge(old, -1)
        if now is None:
            self._charged.pop(key, None)
        else:
            self._charged[key] = now
            self._charge(now, 1)
        return _NOTHING if old is None else self._flavors_on(old[0])

    def drop_pod(self, key: str) -> frozenset[FlavorName]:
        """Forget a pod; return the flavors that have more room now."""
        old = self._charged.pop(key, None)
        if old is None:
            return _NOTHING
        self._charge(old, -1)
        return self._flavors_on(old[0])

    def _charge(self, charged: tuple[str, PodTemplate], times: int) -> None:
        """Count a pod outside topologies on its node, or take it off again."""
        name, template = charged
        amounts = self.pod_amounts(self._rules.of(template, "").raw)
        others = self._others.setdefault(name, [])
        add_times(others, amounts, times)
        if not any(others):
            del self._others[name]
        for tree in self._trees.values():
            leaf = tree.leaf_of_node.get(name, -1)
            if leaf >= 0:
                add_times(tree.free[leaf], amounts, -times)
                self.book.touch(tree.cells[leaf])

    def _flavors_on(self, node: str) -> frozenset[FlavorName]:
        found = self._nodes.get(node)
        return _NOTHING if found is None else frozenset(self._flavors_with(dict(found.labels)))

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
        for node_name in sorted(self._nodes):
            node = self._nodes[node_name]
            if node.is_ready and not node.is_unschedulable:
                labels = dict(node.labels)
                for key, value in wanted:
                    if labels.get(key) != value:
                        break
                else:
                    tree_node = TreeNode(node_name, labels, node.taints)
                    nodes.append((tree_node, self._room(node_name)))
        tree = build(levels, nodes, self.book, name)
        self._trees[name] = tree
        return tree


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
