"""Worlds for the engine's benchmarks: Kueue's performance generators, and queues without work.

Each ClusterQueue has one LocalQueue and three classes of Workloads, created at fixed intervals.
Everything is deterministic; sizes are arguments.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sluice.api import wire
from sluice.api.names import (
    ClusterQueueName,
    CohortName,
    FlavorName,
    PodSetName,
    ResourceName,
)
from sluice.api.records import (
    ClusterQueue,
    FlavorQuotas,
    LabelSelector,
    LocalQueue,
    Namespace,
    PodSet,
    PreemptionPolicy,
    PreemptionRules,
    Record,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    Workload,
)

START_MS: Final = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""
NAMESPACE: Final = "bench"
FLAVOR: Final = FlavorName("default")
CPU: Final = ResourceName("cpu")
NOMINAL: Final = 20_000
"""MilliCPU of each ClusterQueue."""
BORROWING_LIMIT: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadClass:
    """One class of the generator; ``share`` of a queue's Workloads, in hundredths."""

    name: str
    share: int
    cpu: int
    run_ms: int
    priority: int
    interval_ms: int


CLASSES: Final = (
    WorkloadClass(name="small", share=70, cpu=1, run_ms=200, priority=50, interval_ms=100),
    WorkloadClass(name="medium", share=20, cpu=5, run_ms=500, priority=100, interval_ms=500),
    WorkloadClass(name="large", share=10, cpu=20, run_ms=1000, priority=200, interval_ms=1200),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The objects of a benchmark: configuration first, Workloads by creation."""

    config: tuple[Record, ...]
    workloads: tuple[Workload, ...]
    run_ms: dict[str, int]
    """By Workload key."""


def generate(
    *, queues: int, cohorts: int, workloads: int, preemption: bool, busy: int | None = None
) -> World:
    """Return a world of Kueue's generators.

    Args:
        queues: ClusterQueues, spread evenly over the cohorts.
        cohorts: Cohorts, at least 1.
        workloads: Workloads in all; each queue with work gets its even part.
        preemption: Within queue LowerPriority and reclaim Any, else none.
        busy: Queues with work, spread over all of them; None: every one.
    """
    busy = busy or queues
    made: list[Workload] = []
    run_ms: dict[str, int] = {}
    templates = {c.name: _pod_set(c) for c in CLASSES}
    per_queue = workloads // busy
    for queue in range(0, queues, queues // busy):
        for kind in CLASSES:
            for at in range(per_queue * kind.share // 100):
                name = f"{kind.name}-{queue:05}-{at:05}"
                made.append(
                    Workload(
                        namespace=NAMESPACE,
                        name=name,
                        uid=f"uid-{name}",
                        queue=f"lq-{queue:05}",
                        pod_sets=(templates[kind.name],),
                        priority=kind.priority,
                        created_ms=START_MS + at * kind.interval_ms,
                    )
                )
                run_ms[f"{NAMESPACE}/{name}"] = kind.run_ms
    made.sort(key=lambda w: (w.created_ms, w.uid))
    return World(
        config=tuple(configuration(queues=queues, cohorts=cohorts, preemption=preemption)),
        workloads=tuple(made),
        run_ms=run_ms,
    )


def configuration(*, queues: int, cohorts: int, preemption: bool) -> Iterator[Record]:
    """Yield the namespace, the flavor and the queues of a world."""
    rules = PreemptionRules()
    if preemption:
        rules = PreemptionRules(
            within_cluster_queue=PreemptionPolicy.LOWER_PRIORITY,
            reclaim_within_cohort=PreemptionPolicy.ANY,
        )
    quota = ResourceQuota(name=CPU, nominal=NOMINAL, borrowing_limit=BORROWING_LIMIT)
    group = ResourceGroup(
        covered_resources=(CPU,), flavors=(FlavorQuotas(name=FLAVOR, resources=(quota,)),)
    )
    yield Namespace(name=NAMESPACE)
    yield ResourceFlavor(name=FLAVOR)
    for queue in range(queues):
        yield ClusterQueue(
            name=ClusterQueueName(f"cq-{queue:05}"),
            uid=f"uid-cq-{queue:05}",
            resource_groups=(group,),
            cohort=CohortName(f"cohort-{queue * cohorts // queues:04}"),
            namespace_selector=LabelSelector(),
            preemption=rules,
        )
        yield LocalQueue(
            namespace=NAMESPACE,
            name=f"lq-{queue:05}",
            cluster_queue=ClusterQueueName(f"cq-{queue:05}"),
        )


def _pod_set(kind: WorkloadClass) -> PodSet:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": str(kind.cpu)}}}]}
    return PodSet(name=PodSetName("main"), count=1, template=wire.template(spec))
