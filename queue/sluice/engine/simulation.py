"""Trying things out on the live state: remove and add Workloads, then take it all back.

Nothing is copied. Every change of quota usage goes to one undo log and topology changes to the
placement's; `checkpoint` and `rollback` nest. Used by preemption, nomination and processing.
"""

from sluice.engine.placement import Placement, TopologyUsage
from sluice.engine.states import WorkloadState
from sluice.engine.tree import QuotaNode, UsageLog, add_usage, remove_usage, rollback


class Simulation:
    """The undo log of one engine."""

    __slots__ = ("_log", "placement")

    def __init__(self, placement: Placement) -> None:
        self._log: UsageLog = []
        self.placement = placement

    def checkpoint(self) -> tuple[int, int]:
        """Return a point to roll back to."""
        return len(self._log), self.placement.checkpoint()

    def rollback(self, point: tuple[int, int]) -> None:
        """Undo every change since a point."""
        rollback(self._log, point[0])
        self.placement.rollback(point[1])

    def commit(self) -> None:
        """Keep what was changed; no point given so far will be rolled back to."""
        self._log.clear()
        self.placement.commit()

    def remove(self, wl: WorkloadState) -> None:
        """Take away what a Workload that holds quota uses."""
        cq = wl.cq
        assert cq is not None
        node = cq.node
        log = self._log
        for fr, value in wl.usage:
            remove_usage(node, fr, value, log)
        if wl.topology:
            self.placement.unbook(wl.topology)

    def restore(self, wl: WorkloadState) -> None:
        """Give back what `remove` took."""
        cq = wl.cq
        assert cq is not None
        node = cq.node
        log = self._log
        for fr, value in wl.usage:
            add_usage(node, fr, value, log)
        if wl.topology:
            self.placement.book(wl.topology)

    def add(self, node: QuotaNode, used: dict[int, int]) -> None:
        """Book amounts at a ClusterQueue."""
        log = self._log
        for fr, value in used.items():
            add_usage(node, fr, value, log)

    def subtract(self, node: QuotaNode, used: dict[int, int]) -> None:
        """Take booked amounts away at a ClusterQueue."""
        log = self._log
        for fr, value in used.items():
            remove_usage(node, fr, value, log)

    def book(self, usages: tuple[TopologyUsage, ...]) -> None:
        """Book topology usage."""
        if usages:
            self.placement.book(usages)
