"""Small topologies for scenario tests: blocks, racks and hosts, and what pods ask of them."""

from collections.abc import Mapping
from typing import Any

from tests.support import builders
from tests.support.harness import AT_ONCE, Harness

from sluice.api import wire
from sluice.api.names import HOSTNAME_LABEL, ClusterQueueName, FlavorName, PodSetName, ResourceName
from sluice.api.records import (
    Admission,
    ClusterQueue,
    Node,
    Pod,
    PodSet,
    PodSetAssignment,
    Record,
    ResourceFlavor,
    SliceConstraint,
    Taint,
    Topology,
    TopologyAssignment,
    TopologyDomain,
    TopologyRequest,
    Workload,
)
from sluice.engine.options import EngineOptions, Gates

BLOCK, RACK, HOST = "block", "rack", HOSTNAME_LABEL
LEVELS = (BLOCK, RACK, HOST)
Hosts = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Free cores by block, rack and host."""
HOSTS: Hosts = {
    "b1": {"r1": {"h1": 1, "h2": 3, "h3": 4}, "r2": {"h4": 2, "h5": 2}},
    "b2": {"r3": {"h6": 6}},
}
"""The hosts of docs/spec/algorithm.md 8.13."""
QUEUE = "q"
FLAVOR = "tas"


def part(*racks: str) -> Hosts:
    """Return the hosts of 8.13 in some racks only."""
    return {
        block: {rack: hosts for rack, hosts in there.items() if rack in racks}
        for block, there in HOSTS.items()
    }


def node(name: str, block: str, rack: str, cpu: int | str, **fields: Any) -> Node:
    """Return a ready node; ``labels`` as a mapping, ``taints`` as (key, value, effect)."""
    labels = {BLOCK: block, RACK: rack, HOST: name, **fields.pop("labels", {})}
    allocatable = {"cpu": str(cpu), "pods": "110", **fields.pop("allocatable", {})}
    return Node(
        name=name,
        labels=tuple(sorted(labels.items())),
        taints=tuple(Taint(key=k, value=v, effect=e) for k, v, e in fields.pop("taints", ())),
        allocatable=tuple((ResourceName(r), q) for r, q in sorted(allocatable.items())),
        is_ready=fields.pop("ready", True),
        is_unschedulable=fields.pop("cordoned", False),
    )


def pod(name: str, node_name: str, cpu: str, **fields: Any) -> Pod:
    """Return a pod outside topologies; ``node_name`` is empty while it is not bound."""
    spec = {"containers": [{"resources": {"requests": {"cpu": cpu}}}]}
    return Pod(namespace="other", name=name, node=node_name, template=wire.template(spec), **fields)


def nodes(hosts: Hosts) -> list[Node]:
    """Return the nodes of a table."""
    return [
        node(name, block, rack, cpu)
        for block, racks in hosts.items()
        for rack, there in racks.items()
        for name, cpu in there.items()
    ]


def flavor(name: str = FLAVOR, topology: str = "t", **fields: Any) -> ResourceFlavor:
    """Return a flavor with a topology."""
    return builders.flavor(name, topology=topology, **fields)


def queue(name: str = QUEUE, *args: Any, cpu: str = "100", **fields: Any) -> ClusterQueue:
    """Return a ClusterQueue whose only flavor has the topology."""
    flavors = fields.pop("flavors", {FLAVOR: {"cpu": cpu}})
    return builders.cq(name, *args, flavors=flavors, **fields)


def world(
    hosts: Hosts = HOSTS,
    *more: Record,
    cqs: tuple[ClusterQueue, ...] = (),
    levels: tuple[str, ...] = LEVELS,
    options: EngineOptions = AT_ONCE,
    gates: Gates | None = None,
) -> Harness:
    """Return an engine that knows these hosts and a queue ``q`` for them."""
    if gates is not None:
        options = EngineOptions(gates=gates, wake_up_batch_ms=0)
    records: list[Record] = [Topology(name="t", levels=levels), flavor(), *more]
    for cq in cqs or (queue(),):
        records += [cq, builders.lq(cq.name)]
    return Harness(*records, *nodes(hosts), options=options)


def slices_of(layers: tuple[tuple[str, int], ...]) -> dict[str, Any]:
    """Return the slice fields of a request."""
    return {
        "slices": tuple(SliceConstraint(topology=level, size=size) for level, size in layers),
        "has_slice_fields": bool(layers),
    }


def required(level: str, *layers: tuple[str, int], group: str | None = None) -> TopologyRequest:
    """Return a request for one domain of a level."""
    return TopologyRequest(required=level, group=group, **slices_of(layers))


def preferred(level: str, *layers: tuple[str, int], group: str | None = None) -> TopologyRequest:
    """Return a request for one domain of a level if that can be."""
    return TopologyRequest(preferred=level, group=group, **slices_of(layers))


def sliced(*layers: tuple[str, int]) -> TopologyRequest:
    """Return a request that only names slices."""
    return TopologyRequest(**slices_of(layers))


FREE = TopologyRequest(unconstrained=True)


def gang(
    name: str, count: int, topology: TopologyRequest | None = FREE, *, cpu: str = "1", **fields: Any
) -> Workload:
    """Return a Workload of one pod set."""
    spec = fields.pop("spec", None)
    pods = builders.ps(count=count, cpu=cpu, topology=topology, spec=spec)
    return builders.wl(name, fields.pop("queue", QUEUE), pods, **fields)


def crew(
    name: str, workers: PodSet, leader: PodSet, *, leader_first: bool = True, **fields: Any
) -> Workload:
    """Return a Workload of a leader and its workers."""
    sets = (leader, workers) if leader_first else (workers, leader)
    return builders.wl(name, QUEUE, *sets, **fields)


def topology(hosts: Mapping[str, int]) -> TopologyAssignment:
    """Return an assignment of pods to hosts."""
    return TopologyAssignment(
        levels=(HOST,),
        domains=tuple(TopologyDomain(values=(h,), count=n) for h, n in sorted(hosts.items())),
    )


def holding(
    name: str,
    hosts: Mapping[str, int],
    request: TopologyRequest | None = FREE,
    *,
    admitted: bool = True,
    **fields: Any,
) -> Workload:
    """Return a Workload that runs on hosts, pods of one core."""
    count = sum(hosts.values())
    admission = Admission(
        cluster_queue=ClusterQueueName(fields.pop("cluster_queue", QUEUE)),
        pod_sets=(
            PodSetAssignment(
                name=PodSetName("main"),
                flavors=((ResourceName("cpu"), FlavorName(FLAVOR)),),
                usage=((ResourceName("cpu"), count * 1000),),
                count=count,
                topology=topology(hosts),
            ),
        ),
    )
    held = builders.reserved(admission, admitted=admitted)
    held["conditions"] = {**held["conditions"], **fields.pop("conditions", {})}
    return gang(name, count, request, **held, **fields)


def where(harness: Harness, name: str, pod_set: str = "main") -> dict[str, int] | None:
    """Return the pods of a Workload by domain, as its admission has them; None without one."""
    admission = harness.workloads[builders.key(name)].admission
    if admission is None:
        return None
    for part_ in admission.pod_sets:
        if part_.name == pod_set and part_.topology is not None:
            return {"/".join(d.values): d.count for d in part_.topology.domains}
    return None
