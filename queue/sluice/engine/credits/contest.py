"""Whose head goes next in a tree with credits, and who had to wait because of them.

A tournament like that of fair sharing: at each cohort the best candidate below it goes on to the
parent. Keys depend on the usage of the child on the way only, so after a decision just the nodes on
its path are compared anew. Source: docs/spec/credits.md 3.1. Used by `sluice.engine.rounds`. Pure.
"""

from itertools import pairwise
from typing import NamedTuple, final

from sluice.engine.credits.book import Book, kind_of
from sluice.engine.entry import Entry
from sluice.engine.fairshare import Share, share
from sluice.engine.simulation import Simulation
from sluice.engine.states import WorkloadState
from sluice.engine.tree import QuotaNode

_Key = tuple[bool, bool, bool, int, Share, int, int, str, str]
"""(not a second pass, not a preemptor, borrows, -projected, share, -priority, timestamp, uid, key):
smaller goes first; the projected balance is 0 for a node that doesn't borrow."""


class CreditLoss(NamedTuple):
    """A Workload went after another one because its account has less.

    Attributes:
        winner: The other Workload.
        ahead: Kind and name of the other account.
        cohort: Where both have their accounts.
        mine: Projected balance of the own account, in ledger units.
        theirs: That of the other one.
    """

    winner: WorkloadState
    ahead: str
    cohort: str
    mine: int
    theirs: int


@final
class Contest:
    """The entries of one tree that still wait for their turn."""

    __slots__ = ("_best", "_keys", "_members", "_order", "_simulation", "book", "entries")

    def __init__(self, book: Book, simulation: Simulation) -> None:
        self.book = book
        self.entries: dict[QuotaNode, list[Entry]] = {}
        """By ClusterQueue: its head, and before it Workloads in their second pass."""
        self._simulation = simulation
        self._members: dict[QuotaNode, dict[QuotaNode, None]] = {}
        self._order: list[QuotaNode] = []
        self._keys: dict[tuple[Entry, QuotaNode], _Key] = {}
        self._best: dict[QuotaNode, Entry | None] = {}

    def add(self, entry: Entry) -> None:
        """Let an entry take part."""
        node = entry.cq.node
        self.entries.setdefault(node, []).append(entry)
        for cohort, child in pairwise(node.path):
            members = self._members.get(cohort)
            if members is None:
                members = self._members[cohort] = {}
                self._order.append(cohort)
                # Deeper cohorts are decided first.
                self._order.sort(key=lambda n: -len(n.path))
            members[child] = None
            self._best.pop(cohort, None)

    def waiting(self) -> list[Entry]:
        """Return the entries that have not been picked."""
        return [entry for entries in self.entries.values() for entry in entries]

    def pick(self) -> Entry | None:
        """Take the winner on the present state, None when nobody waits."""
        root = self.book.tree.root if self.book.tree is not None else None
        for cohort in self._order:
            if cohort not in self._best:
                self._best[cohort] = self._winner(cohort)
        winner = self._best.get(root) if root is not None else None
        if winner is not None:
            self.remove(winner)
        return winner

    def remove(self, entry: Entry) -> None:
        """Take an entry out of the contest; its keys stay known for `note_losses`."""
        node = entry.cq.node
        waiting = self.entries[node]
        waiting.remove(entry)
        if not waiting:
            del self.entries[node]
        for cohort in node.path[:-1]:
            self._best.pop(cohort, None)

    def changed(self, node: QuotaNode) -> None:
        """Note that usage changed at a ClusterQueue and above it."""
        path = set(node.path)
        for entry, cohort in list(self._keys):
            if entry.cq.node.path[len(cohort.path)] in path:
                del self._keys[(entry, cohort)]
                self._best.pop(cohort, None)

    def _winner(self, cohort: QuotaNode) -> Entry | None:
        best: Entry | None = None
        best_key: _Key | None = None
        for child in self._members[cohort]:
            if child.is_queue:
                candidates = self.entries.get(child, [])
            else:
                found = self._best.get(child)
                candidates = [] if found is None else [found]
            for entry in candidates:
                key = self._key(entry, cohort)
                if best_key is None or key < best_key:
                    best, best_key = entry, key
        return best

    def _key(self, entry: Entry, cohort: QuotaNode) -> _Key:
        key = self._keys.get((entry, cohort))
        if key is None:
            self._record_keys(entry)
            key = self._keys[(entry, cohort)]
        return key

    def _record_keys(self, entry: Entry) -> None:
        """Work out the keys of an entry at every cohort above its queue."""
        path = entry.cq.node.path
        # The balance is compared without the entry's usage, everything else with it.
        balances = [self.book.projected(child) for child in path[1:]]
        priced = [
            fr for fr, value in entry.assignment.used.items() if value and self.book.is_priced(fr)
        ]
        point = self._simulation.checkpoint()
        self._simulation.add(entry.cq.node, entry.quota())
        wl = entry.wl
        for (cohort, child), balance in zip(pairwise(path), balances, strict=True):
            borrows = any(child.usage[fr] > child.quota[fr] for fr in priced)
            self._keys[(entry, cohort)] = (
                not entry.holds_quota,
                not entry.is_preemptor,
                borrows,
                -balance if borrows else 0,
                share(child),
                -wl.eff,
                wl.ts_ms,
                wl.uid,
                wl.key,
            )
        self._simulation.rollback(point)

    def note_losses(self, winner: Entry) -> None:
        """Remember who waits behind an admitted entry because of credits; before `changed`."""
        path = winner.cq.node.path
        for entry in self.waiting():
            other = entry.cq.node.path
            at = 0
            while at + 1 < min(len(path), len(other)) and path[at + 1] is other[at + 1]:
                at += 1
            if at + 1 >= min(len(path), len(other)):
                continue
            cohort = path[at]
            ahead, behind = self._key(winner, cohort), self._key(entry, cohort)
            if ahead[:3] == behind[:3] and ahead[2] and ahead[3] < behind[3]:
                self.book.losses_count += 1
                node = path[at + 1]
                entry.wl.credit_loss = CreditLoss(
                    winner=winner.wl,
                    ahead=f"{kind_of(node)} {node.name}",
                    cohort=cohort.name,
                    mine=-behind[3],
                    theirs=-ahead[3],
                )
