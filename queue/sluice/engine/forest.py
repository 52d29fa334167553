"""Cohorts and ClusterQueues as trees: who is below whom, built anew when something changes.

A cohort exists while an object or a member names it (1.8). Changing a queue or cohort only marks
its tree stale; the tree is rebuilt when it is next needed, so a burst of changes costs one build.
Source: docs/spec/algorithm.md 1.1, 1.3, 1.6, 1.8. Used by `sluice.engine.world`.
"""

from sluice.api.amount import UNLIMITED, add, bounded, sub
from sluice.api.names import ClusterQueueName, CohortName
from sluice.api.records import ClusterQueue, Cohort, ResourceGroup
from sluice.engine.tree import NO_LIMIT, QuotaNode, Tree


class Forest:
    """Builds `Tree`s from the records of queues and cohorts.

    ``queues`` and ``cohorts`` are the observed records; ``active`` the queues that take part (1.7).
    """

    __slots__ = ("_children", "_members", "active", "cohorts", "queues")

    def __init__(self) -> None:
        self.queues: dict[ClusterQueueName, ClusterQueue] = {}
        self.cohorts: dict[CohortName, Cohort] = {}
        self.active: set[ClusterQueueName] = set()
        self._members: dict[CohortName, dict[ClusterQueueName, None]] = {}
        self._children: dict[CohortName, dict[CohortName, None]] = {}

    def set_queue(self, record: ClusterQueue) -> None:
        """Add or replace a ClusterQueue."""
        self.drop_queue(record.name)
        self.queues[record.name] = record
        if record.cohort is not None:
            self._members.setdefault(record.cohort, {})[record.name] = None

    def drop_queue(self, name: ClusterQueueName) -> None:
        """Forget a ClusterQueue; an implicit cohort without members goes with it."""
        record = self.queues.pop(name, None)
        if record is not None and record.cohort is not None:
            members = self._members[record.cohort]
            del members[name]
            if not members:
                del self._members[record.cohort]

    def set_cohort(self, record: Cohort) -> None:
        """Add or replace a Cohort object."""
        self.drop_cohort(record.name)
        self.cohorts[record.name] = record
        if record.parent is not None:
            self._children.setdefault(record.parent, {})[record.name] = None

    def drop_cohort(self, name: CohortName) -> None:
        """Forget a Cohort object; with members left it is an implicit root (1.8)."""
        record = self.cohorts.pop(name, None)
        if record is not None and record.parent is not None:
            children = self._children[record.parent]
            del children[name]
            if not children:
                del self._children[record.parent]

    def root_of(self, cohort: CohortName) -> CohortName | None:
        """Return the root above a cohort, None when walking up runs into a cycle (1.8)."""
        seen = {cohort}
        at = cohort
        while (record := self.cohorts.get(at)) is not None and record.parent is not None:
            at = record.parent
            if at in seen:
                return None
            seen.add(at)
        return at

    def parent_of(self, cohort: CohortName) -> CohortName | None:
        """Return the parent of a cohort, None for a root."""
        record = self.cohorts.get(cohort)
        return None if record is None else record.parent

    def exists(self, cohort: CohortName) -> bool:
        """Tell whether a cohort exists, as an object or implicitly."""
        return cohort in self.cohorts or cohort in self._members or cohort in self._children

    def queues_below(self, cohort: CohortName) -> list[ClusterQueueName]:
        """Return all ClusterQueues below a cohort; safe on cycles."""
        found: list[ClusterQueueName] = []
        seen = {cohort}
        todo = [cohort]
        while todo:
            at = todo.pop()
            found.extend(self._members.get(at, ()))
            for child in self._children.get(at, ()):
                if child not in seen:
                    seen.add(child)
                    todo.append(child)
        return found

    def cohorts_below(self, cohort: CohortName) -> list[CohortName]:
        """Return a cohort and all cohorts below it; safe on cycles."""
        found = [cohort]
        seen = {cohort}
        for at in found:
            for child in self._children.get(at, ()):
                if child not in seen:
                    seen.add(child)
                    found.append(child)
        return found

    def build_queue(self, name: ClusterQueueName) -> Tree:
        """Build the one-node tree of a ClusterQueue without a cohort."""
        tree = Tree(self._queue_node(self.queues[name]))
        tree.nodes.append(tree.root)
        self._fill(tree)
        return tree

    def build(self, root: CohortName) -> Tree:
        """Build the tree below a root cohort."""
        tree = Tree(self._cohort_node(root))
        tree.nodes.append(tree.root)
        for node in tree.nodes:
            if node.is_queue:
                continue
            cohort = CohortName(node.name)
            for child in sorted(self._children.get(cohort, ())):
                self._attach(tree, node, self._cohort_node(child))
            for member in sorted(self._members.get(cohort, ())):
                self._attach(tree, node, self._queue_node(self.queues[member]))
        self._fill(tree)
        return tree

    def _attach(self, tree: Tree, parent: QuotaNode, node: QuotaNode) -> None:
        node.parent = parent
        node.path = [*parent.path, node]
        (parent.queues if node.is_queue else parent.cohorts).append(node)
        tree.nodes.append(node)

    def _queue_node(self, record: ClusterQueue) -> QuotaNode:
        node = QuotaNode(record.name, True, record.fair_weight)
        node.is_active = record.name in self.active
        return node

    def _cohort_node(self, name: CohortName) -> QuotaNode:
        record = self.cohorts.get(name)
        return QuotaNode(name, False, 1.0 if record is None else record.fair_weight)

    def groups_of(self, node: QuotaNode) -> tuple[ResourceGroup, ...]:
        """Return the quotas of the object that a node stands for."""
        if node.is_queue:
            return self.queues[ClusterQueueName(node.name)].resource_groups
        record = self.cohorts.get(CohortName(node.name))
        return () if record is None else record.resource_groups

    def _fill(self, tree: Tree) -> None:
        own = {id(node): _intern_groups(tree, self.groups_of(node)) for node in tree.nodes}
        for node in reversed(tree.nodes):
            _fill_quota(node, own[id(node)], len(tree.pairs))
            _fill_resources(tree, node)
        for node in tree.nodes:
            _fill_potential(node)
            if not node.is_queue:
                node.lendable = {
                    resource: bounded(sum(node.potential[fr] for fr in frs))
                    for resource, frs in tree.root.resources
                }


_Own = dict[int, tuple[int, int | None, int | None]]


def _intern_groups(tree: Tree, groups: tuple[ResourceGroup, ...]) -> _Own:
    own: _Own = {}
    for group in groups:
        for flavor in group.flavors:
            for quota in flavor.resources:
                number = tree.numbers.get((flavor.name, quota.name))
                if number is None:
                    number = len(tree.pairs)
                    tree.numbers[(flavor.name, quota.name)] = number
                    tree.pairs.append((flavor.name, quota.name))
                own[number] = (quota.nominal, quota.borrowing_limit, quota.lending_limit)
    return own


def _fill_quota(node: QuotaNode, own: _Own, size: int) -> None:
    """Compute Q, G and the caps of a node whose children are done (1.1, 1.2)."""
    node.nominal = [0] * size
    node.usage = [0] * size
    node.guaranteed = [0] * size
    node.borrowing = [NO_LIMIT] * size
    node.cap = [NO_LIMIT] * size
    keys = set(own)
    for fr, (nominal, _, _) in own.items():
        node.nominal[fr] = nominal
    node.quota = list(node.nominal)
    for child in (*node.cohorts, *node.queues):
        keys.update(child.keys)
        for fr in child.keys:
            given = sub(child.quota[fr], child.guaranteed[fr])
            node.quota[fr] = add(node.quota[fr], given)
    node.keys = sorted(keys)
    for fr, (_, borrowing, lending) in own.items():
        if lending is not None:
            kept = sub(node.quota[fr], lending)
            node.guaranteed[fr] = kept if kept > 0 else 0
        if borrowing is not None and borrowing < UNLIMITED:
            node.borrowing[fr] = borrowing
            cap = add(sub(node.quota[fr], node.guaranteed[fr]), borrowing)
            node.cap[fr] = cap if cap < UNLIMITED else NO_LIMIT
    heights = [child.height + 1 for child in node.cohorts]
    heights.extend(1 for child in node.queues if child.is_active)
    node.height = max(heights, default=0)


def _fill_potential(node: QuotaNode) -> None:
    """Compute the largest conceivable capacity of a node whose parent is done (1.3)."""
    if node.parent is None:
        node.potential = list(node.quota)
        return
    node.potential = [
        add(kept, above) for kept, above in zip(node.guaranteed, node.parent.potential, strict=True)
    ]
    for fr, limit in enumerate(node.borrowing):
        if limit < NO_LIMIT:
            bound = add(node.quota[fr], limit)
            if bound < node.potential[fr]:
                node.potential[fr] = bound


def _fill_resources(tree: Tree, node: QuotaNode) -> None:
    by_name: dict[str, list[int]] = {}
    for fr in node.keys:
        by_name.setdefault(tree.pairs[fr][1], []).append(fr)
    node.resources = sorted(by_name.items())
