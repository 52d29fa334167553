"""Nodes and pods as the manager caches them: slotted records, never JSON.

A cluster has a hundred times more pods than anything else here, so each is reduced to what its
place says: what it takes from its node when it runs outside topologies, and which rank it has when
it belongs to a Workload. Pure. Used by `caches` and the topology controllers.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from sluice.api import names, records, times, wire
from sluice.jobs.ungating import QueuedPod, queued_pod

Json = dict[str, Any]
_COUNTED: Final = ("nodeName", "containers", "initContainers", "overhead", "resources")
"""Fields of a pod's spec that say what it takes; equal ones share one template."""

LIVE_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""Field selector: pods that have not ended; one that ends is told as deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedNode:
    """A node as the topology controllers see it.

    Attributes:
        record: What the engine observes, without version, so that heartbeats change nothing.
        hostname: Value of ``kubernetes.io/hostname``, empty without the label.
        is_reporting: It has a Ready condition.
        ready_changed_ms: When that condition changed last; 0 without.
    """

    record: records.Node
    hostname: str
    is_reporting: bool
    ready_changed_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedPod:
    """A pod; at least one of both is there.

    Attributes:
        record: What the engine observes: a bound pod outside topologies.
        queued: A pod of a Workload's pod set.
    """

    record: records.Pod | None
    queued: QueuedPod | None


def cached_node(raw: Json) -> CachedNode:
    """Return what is cached of a Node."""
    record = replace(cast(records.Node, wire.decode_as("Node", raw)), resource_version="")
    conditions = (raw.get("status") or {}).get("conditions") or ()
    ready = next((c for c in conditions if c.get("type") == "Ready"), None)
    changed = None if ready is None else ready.get("lastTransitionTime")
    return CachedNode(
        record=record,
        hostname=dict(record.labels).get(names.HOSTNAME_LABEL, ""),
        is_reporting=ready is not None,
        ready_changed_ms=times.to_ms(changed) if changed else 0,
    )


def cached_pod(raw: Json) -> CachedPod | None:
    """Return what is cached of a Pod, None when its place matters to nobody."""
    queued = queued_pod(raw)
    record = _charged(raw)
    return None if record is None and queued is None else CachedPod(record=record, queued=queued)


def _charged(raw: Json) -> records.Pod | None:
    """Return a pod that is charged to its node (docs/spec/algorithm.md 6.1), None when it is not.

    It is not while it is on no node, once it has ended, and when its Workload is charged.
    """
    spec = raw.get("spec") or {}
    if not spec.get("nodeName"):
        return None
    reduced = {**raw, "spec": {field: spec[field] for field in _COUNTED if field in spec}}
    record = cast(records.Pod, wire.decode_as("Pod", reduced))
    if record.is_terminated or record.uses_topology:
        return None
    # Each object comes with strings of its own; these two are the same for many pods.
    return replace(
        record,
        namespace=sys.intern(record.namespace),
        node=sys.intern(record.node),
        uid="",
        resource_version="",
    )
