"""Hypothesis strategies of the objects that the engine observes: small worlds with sharp edges.

Zero quotas, limits of zero, unlimited quota, cohorts without members and cycles of cohorts are all
in; names and numbers are few, so that things collide.
"""

from hypothesis import strategies as st
from tests.support import builders

from sluice.api.records import (
    AdmissionMode,
    ClusterQueue,
    Cohort,
    FungibilityPolicy,
    FungibilityPreference,
    Kind,
    LocalQueue,
    PodSet,
    Record,
    ResourceFlavor,
    Workload,
)
from sluice.engine.options import (
    AdmissionFairSharing,
    EngineOptions,
    FairSharing,
    FairStrategy,
    Gates,
)

QUEUES = ("q0", "q1", "q2", "q3")
COHORTS = ("c0", "c1", "c2")
FLAVORS = ("default", "f1")
LOCAL_QUEUES = ("l0", "l1", "l2", "l3")
WORKLOADS = tuple(f"w{i:02}" for i in range(24))

_NEXT, _STOP = FungibilityPolicy.TRY_NEXT_FLAVOR, FungibilityPolicy.MAY_STOP_SEARCH
_BOTH = (FairStrategy.FINAL_SHARE, FairStrategy.INITIAL_SHARE)


def amounts(most: int = 6) -> st.SearchStrategy[str]:
    """Whole cores as text, now and then unlimited."""
    few = st.integers(0, most).map(str)
    return st.one_of(few, few, few, st.just("9223372036854775807"))


@st.composite
def quotas(draw: st.DrawFn, *, in_cohort: bool) -> builders.Quota:
    """A quota with or without limits."""
    nominal = draw(st.sampled_from([4, 2, 3, 1, 0, 6]))
    limit = st.none() | st.integers(0, 4).map(str)
    borrowing = draw(limit) if in_cohort else None
    lending = draw(st.none() | st.integers(0, nominal).map(str)) if in_cohort else None
    return (draw(st.just(str(nominal)) | st.just(str(nominal)) | amounts()), borrowing, lending)


@st.composite
def cluster_queues(draw: st.DrawFn, name: str | None = None) -> ClusterQueue:
    """A ClusterQueue of one or two flavors and resources, of a given name or any."""
    cohort = draw(st.sampled_from([None, "c0", "c0", "c0", "c1", "c2"]))
    resources = draw(st.sampled_from([("cpu",), ("cpu",), ("cpu", "gpu"), ("cpu", "pods")]))
    flavors = draw(st.sampled_from([FLAVORS[:1], FLAVORS[1:], FLAVORS, FLAVORS[::-1]]))
    in_cohort = cohort is not None
    given = {f: {r: draw(quotas(in_cohort=in_cohort)) for r in resources} for f in flavors}
    borrow, preempt = draw(st.tuples(*[st.sampled_from([_NEXT, _STOP])] * 2))
    preference = FungibilityPreference.BORROWING_OVER_PREEMPTION
    if borrow is _NEXT and preempt is _NEXT:
        preference = draw(st.sampled_from(FungibilityPreference))
    reclaim = draw(st.sampled_from(["Any", "Any", "LowerPriority", "Any", "Never"]))
    return builders.cq(
        name or draw(st.sampled_from(QUEUES)),
        cohort,
        flavors=given,
        within=draw(st.sampled_from(["LowerOrNewerEqualPriority", "LowerPriority", "Never"])),
        reclaim=reclaim,
        borrow="Never" if reclaim == "Never" else draw(st.sampled_from(["LowerPriority", "Never"])),
        threshold=draw(st.none() | st.integers(0, 2)),
        strict=draw(st.booleans()),
        stop="None" if name or draw(st.integers(0, 4)) else "Hold",
        when_can_borrow=borrow,
        when_can_preempt=preempt,
        preference=preference,
        fair_weight=draw(st.sampled_from([0.0, 0.5, 1.0, 2.0])),
        admission_mode=draw(st.sampled_from(AdmissionMode)),
    )


@st.composite
def cohorts(draw: st.DrawFn) -> Cohort:
    """A Cohort, maybe below another, maybe in a cycle."""
    parent = draw(st.none() | st.sampled_from(COHORTS))
    quota = draw(st.none() | quotas(in_cohort=parent is not None))
    return builders.cohort(
        draw(st.sampled_from(COHORTS)),
        parent,
        cpu=quota,
        weight=draw(st.sampled_from([0.0, 1.0, 2.0])),
    )


@st.composite
def local_queues(draw: st.DrawFn) -> LocalQueue:
    """A LocalQueue, now and then stopped or of a ClusterQueue that may not exist."""
    return builders.lq(
        draw(st.sampled_from(QUEUES)),
        draw(st.sampled_from(LOCAL_QUEUES)),
        stop=draw(st.sampled_from(["None", "None", "None", "Hold"])),
        fair_weight=draw(st.sampled_from([0.0, 1.0, 2.0])),
    )


def configuration() -> st.SearchStrategy[Record]:
    """A changed queue, cohort, LocalQueue or flavor."""
    flavors = st.sampled_from([{}, {}, {"tier": "spot"}])
    return st.one_of(
        cluster_queues(),
        cohorts(),
        local_queues(),
        flavors.map(lambda labels: builders.flavor("f1", labels=labels)),
    )


def deletions() -> st.SearchStrategy[tuple[Kind, type, str]]:
    """An object of the configuration to delete: its kind, record class and name."""
    return st.one_of(
        st.tuples(st.just(Kind.CLUSTER_QUEUE), st.just(ClusterQueue), st.sampled_from(QUEUES)),
        st.tuples(st.just(Kind.COHORT), st.just(Cohort), st.sampled_from(COHORTS)),
        st.tuples(st.just(Kind.LOCAL_QUEUE), st.just(LocalQueue), st.sampled_from(LOCAL_QUEUES)),
        st.tuples(st.just(Kind.RESOURCE_FLAVOR), st.just(ResourceFlavor), st.just("f1")),
    )


@st.composite
def pod_sets(draw: st.DrawFn) -> tuple[PodSet, ...]:
    """One or two pod sets; the first may be reduced."""
    count = draw(st.sampled_from([0, 1, 1, 2, 3]))
    minimum = draw(st.none() | st.integers(1, 3))
    if minimum is not None and minimum > count:
        minimum = None
    requests = draw(
        st.sampled_from([{"cpu": "1"}, {"cpu": "2"}, {"cpu": "3"}, {"cpu": "1", "gpu": "1"}, {}])
    )
    first = builders.ps("main", count, min_count=minimum, **requests)
    if draw(st.integers(0, 3)):
        return (first,)
    return (first, builders.ps("other", draw(st.integers(1, 2)), cpu="1"))


@st.composite
def workloads(draw: st.DrawFn, name: str) -> Workload:
    """A fresh Workload of a given name."""
    return builders.wl(
        name,
        draw(st.sampled_from(LOCAL_QUEUES)),
        *draw(pod_sets()),
        priority=draw(st.integers(0, 4)),
        created_s=draw(st.integers(0, 3)),
    )


@st.composite
def options(draw: st.DrawFn) -> EngineOptions:
    """Engine options: sharing on or off, gates that change the flow of decisions."""
    strategies = draw(st.sampled_from([(), _BOTH[:1], _BOTH[1:], _BOTH]))
    afs = AdmissionFairSharing(half_life_ms=60_000, sampling_interval_ms=10_000)
    return EngineOptions(
        fair_sharing=draw(st.none() | st.just(FairSharing(strategies=strategies))),
        admission_fair_sharing=draw(st.none() | st.just(afs)),
        gates=Gates(
            equivalence_hashing=draw(st.booleans()),
            flavor_fungibility=draw(st.sampled_from([True, True, False])),
            recompute_on_overlap=draw(st.sampled_from([True, True, False])),
            prioritize_preemptors=draw(st.booleans()),
        ),
        ignore_undeclared=draw(st.booleans()),
        wake_up_batch_ms=draw(st.sampled_from([0, 0, 1500])),
    )
