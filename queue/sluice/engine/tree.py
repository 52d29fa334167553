"""Quota nodes and the arithmetic of lending, borrowing and usage (docs/spec/algorithm.md 1).

A node is a ClusterQueue or a cohort of one tree. Everything per flavor-resource is a plain list,
indexed by the small integers that the tree gives its flavor-resources (`Tree.intern`); checks walk
the precomputed path from the root. Unlimited quota is `amount.UNLIMITED`, larger than any request,
so only building a tree needs the careful arithmetic of `sluice.api.amount`. Usage is changed by
`add_usage` and `remove_usage` only; both write to an undo log when given one.

Used by everything in the engine that books or checks quota.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.api.amount import UNLIMITED
from sluice.api.names import FlavorName, ResourceName

if TYPE_CHECKING:
    from sluice.engine.credits.book import Book

NO_LIMIT: Final[int] = UNLIMITED * 2

UsageLog = list[tuple[list[int], int, int]]
"""Undo entries: the usage list, the index, the value before."""


class QuotaNode:
    """One ClusterQueue or cohort of a tree.

    Attributes:
        path: From the root down to this node, both included.
        height: 1.6; counts active ClusterQueues only; 0 for a ClusterQueue.
        keys: Flavor-resources that the node's subtree has quota entries for (1.1).
        nominal: Own quota; ``quota``: of the subtree, Q; ``guaranteed``: never lent, G.
        borrowing: Borrowing limit, `NO_LIMIT` without.
        cap: Most the parent's capacity may add while nothing of the lendable part is used:
            Q - G + borrowing limit; `NO_LIMIT` without one (1.2).
        potential: Largest conceivable capacity (1.3).
        usage: What is booked, own and passed on by children (1.1).
        weight: Fair weight.
        resources: Of ``keys``: resource name and its indices, in name order (for shares, 5.1).
        lendable: Of a cohort: by resource, the potential summed over the root's keys (5.1).
    """

    __slots__ = (
        "borrowing", "cap", "cohorts", "guaranteed", "height", "is_active", "is_queue", "keys",
        "lendable", "name", "nominal", "parent", "path", "potential", "queues", "quota",
        "resources", "usage", "weight",
    )  # fmt: skip

    def __init__(self, name: str, is_queue: bool, weight: float) -> None:
        self.name = name
        self.is_queue = is_queue
        self.is_active = True
        self.weight = weight
        self.parent: QuotaNode | None = None
        self.cohorts: list[QuotaNode] = []
        self.queues: list[QuotaNode] = []
        self.path: list[QuotaNode] = [self]
        self.height = 0
        self.keys: list[int] = []
        self.resources: list[tuple[str, list[int]]] = []
        self.lendable: dict[str, int] = {}
        self.nominal: list[int] = []
        self.quota: list[int] = []
        self.guaranteed: list[int] = []
        self.borrowing: list[int] = []
        self.cap: list[int] = []
        self.potential: list[int] = []
        self.usage: list[int] = []


class Tree:
    """A root with all below it, and the numbering of its flavor-resources.

    Attributes:
        book: Ledger of the CreditPolicy in force here, None without one (docs/spec/credits.md).
        nodes: Parents before children.
        is_stale: A member changed: the tree is to be built anew before it is next used.
        pairs: (flavor, resource) by number.
        parked: Names of the ClusterQueues that have parked Workloads.
    """

    __slots__ = ("book", "is_stale", "nodes", "numbers", "pairs", "parked", "root")

    def __init__(self, root: QuotaNode) -> None:
        self.root = root
        self.book: Book | None = None
        self.is_stale = False
        self.parked: dict[str, None] = {}
        self.nodes: list[QuotaNode] = []
        self.pairs: list[tuple[FlavorName, ResourceName]] = []
        self.numbers: dict[tuple[FlavorName, ResourceName], int] = {}

    def intern(self, flavor: FlavorName, resource: ResourceName) -> int:
        """Return the number of a flavor-resource; a new one has no quota anywhere."""
        pair = (flavor, resource)
        number = self.numbers.get(pair)
        if number is None:
            number = len(self.pairs)
            self.numbers[pair] = number
            self.pairs.append(pair)
            for node in self.nodes:
                node.nominal.append(0)
                node.quota.append(0)
                node.guaranteed.append(0)
                node.borrowing.append(NO_LIMIT)
                node.cap.append(NO_LIMIT)
                node.potential.append(0)
                node.usage.append(0)
        return number


def raw_available(node: QuotaNode, fr: int) -> int:
    """Return what fits under a node (1.2); negative when it or an ancestor is over-admitted.

    Complexity: O(depth).
    """
    room = NO_LIMIT
    for n in node.path:
        used = n.usage[fr]
        if n.parent is None:
            room = n.quota[fr] - used
            continue
        kept = n.guaranteed[fr]
        cap = n.cap[fr]
        if used < kept:
            if cap < room:
                room = cap
            room += kept - used
        else:
            cap -= used - kept
            if cap < room:
                room = cap
    return room


def available(node: QuotaNode, fr: int) -> int:
    """Return what fits under a node, at least 0 (1.2)."""
    room = raw_available(node, fr)
    return room if room > 0 else 0


def local_available(node: QuotaNode, fr: int) -> int:
    """Return the unused part of what a node never lends, LA (1.1)."""
    rest = node.guaranteed[fr] - node.usage[fr]
    return rest if rest > 0 else 0


def add_usage(node: QuotaNode, fr: int, value: int, log: UsageLog | None) -> None:
    """Book usage at a node and pass on what exceeds its guaranteed part (1.4)."""
    n: QuotaNode | None = node
    while n is not None:
        usage = n.usage
        used = usage[fr]
        if log is not None:
            log.append((usage, fr, used))
        usage[fr] = used + value
        kept = n.guaranteed[fr]
        if kept > used:
            value -= kept - used
        if value <= 0:
            return
        n = n.parent


def remove_usage(node: QuotaNode, fr: int, value: int, log: UsageLog | None) -> None:
    """Take usage away at a node, and from its ancestors what had been passed on (1.4)."""
    n: QuotaNode | None = node
    while n is not None:
        usage = n.usage
        used = usage[fr]
        if log is not None:
            log.append((usage, fr, used))
        usage[fr] = used - value
        passed = used - n.guaranteed[fr]
        if passed <= 0:
            return
        if passed < value:
            value = passed
        n = n.parent


def rollback(log: UsageLog, mark: int) -> None:
    """Undo the entries of a log beyond a mark, latest first."""
    while len(log) > mark:
        usage, fr, used = log.pop()
        usage[fr] = used


def is_borrowing_with(node: QuotaNode, fr: int, value: int) -> bool:
    """Tell whether a ClusterQueue would exceed its nominal quota, a cohort its subtree's (1.5)."""
    return node.quota[fr] < node.usage[fr] + value


def is_within_nominal(node: QuotaNode, frs: list[int]) -> bool:
    """Tell whether usage is within quota for all of some flavor-resources (1.5)."""
    usage = node.usage
    quota = node.quota
    for fr in frs:  # noqa: SIM110  (hot: a generator costs more than the loop)
        if usage[fr] > quota[fr]:
            return False
    return True


def fits_quota(node: QuotaNode, request: dict[int, int]) -> bool:
    """Tell whether a request fits the node's own quota; reduces it to what the parent must give.

    Args:
        node: Where to test.
        request: Amounts by flavor-resource; on return the remainder for the next level (1.5).
    """
    fits = True
    for fr, value in request.items():
        if node.quota[fr] < node.usage[fr] + value:
            fits = False
        rest = value - local_available(node, fr)
        request[fr] = rest if rest > 0 else 0
    return fits


def borrow_level(node: QuotaNode, fr: int, value: int) -> tuple[int, bool]:
    """Return the height of the lowest subtree that fits a request and whether it may reclaim (1.6).

    Args:
        node: A ClusterQueue.
        fr: Flavor-resource.
        value: Amount on top of the present usage.
    """
    parent = node.parent
    if parent is None:
        return 0, False
    if node.nominal[fr] >= node.usage[fr] + value:
        return 0, True
    rest = value - local_available(node, fr)
    cohort: QuotaNode | None = parent
    last = parent
    while cohort is not None:
        if cohort.quota[fr] >= cohort.usage[fr] + rest:
            return cohort.height, cohort.parent is not None
        rest -= local_available(cohort, fr)
        last = cohort
        cohort = cohort.parent
    return last.height, False
