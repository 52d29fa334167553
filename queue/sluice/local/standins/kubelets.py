"""Stand-in for the kubelets of all nodes: Nodes get ready, Pods run, end and go.

A bound Pod runs at once. An annotation says how long, another how it ends; they are the same that
the simulated nodes of the real control plane follow. A Pod that is being deleted ends as a killed
one and is then removed, as a kubelet does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sluice.api.errors import Conflict, NotFound
from sluice.api.names import split_key
from sluice.api.times import duration_ms, from_ms, to_ms
from sluice.clock import Clock
from sluice.kube.client import Client
from sluice.kube.informer import Handlers, Informer
from sluice.kube.resources import NODES, PODS
from sluice.local.standins import records
from sluice.local.standins.worker import Worker
from sluice.log import get_logger

Json = dict[str, Any]

RUN_TIME: Final = "sluicegate.io/run-time"
OUTCOME: Final = "sluicegate.io/outcome"
EXIT_CODE: Final = "sluicegate.io/exit-code"
_KILLED: Final = 143
_ADDRESS: Final = "127.0.0.1"

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletOptions:
    """How the simulated containers behave.

    Attributes:
        run_s: Seconds that a Pod that is not to be restarted runs when it has no annotation for it;
            None lets it run for ever.
        start_s: Seconds from the binding to running.
    """

    run_s: float | None = None
    start_s: float = 0.0


class Kubelets:
    """Runs Pods until cancelled.

    Args:
        client: For status and deletion.
        pods: All Pods.
        nodes: All Nodes.
        clock: Wall time of statuses, monotonic time of runs.
        options: How containers behave.
    """

    def __init__(
        self,
        client: Client,
        pods: Informer[Json],
        nodes: Informer[Json],
        clock: Clock,
        options: KubeletOptions,
    ) -> None:
        self._client = client
        self._pods = pods
        self._nodes = nodes
        self._clock = clock
        self._options = options
        self._pod_worker = Worker("kubelet", self._reconcile_pod)
        self._node_worker = Worker("kubelet-node", self._reconcile_node, concurrency=2)
        self._started_s: dict[str, float] = {}
        self._bound_s: dict[str, float] = {}
        pods.add_handlers(
            Handlers(
                added=self._see_pod,
                updated=lambda key, old, new: self._see_pod(key, new),
                deleted=self._lose_pod,
            )
        )
        nodes.add_handlers(
            Handlers(added=self._see_node, updated=lambda key, old, new: self._see_node(key, new))
        )

    def _see_pod(self, key: str, pod: Json) -> None:
        if pod["spec"].get("nodeName"):
            self._bound_s.setdefault(pod["metadata"]["uid"], self._clock.monotonic_s())
            self._pod_worker.queue.add(key)

    def _lose_pod(self, key: str, pod: Json) -> None:
        self._started_s.pop(pod["metadata"]["uid"], None)
        self._bound_s.pop(pod["metadata"]["uid"], None)

    def _see_node(self, key: str, node: Json) -> None:
        if not records.is_true(node, "Ready"):
            self._node_worker.queue.add(key)

    async def run_pods(self) -> None:
        """Run Pods until cancelled."""
        await self._pod_worker.run()

    async def run_nodes(self) -> None:
        """Keep Nodes ready until cancelled."""
        await self._node_worker.run()

    async def _reconcile_node(self, key: str) -> float | None:
        node = self._nodes.store.get(key)
        if node is None or records.is_true(node, "Ready") or records.is_deleting(node):
            return None
        now = from_ms(self._clock.now_ms())
        conditions = [
            {
                "type": kind, "status": status, "reason": reason, "message": message,
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            }
            for kind, status, reason, message in (
                ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
                ("MemoryPressure", "False", "KubeletHasSufficientMemory", "memory suffices"),
                ("DiskPressure", "False", "KubeletHasNoDiskPressure", "disk suffices"),
                ("PIDPressure", "False", "KubeletHasSufficientPID", "process ids suffice"),
            )
        ]  # fmt: skip
        info = {
            "architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": "stand-in",
            "bootID": "stand-in", "containerRuntimeVersion": "stand-in://1", "osImage": "stand-in",
            "kernelVersion": "stand-in", "kubeProxyVersion": "", "machineID": "stand-in",
            "systemUUID": "stand-in",
        }  # fmt: skip
        addresses = [
            {"type": "InternalIP", "address": _ADDRESS},
            {"type": "Hostname", "address": key},
        ]
        patch = {"status": {"conditions": conditions, "nodeInfo": info, "addresses": addresses}}
        try:
            await self._client.patch(NODES, "", key, patch, subresource="status")
        except NotFound:
            return None
        return None

    async def _reconcile_pod(self, key: str) -> float | None:
        pod = self._pods.store.get(key)
        if pod is None or not pod["spec"].get("nodeName"):
            return None
        if records.is_deleting(pod):
            await self._stop(key, pod)
            return None
        match records.phase(pod):
            case "Pending":
                return await self._start(key, pod)
            case "Running":
                return await self._finish(key, pod)
            case _:
                return None

    async def _start(self, key: str, pod: Json) -> float | None:
        uid, now_s = pod["metadata"]["uid"], self._clock.monotonic_s()
        wait_s = self._bound_s.get(uid, now_s) + self._options.start_s - now_s
        if wait_s > 0:
            return wait_s
        self._started_s[uid] = now_s
        now = from_ms(self._clock.now_ms())
        status = {
            "phase": "Running", "startTime": now, "hostIP": _ADDRESS, "podIP": _ADDRESS,
            "hostIPs": [{"ip": _ADDRESS}], "podIPs": [{"ip": _ADDRESS}],
            "conditions": _conditions(pod, now, is_ready=True),
            "containerStatuses": [
                _container(container, {"running": {"startedAt": now}}, is_running=True)
                for container in pod["spec"]["containers"]
            ],
        }  # fmt: skip
        await self._write(key, pod, status)
        return None

    async def _finish(self, key: str, pod: Json) -> float | None:
        duration_s = self._duration_s(pod)
        if duration_s is None:
            return None
        left_s = duration_s - self._ran_s(pod)
        if left_s > 0:
            return left_s
        annotations = pod["metadata"].get("annotations") or {}
        if annotations.get(OUTCOME) == "Failed":
            text = annotations.get(EXIT_CODE, "1")
            await self._end(key, pod, "Failed", int(text) if text.isdecimal() else 1)
        else:
            await self._end(key, pod, "Succeeded", 0)
        return None

    def _duration_s(self, pod: Json) -> float | None:
        text = (pod["metadata"].get("annotations") or {}).get(RUN_TIME)
        if text is None:
            is_restarted = pod["spec"].get("restartPolicy", "Always") == "Always"
            return None if is_restarted else self._options.run_s
        try:
            return duration_ms(text) / 1000
        except ValueError as error:
            log.warning(
                "run time annotation can't be read; the pod runs for ever",
                fields={"pod": pod["metadata"]["name"], "error": str(error)},
            )
            return None

    def _ran_s(self, pod: Json) -> float:
        """Return how long a Pod has run; after a restart only whole seconds are known."""
        started_s = self._started_s.get(pod["metadata"]["uid"])
        if started_s is not None:
            return self._clock.monotonic_s() - started_s
        began = (pod.get("status") or {}).get("startTime")
        return (self._clock.now_ms() - to_ms(began)) / 1000 if began else 0.0

    async def _stop(self, key: str, pod: Json) -> None:
        """End a Pod that is being deleted, then let it go."""
        if not records.has_ended(pod):
            await self._end(key, pod, "Failed", _KILLED)
        namespace, name = split_key(key)
        try:
            await self._client.delete(
                PODS, namespace, name, uid=pod["metadata"]["uid"], grace_period_s=0
            )
        except (NotFound, Conflict):
            return

    async def _end(self, key: str, pod: Json, phase: str, exit_code: int) -> None:
        now = from_ms(self._clock.now_ms())
        began = (pod.get("status") or {}).get("startTime") or now
        ended = {
            "exitCode": exit_code, "reason": "Error" if exit_code else "Completed",
            "startedAt": began, "finishedAt": now,
        }  # fmt: skip
        status = {
            "phase": phase,
            "conditions": _conditions(pod, now, is_ready=False, phase=phase),
            "containerStatuses": [
                _container(container, {"terminated": ended}, is_running=False)
                for container in pod["spec"]["containers"]
            ],
        }
        await self._write(key, pod, status)

    async def _write(self, key: str, pod: Json, status: Json) -> None:
        namespace, name = split_key(key)
        # With the uid: a namesake that was made meanwhile must not get this status.
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        try:
            await self._client.patch(PODS, namespace, name, patch, subresource="status")
        except (NotFound, Conflict):
            return


def _conditions(pod: Json, now: str, *, is_ready: bool, phase: str = "") -> list[Json]:
    conditions = [dict(c) for c in (pod.get("status") or {}).get("conditions") or ()]
    if is_ready:
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"):
            records.set_condition(conditions, kind, "True", now)
        for gate in pod["spec"].get("readinessGates") or ():
            records.set_condition(conditions, gate["conditionType"], "True", now)
    else:
        reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        for kind in ("Ready", "ContainersReady"):
            records.set_condition(conditions, kind, "False", now, reason=reason)
    return conditions


def _container(container: Json, state: Json, *, is_running: bool) -> Json:
    return {
        "name": container["name"], "image": container.get("image", ""), "imageID": "",
        "ready": is_running, "started": is_running, "restartCount": 0, "state": state,
    }  # fmt: skip


__all__ = ["EXIT_CODE", "OUTCOME", "RUN_TIME", "KubeletOptions", "Kubelets"]
