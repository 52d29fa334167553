"""Times the engine on large topologies: one gang that has to preempt, and one that just fits.

::

    python benchmarks/bench_topology.py
    python benchmarks/bench_topology.py --blocks 60 --racks 40

Nodes form blocks, racks and hosts; 700 Workloads fill every GPU. A gang of 512 pods then asks for
one block. ``packed``: each Workload sits in one block, so some of the candidates free a block.
``scattered``: each has pods on many hosts of all blocks, so that nearly all candidates are taken
before a block is free, and most are given back: the search at its longest. ``roomy``: no Workload
runs, the gang is admitted at once; ``spread``: it is admitted without asking for a level, which
looks at every host. Cycles are timed with the tree already built, in a second engine the build is
timed alone. ``--limit-s`` holds against processor time, which a busy machine does not stretch.
"""

import argparse
import gc
import json
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

# An installed Sluice, compiled perhaps, goes before the sources beside this folder.
sys.path[:0] = [str(Path(__file__).parent)]
sys.path.append(str(Path(__file__).resolve().parents[1] / "queue"))

import worlds  # noqa: E402  (found through the path set above)
from sluice.api import wire  # noqa: E402
from sluice.api.conditions import ConditionType  # noqa: E402
from sluice.api.names import (  # noqa: E402
    HOSTNAME_LABEL,
    ClusterQueueName,
    FlavorName,
    PodSetName,
    ResourceName,
)
from sluice.api.records import (  # noqa: E402
    Admission,
    ClusterQueue,
    Condition,
    FlavorQuotas,
    LabelSelector,
    LocalQueue,
    Namespace,
    Node,
    PodSet,
    PodSetAssignment,
    PreemptionPolicy,
    PreemptionRules,
    Record,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    Topology,
    TopologyAssignment,
    TopologyDomain,
    TopologyRequest,
    Workload,
)
from sluice.engine.commands import Command, Evict, ReserveQuota  # noqa: E402
from sluice.engine.engine import Engine  # noqa: E402
from sluice.engine.events import Observed  # noqa: E402
from sluice.engine.options import EngineOptions  # noqa: E402

BLOCK: Final = "example.com/block"
RACK: Final = "example.com/rack"
GPU: Final = ResourceName("nvidia.com/gpu")
FLAVOR: Final = FlavorName("gpu")
QUEUE: Final = ClusterQueueName("cq")
SLOTS: Final = 8
"""GPUs of a host."""
GANG: Final = 512
CANDIDATES: Final = 700


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many blocks, racks in a block and hosts in a rack there are."""

    blocks: int
    racks: int
    hosts: int

    @property
    def nodes(self) -> int:
        """Return the number of hosts in all."""
        return self.blocks * self.racks * self.hosts

    def host(self, index: int) -> str:
        """Return the name of a host; hosts of a rack, and racks of a block, are neighbours."""
        return f"host-{index:06}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The figures of one case; times in milliseconds.

    Attributes:
        cycle_cpu_ms: The cycle without waiting for a processor that others use.
    """

    case: str
    nodes: int
    candidates: int
    cycle_ms: float
    cycle_cpu_ms: float
    first_cycle_ms: float
    tree_ms: float
    observe_nodes_ms: float
    victims: int
    domains: int
    peak_memory_mib: float


def pod_set(count: int, topology: TopologyRequest | None, gpus: int = 1) -> PodSet:
    """Return a pod set of pods that take one GPU, or more."""
    spec = {"containers": [{"name": "c", "resources": {"requests": {GPU: str(gpus)}}}]}
    return PodSet(
        name=PodSetName("main"), count=count, template=wire.template(spec), topology=topology
    )


def configuration(size: Size) -> Iterator[Record]:
    """Yield everything but nodes and Workloads."""
    quota = ResourceQuota(name=GPU, nominal=size.nodes * SLOTS)
    yield Namespace(name=worlds.NAMESPACE)
    yield Topology(name="racks", levels=(BLOCK, RACK, HOSTNAME_LABEL))
    yield ResourceFlavor(name=FLAVOR, node_labels=(("pool", "gpu"),), topology="racks")
    yield ClusterQueue(
        name=QUEUE,
        resource_groups=(
            ResourceGroup(
                covered_resources=(GPU,),
                flavors=(FlavorQuotas(name=FLAVOR, resources=(quota,)),),
            ),
        ),
        namespace_selector=LabelSelector(),
        preemption=PreemptionRules(within_cluster_queue=PreemptionPolicy.LOWER_PRIORITY),
    )
    yield LocalQueue(namespace=worlds.NAMESPACE, name="lq", cluster_queue=QUEUE)


def nodes(size: Size) -> Iterator[Node]:
    """Yield the nodes."""
    for index in range(size.nodes):
        rack = index // size.hosts
        name = size.host(index)
        labels = {
            BLOCK: f"block-{rack // size.racks:03}",
            RACK: f"rack-{rack:04}",
            HOSTNAME_LABEL: name,
            "pool": "gpu",
        }
        yield Node(
            name=name,
            labels=tuple(sorted(labels.items())),
            allocatable=((GPU, str(SLOTS)), (ResourceName("pods"), "110")),
            is_ready=True,
        )


def holdings(size: Size, *, scattered: bool) -> Iterator[dict[int, int]]:
    """Yield, per running Workload, its pods by host; all GPUs of all hosts are taken."""
    slots = size.nodes * SLOTS
    bounds = [slots * i // CANDIDATES for i in range(CANDIDATES + 1)]
    stride = size.nodes // 7 * 3 + 1
    while _gcd(stride, size.nodes) != 1:
        stride += 1
    for low, high in pairwise(bounds):
        pods: dict[int, int] = {}
        for slot in range(low, high):
            host = slot % size.nodes * stride % size.nodes if scattered else slot // SLOTS
            pods[host] = pods.get(host, 0) + 1
        yield dict(sorted(pods.items()))


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


def running(size: Size, *, scattered: bool) -> Iterator[Workload]:
    """Yield Workloads that hold every GPU, in an order that takes from all blocks in turn."""
    for index, pods in enumerate(holdings(size, scattered=scattered)):
        count = sum(pods.values())
        # Later reservations are taken first; neighbours are far from each other in time.
        at_ms = worlds.START_MS - index * 7919 % CANDIDATES * 1000
        yes = Condition(status="True", reason="Bench", at_ms=at_ms)
        yield Workload(
            namespace=worlds.NAMESPACE,
            name=f"low-{index:04}",
            uid=f"uid-{index:04}",
            queue="lq",
            created_ms=at_ms,
            pod_sets=(pod_set(count, TopologyRequest(unconstrained=True)),),
            conditions={ConditionType.QUOTA_RESERVED: yes, ConditionType.ADMITTED: yes},
            admission=Admission(
                cluster_queue=QUEUE,
                pod_sets=(
                    PodSetAssignment(
                        name=PodSetName("main"),
                        flavors=((GPU, FLAVOR),),
                        usage=((GPU, count),),
                        count=count,
                        topology=TopologyAssignment(
                            levels=(HOSTNAME_LABEL,),
                            domains=tuple(
                                TopologyDomain(values=(size.host(host),), count=n)
                                for host, n in pods.items()
                            ),
                        ),
                    ),
                ),
            ),
        )


def gang(name: str, topology: TopologyRequest) -> Workload:
    """Return the gang, of higher priority than all others."""
    return Workload(
        namespace=worlds.NAMESPACE,
        name=name,
        uid=f"uid-{name}",
        queue="lq",
        created_ms=worlds.START_MS,
        priority=100,
        pod_sets=(pod_set(GANG, topology),),
    )


class Bench:
    """One engine with a topology."""

    def __init__(self, size: Size) -> None:
        self.engine = Engine(EngineOptions())
        self.now_ms = worlds.START_MS + 1000
        for record in configuration(size):
            self.observe(record)
        records = list(nodes(size))
        start = time.perf_counter_ns()
        for node in records:
            self.observe(node)
        self.observe_ms = (time.perf_counter_ns() - start) / 1e6

    def observe(self, record: Record) -> None:
        """Feed one fact."""
        self.engine.observe(Observed(at_ms=self.now_ms, record=record))

    def cycle(self) -> tuple[tuple[Command, ...], float]:
        """Run a cycle; return its commands and its milliseconds."""
        self.now_ms += 2000
        start = time.perf_counter_ns()
        commands = self.engine.cycle(self.now_ms)
        return commands, (time.perf_counter_ns() - start) / 1e6


def check(case: str, commands: tuple[Command, ...]) -> tuple[int, int]:
    """Check what a case must decide; return (Workloads preempted, domains assigned)."""
    evicted = [c for c in commands if isinstance(c, Evict)]
    reserved = [c for c in commands if isinstance(c, ReserveQuota)]
    if case in ("packed", "scattered"):
        assert evicted, "nobody is preempted"
        assert not reserved, "admitted before room is free"
        return len(evicted), 0
    assert len(reserved) == 1, "the gang is not admitted"
    assert not evicted, "somebody is preempted although there is room"
    topology = reserved[0].admission.pod_sets[0].topology
    assert topology is not None
    assert sum(d.count for d in topology.domains) == GANG, "not every pod has a domain"
    return 0, len(topology.domains)


def measure(case: str, size: Size, tree_ms: float) -> Result:
    """Run one case: the gang once to build the tree and the counts, then again, timed."""
    bench = Bench(size)
    candidates = 0
    if case in ("packed", "scattered"):
        for workload in running(size, scattered=case == "scattered"):
            bench.observe(workload)
            candidates += 1
    request = TopologyRequest(unconstrained=True)
    if case != "spread":
        request = TopologyRequest(required=BLOCK)
    # A gang of another shape that no host holds builds the tree and leaves nothing else behind.
    pods = pod_set(GANG, TopologyRequest(required=HOSTNAME_LABEL), gpus=2)
    warm = replace(gang("warm", request), priority=-1, pod_sets=(pods,))
    bench.observe(warm)
    gc.collect()
    gc.freeze()
    _, first_ms = bench.cycle()
    bench.observe(gang("gang", request))
    start_ns = time.process_time_ns()
    commands, cycle_ms = bench.cycle()
    cycle_cpu_ms = (time.process_time_ns() - start_ns) / 1e6
    gc.unfreeze()
    victims, domains = check(case, commands)
    return Result(
        case=case,
        nodes=size.nodes,
        candidates=candidates,
        cycle_ms=cycle_ms,
        cycle_cpu_ms=cycle_cpu_ms,
        first_cycle_ms=first_ms,
        tree_ms=tree_ms,
        observe_nodes_ms=bench.observe_ms,
        victims=victims,
        domains=domains,
        peak_memory_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def measure_tree(size: Size) -> float:
    """Return the milliseconds of a cycle that builds the tree and places one pod."""
    bench = Bench(size)
    one = gang("one", TopologyRequest(unconstrained=True))
    bench.observe(one)
    return bench.cycle()[1]


def main() -> None:
    """Run all cases, or the one asked for, and check the limit if one is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--racks", type=int, default=20, help="in a block")
    parser.add_argument("--hosts", type=int, default=25, help="in a rack")
    parser.add_argument("--case", choices=("packed", "scattered", "roomy", "spread"))
    parser.add_argument("--limit-s", type=float, help="fail when a cycle takes longer")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    size = Size(blocks=arguments.blocks, racks=arguments.racks, hosts=arguments.hosts)
    cases = (arguments.case,) if arguments.case else ("packed", "scattered", "roomy", "spread")
    tree_ms = measure_tree(size)
    results = [measure(case, size, tree_ms) for case in cases]
    for result in results:
        if arguments.json:
            print(json.dumps(asdict(result)))
            continue
        print(f"{result.case}: {result.nodes} nodes, {result.candidates} candidates")
        for name, value in asdict(result).items():
            if name not in ("case", "nodes", "candidates"):
                print(
                    f"  {name:18}{value:10.1f}"
                    if isinstance(value, float)
                    else f"  {name:18}{value:8}"
                )
    if arguments.limit_s is not None:
        slowest = max(result.cycle_cpu_ms for result in results)
        assert slowest < arguments.limit_s * 1000, f"a cycle took {slowest:.0f} ms"


if __name__ == "__main__":
    main()
