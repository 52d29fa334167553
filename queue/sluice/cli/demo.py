"""``sluice demo``: the main job from queue to end, live, on a control plane of its own.

Everything is real but the nodes: kubectl sends the objects, the API server calls the webhook over
TLS, the manager decides, Pods are created, bound and run. Ends by itself; exit code 0 if all came
out right.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.live import Live

from sluice.api.errors import SluiceError
from sluice.cli import demo_board, manifests
from sluice.cli.demo_board import Row
from sluice.cli.demo_jobs import JOBS, MISTAKE, DemoJob
from sluice.cli.demo_kubectl import Kubectl
from sluice.cli.flags import LogFormat, LogLevel, configure_logging
from sluice.cli.local_cluster import LocalCluster, LocalOptions, local_cluster
from sluice.cli.serving import first_error
from sluice.cli.up import simulated_nodes
from sluice.clock import SystemClock
from sluice.kube.client import Client
from sluice.kube.informer import Handlers, Informer
from sluice.kube.resources import BATCH_JOBS, CLUSTER_QUEUES, WORKLOADS, Resource

app = typer.Typer(add_completion=False)

RUN_S_MAX: Final = 50.0
"""The scenario takes about 22 s; when it takes longer than this something is wrong."""
_NODES: Final = 4
_GPUS_PER_NODE: Final = 4
_DRAW_S: Final = 0.2

Json = dict[str, Any]


class DemoFailed(SluiceError):
    """The scenario did not come out as it must."""


@app.command(help="Two teams share GPUs on a control plane of its own; about half a minute.")
def demo(
    real: Annotated[
        bool, typer.Option("--real", help="On etcd and Kubernetes' own programs.")
    ] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a live table.")] = False,
    log_level: LogLevel = "error",
    log_format: LogFormat = "text",
) -> None:
    """Run the scenario once."""
    configure_logging(log_level, log_format)
    try:
        asyncio.run(_interruptible(_demo(is_real=real, is_plain=plain or not sys.stdout.isatty())))
    except* Exception as group:
        raise first_error(group) from None


async def _interruptible(work: Awaitable[None]) -> None:
    """Run the scenario; a signal cancels it, so that everything is cleaned up in order."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        print("interrupted; everything is stopped and removed", flush=True)
        raise KeyboardInterrupt from None


class Stage:
    """The scenario's view of the cluster: caches of Jobs, Workloads and ClusterQueues."""

    def __init__(self, client: Client) -> None:
        self._clock = SystemClock()
        self._begin_s = self._clock.monotonic_s()
        self.changed = asyncio.Event()
        self.jobs = self._informer(client, BATCH_JOBS)
        self.workloads = self._informer(client, WORKLOADS)
        self.queues = self._informer(client, CLUSTER_QUEUES)
        self.evictions: set[str] = set()
        self.first_run_s: dict[str, float] = {}
        self.end_s: dict[str, float] = {}

    @property
    def elapsed_s(self) -> float:
        """Return the seconds since the scenario began."""
        return self._clock.monotonic_s() - self._begin_s

    def begin(self) -> None:
        """Start counting."""
        self._begin_s = self._clock.monotonic_s()

    def _informer(self, client: Client, resource: Resource) -> Informer[Json]:
        informer: Informer[Json] = Informer(client, resource, lambda obj: obj)

        def wake(key: str, *objects: Json) -> None:
            self.changed.set()

        informer.add_handlers(Handlers(added=wake, updated=wake, deleted=wake))
        return informer

    def informers(self) -> tuple[Informer[Json], ...]:
        """Return the caches to run."""
        return (self.jobs, self.workloads, self.queues)

    def rows(self) -> list[Row]:
        """Return the Jobs as they are now, and note what happened to each."""
        owned = {
            reference["uid"]: workload
            for _, workload in self.workloads.store.items()
            for reference in workload["metadata"].get("ownerReferences") or ()
        }
        shown = demo_board.rows((job for _, job in self.jobs.store.items()), owned)
        for row in shown:
            if row.state == "evicted":
                self.evictions.add(row.job)
            if row.state in ("running", "finished"):
                self.first_run_s.setdefault(row.job, self.elapsed_s)
            if row.state in ("finished", "failed"):
                self.end_s.setdefault(row.job, self.elapsed_s)
        return shown


async def _demo(*, is_real: bool, is_plain: bool) -> None:
    kind = "etcd and Kubernetes' own programs" if is_real else "an embedded control plane"
    print(f"starting {kind}, the webhook and the manager ...", flush=True)
    clock = SystemClock()
    begin_s = clock.monotonic_s()
    nodes = simulated_nodes(_NODES, _GPUS_PER_NODE)
    async with local_cluster(LocalOptions(is_real=is_real, nodes=nodes)) as cluster:
        print(f"ready after {clock.monotonic_s() - begin_s:.1f} s: {cluster.server}", flush=True)
        await _play(cluster, is_plain=is_plain)
    print("stopped; nothing is left behind")


async def _play(cluster: LocalCluster, *, is_plain: bool) -> None:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(cluster.access))
        kubectl = Kubectl(cluster.kubeconfig)
        stage = Stage(client)
        watches = [asyncio.create_task(i.run(), name="demo watch") for i in stage.informers()]
        stack.push_async_callback(_cancel, watches)
        await kubectl.apply_file(manifests.folder() / "demo" / "queues.yaml")
        for informer in stage.informers():
            await informer.wait_synced(10.0)
        stage.begin()
        refusal: list[str] = []
        submitting = asyncio.create_task(_submit(kubectl, stage, refusal), name="submit")
        stack.push_async_callback(_cancel, [submitting])
        try:
            async with asyncio.timeout(RUN_S_MAX):
                await (_lines if is_plain else _table)(stage)
                await submitting
        except TimeoutError:
            states = ", ".join(f"{row.job} {row.state}" for row in stage.rows())
            raise DemoFailed(f"not done after {RUN_S_MAX:.0f} s: {states}") from None
        _summary(stage, refusal)


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _submit(kubectl: Kubectl, stage: Stage, refusal: list[str]) -> None:
    for job in sorted((*JOBS, MISTAKE), key=lambda j: j.at_s):
        await asyncio.sleep(max(0.0, job.at_s - stage.elapsed_s))
        refused = await kubectl.create(job.to_object())
        if refused and job is not MISTAKE:
            raise DemoFailed(f"{job.namespace}/{job.name} was refused: {refused}")
        if job is MISTAKE:
            refusal.append(refused)
        stage.changed.set()


def _is_done(shown: list[Row]) -> bool:
    states = {row.job: row.state for row in shown}
    return all(states.get(job.name) == ("finished" if job.can_run else "waiting") for job in JOBS)


async def _draw(stage: Stage, show: Callable[[list[Row]], None]) -> None:
    while True:
        shown = stage.rows()
        show(shown)
        if _is_done(shown):
            return
        stage.changed.clear()
        try:
            async with asyncio.timeout(_DRAW_S):
                await stage.changed.wait()
        except TimeoutError:
            continue


async def _lines(stage: Stage) -> None:
    last: dict[str, tuple[str, str]] = {}

    def show(shown: list[Row]) -> None:
        for row in shown:
            seen = (row.state, row.why if row.state in ("waiting", "evicted") else "")
            if last.get(row.job) != seen:
                last[row.job] = seen
                print(demo_board.line(stage.elapsed_s, row), flush=True)

    await _draw(stage, show)


async def _table(stage: Stage) -> None:
    with Live(console=Console(), refresh_per_second=8) as live:

        def show(shown: list[Row]) -> None:
            queues = [queue for _, queue in stage.queues.store.items()]
            live.update(demo_board.board(stage.elapsed_s, queues, shown))

        await _draw(stage, show)


def _summary(stage: Stage, refusal: list[str]) -> None:
    """Print what happened and check that it is what must."""
    print(f"\nAll done after {stage.elapsed_s:.1f} s. What happened:")
    for job in JOBS:
        if job.can_run:
            print(f"  {_story(job, stage)}")
    waiting = next(row for row in stage.rows() if row.job == "too-big")
    print(f"  products/too-big (20 GPUs) waits, and says why: {waiting.why}")
    print(f"  research/typo was refused by the webhook: {refusal[0]}")
    if not refusal[0]:
        raise DemoFailed("a Job with a malformed queue name was accepted")
    if "sweep" not in stage.evictions:
        raise DemoFailed("products did not get its quota back from research/sweep")


def _story(job: DemoJob, stage: Stage) -> str:
    ran_s, end_s = stage.first_run_s[job.name], stage.end_s[job.name]
    text = f"{job.namespace}/{job.name}: submitted at {job.at_s:.1f} s, ran at {ran_s:.1f} s"
    if job.name in stage.evictions:
        text += ", gave its borrowed GPUs back, ran again"
    return f"{text}, finished at {end_s:.1f} s"
