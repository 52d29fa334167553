"""Looks through the flavors of one resource group and chooses one (docs/spec/algorithm.md 3.3.4).

Also the mode of one flavor-resource (3.3.5) and which of two modes is better (3.3.6). Used by
`sluice.engine.assign`.
"""

from typing import Final

from sluice.api.names import ResourceName
from sluice.engine.assignment import (
    FIT,
    PM_FIT,
    PM_NO_CANDIDATES,
    PM_NO_FIT,
    PREEMPT,
    WHY_MAXIMUM,
    WHY_NO_MATCH,
    WHY_UNUSED,
    FlavorChoice,
    PodSetNeed,
    Reason,
)
from sluice.engine.attempt import Attempt
from sluice.engine.plan import FlavorOption, Search
from sluice.engine.preemption.oracle import Preemption
from sluice.engine.states import ClusterQueueState
from sluice.engine.tree import borrow_level, raw_available

_BORROW_MAX: Final = 1 << 30


class FlavorSearch:
    """Searches flavors under the feature gates of one engine."""

    __slots__ = ("_is_fungible", "_oracle")

    def __init__(self, oracle: Preemption, *, is_fungible: bool) -> None:
        self._oracle = oracle
        self._is_fungible = is_fungible

    def find(
        self,
        attempt: Attempt,
        members: list[PodSetNeed],
        search: Search,
        totals: list[int],
        used: dict[int, int],
        reasons: list[Reason],
    ) -> dict[ResourceName, FlavorChoice] | None:
        """Return a flavor for every resource of a search, or None when none would ever do.

        Args:
            attempt: The attempt.
            members: Pod sets of the group.
            search: What to search.
            totals: The group's summed requests, in the order of the group's names.
            used: What earlier groups of the Workload take.
            reasons: Gets why flavors would not do, unless the one chosen fits.
        """
        cq = attempt.cq
        options = search.options
        start = _start(attempt, members[0].index, search.resource)
        best: dict[ResourceName, FlavorChoice] | None = None
        best_mode = PM_NO_FIT
        best_borrow = _BORROW_MAX
        why: list[Reason] = []
        last = start - 1
        for at in range(start, len(options)):
            option = options[at]
            last = at
            if not self._may_use(attempt, members, search.resource, option, why):
                continue
            choices, mode, borrow = self._evaluate(
                attempt, members, search, option, totals, used, why
            )
            if self._is_fungible:
                if not _try_next(cq, mode, borrow):
                    best, best_mode = choices, mode
                    break
                if _is_preferred(cq, mode, borrow, best_mode, best_borrow):
                    best, best_mode, best_borrow = choices, mode, borrow
            elif mode > best_mode:
                best, best_mode = choices, mode
                if mode == PM_FIT:
                    break
        if best is None or best_mode != PM_FIT:
            reasons.extend(why)
        if best is None:
            return None
        tried = -1 if last == len(options) - 1 or not self._is_fungible else last
        for choice in best.values():
            choice.tried = tried
        return best

    def _may_use(
        self,
        attempt: Attempt,
        members: list[PodSetNeed],
        resource: ResourceName,
        option: FlavorOption,
        why: list[Reason],
    ) -> bool:
        """Tell whether a flavor is looked at at all (3.3.4 a to c)."""
        pinned = attempt.pinned
        if pinned is not None and not any(
            pinned.get((need.index, resource)) == option.flavor for need in members
        ):
            return False
        allowed = attempt.wl.record.allowed_flavors
        if allowed and option.flavor not in allowed:
            return False
        if option.refusal:
            why.append(Reason(WHY_NO_MATCH, option.flavor, "", option.refusal))
            return False
        return True

    def _evaluate(
        self,
        attempt: Attempt,
        members: list[PodSetNeed],
        search: Search,
        option: FlavorOption,
        totals: list[int],
        used: dict[int, int],
        why: list[Reason],
    ) -> tuple[dict[ResourceName, FlavorChoice], int, int]:
        """Return the choices on one flavor and its representative mode and borrow level."""
        cq = attempt.cq
        choices: dict[ResourceName, FlavorChoice] = {}
        worst = PM_FIT
        worst_borrow = 0
        resources = search.resources
        positions = search.positions
        for at in range(len(resources)):
            resource = resources[at]
            fr = option.frs[at]
            value = totals[positions[at]]
            if attempt.old is not None:
                refusal = _slice_refusal(attempt, option, resource)
                if refusal:
                    why.append(Reason(WHY_NO_MATCH, option.flavor, resource, refusal))
                    return choices, PM_NO_FIT, 0
                for need in members:
                    value -= attempt.old_requests.get((need.spec.name, resource), 0)
            taken = used.get(fr, 0) if used else 0
            mode, borrow = self._mode(attempt, fr, taken + value, resource, option, taken, why)
            if _is_preferred(cq, worst, worst_borrow, mode, borrow):
                worst, worst_borrow = mode, borrow
            if worst == PM_NO_FIT:
                break
            choices[resource] = FlavorChoice(
                option.flavor, fr, FIT if mode == PM_FIT else PREEMPT, borrow, -1
            )
        return choices, worst, worst_borrow

    def _mode(
        self,
        attempt: Attempt,
        fr: int,
        value: int,
        resource: ResourceName,
        option: FlavorOption,
        taken: int,
        why: list[Reason],
    ) -> tuple[int, int]:
        """Return the mode and borrow level of one flavor-resource (3.3.5)."""
        cq = attempt.cq
        node = cq.node
        if value > node.potential[fr]:
            amounts = (taken, value - taken, node.potential[fr])
            why.append(Reason(WHY_MAXIMUM, option.flavor, resource, "", amounts))
            return PM_NO_FIT, 0
        level, may_reclaim = borrow_level(node, fr, value)
        room = raw_available(node, fr)
        if value <= room or value <= 0:
            return PM_FIT, level
        missing = value - (room if room > 0 else 0)
        why.append(Reason(WHY_UNUSED, option.flavor, resource, "", (missing,)))
        if node.nominal[fr] >= value or may_reclaim or cq.can_preempt_while_borrowing:
            return self._oracle.mode(attempt.wl, cq, fr, value, level)
        return PM_NO_FIT, 0


def _start(attempt: Attempt, index: int, resource: ResourceName) -> int:
    scan = attempt.scan
    if scan is None or index >= len(scan.tried):
        return 0
    return scan.tried[index].get(resource, -1) + 1


def _slice_refusal(attempt: Attempt, option: FlavorOption, resource: ResourceName) -> str:
    """Return why a slice can't use a flavor: it must stay on that of the old one (4.11)."""
    flavor = attempt.old_flavors.get(resource)
    if flavor is None or flavor == option.flavor:
        return ""
    return (
        f"could not assign {option.flavor} flavor since the original workload is assigned: {flavor}"
    )


def _try_next(cq: ClusterQueueState, mode: int, borrow: int) -> bool:
    """Tell whether the search goes on past a flavor of this mode (3.3.4)."""
    if mode <= PM_NO_CANDIDATES:
        return True
    if mode < PM_FIT and cq.try_next_if_preempting:
        return True
    return borrow > 0 and cq.try_next_if_borrowing


def _is_preferred(cq: ClusterQueueState, mode: int, borrow: int, other: int, level: int) -> bool:
    """Tell whether (mode, borrow) is strictly better than (other, level) (3.3.6)."""
    if mode == PM_NO_FIT:
        return False
    if other == PM_NO_FIT:
        return True
    if (mode == PM_NO_CANDIDATES) != (other == PM_NO_CANDIDATES):
        return other == PM_NO_CANDIDATES
    if cq.is_borrowing_first:
        return mode > other if mode != other else borrow < level
    return borrow < level if borrow != level else mode > other
