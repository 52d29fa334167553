"""Facts about ClusterQueues and LocalQueues.

Each keeps the world's records, marks trees stale, rechecks which ClusterQueues are active, and
wakes parked Workloads whose answer may differ now. Source: docs/spec/algorithm.md 1.7 to 1.9, 2.8,
2.9. Used by `sluice.engine.engine`.
"""

from dataclasses import replace

from sluice.api.names import ClusterQueueName, LocalQueueKey
from sluice.api.records import AdmissionMode, ClusterQueue, Kind, LocalQueue
from sluice.engine import activity
from sluice.engine.observe_workload import WorkloadFacts
from sluice.engine.states import PENDING, RESERVED, ClusterQueueState
from sluice.engine.tree import QuotaNode, Tree
from sluice.engine.waking import Waking
from sluice.engine.world import World


class QueueFacts:
    """Applies facts about queues to the world.

    Attributes:
        users: ClusterQueues by the flavor or check that they name.
    """

    __slots__ = ("_waking", "_workloads", "_world", "users")

    def __init__(self, world: World, waking: Waking, workloads: WorkloadFacts) -> None:
        self._world = world
        self._waking = waking
        self._workloads = workloads
        self.users: dict[tuple[Kind, str], dict[ClusterQueueName, None]] = {}

    # ClusterQueues.

    def cluster_queue(self, record: ClusterQueue, at_ms: int) -> None:
        """Add or update a ClusterQueue."""
        world = self._world
        before = world.forest.queues.get(record.name)
        cq = world.queues.get(record.name)
        if before is not None and cq is not None and _same_spec(before, record):
            world.forest.queues[record.name] = record
            cq.record = record
            self.recheck(cq, at_ms)
            return
        if before is not None:
            self._drop_uses(before)
        is_new = cq is None
        if cq is None:
            node = QuotaNode(record.name, True, record.fair_weight)
            cq = ClusterQueueState(record, Tree(node), node)
            world.queues[record.name] = cq
        cq.apply(record, fair_sharing=world.options.fair_sharing is not None)
        cq.is_by_usage = world.ledger.is_on and record.admission_mode is AdmissionMode.USAGE_BASED
        cq.needs_reorder = True
        for key in _uses(record):
            self.users.setdefault(key, {})[record.name] = None
        world.forest.set_queue(record)
        world.mark_queue_stale(record.name)
        world.mark_stale(record.cohort)
        self.recheck(cq, at_ms)
        world.changes.touch(Kind.CLUSTER_QUEUE, record.name)
        if is_new:
            self._take_in(cq, at_ms)
        else:
            for wl in list(world.pending.heaps.members(cq)):
                world.refresh(wl, cq)
        self._waking.notify(cq, at_ms)

    def _take_in(self, cq: ClusterQueueState, at_ms: int) -> None:
        """Give a new ClusterQueue the Workloads that have waited for it to exist."""
        world = self._world
        for key in world.homeless.pop(cq.name, {}):
            wl = world.workloads.get(key)
            if wl is not None:
                self._workloads.find_queue(wl, cq, at_ms)
        for door in world.doors.get(cq.name, {}):
            self._offer_all(door, at_ms)

    def cluster_queue_gone(self, name: ClusterQueueName, at_ms: int) -> None:
        """Forget a ClusterQueue; what it held is nowhere until a queue of that name returns."""
        world = self._world
        cq = world.queues.get(name)
        if cq is None:
            return
        self._drop_uses(cq.record)
        for wl in list(cq.reserved.values()):
            self._workloads.lose_queue(wl)
        for wl in list(world.pending.heaps.members(cq)):
            world.pending.heaps.take_out(wl)
            world.touch(wl, None)
        world.mark_queue_stale(name)
        cohort = cq.record.cohort
        others = [c for c in world.queues_of_tree(cq) if c is not cq]
        world.mark_tree_stale(cq.tree)
        world.forest.drop_queue(name)
        world.forest.active.discard(name)
        del world.queues[name]
        world.pending.heaps.hot.pop(name, None)
        world.pending.heaps.sleeping.pop(name, None)
        world.mark_stale(cohort)
        world.changes.forget(Kind.CLUSTER_QUEUE, name)
        if others:
            self._waking.notify(others[0], at_ms)
        for key in world.doors.get(name, {}):
            world.changes.touch(Kind.LOCAL_QUEUE, key)

    def _drop_uses(self, record: ClusterQueue) -> None:
        for key in _uses(record):
            self.users[key].pop(record.name, None)

    def recheck(self, cq: ClusterQueueState, at_ms: int) -> None:
        """Find out again whether a ClusterQueue takes part, and which flavors have a topology."""
        world = self._world
        record = cq.record
        found = activity.problems(world, record)
        if found != cq.problems:
            cq.problems = found
            world.changes.touch(Kind.CLUSTER_QUEUE, cq.name)
            for key in world.doors.get(cq.name, {}):
                world.changes.touch(Kind.LOCAL_QUEUE, key)
        flavors = [f.name for group in record.resource_groups for f in group.flavors]
        with_topology = [
            world.options.gates.topology_aware
            and (flavor := world.flavors.get(name)) is not None
            and flavor.topology is not None
            for name in flavors
        ]
        cq.uses_topology = any(with_topology)
        cq.only_topology = bool(with_topology) and all(with_topology)
        is_active = not found
        if is_active != cq.is_active:
            cq.is_active = is_active
            (world.forest.active.add if is_active else world.forest.active.discard)(cq.name)
            world.mark_queue_stale(cq.name)
            if is_active:
                world.is_due = True
                self._waking.notify(cq, at_ms)

    def recheck_users(self, kind: Kind, name: str, at_ms: int, *, wakes: bool) -> None:
        """Recheck the ClusterQueues that name a flavor or check, and wake them if asked to."""
        for user in list(self.users.get((kind, name), {})):
            cq = self._world.queues[user]
            cq.forget_plans()
            self.recheck(cq, at_ms)
            if wakes:
                self._waking.notify(cq, at_ms)

    # LocalQueues.

    def local_queue(self, record: LocalQueue, at_ms: int) -> None:
        """Add or update a LocalQueue."""
        world = self._world
        state = world.local_queue(record.key)
        before = state.record
        state.record = record
        if before is not None and _same_local_spec(before, record):
            return
        if world.ledger.is_on:
            world.ledger.open(
                record.key, record.fair_weight, record.consumed, record.consumed_updated_ms
            )
            self._waking.watch_usage(record.key)
            self._waking.reorder(record.key)
        if before is not None and before.cluster_queue != record.cluster_queue:
            world.doors[before.cluster_queue].pop(record.key, None)
        world.doors.setdefault(record.cluster_queue, {})[record.key] = None
        if (
            before is None
            or before.cluster_queue != record.cluster_queue
            or before.stop_policy is not record.stop_policy
        ):
            self._offer_all(record.key, at_ms)
        world.changes.touch(Kind.LOCAL_QUEUE, record.key)

    def local_queue_gone(self, key: LocalQueueKey, at_ms: int) -> None:
        """Forget a LocalQueue; its pending Workloads leave the heaps."""
        world = self._world
        state = world.local_queues.get(key)
        if state is None or state.record is None:
            return
        world.doors[state.record.cluster_queue].pop(key, None)
        state.record = None
        self._waking.unwatch_usage(key)
        world.ledger.close(key)
        self._offer_all(key, at_ms)
        if not state.workloads:
            del world.local_queues[key]
        world.changes.forget(Kind.LOCAL_QUEUE, key)

    def _offer_all(self, key: LocalQueueKey, at_ms: int) -> None:
        """Queue the Workloads of a LocalQueue that may be, unless they are already (2.8)."""
        world = self._world
        state = world.local_queues.get(key)
        if state is None:
            return
        for wl in list(state.workloads.values()):
            if wl.place == RESERVED:
                continue
            is_queued = wl.place == PENDING
            if not is_queued or world.home_of(wl) is not wl.cq:
                self._workloads.queue(wl, None, at_ms)


def _uses(record: ClusterQueue) -> list[tuple[Kind, str]]:
    flavors = [f.name for group in record.resource_groups for f in group.flavors]
    uses: list[tuple[Kind, str]] = [(Kind.RESOURCE_FLAVOR, name) for name in flavors]
    uses.extend((Kind.ADMISSION_CHECK, rule.name) for rule in record.checks)
    return uses


def _same_spec(before: ClusterQueue, after: ClusterQueue) -> bool:
    """Tell whether two records differ in their versions only."""
    return before == replace(
        after,
        resource_version=before.resource_version,
        generation=before.generation,
        is_terminating=before.is_terminating,
    )


def _same_local_spec(before: LocalQueue, after: LocalQueue) -> bool:
    """Tell whether two records differ in versions and status only."""
    return before == replace(
        after,
        resource_version=before.resource_version,
        generation=before.generation,
        consumed=before.consumed,
        consumed_updated_ms=before.consumed_updated_ms,
    )
