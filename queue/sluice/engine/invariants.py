"""Derives the engine's indexes anew and compares: what must hold between any two events.

Costs as much as everything the engine holds, so it is for tests, simulations and debugging. A
broken rule raises `InvariantViolation` with what was found and what should be. Used through
`Engine.verify`.
"""

from collections.abc import Iterator

from sluice.api.errors import InvariantViolation
from sluice.api.names import ClusterQueueName, WorkloadKey
from sluice.engine.states import OUTSIDE, PENDING, RESERVED, ClusterQueueState, WorkloadState
from sluice.engine.tree import QuotaNode, Tree
from sluice.engine.world import World


def verify(world: World) -> None:
    """Check every invariant.

    Raises:
        InvariantViolation: One does not hold; the message lists all that do not.
    """
    world.settle()
    broken = [*_usage(world), *_places(world), *_counts(world), *_heads(world), *_doors(world)]
    broken += _topology(world)
    broken += [text for tree in world.trees.values() if tree.book for text in tree.book.misfed()]
    if broken:
        raise InvariantViolation("; ".join(broken))


def _usage(world: World) -> Iterator[str]:
    """Usage at every node is what 1.1 derives from the reservations."""
    trees = {id(cq.tree): cq.tree for cq in world.queues.values()}
    for tree in (*trees.values(), *world.trees.values()):
        wanted = _derive(world, tree)
        for node in tree.nodes:
            for fr, used in enumerate(node.usage):
                expected = wanted[id(node)].get(fr, 0)
                if used != expected:
                    yield f"{node.name} uses {used} of {tree.pairs[fr]}, not {expected}"


def _derive(world: World, tree: Tree) -> dict[int, dict[int, int]]:
    usage: dict[int, dict[int, int]] = {}
    for node in reversed(tree.nodes):
        own: dict[int, int] = {}
        if node.is_queue:
            cq = world.queues[ClusterQueueName(node.name)]
            for wl in cq.reserved.values():
                for flavor, resource, amount in wl.named_usage:
                    fr = tree.intern(flavor, resource)
                    own[fr] = own.get(fr, 0) + amount
        for child in (*node.cohorts, *node.queues):
            _add_excess(child, usage[id(child)], own)
        usage[id(node)] = own
    return usage


def _add_excess(child: QuotaNode, used: dict[int, int], into: dict[int, int]) -> None:
    for fr, value in used.items():
        excess = value - child.guaranteed[fr]
        if excess > 0:
            into[fr] = into.get(fr, 0) + excess


def _topology(world: World) -> list[str]:
    """What is booked on domains is what the reservations take there (6.1)."""
    return world.placement.misbooked(
        usage
        for cq in world.queues.values()
        for wl in cq.reserved.values()
        for usage in wl.topology
    )


def _places(world: World) -> Iterator[str]:
    """Every Workload is in exactly one place, and knows where."""
    seen: dict[WorkloadKey, str] = {}
    for cq in world.queues.values():
        for wl in cq.reserved.values():
            yield from _at(wl, cq, RESERVED, seen)
        for wl in world.pending.heaps.members(cq):
            yield from _at(wl, cq, PENDING, seen)
    for key, wl in world.workloads.items():
        if wl.key != key:
            yield f"{key} is filed under the wrong key"
        if key not in seen and (wl.place != OUTSIDE or wl.cq is not None):
            yield f"{key} thinks it is in place {wl.place} but is nowhere"
        if wl.is_hidden:
            yield f"{key} is still hidden from preemption"
        if world.local_queues[wl.lq].workloads.get(key) is not wl:
            yield f"{key} is missing at its LocalQueue {wl.lq}"


def _at(
    wl: WorkloadState, cq: ClusterQueueState, place: int, seen: dict[WorkloadKey, str]
) -> Iterator[str]:
    if wl.key in seen:
        yield f"{wl.key} is in {cq.name} and in {seen[wl.key]}"
    seen[wl.key] = cq.name
    if wl.place != place or wl.cq is not cq:
        yield f"{wl.key} is in {cq.name} but thinks it is in place {wl.place}"


def _counts(world: World) -> Iterator[str]:
    """Counters say what the containers hold."""
    parked_total = 0
    for cq in world.queues.values():
        members = list(world.pending.heaps.members(cq))
        active = sum(wl.is_active() for wl in members)
        parked = len(members) - active
        parked_total += parked
        if (active, parked) != (cq.active_count, cq.parked_count):
            yield (
                f"{cq.name} counts {cq.active_count} active and {cq.parked_count} parked, "
                f"holds {active} and {parked}"
            )
        if (cq.name in world.pending.heaps.hot) != (active > 0):
            yield f"{cq.name} is wrongly listed as having work or not"
        is_listed = cq.name in cq.tree.parked and cq.name in world.pending.heaps.sleeping
        if (parked or cq.waiting) and not is_listed:
            yield f"{cq.name} has parked Workloads that nothing would wake"
        for bucket in cq.buckets.values():
            if (bucket.is_parked or bucket.parked.count) and bucket not in cq.waiting:
                yield f"a class of {cq.name} is parked and not listed as waiting"
    if parked_total != world.pending.heaps.parked_total:
        yield f"{world.pending.heaps.parked_total} parked in all, not {parked_total}"


def _heads(world: World) -> Iterator[str]:
    """The first of each class in the heap can be found from the queue's heap of heads."""
    for cq in world.queues.values():
        listed = {item[1] for item in cq.heads}
        for bucket in cq.buckets.values():
            box = bucket.active
            if box.count and box.items[0][1] not in listed:
                yield f"{cq.name} would never pop {box.items[0][2].key}"


def _doors(world: World) -> Iterator[str]:
    """LocalQueues are filed under the ClusterQueue that they name."""
    for key, local in world.local_queues.items():
        if local.record is not None and key not in world.doors.get(local.record.cluster_queue, {}):
            yield f"LocalQueue {key} is not filed under {local.record.cluster_queue}"
