"""How many Workloads a second pass through the manager on a real API server?

Starts etcd and kube-apiserver with our CRDs, 30 ClusterQueues in 5 cohorts (nominal 20 cpu each,
borrowing limit 100), and the manager in a process of its own. Then creates Workloads of one pod set
with 1 cpu as fast as the API server takes them, and sets each Finished 200 ms after its admission.
Prints Workloads finished a second, API requests for a Workload by verb and kind, and CPU and memory
of each process. Run it with::

    python benchmarks/throughput.py [--workloads 3000]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sluice.api.errors import NotFound
from sluice.clock import SystemClock
from sluice.controllers.manager import Manager
from sluice.controllers.options import ManagerOptions
from sluice.engine import lifecycle_status as transitions
from sluice.engine.lifecycle_status import Moment
from sluice.kube import config, resources
from sluice.kube.client import Client, ClientOptions
from sluice.kube.informer import Handlers, Informer
from sluice.kube.requests import Verb
from sluice.local.real import API_SERVER_PROGRAMS, RealControlPlane, find
from sluice.log import configure

Json = dict[str, Any]
CRDS = Path(__file__).parents[1] / "manifests" / "crds"
NAMESPACE = "default"
COHORTS = 5
QUEUES = 30
NOMINAL_CPU = "20"
BORROWING_LIMIT_CPU = "100"
RUN_TIME_S = 0.2
CREATORS = 16
FINISHERS = 32
TIMEOUT_S = 300.0


class Requests:
    """Counts requests by verb and kind; an observer of a client."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __call__(self, verb: Verb, kind: str, status: int, seconds: float) -> None:
        """Count one; refused ones with their status."""
        short = kind.replace(".kueue.x-k8s.io", "").replace(".events.k8s.io", "")
        self.counts[f"{verb} {short}" + (f" ({status})" if status >= 300 else "")] += 1


async def serve_manager(kubeconfig: str) -> None:
    """Run the manager until SIGTERM, then print what it did as one JSON line."""
    configure(level="warning")
    requests = Requests()
    started_s = time.perf_counter()
    access = await config.load(kubeconfig=kubeconfig, environ={})
    async with Client(access, options=ClientOptions(qps=0), observer=requests) as client:
        options = ManagerOptions(identity="benchmark", election=None, tune_gc=True)
        manager = Manager(client, options)
        task = asyncio.create_task(manager.run(), name="manager")
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        await asyncio.wait_for(manager.ready.wait(), TIMEOUT_S)
        print(json.dumps({"ready_s": time.perf_counter() - started_s}), flush=True)
        with suppress(asyncio.CancelledError):
            await task
    usage = resource.getrusage(resource.RUSAGE_SELF)
    report = {
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "memory_mb": usage.ru_maxrss / 1024,
        "requests": requests.counts,
        "cycles": manager.scheduler.cycles_count,
        "commands": manager.executor.written_count,
        "overtaken": manager.executor.overtaken_count,
        "events": manager.events.written_count,
        "events_thinned": manager.notes.thinned_count,
    }
    print(json.dumps(report), flush=True)


@contextmanager
def manager_process(kubeconfig: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the manager in a process of its own."""
    command = [sys.executable, __file__, "--serve-manager", str(kubeconfig)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(30)


async def create_queues(client: Client) -> None:
    """Create the flavor, the ClusterQueues and their LocalQueues."""
    flavor = resources.RESOURCE_FLAVORS.skeleton("", "default")
    await client.create(resources.RESOURCE_FLAVORS, "", {**flavor, "spec": {}})
    quota = {
        "name": "cpu",
        "nominalQuota": NOMINAL_CPU,
        "borrowingLimit": BORROWING_LIMIT_CPU,
    }
    for number in range(QUEUES):
        name = f"q{number}"
        queue = resources.CLUSTER_QUEUES.skeleton("", name)
        queue["spec"] = {
            "cohortName": f"cohort-{number % COHORTS}",
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu"],
                    "flavors": [{"name": "default", "resources": [quota]}],
                }
            ],
        }
        await client.create(resources.CLUSTER_QUEUES, "", queue)
        local = resources.LOCAL_QUEUES.skeleton(NAMESPACE, name)
        local["spec"] = {"clusterQueue": name}
        await client.create(resources.LOCAL_QUEUES, NAMESPACE, local)


def workload(number: int) -> Json:
    """Return a Workload of one pod with 1 cpu."""
    body = resources.WORKLOADS.skeleton(NAMESPACE, f"w{number}")
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    pod = {"restartPolicy": "Never", "containers": [container]}
    body["spec"] = {
        "queueName": f"q{number % QUEUES}",
        "podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}],
    }
    return body


@dataclass(kw_only=True)
class Load:
    """Creates Workloads, and finishes each a while after it is admitted."""

    client: Client
    count: int
    created: int = 0
    created_s: float = 0.0
    finished_s: list[float] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)
    _due: asyncio.Queue[tuple[str, Json]] = field(default_factory=asyncio.Queue)
    _seen: set[str] = field(default_factory=set)
    _done: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> float:
        """Create and finish all; return the seconds from the first creation to the last end."""
        informer: Informer[Json] = Informer(
            self.client, resources.WORKLOADS, lambda raw: raw, namespace=NAMESPACE
        )
        informer.add_handlers(
            Handlers(
                added=lambda key, raw: self._look(key, raw),
                updated=lambda key, _, raw: self._look(key, raw),
            )
        )
        watch = asyncio.create_task(informer.run(), name="watch")
        await informer.wait_synced(30)
        self._started_s = time.perf_counter()
        finishers = [asyncio.create_task(self._finish(), name=f"f{n}") for n in range(FINISHERS)]
        numbers = iter(range(self.count))
        async with asyncio.TaskGroup() as group:
            for creator in range(CREATORS):
                group.create_task(self._create(numbers), name=f"creator-{creator}")
        self.created_s = time.perf_counter() - self._started_s
        await asyncio.wait_for(self._done.wait(), TIMEOUT_S)
        for task in [watch, *finishers]:
            task.cancel()
        return self.finished_s[-1]

    async def _create(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            await self.client.create(resources.WORKLOADS, NAMESPACE, workload(number))
            self.created += 1

    def _look(self, key: str, raw: Json) -> None:
        conditions = raw.get("status", {}).get("conditions", [])
        if key in self._seen or not any(
            c["type"] == "Admitted" and c["status"] == "True" for c in conditions
        ):
            return
        self._seen.add(key)
        loop = asyncio.get_running_loop()
        loop.call_later(RUN_TIME_S, self._due.put_nowait, (key, raw))

    async def _finish(self) -> None:
        while True:
            _, raw = await self._due.get()
            at = Moment(now_ms=SystemClock().now_ms(), generation=1)
            status = transitions.finish(raw["status"], at, reason="Succeeded", message="done")
            metadata = raw["metadata"]
            patch = {
                "metadata": {"resourceVersion": metadata["resourceVersion"]},
                "status": {"conditions": status["conditions"]},
            }
            await self.client.patch(
                resources.WORKLOADS, NAMESPACE, metadata["name"], patch, subresource="status"
            )
            self.finished_s.append(time.perf_counter() - self._started_s)
            if len(self.finished_s) == self.count:
                self._done.set()

    def progress(self) -> str:
        """Return one line about now."""
        return (
            f"created {self.created}, admitted {len(self._seen)}, finished {len(self.finished_s)}"
        )


def uvloop_factory() -> Any:
    """Return uvloop's factory where it is installed, as ``sluice run`` does, else None."""
    if find_spec("uvloop") is None:
        return None
    return import_module("uvloop").new_event_loop


def cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process has used so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    """Return the most memory that a process has held (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


async def install_crds(plane: RealControlPlane, kubectl: Path) -> None:
    """Apply our CRDs and wait until all are served."""
    command = f"{kubectl} --kubeconfig {plane.kubeconfig} apply --server-side -k {CRDS}".split()
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
    async with asyncio.timeout(60), Client(plane.access()) as client:
        for kind in resources.KUEUE_KINDS:
            while True:
                try:
                    await client.list(kind, limit=1)
                except NotFound:
                    await asyncio.sleep(0.1)
                else:
                    break


async def until_quiet(plane: RealControlPlane) -> None:
    """Wait until the API server has done what new CRDs make it do (schemas, OpenAPI documents)."""
    pid = plane.pids()["kube-apiserver"]
    for _ in range(30):
        before_s = cpu_s(pid)
        await asyncio.sleep(2)
        if cpu_s(pid) - before_s < 0.3:
            return


async def show_progress(load: Load) -> None:
    """Print a line a second to standard error."""
    while True:
        await asyncio.sleep(1)
        print(load.progress(), file=sys.stderr)


async def measure(plane: RealControlPlane, arguments: argparse.Namespace) -> None:
    """Run the load against one manager and print the figures."""
    requests = Requests()
    options = ClientOptions(qps=0, connections_max=CREATORS + FINISHERS + 4)
    async with Client(plane.access(), options=options, observer=requests) as client:
        await create_queues(client)
        await until_quiet(plane)
        with manager_process(plane.kubeconfig) as manager:
            assert manager.stdout is not None
            ready = json.loads(await asyncio.to_thread(manager.stdout.readline))
            await until_quiet(plane)
            requests.counts.clear()
            before = {name: cpu_s(pid) for name, pid in plane.pids().items()}
            manager_before_s = cpu_s(manager.pid)
            load = Load(client=client, count=arguments.workloads)
            shown = asyncio.create_task(show_progress(load), name="progress")
            try:
                elapsed_s = await load.run()
            finally:
                shown.cancel()
            spent = {name: cpu_s(pid) - before[name] for name, pid in plane.pids().items()}
            manager_cpu_s = cpu_s(manager.pid) - manager_before_s
            manager.terminate()
            report = json.loads(await asyncio.to_thread(manager.stdout.readline))
            manager.wait(30)
        memory = {name: memory_mb(pid) for name, pid in plane.pids().items()}
    count = arguments.workloads
    print(f"workloads finished a second   {count / elapsed_s:8.1f}")
    print(f"created a second              {count / load.created_s:8.1f}")
    print(f"manager ready after           {ready['ready_s']:8.2f} s")
    print(f"manager CPU                   {manager_cpu_s:8.1f} s   {report['memory_mb']:6.0f} MB")
    for name, seconds in spent.items():
        print(f"{name:29} {seconds:8.1f} s   {memory[name]:6.0f} MB")
    print(f"cycles {report['cycles']}, commands {report['commands']},", end=" ")
    print(f"overtaken {report['overtaken']}, events thinned {report['events_thinned']}")
    print("requests for a Workload, by the manager:")
    for what, number in sorted(report["requests"].items(), key=lambda item: -item[1]):
        if number >= count / 100:
            print(f"  {what:35} {number / count:6.2f}")
    print("requests for a Workload, by the load:")
    for what, number in sorted(requests.counts.items(), key=lambda item: -item[1]):
        if number >= count / 100:
            print(f"  {what:35} {number / count:6.2f}")


async def main() -> None:
    """Start the control plane and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=3000, help="how many")
    parser.add_argument("--serve-manager", metavar="KUBECONFIG", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve_manager:
        await serve_manager(arguments.serve_manager)
        return
    programs = find(os.environ, [*API_SERVER_PROGRAMS, "kubectl"])
    async with RealControlPlane(programs) as plane:
        await install_crds(plane, programs.path("kubectl"))
        await measure(plane, arguments)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop_factory()) as runner:
        runner.run(main())
