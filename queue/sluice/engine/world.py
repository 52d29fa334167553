"""Everything one engine knows, and the trees it keeps up to date.

The records of queues, flavors, checks and namespaces, the states of Workloads, and the services
that share them. Changing a queue or cohort marks trees stale; `World.settle` rebuilds them before
they are next used. Source: docs/spec/algorithm.md sections 1 and 2. Used by all of the engine's
event handlers and by the cycle.
"""

from typing import Final

from sluice.api.amount import scale
from sluice.api.names import (
    CheckName,
    ClusterQueueName,
    CohortName,
    FlavorName,
    LocalQueueKey,
    ResourceName,
    WorkloadKey,
)
from sluice.api.records import (
    AdmissionCheck,
    Kind,
    ResourceFlavor,
    StopPolicy,
    Topology,
    Workload,
)
from sluice.engine.afs import UsageLedger
from sluice.engine.assignment import PodSetNeed
from sluice.engine.changes import ChangeLog
from sluice.engine.credits.service import Credits
from sluice.engine.forest import Forest
from sluice.engine.options import EngineOptions
from sluice.engine.pending import Pending
from sluice.engine.placement import Placement
from sluice.engine.requests import PodRequests, RequestRules, resource_order
from sluice.engine.simulation import Simulation
from sluice.engine.states import (
    RESERVED,
    ClusterQueueState,
    LocalQueueState,
    WorkloadState,
)
from sluice.engine.tree import Tree, add_usage

_PODS: Final = ResourceName("pods")


class World:
    """The state of one engine.

    Attributes:
        stale: Trees to be rebuilt, and ClusterQueues and cohorts that are in no tree yet.
        doors: LocalQueues by the ClusterQueue that they name.
        homeless: Workloads with a reservation in a ClusterQueue that is not known, by its name.
        unready: Admitted Workloads whose pods are not ready (blockAdmission).
        is_due: Something changed that a cycle might answer.
    """

    def __init__(self, options: EngineOptions, placement: Placement) -> None:
        self.options = options
        self.placement = placement
        self.simulation = Simulation(placement)
        self.forest = Forest()
        self.rules = RequestRules(options.exclude_resource_prefixes, options.transformations)
        afs = options.admission_fair_sharing if options.gates.admission_fair_sharing else None
        self.ledger = UsageLedger(afs)
        self.pending = Pending(options, self.ledger)
        self.changes = ChangeLog()
        self.queues: dict[ClusterQueueName, ClusterQueueState] = {}
        self.local_queues: dict[LocalQueueKey, LocalQueueState] = {}
        self.workloads: dict[WorkloadKey, WorkloadState] = {}
        self.flavors: dict[FlavorName, ResourceFlavor] = {}
        self.checks: dict[CheckName, AdmissionCheck] = {}
        self.topologies: dict[str, Topology] = {}
        self.namespaces: dict[str, dict[str, str]] = {}
        self.doors: dict[ClusterQueueName, dict[LocalQueueKey, None]] = {}
        self.homeless: dict[ClusterQueueName, dict[WorkloadKey, None]] = {}
        self.unready: dict[WorkloadKey, None] = {}
        self.trees: dict[CohortName, Tree] = {}
        self.credits = Credits(self.forest, self.trees, self.changes, self.settle)
        self._stale_trees: list[Tree] = []
        self._treeless_queues: dict[ClusterQueueName, None] = {}
        self._treeless_cohorts: dict[CohortName, None] = {}
        self.is_due = False

    # Trees.

    def mark_stale(self, cohort: CohortName | None) -> None:
        """Have the tree that a cohort is in rebuilt, and its generations raised (1.9)."""
        if cohort is None:
            return
        root = self.forest.root_of(cohort)
        tree = self.trees.get(root) if root is not None else None
        if tree is not None:
            self.mark_tree_stale(tree)
        else:
            for at in self.forest.cohorts_below(root if root is not None else cohort):
                self._treeless_cohorts[at] = None
                known = self.trees.get(at)
                if known is not None:
                    self.mark_tree_stale(known)
            for name in self.forest.queues_below(cohort):
                self.mark_queue_stale(name)

    def mark_tree_stale(self, tree: Tree) -> None:
        """Have one tree rebuilt."""
        if not tree.is_stale:
            tree.is_stale = True
            self._stale_trees.append(tree)

    def mark_queue_stale(self, name: ClusterQueueName) -> None:
        """Have the tree of a ClusterQueue rebuilt, the old one and the one it is in now."""
        self._treeless_queues[name] = None
        state = self.queues.get(name)
        if state is not None:
            self.mark_tree_stale(state.tree)

    def settle(self) -> None:
        """Rebuild all stale trees and book their reservations again."""
        if not (self._stale_trees or self._treeless_queues or self._treeless_cohorts):
            return
        names = dict(self._treeless_queues)
        roots: dict[CohortName, None] = {}
        for tree in self._stale_trees:
            for node in tree.nodes:
                if node.is_queue:
                    names[ClusterQueueName(node.name)] = None
                else:
                    self._treeless_cohorts[CohortName(node.name)] = None
        for cohort in self._treeless_cohorts:
            self.trees.pop(cohort, None)
        for cohort in self._treeless_cohorts:
            root = self.forest.root_of(cohort)
            if root is not None and self.forest.exists(root):
                roots[root] = None
        self._stale_trees = []
        self._treeless_queues = {}
        self._treeless_cohorts = {}
        alone: list[ClusterQueueName] = []
        for name in names:
            record = self.forest.queues.get(name)
            if record is None or name not in self.queues:
                continue
            root = self.forest.root_of(record.cohort) if record.cohort is not None else None
            if root is None:
                alone.append(name)
            else:
                roots[root] = None
        for root in sorted(roots):
            tree = self.forest.build(root)
            self.trees[root] = tree
            self._move_in(tree)
        for name in sorted(alone):
            self._move_in(self.forest.build_queue(name))
        self.credits.is_dirty = True

    def _move_in(self, tree: Tree) -> None:
        """Point the ClusterQueues of a new tree at their nodes and book what they hold."""
        queues = [n for n in tree.nodes if n.is_queue]
        for node in queues:
            cq = self.queues[ClusterQueueName(node.name)]
            cq.tree = tree
            cq.node = node
            cq.generation += 1
            cq.forget_plans()
            if cq.parked_count or cq.waiting:
                tree.parked[cq.name] = None
        for node in queues:
            cq = self.queues[ClusterQueueName(node.name)]
            for wl in cq.reserved.values():
                resolve_usage(wl, tree)
                for fr, value in wl.usage:
                    add_usage(node, fr, value, None)

    def queues_of_tree(self, cq: ClusterQueueState) -> list[ClusterQueueState]:
        """Return all ClusterQueues of a queue's tree, itself included."""
        if cq.tree.is_stale:
            self.settle()
        return [self.queues[ClusterQueueName(n.name)] for n in cq.tree.nodes if n.is_queue]

    # Workloads.

    def local_queue(self, key: LocalQueueKey) -> LocalQueueState:
        """Return the state of a LocalQueue, a new one without a record if it is not known."""
        state = self.local_queues.get(key)
        if state is None:
            state = LocalQueueState(key, None)
            self.local_queues[key] = state
        return state

    def home_of(self, wl: WorkloadState) -> ClusterQueueState | None:
        """Return the ClusterQueue a pending Workload belongs to; None when it can't be queued.

        Its LocalQueue must exist and not be stopped, and its ClusterQueue must exist (2.1).
        """
        local = self.local_queues.get(wl.lq)
        if local is None or local.record is None:
            return None
        if local.record.stop_policy is not StopPolicy.NONE:
            return None
        return self.queues.get(local.record.cluster_queue)

    def refresh(self, wl: WorkloadState, cq: ClusterQueueState) -> None:
        """Recompute the requests and keys of a Workload that is about to be queued."""
        wl.needs_version = self.rules.version
        self.pending.refresh(wl, self.needs_of(wl.record, cq))
        wl.plan = None

    def needs_of(self, record: Workload, cq: ClusterQueueState) -> list[PodSetNeed]:
        """Return what each pod set asks for in a ClusterQueue (1.10)."""
        reclaimable = dict(record.reclaimable) if record.reclaimable else None
        needs = []
        for index, pod_set in enumerate(record.pod_sets):
            pod = self.rules.of(pod_set.template, record.namespace)
            count = pod_set.count
            if reclaimable is not None and self.options.gates.reclaimable_pods:
                count -= min(reclaimable.get(pod_set.name, 0), count)
            names = pod.names
            totals = [scale(value, count) for value in pod.amounts]
            if cq.covers_pods:
                names, totals = _with_pods(pod, totals, count)
            needs.append(PodSetNeed(index, pod_set, pod, count, names, totals))
        return needs

    def touch(self, wl: WorkloadState, cq: ClusterQueueState | None) -> None:
        """Note that the status of the queues of a Workload, and of cohorts, may differ."""
        self.changes.touch(Kind.LOCAL_QUEUE, wl.lq)
        if cq is not None:
            self.changes.touch(Kind.CLUSTER_QUEUE, cq.name)
            if self.options.fair_sharing is not None and wl.place == RESERVED:
                for node in cq.node.path[:-1]:
                    self.changes.touch(Kind.COHORT, node.name)


def resolve_usage(wl: WorkloadState, tree: Tree) -> None:
    """Number the flavor-resources of a reservation by its tree."""
    usage: dict[int, int] = {}
    flavors: set[int] = set()
    for flavor, resource, amount in wl.named_usage:
        fr = tree.intern(flavor, resource)
        flavors.add(fr)
        if amount:
            usage[fr] = usage.get(fr, 0) + amount
    wl.usage = list(usage.items())
    wl.flavors = flavors


def _with_pods(
    pod: PodRequests, totals: list[int], count: int
) -> tuple[tuple[ResourceName, ...], list[int]]:
    """Add (or overwrite) the request for as many ``pods`` as there are (1.10)."""
    amounts = dict(zip(pod.names, totals, strict=True))
    amounts[_PODS] = count
    names = tuple(sorted(amounts, key=resource_order))
    return names, [amounts[name] for name in names]
