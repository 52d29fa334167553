"""The process that `throughput` measures: the manager alone, or a whole replica with webhooks.

Prints one JSON line when it is ready and one with what it has done and used when SIGTERM ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import signal
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sluice.api import names
from sluice.api.configuration import parse
from sluice.cli.replica import Replica, ReplicaOptions
from sluice.controllers.manager import Manager
from sluice.controllers.options import ManagerOptions
from sluice.kube import config
from sluice.kube.client import Client, ClientOptions
from sluice.kube.requests import Verb
from sluice.log import configure

TIMEOUT_S = 300.0
REPLICA = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
webhook: {{host: 127.0.0.1, port: {port}}}
metrics: {{bindAddress: "0"}}
health: {{healthProbeBindAddress: "0"}}
leaderElection: {{leaderElect: false}}
clientConnection: {{qps: -1}}
internalCertManagement:
  enable: true
  webhookServiceName: sluice-webhook
  webhookSecretName: sluice-webhook-server-cert
"""


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
    print_report(manager, requests.counts)


async def serve_replica(kubeconfig: str, port: int) -> None:
    """Run manager and webhooks until SIGTERM, then print what they did as one JSON line."""
    started_s = time.perf_counter()
    access = await config.load(kubeconfig=kubeconfig, environ={})
    settings = parse(REPLICA.format(port=port), default_namespace=names.SYSTEM_NAMESPACE)
    replica = Replica(access, ReplicaOptions(settings=settings, identity="benchmark"))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    task = asyncio.create_task(replica.run(stop), name="replica")
    async with asyncio.timeout(TIMEOUT_S):
        while replica.unready_reasons():
            await asyncio.wait({task}, timeout=0.05)
            if task.done():
                await task
    print(json.dumps({"ready_s": time.perf_counter() - started_s}), flush=True)
    await task
    assert replica.manager is not None
    print_report(replica.manager, {})


def print_report(manager: Manager, requests: Mapping[str, int]) -> None:
    """Print what this process has done and used as one JSON line."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    report = {
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "memory_mb": usage.ru_maxrss / 1024,
        "requests": requests,
        "cycles": manager.scheduler.cycles_count,
        "commands": manager.executor.written_count,
        "overtaken": manager.executor.overtaken_count,
        "events": manager.events.written_count,
        "events_thinned": manager.notes.thinned_count,
    }
    print(json.dumps(report), flush=True)


def uvloop_factory() -> Any:
    """Return uvloop's factory where it is installed, as ``sluice run`` does, else None."""
    if find_spec("uvloop") is None:
        return None
    return import_module("uvloop").new_event_loop


async def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kubeconfig")
    parser.add_argument("--port", type=int, default=0, help="serve the webhooks, too, on this port")
    arguments = parser.parse_args()
    configure(level="warning")
    if arguments.port:
        await serve_replica(arguments.kubeconfig, arguments.port)
    else:
        await serve_manager(arguments.kubeconfig)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop_factory()) as runner:
        runner.run(main())
