"""The seam between the engine's core and topology-aware scheduling.

The core knows flavors, quota and queues; a `Placement` knows nodes and domains. The core calls it
at these places (sections of docs/spec/algorithm.md):

- 2.9, 1.7: `observe` and `gone` with Nodes, Pods, Topologies and ResourceFlavors; the answer names
  the flavors whose capacity or shape changed, whose ClusterQueues the core then wakes or rechecks.
  `levels` says whether a flavor's topology is known.
- 3.3.4 c, 6.2: `refusal`, while a flavor is looked at for a pod set.
- 3.3.7, 3.5.6, 6.8: `place`, for all pod sets of a Workload at once; 4.4.5: `can_place`, while
  victims are looked for.
- 3.7.1, 6.9: `fits`, before an entry is taken.
- 1.10, 2.1, 3.7: `book` and `unbook`, when a reservation (or a simulated one) begins and ends.
- every simulation: `checkpoint` and `rollback`, nested like those of the core's own undo log;
  `commit` once nothing is left to be undone.

`sluice.engine.topology` implements it. `WithoutTopology` is for worlds without (gate
TopologyAwareScheduling off): everything that asks for a topology is refused.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field

from sluice.api.names import FlavorName, ResourceName
from sluice.api.records import (
    Kind,
    Node,
    Pod,
    PodSet,
    PodSetUpdate,
    ResourceFlavor,
    Topology,
    TopologyAssignment,
    TopologyRequest,
    Workload,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """One pod set that wants a topology.

    Attributes:
        index: Index of the pod set in the Workload's spec.
        pod_set: Its spec.
        count: Pods to place: the effective count of the present attempt.
        pod: Effective requests of one pod from the spec, overhead included, in the resource's unit;
            neither transformed nor reduced by excluded prefixes, without the ``pods`` unit.
        flavors: Flavors assigned to the pod set, each once, in name order.
        is_implied: The pod set asks for no topology, but its ClusterQueue has only such flavors.
        update: Node selector and tolerations of the Ready checks, merged; None without.
        previous: The topology it has already: to repair (unhealthy nodes), or of the slice that
            this one replaces when ``grows``.
        grows: Elastic slice (6.11): ``previous`` stays, only the difference is placed.
    """

    index: int
    pod_set: PodSet
    count: int
    pod: tuple[tuple[ResourceName, int], ...]
    flavors: tuple[FlavorName, ...]
    is_implied: bool = False
    update: PodSetUpdate | None = None
    previous: TopologyAssignment | None = None
    grows: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementOutcome:
    """What came of a placement; a pod set is in exactly one of the three maps (by index).

    Attributes:
        placed: The domains found.
        failed: It does not fit now; the text is a reason as in docs/spec/api.md 4.2.
        errors: It can never be placed so (no topology flavor, or two): NoFit.
    """

    placed: dict[int, TopologyAssignment] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyUsage:
    """What one pod set takes from the domains of one flavor; ``pod`` as in `PlacementRequest`."""

    flavor: FlavorName
    pod: tuple[tuple[ResourceName, int], ...]
    assignment: TopologyAssignment


def is_explicit(request: TopologyRequest | None) -> bool:
    """Tell whether a pod set asks for topology-aware placement itself (6.2)."""
    return request is not None and (
        request.required is not None
        or request.preferred is not None
        or request.unconstrained is not None
        or request.has_slice_fields
    )


class Placement(ABC):
    """Knows nodes and domains; see the module for when the core calls what."""

    @abstractmethod
    def observe(self, record: Node | Pod | Topology | ResourceFlavor) -> frozenset[FlavorName]:
        """Take in a fact; return the flavors whose capacity grew or whose tree changed."""

    @abstractmethod
    def gone(self, kind: Kind, key: str) -> frozenset[FlavorName]:
        """Forget an object; return the flavors whose capacity grew or whose tree changed."""

    @abstractmethod
    def levels(self, flavor: FlavorName) -> tuple[str, ...] | None:
        """Return the level keys of a flavor's topology, None when it has none or it is unknown."""

    @abstractmethod
    def refusal(
        self,
        pod_set: PodSet,
        flavor: FlavorName,
        *,
        is_implied: bool,
        covers_pod_resources: bool,
    ) -> str | None:
        """Return why a flavor is not compatible with a pod set's topology request, None if it is.

        Args:
            pod_set: Asks for a topology or not.
            flavor: An existing flavor, with a topology or without.
            is_implied: As in `PlacementRequest`.
            covers_pod_resources: The resource group searched covers a resource of the pod's raw
                effective requests; if not, an explicit request accepts a flavor without topology.
        """

    @abstractmethod
    def place(
        self,
        workload: Workload,
        requests: tuple[PlacementRequest, ...],
        *,
        assume_empty: bool,
    ) -> PlacementOutcome:
        """Find domains for all requests on the present state; changes nothing.

        Args:
            workload: Whose unhealthy nodes count (6.8).
            requests: At least one, in spec order.
            assume_empty: Pretend that no topology-aware Workload runs (other pods stay).
        """

    @abstractmethod
    def can_place(self, workload: Workload, requests: tuple[PlacementRequest, ...]) -> bool:
        """Tell whether `place` would find domains for all requests now."""

    @abstractmethod
    def fits(self, usages: tuple[TopologyUsage, ...]) -> bool:
        """Tell whether every domain exists and holds its pods now, each taken by itself (6.9)."""

    @abstractmethod
    def book(self, usages: tuple[TopologyUsage, ...]) -> None:
        """Add usage; domains that are no longer in the tree are remembered but don't count."""

    @abstractmethod
    def unbook(self, usages: tuple[TopologyUsage, ...]) -> None:
        """Take usage away that was booked before."""

    @abstractmethod
    def checkpoint(self) -> int:
        """Return a mark for `rollback`; marks nest."""

    @abstractmethod
    def rollback(self, mark: int) -> None:
        """Undo every `book` and `unbook` since the mark."""

    def commit(self) -> None:
        """Forget what could be undone: no mark given so far will be rolled back to."""
        return

    def misbooked(self, usages: Iterable[TopologyUsage]) -> list[str]:
        """Return where usage differs from these bookings, for checks between cycles.

        Args:
            usages: What all reservations take.
        """
        return []


_NOTHING: frozenset[FlavorName] = frozenset()


class WithoutTopology(Placement):
    """A world without topologies."""

    def observe(self, record: Node | Pod | Topology | ResourceFlavor) -> frozenset[FlavorName]:
        """Ignore the fact."""
        return _NOTHING

    def gone(self, kind: Kind, key: str) -> frozenset[FlavorName]:
        """Ignore the fact."""
        return _NOTHING

    def levels(self, flavor: FlavorName) -> tuple[str, ...] | None:
        """Return None: no flavor has a topology."""
        return None

    def refusal(
        self,
        pod_set: PodSet,
        flavor: FlavorName,
        *,
        is_implied: bool,
        covers_pod_resources: bool,
    ) -> str | None:
        """Refuse whatever asks for a topology."""
        if is_explicit(pod_set.topology) and covers_pod_resources:
            return f"flavor {flavor} has no topology"
        return None

    def place(
        self,
        workload: Workload,
        requests: tuple[PlacementRequest, ...],
        *,
        assume_empty: bool,
    ) -> PlacementOutcome:
        """Refuse all requests."""
        return PlacementOutcome(errors={r.index: "no flavor has a topology" for r in requests})

    def can_place(self, workload: Workload, requests: tuple[PlacementRequest, ...]) -> bool:
        """Return whether nothing is asked for."""
        return not requests

    def fits(self, usages: tuple[TopologyUsage, ...]) -> bool:
        """Return whether there is nothing to hold."""
        return not usages

    def book(self, usages: tuple[TopologyUsage, ...]) -> None:
        """Do nothing: no domain is charged."""

    def unbook(self, usages: tuple[TopologyUsage, ...]) -> None:
        """Do nothing: no domain is charged."""

    def checkpoint(self) -> int:
        """Return 0: there is nothing to undo."""
        return 0

    def rollback(self, mark: int) -> None:
        """Do nothing: there is nothing to undo."""
