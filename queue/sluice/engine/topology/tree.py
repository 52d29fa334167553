"""The domain tree of one topology flavor, and what is used on its leaves.

A domain at level i is named by the values of the levels 0..i. Domains of a level are kept in order
of their values, so the children of a domain are a contiguous range of the next level. A leaf points
to a `Cell`, the place where usage is booked: flavors whose lowest level is the hostname share one
cell per host, so that a host in two flavors is charged once for both. Source:
docs/spec/algorithm.md 6.1.

Amounts are integers in the resource's unit (milli for cpu, whole units otherwise). What a node has
is a list indexed by `ResourceIndex`; what a pod asks for is `Amounts`, only what is not zero.
Called by the engine's placement only.
"""

from collections.abc import Iterable, Mapping
from typing import Final, final

from sluice.api.names import HOSTNAME_LABEL
from sluice.api.records import Taint

PODS: Final = "pods"
LOG_LENGTH_MAX: Final = 1 << 18
_SWEEP_SLACK: Final = 1024

Amounts = tuple[tuple[int, int], ...]
"""(resource number, amount above zero)."""


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

    def amounts(self, requests: Iterable[tuple[str, int]], *, with_pod: bool) -> Amounts:
        """Return requests by number; ``with_pod`` adds the one unit of ``pods`` a pod takes."""
        totals: dict[int, int] = {0: 1} if with_pod else {}
        for resource, amount in requests:
            number = self.of(resource)
            totals[number] = totals.get(number, 0) + amount
        return tuple((number, amount) for number, amount in totals.items() if amount > 0)


def add_times(total: list[int], amounts: Amounts, times: int) -> None:
    """Add amounts ``times`` (may be negative) to a total, which grows as needed."""
    for number, amount in amounts:
        missing = number + 1 - len(total)
        if missing > 0:
            total.extend([0] * missing)
        total[number] += amount * times


def add_list(total: list[int], more: list[int], sign: int) -> None:
    """Add, or with sign -1 take away, what a node has."""
    missing = len(more) - len(total)
    if missing > 0:
        total.extend([0] * missing)
    for number in range(len(more)):
        total[number] += more[number] * sign


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


@final
class TreeNode:
    """A node as a tree takes it."""

    __slots__ = ("labels", "name", "taints")

    def __init__(self, name: str, labels: Mapping[str, str], taints: tuple[Taint, ...]) -> None:
        self.name = name
        self.labels = labels
        self.taints = taints


@final
class Tree:
    """The domains of one flavor.

    Attributes:
        levels: Node label keys, broadest first.
        values: Per level, the values of each domain in ascending order.
        parents: Per level from 1 on, the index of each domain's parent in the level above.
        first_child: Per level but the last, the index of each domain's first child; one entry more
            than there are domains, so that children are ``range(f[i], f[i + 1])``.
        nodes: Per leaf, its nodes in name order. A leaf may lose its last one and is then as good
            as absent: nothing fits there.
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

    def path_of(self, labels: Mapping[str, str]) -> tuple[str, ...] | None:
        """Return the values of a node's labels, None when one is missing."""
        path = []
        for level in self.levels:
            value = labels.get(level)
            if value is None:
                return None
            path.append(value)
        return tuple(path)

    def identity(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Return the values an assignment stores for a leaf: the hostname or the full path."""
        return path[-1:] if self.hostname_lowest else path

    def stored_levels(self) -> tuple[str, ...]:
        """Return the levels an assignment stores."""
        return self.levels[-1:] if self.hostname_lowest else self.levels

    def leaf_at(self, values: tuple[str, ...]) -> int:
        """Return the leaf of stored values, -1 when there is none; a longer path is fine."""
        found = self.leaf_of_id.get(values, -1)
        if found < 0 and self.hostname_lowest and len(values) > 1:
            found = self.leaf_of_id.get(values[-1:], -1)
        return found if found >= 0 and self.nodes[found] else -1

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

    def take_out(self, name: str, room: list[int]) -> int:
        """Take a node out of its leaf, and its room with it; return the leaf, -1 for none."""
        leaf = self.leaf_of_node.pop(name, -1)
        if leaf >= 0:
            self.nodes[leaf] = [node for node in self.nodes[leaf] if node.name != name]
            add_list(self.free[leaf], room, -1)
        return leaf

    def put_in(self, node: TreeNode, room: list[int]) -> int:
        """Put a node into its leaf, if there is one of its path; return the leaf, else -1."""
        path = self.path_of(node.labels)
        if path is None:
            return -1
        leaf = self.leaf_of_id.get(self.identity(path), -1)
        if leaf < 0 or self.values[-1][leaf] != path:
            return -1
        members = [*self.nodes[leaf], node]
        members.sort(key=lambda member: member.name)
        self.nodes[leaf] = members
        self.leaf_of_node[node.name] = leaf
        add_list(self.free[leaf], room, 1)
        return leaf


def build(
    levels: tuple[str, ...],
    nodes: Iterable[tuple[TreeNode, list[int]]],
    cells: "CellBook",
    scope: str = "",
) -> Tree:
    """Return the tree of the nodes that carry every level label; the others are left out.

    Args:
        levels: Node label keys, broadest first.
        nodes: Each with its room, in name order. Of nodes with one hostname in different places
            the first says where the host is.
        cells: Where usage is booked.
        scope: Name of the flavor; keeps its cells apart unless hosts are shared.
    """
    tree = Tree(levels)
    places: dict[tuple[str, ...], tuple[str, ...]] = {}
    members: dict[tuple[str, ...], list[TreeNode]] = {}
    room: dict[tuple[str, ...], list[int]] = {}
    for node, free in nodes:
        path = tree.path_of(node.labels)
        if path is None:
            continue
        if tree.hostname_lowest:
            path = places.setdefault(path[-1:], path)
        found = members.get(path)
        if found is None:
            members[path] = [node]
            room[path] = list(free)
        else:
            found.append(node)
            add_list(room[path], free, 1)
    leaves = sorted(members)
    _stack(tree, leaves)
    for leaf, path in enumerate(leaves):
        tree.nodes.append(members[path])
        tree.free.append(room[path])
        identity = tree.identity(path)
        cell = cells.of(levels, identity, scope)
        tree.cells.append(cell)
        tree.leaf_of_cell[cell.number] = leaf
        tree.leaf_of_id[identity] = leaf
        for node in members[path]:
            tree.leaf_of_node[node.name] = leaf
    return tree


def _stack(tree: Tree, leaves: list[tuple[str, ...]]) -> None:
    """Make the levels above sorted leaves."""
    last = len(tree.levels) - 1
    tree.values[last] = leaves
    for depth in range(last - 1, -1, -1):
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


@final
class CellBook:
    """The cells of all trees, and the log of which changed, so that counts can follow.

    Args:
        share_hosts: One cell per host for all flavors whose lowest level is the hostname (gate
            TASHandleOverlappingFlavors); otherwise cells belong to one flavor.

    Attributes:
        log: Numbers of the cells whose room changed, in order.
        epoch: Grows when the log was cut; whoever followed it has to look at every cell anew.
    """

    __slots__ = ("_cells", "_made", "_share_hosts", "_swept", "epoch", "log")

    def __init__(self, *, share_hosts: bool) -> None:
        self._share_hosts = share_hosts
        self._cells: dict[tuple[str, tuple[str, ...], tuple[str, ...]], Cell] = {}
        self._made = 0
        self._swept = 0
        self.log: list[int] = []
        self.epoch = 0

    @staticmethod
    def like(other: "CellBook") -> "CellBook":
        """Return an empty book that shares hosts as another one does."""
        return CellBook(share_hosts=other._share_hosts)

    def differences(self, wanted: "CellBook") -> list[str]:
        """Return where this book differs from another one, and what is still assumed."""
        found = []
        for key in sorted({*self._cells, *wanted._cells}):
            mine, theirs = self._cells.get(key), wanted._cells.get(key)
            used = _trimmed(mine.used if mine is not None else [])
            expected = _trimmed(theirs.used if theirs is not None else [])
            if used != expected:
                found.append(f"{'/'.join(key[2])} uses {used}, not {expected}")
            if mine is not None and any(mine.assumed):
                found.append(f"{'/'.join(key[2])} still has assumed pods")
        return found

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
            cell = Cell(self._made)
            self._made += 1
            self._cells[key] = cell
        return cell

    def add(self, cell: Cell, amounts: Amounts, times: int) -> None:
        """Book usage on a cell and log that it changed."""
        used = cell.used
        for number, amount in amounts:
            if number >= len(used):
                used.extend([0] * (number + 1 - len(used)))
            used[number] += amount * times
        log = self.log
        if len(log) >= LOG_LENGTH_MAX:
            self._cut()
        log.append(cell.number)

    def assume(self, cell: Cell, amounts: Amounts, times: int) -> None:
        """Count pods of the workload being looked at; taken back with negative ``times``."""
        add_times(cell.assumed, amounts, times)
        self.touch(cell)

    def touch(self, cell: Cell) -> None:
        """Log that the room on a cell changed."""
        if len(self.log) >= LOG_LENGTH_MAX:
            self._cut()
        self.log.append(cell.number)

    def _cut(self) -> None:
        self.log.clear()
        self.epoch += 1

    def sweep(self, trees: Iterable[Tree]) -> None:
        """Forget cells that no tree has and where nothing is booked, once there may be many.

        Never to be called between booking and undoing it.
        """
        if len(self._cells) <= 2 * self._swept + _SWEEP_SLACK:
            return
        needed = {cell.number for tree in trees for cell in tree.cells}
        self._cells = {
            key: cell
            for key, cell in self._cells.items()
            if cell.number in needed or any(cell.used)
        }
        self._swept = len(self._cells)


def _trimmed(amounts: list[int]) -> list[int]:
    """Return amounts without zeros at the end."""
    size = len(amounts)
    while size and not amounts[size - 1]:
        size -= 1
    return amounts[:size]
