"""Which way of writing a Workload's status costs the API server least? (docs/adr/0002)

Starts a real API server with our CRDs, and writes the statuses of Workloads, each write a change:
quota reserved and admitted, then evicted and pending again, and so on. The ways compared:

- put      PUT of the whole object to /status, with its resourceVersion
- merge    JSON merge patch of /status, with the resourceVersion
- apply    server-side apply of /status, forced, without a resourceVersion
- apply-rv the same with the resourceVersion

For each way and number of writes in flight it prints writes a second, latency, CPU of
kube-apiserver and etcd and of this client for a write, and the bytes sent and stored. Run it with::

    python benchmarks/status_writes.py [--seconds 5] [--repeat 3] [--concurrency 1 8 32]
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import os
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from sluice.api.errors import Conflict, NotFound
from sluice.kube.client import Client, ClientOptions, PatchType
from sluice.kube.resources import WORKLOADS
from sluice.local.real import API_SERVER_PROGRAMS, RealControlPlane, find

Json = dict[str, Any]
CRDS = Path(__file__).parents[1] / "manifests" / "crds"
NAMESPACE = "default"
MANAGER = "sluice-admission"
OBJECTS_PER_WRITER = 4
SERVED_TIMEOUT_S = 30.0
EPOCH = "2030-01-01T00:00:00Z"
PROGRAMS = ("kube-apiserver", "etcd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one run measured; CPU and latency in milliseconds, sizes in bytes."""

    way: str
    concurrency: int
    writes_per_s: float
    p50_ms: float
    p99_ms: float
    server_cpu_ms: float
    etcd_cpu_ms: float
    client_cpu_ms: float
    sent_bytes: int
    stored_bytes: int
    managed_fields_bytes: int


def condition(kind: str, is_true: bool, reason: str, message: str) -> Json:
    """Return one condition."""
    return {
        "type": kind,
        "status": "True" if is_true else "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": EPOCH,
        "observedGeneration": 1,
    }


def admitted_status() -> Json:
    """Return what is written when quota is reserved and nothing else is waited for."""
    return {
        "conditions": [
            condition("QuotaReserved", True, "QuotaReserved", "Quota reserved in ClusterQueue cq"),
            condition("Evicted", False, "QuotaReserved", "Previously: preempted to accommodate w"),
            condition("Admitted", True, "Admitted", "The workload is admitted"),
        ],
        "admission": {
            "clusterQueue": "cq",
            "podSetAssignments": [
                {
                    "name": "main",
                    "count": 2,
                    "flavors": {"cpu": "default", "memory": "default", "nvidia.com/gpu": "a100"},
                    "resourceUsage": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "2"},
                }
            ],
        },
    }


def evicted_status() -> Json:
    """Return what is written when the Workload has lost its quota."""
    text = (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu, 2 more needed"
    )
    return {
        "conditions": [
            condition("QuotaReserved", False, "WaitingForQuota", text),
            condition("Evicted", True, "Preempted", "preempted to accommodate w"),
            condition("Admitted", False, "NoReservation", "The workload has no reservation"),
        ],
    }


STATUSES = (admitted_status(), evicted_status())


def workload(name: str) -> Json:
    """Return a Workload as a GPU training Job makes it, about 2 KB."""
    container = {
        "name": "main",
        "image": "registry.example.com/team/training@sha256:" + "0" * 64,
        "command": ["python", "-m", "train", "--config", "/etc/train/config.yaml"],
        "env": [{"name": f"SETTING_{i}", "value": f"value-{i}"} for i in range(12)],
        "resources": {
            "requests": {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": "1"},
            "limits": {"memory": "32Gi", "nvidia.com/gpu": "1"},
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/train"}],
    }
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "train"}}],
    }
    return {
        "apiVersion": WORKLOADS.api_version,
        "kind": "Workload",
        "metadata": {"name": name, "labels": {"kueue.x-k8s.io/job-uid": name}},
        "spec": {
            "queueName": "lq",
            "priority": 100,
            "podSets": [{"name": "main", "count": 2, "template": {"spec": pod}}],
        },
    }


async def write(client: Client, way: str, current: Json, status: Json) -> tuple[Json, Json]:
    """Write a status; return the body sent and the object as stored."""
    name, version = current["metadata"]["name"], current["metadata"]["resourceVersion"]
    where = (WORKLOADS, NAMESPACE, name)
    if way == "put":
        body = {**current, "status": status}
        stored = await client.replace(
            *where, body, subresource="status", field_manager=MANAGER, retry=False
        )
    elif way == "merge":
        # A field that goes away is sent as null; lists are sent whole, which the version guards.
        gone: Json = {field: None for field in current.get("status", {}) if field not in status}
        body = {"metadata": {"resourceVersion": version}, "status": {**status, **gone}}
        stored = await client.patch(
            *where, body, subresource="status", field_manager=MANAGER, retry=False
        )
    else:
        metadata = {"name": name, "namespace": NAMESPACE}
        if way == "apply-rv":
            metadata["resourceVersion"] = version
        body = {
            "apiVersion": WORKLOADS.api_version,
            "kind": "Workload",
            "metadata": metadata,
            "status": status,
        }
        stored = await client.patch(
            *where,
            body,
            patch_type=PatchType.APPLY,
            subresource="status",
            field_manager=MANAGER,
            force=True,
            retry=False,
        )
    return body, stored


async def run_once(
    plane: RealControlPlane, way: str, concurrency: int, seconds: float, attempt: int
) -> Figures:
    """Write with so many writers for so long, and measure."""
    options = ClientOptions(qps=0, connections_max=concurrency)
    latencies_ms: list[float] = []
    sent: list[int] = []
    last: list[Json] = []
    async with Client(plane.access(), options=options) as client:
        groups = await create_objects(client, f"{way}-{concurrency}-{attempt}", concurrency)
        deadline_s = 0.0

        async def writer(objects: list[Json]) -> None:
            turn = 0
            while time.perf_counter() < deadline_s:
                index = turn % len(objects)
                status = STATUSES[turn // len(objects) % len(STATUSES)]
                started_s = time.perf_counter()
                body, objects[index] = await write(client, way, objects[index], status)
                latencies_ms.append((time.perf_counter() - started_s) * 1000)
                sent.append(len(orjson.dumps(body)))
                turn += 1
            last.append(objects[0])

        cpu_before = [cpu_s(plane, name) for name in PROGRAMS]
        client_before_s = time.process_time()
        begun_s = time.perf_counter()
        deadline_s = begun_s + seconds
        async with asyncio.TaskGroup() as group:
            for number, objects in enumerate(groups):
                group.create_task(writer(objects), name=f"writer-{number}")
        elapsed_s = time.perf_counter() - begun_s
        client_s = time.process_time() - client_before_s
        spent = [cpu_s(plane, n) - b for n, b in zip(PROGRAMS, cpu_before, strict=True)]
    count = len(latencies_ms)
    ranked = sorted(latencies_ms)
    return Figures(
        way=way,
        concurrency=concurrency,
        writes_per_s=count / elapsed_s,
        p50_ms=ranked[count // 2],
        p99_ms=ranked[int(count * 0.99)],
        server_cpu_ms=spent[0] / count * 1000,
        etcd_cpu_ms=spent[1] / count * 1000,
        client_cpu_ms=client_s / count * 1000,
        sent_bytes=round(statistics.mean(sent)),
        stored_bytes=len(orjson.dumps(last[0])),
        managed_fields_bytes=len(orjson.dumps(last[0]["metadata"].get("managedFields", []))),
    )


async def create_objects(client: Client, prefix: str, writers: int) -> list[list[Json]]:
    """Create the Workloads of each writer; nobody shares one, so that no write conflicts."""
    return [
        [
            await client.create(
                WORKLOADS, NAMESPACE, workload(f"{prefix}-{writer}-{number}"), field_manager=MANAGER
            )
            for number in range(OBJECTS_PER_WRITER)
        ]
        for writer in range(writers)
    ]


def cpu_s(plane: RealControlPlane, program: str) -> float:
    """Return the CPU seconds, user and system, that a program has used so far (Linux)."""
    stat = Path(f"/proc/{plane.pids()[program]}/stat").read_text()
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def install_crds(plane: RealControlPlane, kubectl: Path) -> None:
    """Apply our CRDs and wait until Workloads are served."""
    command = [kubectl, "--kubeconfig", plane.kubeconfig, "apply", "--server-side", "-k", CRDS]
    apply = functools.partial(subprocess.run, command, check=True, capture_output=True)
    await asyncio.to_thread(apply)
    async with asyncio.timeout(SERVED_TIMEOUT_S), Client(plane.access()) as client:
        while True:
            try:
                await client.list(WORKLOADS)
            except NotFound:
                await asyncio.sleep(0.1)
            else:
                return


async def show_conflicts(client: Client) -> None:
    """Print what each way does when a check's controller wrote in between."""
    for way in ("put", "merge", "apply", "apply-rv"):
        seen = await client.create(WORKLOADS, NAMESPACE, workload(f"conflict-{way}"))
        _, seen = await write(client, "merge", seen, STATUSES[0])
        check = {"name": "quota", "state": "Ready", "message": "", "lastTransitionTime": EPOCH}
        await write(
            client, "merge", seen, {**STATUSES[0], "admissionChecks": [{**check, "retryCount": 1}]}
        )
        try:
            _, stored = await write(client, way, seen, STATUSES[1])
        except Conflict:
            print(f"{way:9} after another's write: 409, nothing written")
        else:
            kept = "kept" if "admissionChecks" in stored["status"] else "lost"
            gone = "left behind" if "admission" in stored["status"] else "removed"
            print(f"{way:9} after another's write: written; check {kept}, admission {gone}")


def line(runs: list[Figures]) -> str:
    """Return the line of one way: its least disturbed run, and the highest rate of all."""
    f = min(runs, key=lambda run: run.server_cpu_ms)
    return (
        f"{f.way:9} {f.concurrency:2} {max(r.writes_per_s for r in runs):9.0f}"
        f" {f.p50_ms:6.2f} {f.p99_ms:6.1f}    |"
        f" {f.server_cpu_ms:23.3f} {f.etcd_cpu_ms:5.3f} {f.client_cpu_ms:7.3f} |"
        f" {f.sent_bytes:11} {f.stored_bytes:7} {f.managed_fields_bytes:14}"
    )


async def main() -> None:
    """Run every combination and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of one run")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the best is shown")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--ways", nargs="+", default=["put", "merge", "apply", "apply-rv"])
    options = parser.parse_args()
    programs = find(os.environ, [*API_SERVER_PROGRAMS, "kubectl"])
    async with RealControlPlane(programs) as plane:
        await install_crds(plane, programs.path("kubectl"))
        print(
            "way        c  writes/s    p50    p99 ms | CPU ms/write: apiserver  etcd  client"
            " | bytes: sent  stored  managedFields"
        )
        for concurrency in options.concurrency:
            runs: dict[str, list[Figures]] = {way: [] for way in options.ways}
            # Rounds of all ways, so that a neighbour's burst does not hit one of them alone.
            for attempt in range(options.repeat):
                for way in options.ways:
                    run = await run_once(plane, way, concurrency, options.seconds, attempt)
                    runs[way].append(run)
            for of_way in runs.values():
                print(line(of_way), flush=True)
        async with Client(plane.access()) as client:
            await show_conflicts(client)


if __name__ == "__main__":
    asyncio.run(main())
