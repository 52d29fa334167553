"""The order of a cycle's entries: classical sort, or the fair tournament (3.6).

Source: docs/spec/algorithm.md 3.6. Used by `sluice.engine.cycle`.
"""

from collections.abc import Iterator
from itertools import pairwise

from sluice.engine.entry import Entry
from sluice.engine.fairshare import NO_SHARE, Share, share
from sluice.engine.options import Gates
from sluice.engine.simulation import Simulation
from sluice.engine.states import WorkloadState
from sluice.engine.tree import QuotaNode


def classical_order(entries: list[Entry], gates: Gates) -> list[Entry]:
    """Return the entries in classical order: reserved, borrow level, priority, age (3.6)."""
    by_priority = gates.priority_sorting_within_cohort

    def key(entry: Entry) -> tuple[bool, bool, int, int, int, str, str]:
        wl = entry.wl
        return (
            not entry.holds_quota,
            not entry.is_preemptor,
            entry.assignment.borrow,
            -wl.eff if by_priority else 0,
            wl.ts_ms,
            wl.uid,
            wl.key,
        )

    return sorted(entries, key=key)


class Tournament:
    """Hands out entries one by one; shares are taken anew for every pick, on the present state."""

    __slots__ = ("_by_queue", "_gates", "_shares", "_simulation", "left_out")

    def __init__(self, entries: list[Entry], simulation: Simulation, gates: Gates) -> None:
        self._simulation = simulation
        self._gates = gates
        self._by_queue: dict[str, Entry] = {}
        self._shares: dict[tuple[WorkloadState, int], tuple[bool, Share]] = {}
        self.left_out: list[Entry] = []
        """Entries that another one of the same ClusterQueue displaced; they are only requeued."""
        for entry in entries:
            before = self._by_queue.get(entry.cq.name)
            if before is not None:
                self.left_out.append(before)
            self._by_queue[entry.cq.name] = entry

    def __iter__(self) -> Iterator[Entry]:
        while self._by_queue:
            # Which tree goes first is unspecified in Kueue; ours takes the oldest entry's.
            first = min(self._by_queue.values(), key=lambda e: (e.wl.ts_ms, e.wl.uid, e.wl.key))
            root = first.cq.node.path[0]
            winner = first if root is first.cq.node else self._run(root)
            del self._by_queue[winner.cq.name]
            yield winner

    def _run(self, root: QuotaNode) -> Entry:
        self._shares = {}
        for entry in self._by_queue.values():
            if entry.cq.node.path[0] is root:
                self._record_shares(entry)
        winner = self._winner(root)
        assert winner is not None
        return winner

    def _record_shares(self, entry: Entry) -> None:
        """Note, per ancestor, the share of the child on the way with the entry's usage added."""
        path = entry.cq.node.path
        point = self._simulation.checkpoint()
        self._simulation.add(entry.cq.node, entry.quota())
        for cohort, child in pairwise(path):
            borrows = any(
                value > 0 and child.usage[fr] > child.quota[fr]
                for fr, value in entry.assignment.used.items()
            )
            self._shares[(entry.wl, id(cohort))] = (borrows, share(child))
        self._simulation.rollback(point)

    def _winner(self, cohort: QuotaNode) -> Entry | None:
        candidates = [self._by_queue.get(queue.name) for queue in cohort.queues]
        candidates += [self._winner(child) for child in cohort.cohorts]
        best: Entry | None = None
        best_key: tuple[bool, bool, Share, int, int, str, str] | None = None
        for entry in candidates:
            if entry is None:
                continue
            key = self._key(entry, cohort)
            if best_key is None or key < best_key:
                best, best_key = entry, key
        return best

    def _key(self, entry: Entry, cohort: QuotaNode) -> tuple[bool, bool, Share, int, int, str, str]:
        borrows, value = self._shares.get((entry.wl, id(cohort)), (False, NO_SHARE))
        wl = entry.wl
        return (
            not entry.is_preemptor,
            borrows and self._gates.fair_prioritize_non_borrowing,
            value,
            -wl.eff,
            wl.ts_ms,
            wl.uid,
            wl.key,
        )
