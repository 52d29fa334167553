"""One at a time: how the entries of trees with credits take their turns within a cycle.

After every admission in such a tree, the queue's next Workload takes part and all heads are
nominated anew, so that each admission goes to the winner among the current heads that fit. A round
is what one cycle would be if cycles admitted one Workload per tree; a cycle runs several of them.
Source: docs/spec/credits.md 3.2. Used by `sluice.engine.cycle`. Pure.
"""

from collections.abc import Iterator
from typing import Final, final

from sluice.engine.assignment import FIT
from sluice.engine.credits.contest import Contest
from sluice.engine.entry import ASSUMED, Entry
from sluice.engine.process import Processor
from sluice.engine.simulation import Simulation
from sluice.engine.states import ClusterQueueState
from sluice.engine.tree import Tree, available

ROUNDS_MAX: Final = 64
"""Rounds of one tree in one cycle, so that a cycle stays short; the next cycle goes on."""
_ROUNDS_MIN: Final = 4
_LOOKS_MAX: Final = 40_000
"""Looks at waiting heads in one cycle: a round looks at each of them."""


@final
class Turn:
    """A tree's contest within a cycle, and what this round has done.

    Attributes:
        has_admitted: This round admitted a Workload: the round is over.
        played: ClusterQueues whose entry had its turn in this round.
        done: Those entries.
    """

    __slots__ = ("_simple", "contest", "done", "has_admitted", "played")

    def __init__(self, contest: Contest) -> None:
        self.contest = contest
        self.has_admitted = False
        self.played: dict[str, ClusterQueueState] = {}
        self.done: list[Entry] = []
        self._simple: dict[Entry, bool] = {}

    def enter(self, entry: Entry) -> None:
        """Let an entry take part; one that may not be admitted leaves its place to the next."""
        if entry.attempt is None:
            self.played[entry.cq.name] = entry.cq
        else:
            self.contest.add(entry)

    def step(self, processor: Processor) -> bool:
        """Process the winner of the entries that wait; False when the round is over."""
        if self.has_admitted or processor.is_blocked:
            return False
        winner = self.contest.pick()
        if winner is None:
            return False
        processor.process(winner)
        self.played[winner.cq.name] = winner.cq
        self.done.append(winner)
        if winner.status != ASSUMED:
            self.contest.note_loss(winner)
        elif not winner.holds_quota:
            self.has_admitted = True
            self.contest.note_win(winner)
        self.contest.changed(winner.cq.node)
        return True

    def begin_round(self) -> list[ClusterQueueState]:
        """Begin another round; return the queues whose next head is to take part."""
        played = list(self.played.values())
        self.has_admitted = False
        self.played = {}
        self.done = []
        for cq in played:
            # What was booked for the length of the last round only is gone.
            self.contest.changed(cq.node)
        return played

    def outdated(self) -> list[Entry]:
        """Return the waiting entries that must be nominated anew after an admission.

        Usage has only grown since. An entry that fits on the first flavor of each search, without
        anything else to find out, gets the same answer as long as it fits there.
        """
        found = []
        for entry in self.contest.waiting():
            is_simple = self._simple.get(entry)
            if is_simple is None:
                is_simple = self._simple[entry] = _is_simple(entry)
            if not is_simple or not _fits(entry):
                found.append(entry)
        return found

    def take_all(self) -> list[Entry]:
        """Take the entries that wait out of the contest."""
        waiting = self.contest.waiting()
        for entry in waiting:
            self.contest.remove(entry)
        return waiting


Turns = dict[Tree, Turn]


def open_turns(entries: list[Entry], simulation: Simulation) -> Turns:
    """Return the contests of the trees with credits that entries are in."""
    turns: Turns = {}
    for entry in entries:
        book = entry.cq.tree.book
        if book is None:
            continue
        turn = turns.get(entry.cq.tree)
        if turn is None:
            turn = turns[entry.cq.tree] = Turn(Contest(book, simulation))
        turn.enter(entry)
    return turns


def play(processor: Processor, queue: Iterator[Entry], turns: Turns, left_out: list[Entry]) -> None:
    """Process entries in their order; those of a contest stand for a turn of its present winner.

    Args:
        processor: Decides about one entry.
        queue: Entries in the order of the cycle.
        turns: The contests.
        left_out: Takes up the entries that were never looked at.
    """
    for entry in queue:
        turn = turns.get(entry.cq.tree)
        if turn is not None:
            turn.step(processor)
        elif processor.is_blocked:
            left_out.append(entry)
        else:
            processor.process(entry)
    for turn in turns.values():
        while turn.step(processor):
            pass
        if processor.is_blocked:
            left_out.extend(turn.take_all())


def rounds_max(turn: Turn) -> int:
    """Return how many rounds a tree may play in one cycle."""
    return max(_ROUNDS_MIN, min(ROUNDS_MAX, _LOOKS_MAX // (1 + len(turn.contest.entries))))


def _fits(entry: Entry) -> bool:
    node = entry.cq.node
    for fr, value in entry.assignment.used.items():  # noqa: SIM110  (hot: a generator costs more)
        if value > available(node, fr):
            return False
    return True


def _is_simple(entry: Entry) -> bool:
    """Tell whether an entry's nomination only depends on whether it fits where it did."""
    attempt = entry.attempt
    if entry.assignment.mode != FIT or attempt is None or entry.topology or entry.holds_quota:
        return False
    if attempt.scan is not None or attempt.old is not None:
        return False
    cq = entry.cq
    if cq.try_next_if_borrowing and entry.assignment.borrow:
        return False
    groups = cq.record.resource_groups
    for pod_set in entry.assignment.pod_sets:
        if pod_set.need.count != entry.wl.needs[pod_set.need.index].count or pod_set.delayed:
            return False
        for resource, choice in pod_set.flavors.items():
            if groups[cq.group_of[resource]].flavors[0].name != choice.flavor:
                return False
    return True
