"""Elastic jobs: a Workload that replaces a smaller slice of the same job.

The new slice is charged the difference, stays on the old one's flavors, and when admitted the old
one is finished. Source: docs/spec/algorithm.md 3.5.1, 4.11, 7.9. Used by nomination and processing.
"""

from sluice.engine.attempt import Attempt
from sluice.engine.states import RESERVED, WorkloadState
from sluice.engine.world import World

REPLACED_MESSAGE = "The workload slice was replaced by a newer one"


def replaced_slice(world: World, attempt: Attempt) -> WorkloadState | None:
    """Return the slice that an attempt replaces, and note in the attempt what it has.

    Only a slice that holds quota in the same ClusterQueue and namespace counts.
    """
    wl = attempt.wl
    key = wl.record.replaces
    old = world.workloads.get(key) if key is not None else None
    if (
        old is None
        or old.place != RESERVED
        or old.cq is not attempt.cq
        or old.record.namespace != wl.record.namespace
        or old.admission is None
    ):
        return None
    for pod_set in old.admission.pod_sets:
        flavors = dict(pod_set.flavors)
        attempt.old_flavors.update(flavors)
        for resource, amount in pod_set.usage:
            attempt.old_requests[(pod_set.name, resource)] = amount
    return old
