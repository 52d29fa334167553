"""Which flavors and counts a Workload would get: the result of a flavor assignment.

Mutable records of one cycle, made by `sluice.engine.assign`, read by nomination, preemption,
ordering, processing and the messages. Source: docs/spec/algorithm.md 3.3. Amounts are totals of a
pod set in the resource's unit.
"""

from typing import Final

from sluice.api.names import FlavorName, ResourceName
from sluice.api.records import PodSet, TopologyAssignment
from sluice.engine.requests import PodRequests

# Modes of a whole assignment or pod set, worst first (3.3).
NO_FIT: Final = 0
PREEMPT: Final = 1
DEFERRED_FIT: Final = 2
FIT: Final = 3

# Granular preemption modes of one flavor-resource, worst first (3.3).
PM_NO_FIT: Final = 0
PM_NO_CANDIDATES: Final = 1
PM_PREEMPT: Final = 2
PM_RECLAIM: Final = 3
PM_FIT: Final = 4

# Kinds of reasons, in the order of their severity when merged (docs/spec/api.md 4.2).
WHY_TOPOLOGY: Final = 0
WHY_UNUSED: Final = 1
WHY_MAXIMUM: Final = 2
WHY_NO_MATCH: Final = 3
WHY_ERROR: Final = 4


class Reason:
    """Why a flavor would not do, kept as numbers until somebody asks for the sentence.

    Attributes:
        kind: One of the ``WHY_`` values.
        text: The sentence for `WHY_NO_MATCH`, `WHY_TOPOLOGY` and `WHY_ERROR`.
        amounts: `WHY_UNUSED`: (missing,); `WHY_MAXIMUM`: (earlier pod sets, this one, maximum).
    """

    __slots__ = ("amounts", "flavor", "kind", "resource", "text")

    def __init__(
        self,
        kind: int,
        flavor: str,
        resource: str,
        text: str = "",
        amounts: tuple[int, ...] = (),
    ) -> None:
        self.kind = kind
        self.flavor = flavor
        self.resource = resource
        self.text = text
        self.amounts = amounts


class PodSetNeed:
    """What one pod set asks for in an attempt; ``totals`` follow ``names`` (order of 0.3)."""

    __slots__ = ("count", "index", "names", "pod", "spec", "totals")

    def __init__(
        self,
        index: int,
        spec: PodSet,
        pod: PodRequests,
        count: int,
        names: tuple[ResourceName, ...],
        totals: list[int],
    ) -> None:
        self.index = index
        self.spec = spec
        self.pod = pod
        self.count = count
        self.names = names
        self.totals = totals


class FlavorChoice:
    """The flavor one resource of a pod set gets, and on what terms."""

    __slots__ = ("borrow", "flavor", "fr", "mode", "tried")

    def __init__(self, flavor: FlavorName, fr: int, mode: int, borrow: int, tried: int) -> None:
        self.flavor = flavor
        self.fr = fr
        self.mode = mode
        """`FIT`, `PREEMPT` or `NO_FIT`."""
        self.borrow = borrow
        self.tried = tried
        """Index of the last flavor looked at, -1 when that was the last one (3.3.4)."""


class PodSetResult:
    """What one pod set gets; ``flavors`` is empty when none was found.

    ``tried`` keeps how far each resource's search got while flavors are left to look at, even when
    topology later rules them out (3.4).
    """

    __slots__ = ("delayed", "error", "flavors", "need", "reasons", "topology", "tried")

    def __init__(self, need: PodSetNeed, reasons: list[Reason]) -> None:
        self.need = need
        self.flavors: dict[ResourceName, FlavorChoice] = {}
        self.tried: dict[ResourceName, int] = {}
        self.reasons = reasons
        self.error = ""
        self.topology: TopologyAssignment | None = None
        self.delayed = False

    def mode(self) -> int:
        """Return the mode of this pod set (3.3.8)."""
        if self.error:
            return NO_FIT
        if not self.reasons:
            return FIT
        if not self.flavors:
            return NO_FIT
        worst = FIT
        for choice in self.flavors.values():
            if choice.mode < worst:
                worst = choice.mode
        return worst


class Assignment:
    """The result for a whole Workload.

    Attributes:
        pod_sets: In group order (3.3.1).
        used: What would be booked, by flavor-resource (3.3.3).
        borrow: Highest borrow level over all choices.
        mode: `NO_FIT`, `PREEMPT`, `DEFERRED_FIT` or `FIT`.
        is_scan_open: Some resource has flavors left that were not looked at (3.4).
    """

    __slots__ = ("borrow", "is_scan_open", "mode", "pod_sets", "used")

    def __init__(self) -> None:
        self.pod_sets: list[PodSetResult] = []
        self.used: dict[int, int] = {}
        self.borrow = 0
        self.mode = NO_FIT
        self.is_scan_open = False

    def settle_mode(self) -> None:
        """Set the mode to the worst pod set's (3.3.8)."""
        if not self.pod_sets:
            self.mode = NO_FIT
            return
        worst = FIT
        for result in self.pod_sets:
            mode = result.mode()
            if mode < worst:
                worst = mode
        self.mode = worst


class Scan:
    """How far the flavor search of a Workload got, for its next attempt (3.4).

    Attributes:
        tried: Per pod set in result order: last index tried by resource.
        generation: The ClusterQueue's allocatable generation at the time.
        cycle: Number of the cycle.
        shape: The equivalence key at the time.
    """

    __slots__ = ("cycle", "generation", "shape", "tried")

    def __init__(
        self,
        tried: list[dict[ResourceName, int]],
        generation: int,
        cycle: int,
        shape: object,
    ) -> None:
        self.tried = tried
        self.generation = generation
        self.cycle = cycle
        self.shape = shape

    def is_pending(self) -> bool:
        """Tell whether some flavor has not been looked at yet."""
        for tried in self.tried:
            for index in tried.values():
                if index != -1:
                    return True
        return False
