"""What the mutating webhooks add to new objects of group ``kueue.x-k8s.io``.

Everything else that an object leaves out is a default of its schema. Pure. Called by the webhook
and by whoever stores objects without one. Source: docs/spec/api.md 2.2.
"""

from __future__ import annotations

from sluice.api import names
from sluice.api.edits import Edits
from sluice.api.validate.gates import Gate, Gates, is_on
from sluice.api.validate.node import Node


def cluster_queue(edits: Edits, gates: Gates) -> None:
    """Add the finalizer that keeps a ClusterQueue while Workloads hold its quota."""
    del gates
    _protect(edits)


def resource_flavor(edits: Edits, gates: Gates) -> None:
    """Add the finalizer that keeps a ResourceFlavor while a ClusterQueue names it."""
    del gates
    _protect(edits)


def workload(edits: Edits, gates: Gates) -> None:
    """Take minCount off every pod set when partial admission is switched off."""
    if is_on(gates, Gate.PARTIAL_ADMISSION):
        return
    for i, pod_set in enumerate(Node(edits.obj).map("spec").items("podSets")):
        if "minCount" in pod_set.value:
            edits.remove(("spec", "podSets", i, "minCount"))


def _protect(edits: Edits) -> None:
    finalizers = Node(edits.obj).map("metadata").texts("finalizers")
    if names.IN_USE_FINALIZER not in finalizers:
        edits.append(("metadata", "finalizers"), names.IN_USE_FINALIZER)
