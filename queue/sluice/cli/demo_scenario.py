"""The demo's scenario: a control plane, queues, Jobs over time, and a look at what became of them.

Everything is real but the nodes: kubectl sends the objects, the API server calls the webhook over
TLS, the manager decides, Pods are created, bound and run. Ends by itself, with an error when not
all came out right. Called by ``demo``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final

from rich.console import Console
from rich.live import Live

from sluice.api.errors import SluiceError
from sluice.cli import demo_board, demo_summary, manifests
from sluice.cli.demo_jobs import GPUS_PER_NODE, JOBS, MISTAKE, NODES, DemoJob, demo_nodes
from sluice.cli.demo_kubectl import Kubectl
from sluice.cli.demo_stage import Row, Stage, View
from sluice.cli.interrupts import say
from sluice.cli.local_cluster import LocalCluster, LocalOptions, local_cluster
from sluice.cli.progress import Progress
from sluice.clock import SystemClock
from sluice.kube.client import Client

RUN_S_MAX: Final = 120.0
"""The scenario takes about 20 s; this long only where something is wrong."""
_DRAW_S: Final = 0.2
_SYNC_S_MAX: Final = 30.0


class DemoFailed(SluiceError):
    """The scenario did not come out as it must."""


async def play(progress: Progress, *, is_real: bool, is_plain: bool) -> None:
    """Run the scenario once.

    Args:
        progress: Shown while the control plane starts and stops.
        is_real: On etcd and Kubernetes' own programs.
        is_plain: Lines instead of a table.

    Raises:
        ConfigError: The control plane cannot be started.
        SluiceError: Something did not come out as it must.
    """
    clock = SystemClock()
    begin_s = clock.monotonic_s()
    options = LocalOptions(is_real=is_real, nodes=demo_nodes(), report=progress)
    async with local_cluster(options) as cluster:
        progress("creating two teams' queues")
        async with Client(cluster.access) as client, AsyncExitStack() as stack:
            kubectl = Kubectl(cluster.kubeconfig)
            await kubectl.apply_file(manifests.folder() / "demo" / "queues.yaml")
            stage = Stage(client, clock)
            watches = await stack.enter_async_context(asyncio.TaskGroup())
            tasks = [watches.create_task(i.run(), name="demo watch") for i in stage.informers()]
            stack.callback(_cancel, tasks)
            for informer in stage.informers():
                await informer.wait_synced(_SYNC_S_MAX)
            progress.stop()
            say(_ready(cluster, clock.monotonic_s() - begin_s))
            await _run(stage, kubectl, is_plain=is_plain)
            say(demo_summary.summary(stage))
            _check(stage)
    progress.stop()
    say("stopped; nothing is left behind")


def _ready(cluster: LocalCluster, took_s: float) -> str:
    gpus = NODES * GPUS_PER_NODE
    return f"ready after {took_s:.1f} s: {cluster.server}, {NODES} simulated nodes, {gpus} GPUs"


def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()


async def _run(stage: Stage, kubectl: Kubectl, *, is_plain: bool) -> None:
    stage.begin()
    try:
        async with asyncio.timeout(RUN_S_MAX), asyncio.TaskGroup() as group:
            # The order of those that compete matters, that of the others does not.
            competing = [job for job in JOBS if job.queue]
            others = [MISTAKE, *(job for job in JOBS if not job.queue)]
            for jobs in (competing, others):
                group.create_task(_submit(kubectl, stage, jobs), name="submit")
            await (_lines if is_plain else _table)(stage)
    except TimeoutError:
        states = ", ".join(f"{row.job} {row.state}" for row in stage.rows())
        raise DemoFailed(f"not done after {RUN_S_MAX:.0f} s: {states}") from None


async def _submit(kubectl: Kubectl, stage: Stage, jobs: Sequence[DemoJob]) -> None:
    for job in sorted(jobs, key=lambda j: j.at_s):
        await asyncio.sleep(max(0.0, job.at_s - stage.elapsed_s))
        stage.submitted(job)
        refused = await kubectl.create(job.to_object())
        if refused and job is not MISTAKE:
            raise DemoFailed(f"{job.namespace}/{job.name} was refused: {refused}")
        if job is MISTAKE:
            stage.refused(job, refused)


def _is_done(stage: Stage, shown: Sequence[Row]) -> bool:
    states = {row.job: row.state for row in shown}
    expected = {job.name: "finished" if job.can_run else "waiting" for job in JOBS}
    expected[MISTAKE.name] = "refused"
    return states == expected and stage.is_idle()


async def _draw(stage: Stage, show: Callable[[View, bool], None]) -> None:
    while True:
        view = stage.view()
        is_done = _is_done(stage, view.rows)
        show(view, is_done)
        if is_done:
            return
        stage.changed.clear()
        try:
            async with asyncio.timeout(_DRAW_S):
                await stage.changed.wait()
        except TimeoutError:
            continue


async def _lines(stage: Stage) -> None:
    told = 0
    width = demo_board.plain_width()

    def show(view: View, is_done: bool) -> None:
        del is_done
        nonlocal told
        for event in view.happened[told:]:
            say(demo_board.line(event, width))
        told = len(view.happened)

    await _draw(stage, show)


async def _table(stage: Stage) -> None:
    console = Console()
    board = demo_board.Board(console)
    with Live(console=console, refresh_per_second=8) as live:

        def show(view: View, is_done: bool) -> None:
            live.update(board.picture(view, is_done=is_done))

        await _draw(stage, show)


def _check(stage: Stage) -> None:
    """Raise DemoFailed unless what happened is what must."""
    if not stage.refusals.get(MISTAKE.name):
        raise DemoFailed("a Job with a malformed queue name was accepted")
    is_late = stage.end_s["sweep"] < stage.submit_s["finetune"]
    if "sweep" not in stage.evictions and not is_late:
        raise DemoFailed("products did not get its quota back from research/sweep")
