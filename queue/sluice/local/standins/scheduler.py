"""Stand-in for kube-scheduler: binds Pods to Nodes, and says why it can't.

One Pod is placed at a time, highest priority first; what it takes is assumed at once, so that the
next one sees it before the watch does. Pods that fit nowhere wait until a node changes or a pod
frees room. There is no preemption (docs/embedded.md).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from sluice.api.errors import Conflict, KubeError, NotFound
from sluice.api.names import split_key
from sluice.api.times import from_ms
from sluice.clock import Clock
from sluice.kube.client import Client
from sluice.kube.events import EventDraft, EventRecorder, reference
from sluice.kube.informer import Handlers, Informer
from sluice.kube.resources import PODS
from sluice.local.standins import fitting, records
from sluice.log import get_logger

Json = dict[str, Any]

SCHEDULER_NAME: Final = "default-scheduler"
_RETRY_S: Final = 1.0
"""Seconds until a Pod whose binding failed is tried again."""

log = get_logger(__name__)


class Scheduler:
    """Places Pods until cancelled.

    Args:
        client: For bindings and conditions.
        pods: All Pods.
        nodes: All Nodes.
        events: Where to tell what happened.
        clock: Time of conditions.
    """

    def __init__(
        self,
        client: Client,
        pods: Informer[Json],
        nodes: Informer[Json],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._client = client
        self._pods = pods
        self._nodes = nodes
        self._events = events
        self._clock = clock
        self._rooms: dict[str, fitting.NodeRoom] = {}
        self._used: dict[str, Counter[str]] = {}
        self._placed: dict[str, tuple[str, dict[str, int]]] = {}
        self._waiting: dict[str, Json] = {}
        self._parked: set[str] = set()
        self._wake = asyncio.Event()
        pods.add_handlers(
            Handlers(added=self._see_pod, updated=self._see_changed_pod, deleted=self._lose_pod)
        )
        nodes.add_handlers(
            Handlers(
                added=self._see_node,
                updated=lambda key, old, new: self._see_node(key, new),
                deleted=lambda key, old: self._lose_node(key),
            )
        )

    def _see_node(self, key: str, node: Json) -> None:
        room = fitting.node_room(node)
        if self._rooms.get(key) != room:
            self._rooms[key] = room
            self._unpark()

    def _lose_node(self, key: str) -> None:
        self._rooms.pop(key, None)

    def _see_changed_pod(self, key: str, old: Json, new: Json) -> None:
        if old.get("spec") != new.get("spec"):
            self._parked.discard(key)
        self._see_pod(key, new)

    def _see_pod(self, key: str, pod: Json) -> None:
        spec = pod["spec"]
        if records.has_ended(pod):
            self._lose_pod(key, pod)
        elif spec.get("nodeName"):
            self._waiting.pop(key, None)
            self._parked.discard(key)
            self._place(key, spec["nodeName"], records.requests(pod))
        elif records.is_deleting(pod) or spec.get("schedulingGates"):
            self._waiting.pop(key, None)
        elif key not in self._placed and spec.get("schedulerName") == SCHEDULER_NAME:
            self._waiting[key] = pod
            self._wake.set()

    def _lose_pod(self, key: str, pod: Json) -> None:
        self._waiting.pop(key, None)
        self._parked.discard(key)
        if self._release(key):
            self._unpark()

    def _unpark(self) -> None:
        self._parked.clear()
        self._wake.set()

    def _place(self, key: str, node: str, asked: dict[str, int]) -> None:
        self._release(key)
        self._placed[key] = (node, asked)
        self._used.setdefault(node, Counter()).update(asked)

    def _release(self, key: str) -> bool:
        placed = self._placed.pop(key, None)
        if placed is None:
            return False
        self._used[placed[0]].subtract(placed[1])
        return True

    async def run(self) -> None:
        """Place Pods until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            for key in self._ready():
                pod = self._waiting.get(key)
                if pod is None or key in self._parked:
                    continue
                try:
                    await self._schedule(key, pod)
                except KubeError as error:
                    log.debug("pod not placed", fields={"pod": key, "error": str(error)})
                    self._put_off(key)
                except Exception:
                    # One Pod that can't be read must not keep the others waiting.
                    log.exception("pod not placed", fields={"pod": key})
                    self._put_off(key)

    def _put_off(self, key: str) -> None:
        self._release(key)
        self._parked.add(key)
        asyncio.get_running_loop().call_later(_RETRY_S, self._retry, key)

    def _retry(self, key: str) -> None:
        self._parked.discard(key)
        self._wake.set()

    def _ready(self) -> list[str]:
        """Return the Pods to place now; one that comes meanwhile wakes the loop again."""
        ready = (key for key in self._waiting if key not in self._parked)
        return sorted(ready, key=self._order)

    def _order(self, key: str) -> tuple[int, str, str]:
        pod = self._waiting[key]
        made = pod["metadata"].get("creationTimestamp", "")
        return (-(pod["spec"].get("priority") or 0), made, key)

    async def _schedule(self, key: str, pod: Json) -> None:
        asked = records.requests(pod)
        reasons: Counter[str] = Counter()
        best: tuple[float, str] | None = None
        for name in sorted(self._rooms):
            room, used = self._rooms[name], self._used.get(name, Counter())
            why = fitting.refusals(pod, asked, room, used)
            if why:
                reasons.update(why)
                continue
            candidate = (fitting.share(asked, room, used), name)
            best = candidate if best is None else min(best, candidate)
        if best is None:
            self._parked.add(key)
            await self._tell_unschedulable(key, pod, fitting.summary(len(self._rooms), reasons))
            return
        self._place(key, best[1], asked)
        await self._bind(key, pod, best[1])

    async def _bind(self, key: str, pod: Json, node: str) -> None:
        namespace, name = split_key(key)
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": pod["metadata"]["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        self._waiting.pop(key, None)
        try:
            await self._client.create(PODS, namespace, binding, name=name, subresource="binding")
        except (Conflict, NotFound):
            # Deleted, gated or placed by somebody else: the watch tells what it is now.
            self._release(key)
            return
        except KubeError:
            self._waiting[key] = pod
            raise
        note = f"Successfully assigned {key} to {node}"
        self._events.record(_draft(pod, "Scheduled", note, warning=False))

    async def _tell_unschedulable(self, key: str, pod: Json, message: str) -> None:
        conditions = [dict(c) for c in (pod.get("status") or {}).get("conditions") or ()]
        now = from_ms(self._clock.now_ms())
        changed = records.set_condition(
            conditions, "PodScheduled", "False", now, reason="Unschedulable", message=message
        )
        if not changed:
            return
        namespace, name = split_key(key)
        self._events.record(_draft(pod, "FailedScheduling", message, warning=True))
        patch = {
            "metadata": {"uid": pod["metadata"]["uid"]},
            "status": {"conditions": conditions},
        }
        try:
            await self._client.patch(PODS, namespace, name, patch, subresource="status")
        except (Conflict, NotFound):
            return


def _draft(pod: Mapping[str, Any], reason: str, note: str, *, warning: bool) -> EventDraft:
    return EventDraft(
        regarding=reference({"apiVersion": "v1", "kind": "Pod", **pod}),
        reason=reason,
        note=note,
        warning=warning,
        action="Binding" if not warning else "Scheduling",
        controller=SCHEDULER_NAME,
    )
