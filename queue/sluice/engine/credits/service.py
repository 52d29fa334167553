"""All CreditPolicies of an engine: which are active, and time passing for their ledgers.

A policy is bound to the tree whose root it names. One that names no root, or a tree that an older
policy names, or whose ledger is too large to be written, is inert: its ledger stands still. The
first cycle opens the ledgers, from the checkpoint in the policy's status if there is one: before
it, the engine may not have seen the whole cluster yet. Source: docs/spec/credits.md 2 and 4. Used
by the engine's event handlers and cycle. Pure.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, final

from sluice.api.names import CohortName
from sluice.api.records import Kind
from sluice.api.records_credit import CreditPolicy
from sluice.api.wire_credit import ACCOUNTS_MAX, STATUS_BYTES_MAX, encoded_size, size_bound
from sluice.engine.changes import ChangeLog
from sluice.engine.credits import queries
from sluice.engine.credits.book import Book
from sluice.engine.credits.ledger import Ledger, Settlement
from sluice.engine.credits.restore import UsageChange, open_ledger, replay
from sluice.engine.forest import Forest
from sluice.engine.tree import Tree

_SETTLEMENTS_MAX: Final = 4096
"""Settlements kept for whoever reports them; older ones are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyState:
    """Whether a policy works, and if not why (condition Active)."""

    is_active: bool
    reason: str
    message: str


History = Callable[[CohortName, int], Iterable[UsageChange]]

UNSEEN: Final = PolicyState(is_active=False, reason="Pending", message="Not looked at yet")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettlement:
    """A settlement of one policy's ledger."""

    policy: str
    settlement: Settlement


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """A ledger went on from a checkpoint.

    Changes since ``settled_ms`` that no object shows with a time count from ``at_ms``.
    """

    settled_ms: int
    at_ms: int


@final
class Credits:
    """The ledgers of one engine.

    Attributes:
        is_on: There is a policy, active or not.
        is_dirty: Policies or trees changed: books are to be bound anew before time moves on.
        history: Returns changes of usage below a root since a time that objects still show.
    """

    __slots__ = (
        "_books", "_changes", "_forest", "_is_started", "_now_ms", "_policies",
        "_resumptions", "_settle_trees", "_settlements", "_states", "_trees",
        "history", "is_dirty",
    )  # fmt: skip

    def __init__(
        self,
        forest: Forest,
        trees: dict[CohortName, Tree],
        changes: ChangeLog,
        settle_trees: Callable[[], None],
    ) -> None:
        """Make a service without policies.

        Args:
            forest: Records of queues and cohorts.
            trees: Quota trees by root.
            changes: Where to note that a policy's status differs.
            settle_trees: Rebuilds stale trees.
        """
        self._forest = forest
        self._trees = trees
        self._changes = changes
        self._settle_trees = settle_trees
        self._policies: dict[str, CreditPolicy] = {}
        self._states: dict[str, PolicyState] = {}
        self._books: dict[str, Book] = {}
        self._settlements: list[PolicySettlement] = []
        self._resumptions: dict[str, Resumption] = {}
        self._is_started = False
        self._now_ms = 0
        self.is_dirty = False
        self.history: History = _no_history

    @property
    def is_on(self) -> bool:
        """Tell whether there is a policy."""
        return bool(self._policies)

    @property
    def is_started(self) -> bool:
        """Tell whether ledgers are open: a cycle has run."""
        return self._is_started

    # Facts ------------------------------------------------------------------------------------

    def policy(self, record: CreditPolicy) -> None:
        """Add or update a policy; its own status writes coming back change nothing."""
        before = self._policies.get(record.name)
        self._policies[record.name] = record
        if before is not None and before.uid != record.uid:
            self._close(before.name)
            before = None
        book = self._books.get(record.name)
        if book is not None:
            book.policy = record
            if before is not None and before.terms != record.terms:
                book.ledger.change_terms(record.terms)
        if before is None or before.cohort != record.cohort:
            self.is_dirty = True
        if before is not None and before.cohort != record.cohort:
            # Another tree is another set of accounts; the old ones would only be in the way.
            self._close(record.name)
        if before is None or before.generation != record.generation:
            self._changes.touch(Kind.CREDIT_POLICY, record.name)

    def policy_gone(self, name: str) -> None:
        """Forget a policy and its ledger."""
        if self._policies.pop(name, None) is not None:
            self._close(name)
            self._states.pop(name, None)
            self._changes.forget(Kind.CREDIT_POLICY, name)
            self.is_dirty = True

    def _close(self, name: str) -> None:
        book = self._books.pop(name, None)
        self._resumptions.pop(name, None)
        if book is not None and book.tree is not None:
            book.tree.book = None

    def restart(self) -> None:
        """Forget all ledgers; the next cycle opens them again from the newest checkpoints.

        For a process that leads again: another one may have written statuses meanwhile.
        """
        for name in list(self._books):
            self._close(name)
        self._states.clear()
        self._settlements = []
        self._is_started = False
        self.is_dirty = True

    # Time -------------------------------------------------------------------------------------

    def to(self, now_ms: int) -> None:
        """Let time pass before something changes; going back is standing still."""
        if not self._policies or not self._is_started:
            return
        if now_ms > self._now_ms:
            self._settle_trees()
            if self.is_dirty:
                self._sync()
            self._advance(now_ms)

    def start(self, now_ms: int) -> None:
        """Bring everything up to the present, at the beginning of a cycle."""
        if not self._policies:
            if self.is_dirty:
                self._sync()
            return
        if not self._is_started:
            self._is_started = True
            self._now_ms = now_ms
        self.to(now_ms)
        if self.is_dirty:
            self._sync()
        for book in self._books.values():
            book.refresh()

    def _advance(self, now_ms: int) -> None:
        self._now_ms = now_ms
        for name, book in self._books.items():
            if book.tree is None:
                continue
            done = book.ledger.advance(now_ms)
            if done:
                self._note(name, done)
                if self._too_large(book) is not None:
                    self.is_dirty = True

    def _note(self, name: str, done: Iterable[Settlement]) -> None:
        self._settlements.extend(PolicySettlement(policy=name, settlement=s) for s in done)
        del self._settlements[:-_SETTLEMENTS_MAX]
        self._changes.touch(Kind.CREDIT_POLICY, name)

    def next_boundary_ms(self) -> int | None:
        """Return when the next settlement is due, 0 when a policy waits to be looked at."""
        if self.is_dirty and self._policies:
            return 0
        return min(
            (b.ledger.next_boundary_ms for b in self._books.values() if b.tree is not None),
            default=None,
        )

    # Binding ----------------------------------------------------------------------------------

    def _sync(self) -> None:
        """Find out which policies are active and bind their ledgers to their trees."""
        self._settle_trees()
        self.is_dirty = False
        ages = sorted(self._policies.values(), key=lambda p: (p.created_ms, p.name))
        first_of: dict[CohortName, str] = {}
        for policy in ages:
            first_of.setdefault(policy.cohort, policy.name)
        for policy in ages:
            state = self._judge(policy, first_of[policy.cohort])
            book = self._books.get(policy.name)
            if state.is_active:
                book = self._bind(policy, book)
                why = self._too_large(book)
                if why is not None:
                    state = PolicyState(is_active=False, reason="TooLarge", message=why)
            if not state.is_active and book is not None and book.tree is not None:
                book.tree.book = None
                book.tree = None
            if self._states.get(policy.name) != state:
                self._states[policy.name] = state
                self._changes.touch(Kind.CREDIT_POLICY, policy.name)

    def _judge(self, policy: CreditPolicy, first: str) -> PolicyState:
        cohort = policy.cohort
        if not self._forest.exists(cohort):
            message = f"Cohort {cohort} does not exist; create it or name another in cohortName"
            return PolicyState(is_active=False, reason="CohortNotFound", message=message)
        root = self._forest.root_of(cohort)
        if root is None:
            message = f"Cohort {cohort} is part of a cycle of parents"
            return PolicyState(is_active=False, reason="CohortCycle", message=message)
        if root != cohort:
            message = f"Cohort {cohort} is not a root; name the root {root} in cohortName"
            return PolicyState(is_active=False, reason="NotRoot", message=message)
        if first != policy.name:
            message = f"CreditPolicy {first} is older and names the same tree"
            return PolicyState(is_active=False, reason="Conflict", message=message)
        return PolicyState(is_active=True, reason="Active", message=f"Accounts in tree {root}")

    def _bind(self, policy: CreditPolicy, book: Book | None) -> Book:
        tree = self._trees[policy.cohort]
        if book is None:
            book = Book(policy, self._open(policy))
            self._books[policy.name] = book
            if policy.checkpoint is not None:
                self._resumptions[policy.name] = Resumption(
                    settled_ms=policy.checkpoint.settled_ms, at_ms=self._now_ms
                )
        elif book.tree is None and book.ledger.now_ms < self._now_ms:
            # It was inert: its ledger stood still meanwhile.
            book.ledger.skip(self._now_ms - book.ledger.now_ms)
        if book.tree is not tree:
            groups = [self._forest.groups_of(node) for node in tree.nodes]
            book.bind(tree, groups)
            book.refresh()
        return book

    def _open(self, policy: CreditPolicy) -> Ledger:
        """Open a ledger, from the checkpoint of an earlier manager if there is one."""
        now_ms = self._now_ms
        saved = policy.checkpoint
        if saved is None:
            groups = [self._forest.groups_of(n) for n in self._trees[policy.cohort].nodes]
            covered = {q.name for gs in groups for g in gs for f in g.flavors for q in f.resources}
            return Ledger(policy.terms, now_ms, covered)
        ledger = open_ledger(policy.terms, saved)
        if saved.settled_ms >= now_ms:
            # The clock is behind the checkpoint: time stands still until it has caught up.
            return ledger
        if not policy.was_active:
            ledger.skip(now_ms - ledger.now_ms)
            return ledger
        changes = self.history(policy.cohort, saved.settled_ms)
        self._note(policy.name, replay(ledger, changes, now_ms))
        return ledger

    def _too_large(self, book: Book) -> str | None:
        """Return why a ledger can't be kept in a status, None when it can (section 4)."""
        ledger = book.ledger
        count = len(book.accounts) + len(ledger.frozen)
        if count > ACCOUNTS_MAX:
            return f"{count} accounts are more than the {ACCOUNTS_MAX} that a status can hold"
        if size_bound(count, len(book.priced), book.names_bytes) <= STATUS_BYTES_MAX:
            return None
        saved = queries.checkpoint(ledger)
        size = 0 if saved is None else encoded_size(saved)
        if size <= STATUS_BYTES_MAX:
            return None
        return f"The status would have {size} bytes of JSON, more than {STATUS_BYTES_MAX}"

    # Answers ----------------------------------------------------------------------------------

    def book(self, name: str) -> Book | None:
        """Return the book of a policy, None before it was ever active."""
        return self._books.get(name)

    def policies(self) -> tuple[CreditPolicy, ...]:
        """Return all policies by name."""
        return tuple(self._policies[name] for name in sorted(self._policies))

    def state(self, name: str) -> PolicyState | None:
        """Return whether a policy is active; None when there is none of that name."""
        return self._states.get(name, UNSEEN) if name in self._policies else None

    def resumption(self, name: str) -> Resumption | None:
        """Return from where a policy's ledger went on, None when it began here."""
        return self._resumptions.get(name)

    def take_settlements(self) -> tuple[PolicySettlement, ...]:
        """Return the settlements since this was last asked."""
        taken, self._settlements = tuple(self._settlements), []
        return taken


def _no_history(_root: CohortName, _since_ms: int) -> tuple[UsageChange, ...]:
    return ()
