"""Replacing the pods of one unhealthy node: where the replacements may go.

Only the first recorded node is replaced. Source: docs/spec/algorithm.md 6.8.
"""

from dataclasses import dataclass
from typing import Final

from sluice.api.names import HOSTNAME_LABEL
from sluice.api.records import TopologyAssignment, TopologyDomain
from sluice.engine.topology.levels import Ask
from sluice.engine.topology.tree import Tree

STALE: Final = "the assignment names a domain that is no longer in the topology"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """What a search for replacements has to find.

    Attributes:
        kept: Domains that stay.
        count: Pods to place anew.
        slice_size: Pods in a slice of the search.
        slice_level: Level index of those slices.
        leaves: Leaves that may be used, None for all.
    """

    kept: tuple[TopologyDomain, ...]
    count: int
    slice_size: int
    slice_level: int
    leaves: range | None


def touches(assignment: TopologyAssignment, node: str) -> bool:
    """Tell whether an assignment has pods on a node; only hostnames say so."""
    if assignment.levels[-1] != HOSTNAME_LABEL:
        return False
    return any(domain.values[-1] == node for domain in assignment.domains)


def plan(tree: Tree, ask: Ask, assignment: TopologyAssignment, node: str) -> Replacement | str:
    """Return what to search for, or why nothing can be searched.

    Args:
        tree: The flavor's tree.
        ask: What the pod set asked for.
        assignment: Where its pods are.
        node: Hostname of the node to replace.
    """
    kept = tuple(d for d in assignment.domains if d.values[-1] != node)
    count = sum(d.count for d in assignment.domains if d.values[-1] == node)
    leaves = [tree.leaf_at(domain.values) for domain in kept]
    if any(leaf < 0 for leaf in leaves):
        return STALE
    size, slice_level = ask.slice_size, ask.slice_level
    bound: range | None = None
    if kept:
        if ask.layers and count % size:
            bound = _incomplete(tree, ask, kept, leaves, count)
        elif ask.required:
            bound = tree.leaf_range(ask.level, tree.ancestor(leaves[0], ask.level))
    if ask.layers and bound is not None and count % size:
        slice_level, size = _search_layer(tree, ask, count)
    return Replacement(
        kept=kept, count=count, slice_size=size, slice_level=slice_level, leaves=bound
    )


def _incomplete(
    tree: Tree, ask: Ask, kept: tuple[TopologyDomain, ...], leaves: list[int], count: int
) -> range | None:
    """Return the leaves of the slice domain that the lost pods were part of."""
    level, size = next((at, s) for at, s in reversed(ask.layers) if count % s)
    held: dict[int, int] = {}
    for domain, leaf in zip(kept, leaves, strict=True):
        index = tree.ancestor(leaf, level)
        held[index] = held.get(index, 0) + domain.count
    for index in sorted(held):
        if (held[index] + count) % size == 0:
            return tree.leaf_range(level, index)
    return None


def _search_layer(tree: Tree, ask: Ask, count: int) -> tuple[int, int]:
    """Return (level, size) of the innermost slices that the lost pods fill, else single pods."""
    for level, size in reversed(ask.layers):
        if count % size == 0:
            return level, size
    return len(tree.levels) - 1, 1


def merge(
    tree: Tree, kept: tuple[TopologyDomain, ...], placed: tuple[TopologyDomain, ...]
) -> TopologyAssignment:
    """Return kept and new domains as one assignment, in order of values."""
    counts: dict[tuple[str, ...], int] = {}
    for domain in (*kept, *placed):
        values = tree.identity(domain.values)
        counts[values] = counts.get(values, 0) + domain.count
    return TopologyAssignment(
        levels=tree.stored_levels(),
        domains=tuple(
            TopologyDomain(values=values, count=counts[values]) for values in sorted(counts)
        ),
    )
