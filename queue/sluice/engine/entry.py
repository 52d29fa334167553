"""The record of one head within a cycle. Made by `nominate`, read and changed by `process`."""

from typing import Final

from sluice.api.conditions import PendingReason
from sluice.engine.assignment import DEFERRED_FIT, PREEMPT, Assignment
from sluice.engine.attempt import Attempt
from sluice.engine.pending import Requeue
from sluice.engine.placement import TopologyUsage
from sluice.engine.preemption.candidates import Target
from sluice.engine.states import ClusterQueueState, WorkloadState

# What became of an entry.
WAITING: Final = 0
SKIPPED: Final = 1
ASSUMED: Final = 2
EVICTED: Final = 3


class Entry:
    """One head: its attempt, what it would get, and what came of it.

    Attributes:
        attempt: None when the head was refused before any assignment.
        holds_quota: It has a reservation: a second pass.
        is_preemptor: Its queue preempts for it at present (gate PrioritizePreemptorWorkloads).
        topology: Domains it would book, beyond its present admission.
        reason: Why it goes back to the queue.
        pending: Wire reason of its message, when not that of the assignment.
        message: Its message, when not that of the assignment.
    """

    __slots__ = (
        "assignment", "attempt", "cq", "holds_quota", "is_preemptor", "message", "pending",
        "reason", "status", "targets", "topology", "wl",
    )  # fmt: skip

    def __init__(self, wl: WorkloadState, cq: ClusterQueueState, *, holds_quota: bool) -> None:
        self.wl = wl
        self.cq = cq
        self.holds_quota = holds_quota
        self.is_preemptor = False
        self.attempt: Attempt | None = None
        self.assignment = Assignment()
        self.targets: list[Target] = []
        self.topology: tuple[TopologyUsage, ...] = ()
        self.status = WAITING
        self.reason = Requeue.GENERIC
        self.pending: PendingReason | None = None
        self.message = ""

    def say(self, pending: PendingReason, message: str) -> None:
        """Set what the Workload is told."""
        self.pending = pending
        self.message = message

    def skip(self, message: str) -> None:
        """Leave the entry for another cycle because of an entry before it."""
        self.status = SKIPPED
        self.say(PendingReason.WAITING_FOR_QUOTA, message)

    def quota(self) -> dict[int, int]:
        """Return what the entry would book in the tree: nothing when it holds quota (3.9.3)."""
        return {} if self.holds_quota else self.assignment.used

    def needs_preemption(self) -> bool:
        """Tell whether the entry waits for others to go."""
        return self.assignment.mode in (PREEMPT, DEFERRED_FIT)
