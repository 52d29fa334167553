"""Dominant resource share: how far a node is beyond its quota, and who goes first by it.

The share of a node looks at what it uses beyond its subtree's quota, relative to what its parent
could ever lend. The tournament orders the entries of one cycle. Source: docs/spec/algorithm.md 5.1
and 3.6. Used by ordering, fair preemption and the status queries.
"""

from typing import Final

from sluice.api.quantity import MAX_INT64
from sluice.engine.tree import QuotaNode

Share = tuple[int, float]
"""Comparable as 5.1 says: (1, ratio) of a zero-weight node that borrows, else (0, weighted)."""

NO_SHARE: Final[Share] = (0, 0.0)


def share(node: QuotaNode) -> Share:
    """Return the dominant resource share of a node, zero for a root (5.1).

    Complexity: O(flavor-resources of the node).
    """
    parent = node.parent
    if parent is None:
        return NO_SHARE
    usage = node.usage
    quota = node.quota
    ratio = 0.0
    for resource, frs in node.resources:
        over = 0
        for fr in frs:
            excess = usage[fr] - quota[fr]
            if excess > 0:
                over += excess
        if over > 0:
            lendable = parent.lendable.get(resource, 0)
            if lendable > 0:
                candidate = over * 1000.0 / lendable
                if candidate > ratio:
                    ratio = candidate
    if ratio == 0.0:
        return NO_SHARE
    if node.weight == 0.0:
        return (1, ratio)
    return (0, ratio / node.weight)


def is_borrowing(node: QuotaNode) -> bool:
    """Tell whether a node uses more than its quota of some flavor-resource; a root never does."""
    if node.parent is None:
        return False
    usage = node.usage
    quota = node.quota
    for fr in node.keys:  # noqa: SIM110  (hot: a generator costs more than the loop)
        if usage[fr] > quota[fr]:
            return True
    return False


def reported(value: Share) -> int:
    """Return the share as status shows it: rounded up, the largest integer for infinite."""
    if value[0]:
        return MAX_INT64
    whole = int(value[1])
    return whole if whole == value[1] else whole + 1


def ancestors(node: QuotaNode) -> list[QuotaNode]:
    """Return the node's ancestors, parent first."""
    return node.path[-2::-1]


def side_below(node: QuotaNode, other: QuotaNode) -> tuple[QuotaNode, QuotaNode]:
    """Return the nodes just below the lowest common ancestor on the ways to two nodes (4.5.3)."""
    left, right = node.path, other.path
    at = 0
    while at + 1 < len(left) and at + 1 < len(right) and left[at] is right[at]:
        if left[at + 1] is not right[at + 1]:
            break
        at += 1
    return left[min(at + 1, len(left) - 1)], right[min(at + 1, len(right) - 1)]
