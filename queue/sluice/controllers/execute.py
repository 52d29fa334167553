"""Carries out the engine's commands: one status write each, then an event; or says it failed.

Commands of one Workload run one after the other, in the order given. A QuotaReserved=False that is
overtaken by a newer command of its Workload is dropped, is written at most once a second per
Workload, and stands back while admissions wait, because every write counts. A write whose outcome
is unknown is settled by reading the Workload, never by writing blindly.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from sluice.api.errors import Conflict, KubeError, NotFound, Throttled, Transient
from sluice.api.names import WorkloadKey, split_key
from sluice.clock import Clock
from sluice.controllers import commands as effects
from sluice.controllers.caches import Caches, Json
from sluice.controllers.notes import Notes
from sluice.controllers.pace import Informing, Pace
from sluice.controllers.write import NotLeading, Writer
from sluice.engine.commands import Command, MarkPending
from sluice.kube.backoff import Backoff
from sluice.kube.workqueue import WorkQueue
from sluice.log import get_logger

log = get_logger(__name__)

ORDERS_MAX: Final = 2000
"""Commands that may wait: beyond it the engine runs no further cycle, so that what it decides is
not minutes ahead of what is written."""
MARK_INTERVAL_S: Final = 1.0
_MARK_RETRY_S: Final = 0.5
_ATTEMPTS_MAX: Final = 8
_RETRY_S: Final = 0.1
_RETRY_S_MAX: Final = 5.0
_FAILURE_WAIT_S: Final = 1.0
_FAILURE_WAIT_S_MAX: Final = 30.0


class Reports(Protocol):
    """Hears how commands ended."""

    def applied(self, command: Command, resource_version: str) -> None:
        """A command was written, or was done already."""
        ...

    def failed(self, command: Command, message: str) -> None:
        """A command was not written and won't be."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """A command, and the generation of the Workload it was decided on."""

    command: Command
    generation: int


class Executor:
    """Writes commands with bounded concurrency.

    Attributes:
        written_count: Commands written.
        overtaken_count: QuotaReserved=False that a newer command made needless.
    """

    def __init__(
        self,
        caches: Caches,
        writer: Writer,
        notes: Notes,
        reports: Reports,
        pace: Pace,
        *,
        clock: Clock,
        workers: int,
        tracks_pods: bool,
    ) -> None:
        """Make an executor; nothing is written before ``run``.

        Args:
            caches: Where Workloads are read.
            writer: How they are written.
            notes: Where events go.
            reports: Hears how commands ended.
            pace: How fast reasons for waiting may go.
            clock: Time.
            workers: Commands written at once.
            tracks_pods: Admitted Workloads of jobs get a PodsReady condition.
        """
        self._caches = caches
        self._writer = writer
        self._notes = notes
        self._reports = reports
        self._pace = pace
        self._clock = clock
        self._workers = workers
        self._tracks_pods = tracks_pods
        self._queue = WorkQueue[str]()
        self._orders: dict[str, deque[_Order]] = {}
        self._marked_s: dict[str, float] = {}
        self._room = asyncio.Event()
        self._room.set()
        self._failures: dict[str, Backoff] = {}
        self.written_count = 0
        self.overtaken_count = 0

    def submit(self, commands: Iterable[Command]) -> None:
        """Take commands in; returns at once."""
        now_s = self._clock.monotonic_s()
        for command in commands:
            cached = self._caches.workloads.store.get(command.workload)
            generation = 0 if cached is None else cached.record.generation
            order = _Order(command=command, generation=generation)
            orders = self._orders.setdefault(command.workload, deque())
            if orders and isinstance(orders[-1].command, MarkPending):
                orders.pop()
                self.overtaken_count += 1
            orders.append(order)
            if isinstance(command, MarkPending):
                self._queue.add_after(command.workload, self._mark_wait_s(command, now_s))
            else:
                self._queue.add(command.workload)
        if len(self._orders) >= ORDERS_MAX:
            self._room.clear()

    def _mark_wait_s(self, command: MarkPending, now_s: float) -> float:
        marked_s = self._marked_s.get(command.workload)
        since_s = MARK_INTERVAL_S if marked_s is None else now_s - marked_s
        return max(0.0, MARK_INTERVAL_S - since_s)

    async def room(self) -> None:
        """Wait until fewer commands wait than the bound."""
        await self._room.wait()

    async def run(self) -> None:
        """Write commands until cancelled; what is left then is reported as failed."""
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(self._workers):
                    group.create_task(self._work(), name=f"execute-{number}")
        finally:
            self._give_up()

    def _give_up(self) -> None:
        self._queue.close()
        orders, self._orders = self._orders, {}
        self._queue = WorkQueue[str]()
        self._room.set()
        for waiting in orders.values():
            for order in waiting:
                self._reports.failed(order.command, "this replica no longer leads")

    async def _work(self) -> None:
        queue = self._queue
        while True:
            key = await queue.get()
            try:
                await self._run_orders(key)
            finally:
                queue.done(key)

    async def _run_orders(self, key: str) -> None:
        orders = self._orders.get(key)
        while orders:
            order = orders[0]
            is_mark = isinstance(order.command, MarkPending)
            if is_mark and (wait_s := self._pace.wait_s(Informing.REASONS)) > 0:
                self._queue.add_after(key, max(wait_s, _MARK_RETRY_S))
                return
            # It stays in the list while it runs: a cancelled one is reported as failed.
            await self._execute(order)
            if orders and orders[0] is order:
                orders.popleft()
        self._orders.pop(key, None)
        if len(self._orders) < ORDERS_MAX:
            self._room.set()

    async def _execute(self, order: _Order) -> None:
        command = order.command
        try:
            version = await self._write(order)
        except NotLeading as error:
            self._reports.failed(command, str(error))
        except effects.Stale as error:
            if not isinstance(command, MarkPending):
                log.debug(
                    "command overtaken", fields={"workload": command.workload, "why": str(error)}
                )
            self._failures.pop(command.workload, None)
            self._reports.failed(command, str(error))
        except KubeError as error:
            await self._refused(command, error)
        else:
            self._failures.pop(command.workload, None)
            self._reports.applied(command, version)

    async def _refused(self, command: Command, error: KubeError) -> None:
        """Report a failure, later each time: an API server that refuses is not asked in a loop."""
        fields = {
            "workload": command.workload,
            "command": type(command).__name__,
            "error": str(error),
        }
        log.warning("command not written", fields=fields)
        if not isinstance(error, NotFound):
            backoff = self._failures.setdefault(
                command.workload, Backoff(base_s=_FAILURE_WAIT_S, max_s=_FAILURE_WAIT_S_MAX)
            )
            await asyncio.sleep(backoff.next_s())
        else:
            self._failures.pop(command.workload, None)
        self._reports.failed(command, str(error))

    async def _write(self, order: _Order) -> str:
        """Write a command and return the resourceVersion it led to.

        Raises:
            Stale: The Workload is no longer what the decision was about.
            KubeError: The API server refused for good, or for too long.
        """
        backoff = Backoff(base_s=_RETRY_S, max_s=_RETRY_S_MAX)
        key = order.command.workload
        raw = self._caches.workloads.store.raw(key)
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            if raw is None:
                raise effects.Stale("the Workload no longer exists")
            try:
                return await self._write_once(order, raw)
            except Conflict:
                pass
            except (Transient, Throttled):
                if attempt == _ATTEMPTS_MAX:
                    raise
                await asyncio.sleep(backoff.next_s())
            # Either someone else wrote, or our write got through and its answer did not.
            raw = await self._read(key)
        raise effects.Stale("the Workload changes faster than it can be written")

    async def _read(self, key: WorkloadKey) -> Json | None:
        namespace, name = split_key(key)
        try:
            return await self._writer.fresh(self._caches.workloads, namespace, name)
        except NotFound:
            return None

    async def _write_once(self, order: _Order, raw: Json) -> str:
        command = order.command
        outcome = effects.outcome_of(
            command,
            raw,
            generation=order.generation,
            now_ms=self._clock.now_ms(),
            tracks_pods=self._tracks_pods and self._caches.registry.owner_of(raw) is not None,
        )
        if outcome.status is None:
            return str(raw["metadata"]["resourceVersion"])
        answer = await self._writer.status(self._caches.workloads, raw, outcome.status)
        self.written_count += 1
        if isinstance(command, MarkPending):
            self._remember_mark(command.workload)
        else:
            self._pace.decided()
        for note in outcome.notes:
            self._notes.record(answer, effects.REPORTER, note)
        return str(answer["metadata"]["resourceVersion"])

    def _remember_mark(self, key: str) -> None:
        now_s = self._clock.monotonic_s()
        self._marked_s.pop(key, None)
        self._marked_s[key] = now_s
        while self._marked_s:
            oldest = next(iter(self._marked_s))
            if now_s - self._marked_s[oldest] < MARK_INTERVAL_S:
                break
            del self._marked_s[oldest]
