"""Reviews a second and their latency: the webhook over TLS on one core, asked by another process.

    python benchmarks/webhook.py [--seconds 10] [--connections 32] [--no-uvloop]

The server is pinned to one core and the client to another, which both should have to themselves.
Each connection sends its next review when the answer to the last has come. Before anything is
timed, one answer of each kind is checked. The last lines time the conversion of a list of 500
Workloads and the reviews answered meanwhile.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import ssl
import statistics
import sys
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.lookups import StaticLookups
from tests.support.webhook import HOST, now_ms, review, serving_pair, trusting

from sluice.jobs.admission.context import Options
from sluice.kube import pki
from sluice_webhook.app import Application
from sluice_webhook.routes import routes
from sluice_webhook.server import ServerOptions, WebhookServer
from sluice_webhook.tls import LiveTls

Json = dict[str, Any]
WARM_UP_S = 1.0
OLD = "kueue.x-k8s.io/v1beta1"


def job() -> Json:
    """Return a Job of some 3 KB, as a training run has it."""
    env = [{"name": f"SETTING_{i}", "value": f"value-of-setting-{i}"} for i in range(52)]
    container = {
        "name": "train",
        "image": "registry.example.com/team/train:2026-11",
        "args": [f"--option-{i}={i}" for i in range(12)],
        "env": env,
        "resources": {
            "requests": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"},
            "limits": {"nvidia.com/gpu": "8"},
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "train",
            "namespace": "team-a",
            "labels": {"kueue.x-k8s.io/queue-name": "main", "app": "train"},
        },
        "spec": {
            "parallelism": 8,
            "completions": 8,
            "completionMode": "Indexed",
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def workload() -> Json:
    """Return a Workload of the old version made of that Job."""
    template = job()["spec"]["template"]
    return {
        "apiVersion": OLD,
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "team-a"},
        "spec": {"podSets": [{"name": "main", "count": 8, "template": template}]},
    }


def serve(core: int, with_uvloop: bool, pipe: Connection) -> None:
    """Run the server until told to stop; tell its port and CA first, its usage last."""
    os.sched_setaffinity(0, {core})

    async def run() -> None:
        ca = pki.make_ca("benchmark", now_ms(), days=1)
        tls = LiveTls(serving_pair(ca))
        lookups = StaticLookups(local_queues={"team-a/default"})
        application = Application(routes(Options(), lookups))
        options = ServerOptions(host=HOST, port=0)
        async with WebhookServer(application, tls, options) as server:
            pipe.send((server.port, ca))
            while await asyncio.to_thread(pipe.recv) == "usage":
                usage = resource.getrusage(resource.RUSAGE_SELF)
                pipe.send((usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024))

    loop_run(run(), with_uvloop)


def loop_run(work: Any, with_uvloop: bool) -> None:
    """Run a coroutine on the loop asked for."""
    if with_uvloop:
        import uvloop

        uvloop.run(work)
    else:
        asyncio.run(work)


def request(path: str, body: Json) -> bytes:
    """Return a whole HTTP request."""
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


@dataclass
class Asker(asyncio.Protocol):
    """One connection that asks again and again."""

    sent: bytes
    waits_s: list[float] = field(default_factory=list)
    buffer: bytes = b""
    started_s: float = 0.0
    answer: bytes = b""
    is_closed: bool = False
    transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the first time."""
        self.transport = cast(asyncio.Transport, transport)
        self.ask()

    def ask(self) -> None:
        """Send the request once."""
        assert self.transport is not None
        self.started_s = time.perf_counter()
        self.transport.write(self.sent)

    def data_received(self, data: bytes) -> None:
        """Note how long a whole answer took, and ask again."""
        self.buffer += data
        head, separator, rest = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(rest) < length:
            return
        self.waits_s.append(time.perf_counter() - self.started_s)
        self.answer, self.buffer = self.buffer, b""
        if not self.is_closed:
            self.ask()

    def stop(self) -> None:
        """Ask no more."""
        self.is_closed = True


async def ask(
    port: int, tls: ssl.SSLContext, sent: bytes, connections: int, seconds: float
) -> tuple[list[float], bytes]:
    """Return the seconds each answer took, and one answer."""
    loop = asyncio.get_running_loop()
    askers: list[Asker] = []
    for _ in range(connections):
        _, asker = await loop.create_connection(
            lambda: Asker(sent), HOST, port, ssl=tls, server_hostname=HOST
        )
        askers.append(asker)
    await asyncio.sleep(WARM_UP_S)
    for asker in askers:
        asker.waits_s.clear()
    await asyncio.sleep(seconds)
    waits_s = [wait for asker in askers for wait in asker.waits_s]
    for asker in askers:
        asker.stop()
        assert asker.transport is not None
        asker.transport.close()
    return waits_s, askers[0].answer


def show(name: str, waits_s: list[float], seconds: float, cpu_s: float) -> None:
    """Print one line of figures; cpu_s covers the warm-up too, so it is an upper bound."""
    cuts = statistics.quantiles(waits_s, n=100)
    count = len(waits_s)
    print(
        f"{name:28} {count / seconds:8.0f}/s   p50 {cuts[49] * 1e3:6.2f} ms   "
        f"p99 {cuts[98] * 1e3:6.2f} ms   server {cpu_s / count * 1e6:5.0f} us/review"
    )


async def measure(pipe: Connection, seconds: float, connections: int) -> None:
    """Time each kind of review, then a conversion with reviews beside it."""
    port, ca = pipe.recv()
    tls = trusting(ca)

    def usage() -> tuple[float, float]:
        pipe.send("usage")
        cpu_s, memory_mb = pipe.recv()
        return cpu_s, memory_mb

    old = job()
    old["spec"]["suspend"] = True
    cases = {
        "mutate Job": ("/mutate-batch-v1-job", review(obj=job()), b'"JSONPatch"'),
        "validate Job, create": ("/validate-batch-v1-job", review(obj=job()), b'"allowed":true'),
        "validate Job, update": (
            "/validate-batch-v1-job",
            review(obj=old, old=old, operation="UPDATE"),
            b'"allowed":true',
        ),
    }
    print(f"{connections} connections, {len(request(*cases['mutate Job'][:2]))} bytes a request")
    for name, (path, body, expected) in cases.items():
        before_s, _ = usage()
        waits_s, answer = await ask(port, tls, request(path, body), connections, seconds)
        assert expected in answer, answer
        cpu_s = (usage()[0] - before_s) * seconds / (seconds + WARM_UP_S)
        show(name, waits_s, seconds, cpu_s)
    await measure_conversion(port, tls, seconds)
    print(f"{'memory of the server':28} {usage()[1]:8.0f} MB at most")


async def measure_conversion(port: int, tls: ssl.SSLContext, seconds: float) -> None:
    """Convert a list of 500 Workloads again and again while one connection sends reviews."""
    conversion = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {
            "uid": "u",
            "desiredAPIVersion": "kueue.x-k8s.io/v1beta2",
            "objects": [workload() for _ in range(500)],
        },
    }
    sent = request("/convert", conversion)
    (waits_s, answer), (beside_s, _) = await asyncio.gather(
        ask(port, tls, sent, 1, seconds),
        ask(port, tls, request("/mutate-batch-v1-job", review(obj=job())), 1, seconds),
    )
    assert b'"Success"' in answer
    print(
        f"{'convert 500 Workloads':28} {statistics.median(waits_s) * 1e3:8.0f} ms for "
        f"{len(sent) / 2**20:.1f} MiB; reviews beside it p99 "
        f"{statistics.quantiles(beside_s, n=100)[98] * 1e3:.1f} ms"
    )


def main() -> None:
    """Read the arguments and run both processes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--no-uvloop", action="store_true")
    arguments = parser.parse_args()
    with_uvloop = not arguments.no_uvloop
    cores = sorted(os.sched_getaffinity(0))
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(
        target=serve, args=(cores[0], with_uvloop, there), name="webhook"
    )
    server.start()
    os.sched_setaffinity(0, {cores[-1]})
    try:
        loop_run(measure(here, arguments.seconds, arguments.connections), with_uvloop)
    finally:
        here.send("stop")
        server.join(10)


if __name__ == "__main__":
    main()
