"""What the engine remembers about Workloads and queues between events.

Mutable and shared by the engine's modules; nothing outside the engine sees it. A Workload is in
exactly one place: in its ClusterQueue's heap, parked there, holding quota, or outside. The
functions that keep these in step are in `pending` (queueing) and `accounting` (reservations).
Source: docs/spec/algorithm.md 2.4, 1.9.
"""

from typing import TYPE_CHECKING, Final

from sluice.api.names import (
    CheckName,
    ClusterQueueName,
    FlavorName,
    LocalQueueKey,
    ResourceName,
    WorkloadKey,
)
from sluice.api.records import (
    Admission,
    ClusterQueue,
    FungibilityPolicy,
    FungibilityPreference,
    LocalQueue,
    PreemptionPolicy,
    QueueingStrategy,
    Workload,
)
from sluice.engine.assignment import PodSetNeed, Reason, Scan
from sluice.engine.placement import TopologyUsage
from sluice.engine.plan import Plan
from sluice.engine.tree import QuotaNode, Tree

if TYPE_CHECKING:
    from sluice.engine.credits.contest import CreditLoss

OUTSIDE: Final = 0
PENDING: Final = 1
INFLIGHT: Final = 2
RESERVED: Final = 3

SortKey = tuple[float, int, int, int, str, str]
"""(LocalQueue usage, 0 when sticky, -priority, timestamp, uid, key): smaller first (2.3)."""


class Decision:
    """The last thing the engine decided about a Workload, for messages and `explain`.

    Attributes:
        why: Reasons per pod set of the attempt, turned into sentences only when asked for.
    """

    __slots__ = ("at_ms", "message", "reason", "why")

    def __init__(
        self, reason: str, message: str, at_ms: int | None, why: list[tuple[str, list[Reason]]]
    ) -> None:
        self.reason = reason
        self.message = message
        self.at_ms = at_ms
        self.why = why


class Box:
    """Equivalent pending Workloads of a ClusterQueue, all in the heap or all parked.

    Attributes:
        is_active: In the heap; False: parked.
        items: A heap by sort key, cleaned lazily: an item counts while its Workload is in this box
            and has its ticket.
        count: Items that count.
    """

    __slots__ = ("bucket", "count", "is_active", "items")

    def __init__(self, bucket: "Bucket", *, is_active: bool) -> None:
        self.bucket = bucket
        self.is_active = is_active
        self.items: list[HeapItem] = []
        self.count = 0


class Bucket:
    """Pending Workloads of a ClusterQueue that are equivalent (2.7).

    Parking a whole class, or waking it, swaps the roles of its two boxes.

    Attributes:
        is_parked: The class is bulk-parked: one of it recently failed (the set B of 2.4).
        why: What was decided about that one.
        untold: Members that have not been told yet why they wait.
    """

    __slots__ = ("active", "is_parked", "parked", "shape", "untold", "why")

    def __init__(self, shape: object) -> None:
        self.shape = shape
        self.active = Box(self, is_active=True)
        self.parked = Box(self, is_active=False)
        self.is_parked = False
        self.why: Decision | None = None
        self.untold: list[WorkloadState] = []


class WorkloadState:
    """One Workload.

    Attributes:
        record: The newest fact.
        version: Its resourceVersion as a number, -1 when it is not one.
        cq: The ClusterQueue it is pending in or holds quota in, None outside.
        box: Where it is pending; None when it is held (or not pending at all).
        ticket: Number of the item that stands for it in its box's heap.
        needs: Requests per pod set, computed when it is queued.
        shape: Equivalence key, None when hashing is off.
        scans_seen: Scan progress that a cycle has left since something changed (``scan_epoch``).
        seen_generation: metadata.generation of the last attempt.
        usage: Booked amounts by flavor-resource of the present tree (RESERVED only).
        named_usage: The same as (flavor, resource, amount), which outlives a rebuilt tree.
        assumed: A reservation that the API server has not shown yet.
        applied_version: The resourceVersion that writing what is assumed led to, -1 before.
        finish_assumed: A newer slice took over; the API server has not shown it Finished yet.
        topology_assumed: The topology of a second pass that it has not shown yet.
        is_evicting: An eviction was issued and not yet seen.
        evicted_version: The resourceVersion that writing it led to, -1 before.
        is_hidden: Taken out of the present simulation as a candidate (3.7.2).
        credit_loss: Another account's Workload went before it because of credits.
        marked: (reason, message) last written to its QuotaReserved condition by a MarkPending.
        is_mark_seen: The API server has shown that condition.
        pass_attempt: Number of second-pass attempts made (3.10).
        queued_ms: When it last entered the queue, for waiting times.
    """

    __slots__ = (
        "admission", "applied_version", "assumed", "box", "cq", "credit_loss", "decision", "eff",
        "evicted_version", "finish_assumed", "flavors", "is_admitted", "is_evicted",
        "is_evicting", "is_hidden", "is_mark_seen", "key", "lq", "marked", "named_usage", "needs",
        "needs_version", "pass_attempt", "pass_due_ms", "place", "plan", "plan_epoch",
        "queued_ms", "record", "reserved_ms", "scan", "scan_epoch", "scans_seen",
        "seen_generation", "shape", "sort_key", "ticket", "topology", "topology_assumed", "ts_ms",
        "uid", "usage", "version",
    )  # fmt: skip

    def __init__(self, record: Workload, version: int) -> None:
        self.key: WorkloadKey = record.key
        self.uid = record.uid
        self.record = record
        self.version = version
        self.applied_version = -1
        self.evicted_version = -1
        self.place = OUTSIDE
        self.cq: ClusterQueueState | None = None
        self.lq: LocalQueueKey = record.queue_key
        self.eff = 0
        self.ts_ms = 0
        self.queued_ms = record.created_ms
        self.sort_key: SortKey = (0.0, 1, 0, 0, "", "")
        self.ticket = -1
        self.box: Box | None = None
        self.needs: list[PodSetNeed] = []
        self.needs_version = -1
        self.plan: Plan | None = None
        self.plan_epoch = -1
        self.shape: object = None
        self.scan: Scan | None = None
        self.scan_epoch = -1
        self.scans_seen: set[object] = set()
        self.seen_generation = -1
        self.decision: Decision | None = None
        self.credit_loss: CreditLoss | None = None
        self.marked: tuple[str, str] | None = None
        self.is_mark_seen = False
        self.admission: Admission | None = None
        self.usage: list[tuple[int, int]] = []
        self.named_usage: list[tuple[FlavorName, ResourceName, int]] = []
        self.flavors: set[int] = set()
        self.topology: tuple[TopologyUsage, ...] = ()
        self.reserved_ms = 0
        self.assumed = False
        self.topology_assumed = False
        self.finish_assumed = False
        self.is_admitted = False
        self.is_evicted = False
        self.is_evicting = False
        self.is_hidden = False
        self.pass_attempt = 0
        self.pass_due_ms: int | None = None

    def assume(self) -> None:
        """Take a reservation as made; facts from before it is written say nothing about it."""
        self.assumed = True
        self.applied_version = -1

    def assume_topology(self) -> None:
        """Take the topology of a second pass as written."""
        self.topology_assumed = True
        if not self.assumed:
            self.applied_version = -1

    def assume_eviction(self) -> None:
        """Take an eviction as issued; facts from before it is written say nothing about it."""
        self.is_evicting = True
        self.evicted_version = -1

    def is_active(self) -> bool:
        """Tell whether it is in its queue's heap."""
        return self.box is not None and self.box.is_active

    def is_parked(self) -> bool:
        """Tell whether it is pending but not in the heap."""
        return self.place == PENDING and (self.box is None or not self.box.is_active)


HeapItem = tuple[SortKey, int, WorkloadState]
"""Sort key, ticket (no two items have the same), the Workload."""


class Preemptor:
    """The Workload that a ClusterQueue preempts for at present (2.6)."""

    __slots__ = ("generation", "is_sticky", "key")

    def __init__(self, key: WorkloadKey, generation: int, is_sticky: bool) -> None:
        self.key = key
        self.generation = generation
        self.is_sticky = is_sticky


class ClusterQueueState:
    """One ClusterQueue: its place in a tree, its policies resolved, its pending Workloads.

    Attributes:
        is_active: Takes part in scheduling (1.7).
        problems: (reason, text) of why it does not, in the order of docs/spec/api.md 4.8.
        generation: Allocatable generation (1.9).
        reserved: Workloads that hold quota here.
        plans: Flavor search plans by pod shapes.
        heads: A heap with at least the first item of each active box, cleaned lazily.
        buckets: Pending Workloads by equivalence class.
        waiting: Buckets that are bulk-parked or have parked members.
        held: Parked Workloads that waking must look at one by one: backing off, or in a namespace
            that is not selected.
        active_count: Workloads in the heap.
        parked_count: Workloads parked, the held ones included.
        is_by_usage: Admission fair sharing orders its LocalQueues.
        needs_reorder: Sort keys may be stale because usage changed.
    """

    __slots__ = (
        "active_count", "buckets", "can_preempt_while_borrowing", "checks", "covers_pods",
        "generation", "group_of", "heads", "held", "is_active", "is_borrowing_first",
        "is_by_usage", "is_strict", "name", "needs_reorder", "node", "only_topology",
        "parked_count", "plan_epoch", "plans", "preemptor", "problems", "record", "reserved",
        "tree", "try_next_if_borrowing", "try_next_if_preempting", "uses_topology", "waiting",
    )  # fmt: skip

    def __init__(self, record: ClusterQueue, tree: Tree, node: QuotaNode) -> None:
        self.name: ClusterQueueName = record.name
        self.tree = tree
        self.node = node
        self.is_active = False
        self.problems: list[tuple[str, str]] = []
        self.generation = 0
        self.reserved: dict[WorkloadKey, WorkloadState] = {}
        self.plans: dict[object, Plan] = {}
        self.plan_epoch = 0
        self.heads: list[HeapItem] = []
        self.buckets: dict[object, Bucket] = {}
        self.waiting: dict[Bucket, None] = {}
        self.held: dict[WorkloadKey, WorkloadState] = {}
        self.active_count = 0
        self.parked_count = 0
        self.preemptor: Preemptor | None = None
        self.is_by_usage = False
        self.needs_reorder = False
        self.uses_topology = False
        self.only_topology = False
        self.apply(record, fair_sharing=False)

    def apply(self, record: ClusterQueue, *, fair_sharing: bool) -> None:
        """Take over a record and resolve what the hot path asks of it."""
        self.record = record
        self.is_strict = record.strategy is QueueingStrategy.STRICT_FIFO
        self.group_of: dict[ResourceName, int] = {
            resource: index
            for index, group in enumerate(record.resource_groups)
            for resource in group.covered_resources
        }
        self.covers_pods = "pods" in self.group_of
        rules = record.preemption
        self.can_preempt_while_borrowing = (
            rules.borrow_within_cohort is not PreemptionPolicy.NEVER
            or (fair_sharing and rules.reclaim_within_cohort is not PreemptionPolicy.NEVER)
        )
        next_flavor = FungibilityPolicy.TRY_NEXT_FLAVOR
        self.try_next_if_borrowing = record.when_can_borrow is next_flavor
        self.try_next_if_preempting = record.when_can_preempt is next_flavor
        self.is_borrowing_first = (
            record.preference is FungibilityPreference.BORROWING_OVER_PREEMPTION
        )
        self.checks: dict[CheckName, tuple[FlavorName, ...]] = {
            rule.name: rule.on_flavors for rule in record.checks
        }
        self.forget_plans()

    def forget_plans(self) -> None:
        """Drop the flavor search plans: a spec, a flavor or the tree's numbering changed."""
        self.plans.clear()
        self.plan_epoch += 1


class LocalQueueState:
    """One LocalQueue and the Workloads submitted to it.

    Attributes:
        workloads: Every Workload that names it, wherever it is.
    """

    __slots__ = ("key", "record", "workloads")

    def __init__(self, key: LocalQueueKey, record: LocalQueue | None) -> None:
        self.key = key
        self.record = record
        self.workloads: dict[WorkloadKey, WorkloadState] = {}
