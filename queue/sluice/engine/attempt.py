"""One attempt to fit a Workload: what the flavor search, preemption and partial admission share.

Source: docs/spec/algorithm.md 3.3 to 3.5. Made by `sluice.engine.nominate`.
"""

from sluice.api.amount import divide, scale
from sluice.api.names import FlavorName, ResourceName
from sluice.engine.assignment import PodSetNeed, Scan
from sluice.engine.plan import Plan
from sluice.engine.states import ClusterQueueState, WorkloadState


class Attempt:
    """The Workload, its queue, and what restricts the search.

    Attributes:
        scan: Progress of the last attempt, when it still holds (3.4).
        pinned: Per pod set index and resource, the flavor of the first nomination (3.7.2).
        old: The slice that this one replaces (3.5.1).
        old_requests: Its booked requests by (pod set name, resource), to charge the difference.
        old_flavors: Its flavors by resource.
        fixed: Flavors that are given: the Workload holds a reservation (second pass).
    """

    __slots__ = (
        "cq", "fixed", "old", "old_flavors", "old_requests", "pinned", "plan", "scan", "wl",
    )  # fmt: skip

    def __init__(self, wl: WorkloadState, cq: ClusterQueueState, plan: Plan) -> None:
        self.wl = wl
        self.cq = cq
        self.plan = plan
        self.scan: Scan | None = None
        self.pinned: dict[tuple[int, ResourceName], FlavorName] | None = None
        self.old: WorkloadState | None = None
        self.old_requests: dict[tuple[str, ResourceName], int] = {}
        self.old_flavors: dict[ResourceName, FlavorName] = {}
        self.fixed: dict[tuple[int, ResourceName], FlavorName] | None = None


def with_counts(needs: list[PodSetNeed], counts: list[int]) -> list[PodSetNeed]:
    """Return the needs scaled to other counts (1.10, partial admission)."""
    return [
        need if count == need.count else scaled(need, count)
        for need, count in zip(needs, counts, strict=True)
    ]


def scaled(need: PodSetNeed, count: int) -> PodSetNeed:
    """Return the need of a pod set scaled to another count: (value / old count) x count."""
    if need.count == 0 or need.count == count:
        return need
    totals = [scale(divide(value, need.count), count) for value in need.totals]
    return PodSetNeed(need.index, need.spec, need.pod, count, need.names, totals)
