"""Concurrent admission: one Workload tried on several flavors as variants (gate off by default).

Source: docs/spec/algorithm.md 4.10. The variants are Workloads of their own, each allowed one
flavor; here is only what the cycle must know about siblings. Used by `sluice.engine.process`.
"""

from typing import Final

from sluice.api.names import FlavorName
from sluice.engine.entry import Entry
from sluice.engine.states import RESERVED, ClusterQueueState, WorkloadState
from sluice.engine.world import World

OUTDONE: Final = "A variant on a more favourable flavor is admitted"
NOT_ACCEPTABLE: Final = "A variant is admitted and this flavor comes after the last acceptable one"


def is_outdone(world: World, entry: Entry) -> bool:
    """Tell whether a sibling on a more favourable flavor is admitted (3.7.3.1)."""
    mine = _rank(entry.cq, entry.wl)
    return any(_rank(entry.cq, other) < mine for other in _admitted(world, entry))


def admitted_sibling(world: World, entry: Entry) -> WorkloadState | None:
    """Return the admitted sibling on a less favourable flavor, None without (3.7.3.13)."""
    mine = _rank(entry.cq, entry.wl)
    for other in _admitted(world, entry):
        if _rank(entry.cq, other) > mine:
            return other
    return None


def may_migrate(entry: Entry) -> bool:
    """Tell whether the policy lets an admitted sibling move to the entry's flavor."""
    policy = entry.cq.record.concurrent_admission
    if policy is None or policy.last_acceptable_flavor is None:
        return True
    return _rank(entry.cq, entry.wl) <= _index(entry.cq, policy.last_acceptable_flavor)


def _admitted(world: World, entry: Entry) -> list[WorkloadState]:
    parent = entry.wl.record.variant_of
    if parent is None:
        return []
    return [
        wl
        for wl in entry.cq.reserved.values()
        if wl.place == RESERVED
        and wl.is_admitted
        and wl.record.variant_of == parent
        and wl is not entry.wl
    ]


def _rank(cq: ClusterQueueState, wl: WorkloadState) -> int:
    """Return the place of a variant's flavor in its ClusterQueue's list, first is best."""
    return min((_index(cq, flavor) for flavor in wl.record.allowed_flavors), default=0)


def _index(cq: ClusterQueueState, flavor: FlavorName) -> int:
    names = [f.name for group in cq.record.resource_groups for f in group.flavors]
    return names.index(flavor) if flavor in names else len(names)
