"""The domain tree of one topology flavor, and what is used on its leaves.

A domain at level i is named by the values of the levels 0..i. Domains of a level are kept in order
of their values, so the children of a domain are a contiguous range of the next level. A leaf points
to a `Cell`, the place where usage is booked: flavors whose lowest level is the hostname share one
cell per host, so that a host in two flavors is charged once for both. Source:
docs/spec/algorithm.md 6.1.

Amounts are integers in the resource's unit (milli for cpu, whole units otherwise), in lists indexed
by `ResourceIndex`. Called by the engine's placement only.
"""

from collections.abc import Iterable, Mapping
from typing import Final, final

from sluice.api.names import HOSTNAME_LABEL
from sluice.api.records import Taint

PODS: Final = "pods"


@final
class ResourceIndex:
    """Numbers resource names in order of appearance; index 0 is ``pods``."""

    __slots__ = ("_index", "names")

    def __init__(self) -> None:
        self.names: list[str] = [PODS]
        self._index: dict[str, int] = {PODS: 0}

    def of(self, resource: str) -> int:
        """Return the number of a resource, a new one if it has none yet."""
        found = self._index.get(resource)
        if found is None:
            found = len(self.names)
            self._index[resource] = found
            self.names.append(resource)
        return found

    def vector(self, amounts: Mapping[str, int]) -> list[int]:
        """Return the amounts as a list; as long as the highest number among them asks."""
        result = [0] * len(self.names)
        for resource, amount in amounts.items():
            number = self.of(resource)
            if number >= len(result):
                result.extend([0] * (number + 1 - len(result)))
            result[number] += amount
        return result


@final
class Cell:
    """What is used on one leaf, or on one host shared by several flavors.

    Attributes:
        used: By workloads that hold a reservation.
        assumed: By pod sets placed a moment ago for the workload being looked at.
    """

    __slots__ = ("assumed", "number", "used")

    def __init__(self, number: int) -> None:
        self.number = number
        self.used: list[int] = []
        self.assumed: list[int] = []


def add_times(total: list[int], vector: list[int], times: int) -> None:
    """Add ``times`` (may be negative) of a vector to a total, which grows as needed."""
    if len(total) < len(vector):
        total.extend([0] * (len(vector) - len(total)))
    for i in range(len(vector)):
        total[i] += vector[i] * times


@final
class TreeNode:
    """A node as a tree takes it: name, labels, and what pods outside the topology leave of it."""

    __slots__ = ("free", "labels", "name", "taints")

    def __init__(
        self, name: str, labels: Mapping[str, str], taints: tuple[Taint, ...], free: list[int]
    ) -> None:
        self.name = name
        self.labels = labels
        self.taints = taints
        self.free = free


@final
class Tree:
    """The domains of one flavor.

    Attributes:
        levels: Node label keys, broadest first.
        values: Per level, the values of each domain in ascending order.
        parents: Per level from 1 on, the index of each domain's parent in the level above.
        first_child: Per level but the last, the index of each domain's first child; one entry more
            than there are domains, so that children are ``range(f[i], f[i + 1])``.
        nodes: Per leaf, its nodes.
        free: Per leaf, allocatable less what other pods use.
        cells: Per leaf, where usage is booked.
    """

    __slots__ = (
        "cells", "first_child", "free", "hostname_lowest", "leaf_of_cell", "leaf_of_id",
        "leaf_of_node", "levels", "nodes", "parents", "values",
    )  # fmt: skip

    def __init__(self, levels: tuple[str, ...]) -> None:
        self.levels = levels
        self.hostname_lowest = levels[-1] == HOSTNAME_LABEL
        self.values: list[list[tuple[str, ...]]] = [[] for _ in levels]
        self.parents: list[list[int]] = [[] for _ in levels]
        self.first_child: list[list[int]] = [[] for _ in levels]
        self.nodes: list[list[TreeNode]] = []
        self.free: list[list[int]] = []
        self.cells: list[Cell] = []
        self.leaf_of_cell: dict[int, int] = {}
        self.leaf_of_id: dict[tuple[str, ...], int] = {}
        self.leaf_of_node: dict[str, int] = {}

    def refresh(self, leaf: int) -> None:
        """Add up anew what the nodes of a leaf have free."""
        total: list[int] = []
        for node in self.nodes[leaf]:
            add_times(total, node.free, 1)
        self.free[leaf] = total

    def leaf_id(self, leaf: int) -> tuple[str, ...]:
        """Return the values an assignment stores for a leaf: the hostname or the full path."""
        values = self.values[-1][leaf]
        return values[-1:] if self.hostname_lowest else values

    def stored_levels(self) -> tuple[str, ...]:
        """Return the levels an assignment stores."""
        return self.levels[-1:] if self.hostname_lowest else self.levels

    def leaf_at(self, values: tuple[str, ...]) -> int:
        """Return the leaf of stored values, -1 when there is none; a longer path is fine."""
        found = self.leaf_of_id.get(values, -1)
        if found < 0 and self.hostname_lowest and len(values) > 1:
            found = self.leaf_of_id.get(values[-1:], -1)
        return found

    def ancestor(self, leaf: int, level: int) -> int:
        """Return the index at ``level`` of the domain that holds a leaf."""
        index = leaf
        for depth in range(len(self.levels) - 1, level, -1):
            index = self.parents[depth][index]
        return index

    def leaf_range(self, level: int, index: int) -> range:
        """Return the leaves under a domain."""
        low, high = index, index + 1
        for depth in range(level, len(self.levels) - 1):
            low, high = self.first_child[depth][low], self.first_child[depth][high]
        return range(low, high)


def build(
    levels: tuple[str, ...], nodes: Iterable[TreeNode], cells: "CellBook", scope: str = ""
) -> Tree:
    """Return the tree of the nodes that carry every level label; the others are left out.

    Args:
        levels: Node label keys, broadest first.
        nodes: In any order.
        cells: Where usage is booked.
        scope: Name of the flavor; keeps its cells apart unless hosts are shared.
    """
    tree = Tree(levels)
    members: dict[tuple[str, ...], list[TreeNode]] = {}
    for node in nodes:
        labels = node.labels
        if all(level in labels for level in levels):
            members.setdefault(tuple(labels[level] for level in levels), []).append(node)
    leaves = sorted(members)
    depth_last = len(levels) - 1
    tree.values[depth_last] = leaves
    for depth in range(depth_last - 1, -1, -1):
        below = tree.values[depth + 1]
        here: list[tuple[str, ...]] = []
        firsts: list[int] = []
        parents: list[int] = []
        for i, values in enumerate(below):
            if not here or here[-1] != values[:-1]:
                here.append(values[:-1])
                firsts.append(i)
            parents.append(len(here) - 1)
        firsts.append(len(below))
        tree.values[depth], tree.first_child[depth] = here, firsts
        tree.parents[depth + 1] = parents
    for leaf, values in enumerate(leaves):
        found = sorted(members[values], key=lambda node: node.name)
        tree.nodes.append(found)
        tree.free.append([])
        tree.refresh(leaf)
        identity = tree.leaf_id(leaf)
        cell = cells.of(levels, identity, scope)
        tree.cells.append(cell)
        tree.leaf_of_cell[cell.number] = leaf
        tree.leaf_of_id[identity] = leaf
        for node in found:
            tree.leaf_of_node[node.name] = leaf
    return tree


@final
class CellBook:
    """The cells of all trees, and the log of which changed, so that counts can follow.

    Args:
        share_hosts: One cell per host for all flavors whose lowest level is the hostname (gate
            TASHandleOverlappingFlavors); otherwise cells belong to one flavor.
    """

    __slots__ = ("_cells", "_share_hosts", "cells", "log")

    def __init__(self, *, share_hosts: bool) -> None:
        self._share_hosts = share_hosts
        self._cells: dict[tuple[str, tuple[str, ...], tuple[str, ...]], Cell] = {}
        self.cells: list[Cell] = []
        self.log: list[int] = []

    def of(self, levels: tuple[str, ...], values: tuple[str, ...], scope: str = "") -> Cell:
        """Return the cell of a leaf, made on first use.

        Args:
            levels: Level keys of the values.
            values: The leaf's values; where the lowest level is the hostname only that one counts.
            scope: Name of the flavor.
        """
        if levels[-1] == HOSTNAME_LABEL:
            key = ("" if self._share_hosts else scope, levels[-1:], values[-1:])
        else:
            key = (scope, levels, values)
        cell = self._cells.get(key)
        if cell is None:
            cell = Cell(len(self.cells))
            self._cells[key] = cell
            self.cells.append(cell)
        return cell

    def add(self, cell: Cell, vector: list[int], times: int) -> None:
        """Book usage on a cell and log that it changed."""
        add_times(cell.used, vector, times)
        self.log.append(cell.number)

    def assume(self, cell: Cell, vector: list[int], times: int) -> None:
        """Count pods of the workload being looked at; taken back with negative ``times``."""
        add_times(cell.assumed, vector, times)
        self.log.append(cell.number)

    def touch(self, cell: Cell) -> None:
        """Log that the room on a cell changed otherwise."""
        self.log.append(cell.number)
