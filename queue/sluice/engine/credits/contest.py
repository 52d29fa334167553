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
from sluice.engine.states import RESERVED, WorkloadState
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


class Win(NamedTuple):
    """An admission, to tell those that wait what they lost by.

    Attributes:
        keys: By cohort above its queue, what it was compared by.
        taken: The flavor-resources with a weight that it took.
    """

    wl: WorkloadState
    at_ms: int
    path: list[QuotaNode]
    keys: dict[QuotaNode, _Key]
    taken: list[int]


@final
class Contest:
    """The entries of one tree that still wait for their turn."""

    __slots__ = ("_below", "_best", "_keys", "_members", "_order", "_simulation", "book", "entries")

    def __init__(self, book: Book, simulation: Simulation) -> None:
        self.book = book
        self.entries: dict[QuotaNode, list[Entry]] = {}
        """By ClusterQueue: its head, and before it Workloads in their second pass."""
        self._simulation = simulation
        self._members: dict[QuotaNode, dict[QuotaNode, None]] = {}
        self._below: dict[QuotaNode, dict[Entry, None]] = {}
        self._order: list[QuotaNode] = []
        self._keys: dict[Entry, dict[QuotaNode, _Key]] = {}
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
            self._below.setdefault(child, {})[entry] = None
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
        """Take an entry out of the contest; its keys stay known until its queue changes."""
        node = entry.cq.node
        waiting = self.entries[node]
        waiting.remove(entry)
        if not waiting:
            del self.entries[node]
        for cohort, child in pairwise(node.path):
            self._below[child].pop(entry, None)
            self._best.pop(cohort, None)

    def changed(self, node: QuotaNode) -> None:
        """Note that usage changed at a ClusterQueue and above it."""
        for cohort, child in pairwise(node.path):
            self._best.pop(cohort, None)
            for entry in self._below.get(child, ()):
                keys = self._keys.get(entry)
                if keys is not None:
                    keys.pop(cohort, None)

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
        keys = self._keys.get(entry)
        key = None if keys is None else keys.get(cohort)
        if key is None:
            key = self._record_keys(entry)[cohort]
        return key

    def _record_keys(self, entry: Entry) -> dict[QuotaNode, _Key]:
        """Work out the keys of an entry at every cohort above its queue."""
        path = entry.cq.node.path
        # The balance is compared without the entry's usage, everything else with it.
        balances = [self.book.projected(child) for child in path[1:]]
        priced = self._priced(entry)
        keys: dict[QuotaNode, _Key] = {}
        point = self._simulation.checkpoint()
        self._simulation.add(entry.cq.node, entry.quota())
        wl = entry.wl
        for (cohort, child), balance in zip(pairwise(path), balances, strict=True):
            borrows = any(child.usage[fr] > child.quota[fr] for fr in priced)
            keys[cohort] = (
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
        self._keys[entry] = keys
        return keys

    def note_win(self, entry: Entry) -> None:
        """Remember an admission; before `changed`."""
        keys = {cohort: self._key(entry, cohort) for cohort in entry.cq.node.path[:-1]}
        now_ms, path = self.book.ledger.now_ms, entry.cq.node.path
        self.book.wins.append(Win(entry.wl, now_ms, path, keys, self._priced(entry)))

    def _priced(self, entry: Entry) -> list[int]:
        used = entry.assignment.used
        return [fr for fr, value in used.items() if value and self.book.is_priced(fr)]

    def note_loss(self, entry: Entry) -> None:
        """Find out whether an entry that got nothing went after another one because of credits."""
        wl = entry.wl
        wl.credit_loss = None
        path = entry.cq.node.path
        for win in reversed(self.book.wins):
            if win.wl.place != RESERVED or win.at_ms < wl.queued_ms:
                continue
            at = 0
            while at + 1 < min(len(path), len(win.path)) and path[at + 1] is win.path[at + 1]:
                at += 1
            if at + 1 >= min(len(path), len(win.path)) or path[at] is not win.path[at]:
                continue
            ahead, child = win.keys[path[at]], path[at + 1]
            mine = self.book.projected(child)
            if ahead[2] and mine < -ahead[3] and self._would_borrow(entry, child, win.taken):
                self.book.losses_count += 1
                wl.credit_loss = CreditLoss(
                    winner=win.wl,
                    ahead=f"{kind_of(win.path[at + 1])} {win.path[at + 1].name}",
                    cohort=path[at].name,
                    mine=mine,
                    theirs=-ahead[3],
                )
                return

    def _would_borrow(self, entry: Entry, node: QuotaNode, taken: list[int]) -> bool:
        """Tell whether an entry would have had to borrow what another one took."""
        tree = self.book.tree
        assert tree is not None
        for fr in taken:
            resource = tree.pairs[fr][1]
            needed = sum(
                total
                for need in entry.wl.needs
                for name, total in zip(need.names, need.totals, strict=True)
                if name == resource
            )
            if needed and node.usage[fr] + needed > node.quota[fr]:
                return True
        return False
