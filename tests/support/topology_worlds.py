"""Small random topologies for property tests: nodes, requests, and how to place them."""

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st
from tests.support.topology_model import Ask, Free, Path

from sluice.api import wire
from sluice.api.names import HOSTNAME_LABEL, FlavorName, PodSetName, ResourceName
from sluice.api.records import (
    Node,
    PodSet,
    ResourceFlavor,
    SliceConstraint,
    Topology,
    TopologyRequest,
    Workload,
)
from sluice.engine.options import Gates
from sluice.engine.placement import PlacementOutcome, PlacementRequest
from sluice.engine.topology.facade import TopologyPlacement

FLAVOR = FlavorName("tas")
ALL_LEVELS = ("zone", "block", "rack")
ALL_KINDS = ("required", "preferred", "free", "implied", "slices")
Kinds = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A tree and a request of one pod set, or of workers and their leader.

    Attributes:
        leaves: Free amounts by path.
    """

    levels: tuple[str, ...]
    leaves: Mapping[Path, Free]
    request: TopologyRequest | None
    count: int
    pod: Mapping[str, int]
    leader: Mapping[str, int] | None

    def ask(self) -> Ask:
        """Return the request in the model's terms (6.4)."""
        request, levels = self.request, self.levels
        lowest = len(levels) - 1
        level, is_free = lowest, True
        if request is not None and (request.required or request.preferred):
            level = levels.index(request.required or request.preferred or "")
            is_free = False
        elif request is not None and request.slices:
            level = 0
        slices = [(levels.index(s.topology), s.size) for s in request.slices] if request else []
        return Ask(
            count=self.count,
            level=level,
            pod={**self.pod, "pods": 1},
            leader=None if self.leader is None else {**self.leader, "pods": 1},
            required=request is not None and request.required is not None,
            unconstrained=is_free,
            slice_size=slices[0][1] if slices else 1,
            slice_level=slices[0][0] if slices else lowest,
            inner=tuple(slices[1:]),
        )


def levels_of(depth: int, *, has_hosts: bool) -> tuple[str, ...]:
    """Return level keys, broadest first."""
    if has_hosts:
        return (*ALL_LEVELS[len(ALL_LEVELS) - depth + 1 :], HOSTNAME_LABEL)
    return ALL_LEVELS[len(ALL_LEVELS) - depth :]


@st.composite
def paths(draw: st.DrawFn, depth: int, *, leaves_max: int = 9) -> list[Path]:
    """Draw the paths of a tree; values are unique below their parent only by number."""
    count = draw(st.integers(1, leaves_max))
    found: list[Path] = []
    numbers = [0] * depth
    for index in range(count):
        at = 0 if index == 0 else draw(st.integers(0, depth - 1))
        numbers = [n + (1 if i == at else 0) if i <= at else n + 1 for i, n in enumerate(numbers)]
        found.append(tuple(f"{'zbrh'[i]}{n}" for i, n in enumerate(numbers)))
    return found


@st.composite
def requests(draw: st.DrawFn, levels: tuple[str, ...], kinds: Kinds) -> TopologyRequest | None:
    """Draw a request that the levels can take."""
    kind = draw(st.sampled_from(kinds))
    lowest = len(levels) - 1
    at = draw(st.integers(0, lowest)) if kind in ("required", "preferred") else 0
    slices: list[SliceConstraint] = []
    if kind == "slices" or (kind != "implied" and draw(st.booleans())):
        first = draw(st.integers(at, lowest))
        chain = draw(st.sampled_from(((1,), (2,), (3,), (4, 2), (4, 4), (6, 3), (8, 4, 2))))
        below = [first]
        while len(below) < len(chain) and below[-1] < lowest:
            below.append(draw(st.integers(below[-1] + 1, lowest)))
        slices = [
            SliceConstraint(topology=levels[i], size=size)
            for i, size in zip(below, chain, strict=False)
        ]
    if kind == "implied":
        return None
    return TopologyRequest(
        required=levels[at] if kind == "required" else None,
        preferred=levels[at] if kind == "preferred" else None,
        unconstrained=True if kind == "free" else None,
        group="g" if kind in ("required", "preferred") else None,
        slices=tuple(slices),
        has_slice_fields=bool(slices),
    )


@st.composite
def cases(draw: st.DrawFn, *, leaves_max: int = 9, kinds: Kinds = ALL_KINDS) -> Case:
    """Draw a tree with free amounts, and a request."""
    depth = draw(st.integers(1, 4))
    has_hosts = depth == 4 or draw(st.booleans())
    levels = levels_of(depth, has_hosts=has_hosts)
    amounts = st.integers(0, 7)
    leaves = {
        path: {"cpu": draw(amounts), "gpu": draw(amounts), "pods": draw(st.sampled_from((2, 20)))}
        for path in draw(paths(depth, leaves_max=leaves_max))
    }
    request = draw(requests(levels, kinds))
    leader = None
    if request is not None and request.group and draw(st.booleans()):
        leader = {"cpu": draw(st.integers(0, 4)), "gpu": draw(st.integers(0, 2))}
    return Case(
        levels=levels,
        leaves=leaves,
        request=request,
        count=draw(st.integers(1, 14)),
        pod={"cpu": draw(st.integers(0, 2)), "gpu": draw(st.integers(0, 2))},
        leader=leader,
    )


def nodes_of(levels: tuple[str, ...], leaves: Mapping[Path, Free]) -> list[Node]:
    """Return one node per leaf, named by its last value or by its path."""
    has_hosts = levels[-1] == HOSTNAME_LABEL
    return [
        Node(
            name=path[-1] if has_hosts else "-".join(path),
            labels=tuple(sorted(zip(levels, path, strict=True))),
            allocatable=tuple(
                (ResourceName(name), f"{amount}m" if name == "cpu" else str(amount))
                for name, amount in sorted(free.items())
            ),
            is_ready=True,
        )
        for path, free in leaves.items()
    ]


def placement_of(case: Case, gates: Gates | None = None) -> TopologyPlacement:
    """Return the engine's placement over the tree of a case."""
    placement = TopologyPlacement(gates or Gates())
    placement.observe(Topology(name="t", levels=case.levels))
    placement.observe(ResourceFlavor(name=FLAVOR, topology="t"))
    for node in nodes_of(case.levels, case.leaves):
        placement.observe(node)
    return placement


def pod_set(name: str, count: int, topology: TopologyRequest | None) -> PodSet:
    """Return a pod set; what its pods take is said in the placement request."""
    return PodSet(name=PodSetName(name), count=count, template=wire.template({}), topology=topology)


def amounts_of(pod: Mapping[str, int]) -> tuple[tuple[ResourceName, int], ...]:
    """Return amounts as a placement request has them."""
    return tuple((ResourceName(name), amount) for name, amount in sorted(pod.items()))


def requests_of(case: Case) -> tuple[PlacementRequest, ...]:
    """Return the placement requests: the workers, and the leader if there is one."""
    workers = PlacementRequest(
        index=0,
        pod_set=pod_set("workers", case.count, case.request),
        count=case.count,
        pod=amounts_of(case.pod),
        flavors=(FLAVOR,),
        is_implied=case.request is None,
    )
    if case.leader is None:
        return (workers,)
    leader = PlacementRequest(
        index=1,
        pod_set=pod_set("leader", 1, case.request),
        count=1,
        pod=amounts_of(case.leader),
        flavors=(FLAVOR,),
    )
    return (workers, leader)


def workload(*pod_sets: PodSet, unhealthy: tuple[str, ...] = ()) -> Workload:
    """Return a Workload of pod sets."""
    return Workload(
        namespace="ns", name="w", uid="u", queue="lq", pod_sets=pod_sets, unhealthy_nodes=unhealthy
    )


def place(
    placement: TopologyPlacement, case: Case, *, assume_empty: bool = False
) -> PlacementOutcome:
    """Place a case."""
    asked = requests_of(case)
    return placement.place(workload(*(r.pod_set for r in asked)), asked, assume_empty=assume_empty)


def can_place(placement: TopologyPlacement, case: Case) -> bool:
    """Ask whether a case can be placed."""
    asked = requests_of(case)
    return placement.can_place(workload(*(r.pod_set for r in asked)), asked)


def stored(levels: tuple[str, ...], path: Path) -> Path:
    """Return the values that an assignment stores for a leaf (6.7.6)."""
    return path[-1:] if levels[-1] == HOSTNAME_LABEL else path
