"""How many Workloads a second pass through the manager on a real API server?

Starts etcd and kube-apiserver with our CRDs, 30 ClusterQueues in 5 cohorts (nominal 20 cpu each,
borrowing limit 100), and the manager in a process of its own. Then creates Workloads of one pod set
with 1 cpu as fast as the API server takes them, and sets each Finished 200 ms after its admission.
Prints Workloads finished a second, API requests for a Workload by verb and kind, and CPU and memory
of each process. Run it with::

    python benchmarks/throughput.py [--workloads 3000] [--webhooks]

With ``--webhooks`` the manager's process also serves our webhooks over TLS, and the API server
calls them for each Workload and each of its statuses. ``GOGC=400`` in the environment reaches the
API server: a quarter less of its CPU, for twice the memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sluice.api import names
from sluice.api.errors import NotFound
from sluice.cli import manifests
from sluice.kube import resources
from sluice.kube.client import Client, ClientOptions
from sluice.local.real import API_SERVER_PROGRAMS, RealControlPlane, find
from sluice.local.real.ports import ReservedPort
from sluice.log import configure
from throughput_load import CREATORS, FINISHERS, NAMESPACE, QUEUES, Load
from throughput_serve import Requests, uvloop_factory

Json = dict[str, Any]
SERVE = Path(__file__).with_name("throughput_serve.py")
CRDS = Path(__file__).parents[1] / "manifests" / "crds"
COHORTS = 5
NOMINAL_CPU = "20"
BORROWING_LIMIT_CPU = "100"
WEBHOOK_SERVICE = "sluice-webhook"


@contextmanager
def manager_process(kubeconfig: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """Run the manager in a process of its own; with a port it serves the webhooks, too."""
    command = [sys.executable, str(SERVE), str(kubeconfig), "--port", str(port)]
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


async def install_webhooks(client: Client) -> int:
    """Install the webhook configurations; return the port that the webhook must listen on.

    Nothing routes to Services here, so the Service is a name for this machine.
    """
    namespace = resources.NAMESPACES.skeleton("", names.SYSTEM_NAMESPACE)
    await client.create(resources.NAMESPACES, "", namespace)
    service = resources.SERVICES.skeleton(names.SYSTEM_NAMESPACE, WEBHOOK_SERVICE)
    service["spec"] = {"type": "ExternalName", "externalName": "localhost"}
    await client.create(resources.SERVICES, names.SYSTEM_NAMESPACE, service)
    reserved = ReservedPort()
    port = reserved.number
    kinds = {
        "MutatingWebhookConfiguration": resources.MUTATING_WEBHOOKS,
        "ValidatingWebhookConfiguration": resources.VALIDATING_WEBHOOKS,
    }
    for found in manifests.webhook_configurations():
        body = manifests.at_port(found, port)
        # Until the webhook serves, queues could not be created; it answers all of them by the
        # time that is measured.
        for webhook in body["webhooks"]:
            webhook["failurePolicy"] = "Ignore"
        await client.create(kinds[body["kind"]], "", body)
    reserved.release()
    return port


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
        port = await install_webhooks(client) if arguments.webhooks else 0
        await create_queues(client)
        await until_quiet(plane)
        with manager_process(plane.kubeconfig, port) as manager:
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
    parser.add_argument("--webhooks", action="store_true", help="with the webhooks installed")
    arguments = parser.parse_args()
    configure(level="warning")
    programs = find(os.environ, [*API_SERVER_PROGRAMS, "kubectl"])
    async with RealControlPlane(programs) as plane:
        await install_crds(plane, programs.path("kubectl"))
        await measure(plane, arguments)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop_factory()) as runner:
        runner.run(main())
