"""Drives the engine: facts in from the informers, cycles when due, commands out to the executor.

Every replica observes, so that a standby knows the world when it takes over; only the leader runs
cycles. The loop is woken by each fact and runs a cycle as soon as the engine asks for one; between
two cycles it lets everything else run, so nothing waits longer than one cycle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from sluice.api.records import Kind, Record
from sluice.clock import Clock
from sluice.controllers.caches import Caches
from sluice.engine.commands import Command
from sluice.engine.engine import Engine
from sluice.engine.events import CommandApplied, CommandFailed, Event, Gone, Observed
from sluice.kube.informer import Handlers, Informer

IDLE_S_MAX: Final = 60.0
"""Even without facts and deadlines the engine is asked once a minute: a lost wake-up heals."""


CycleObserver = Callable[[float, tuple[Command, ...]], None]
"""Called after each cycle with its seconds and its decisions."""


class CommandSink(Protocol):
    """Takes the engine's decisions."""

    def submit(self, commands: Iterable[Command]) -> None:
        """Take commands in; returns at once."""
        ...

    async def room(self) -> None:
        """Wait until more commands may be submitted."""
        ...


class Scheduler:
    """Feeds one engine and runs its cycles.

    Attributes:
        engine: The engine; read-only queries may be called at any time.
        changed: Set whenever the status of a queue may have changed; cleared by who reads it.
        cycles_count: Cycles run since the start.
    """

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self.engine = engine
        self.changed = asyncio.Event()
        self.cycles_count = 0
        self.cycle_observers: list[CycleObserver] = []
        self._clock = clock
        self._wake = asyncio.Event()
        self._last_ms = 0

    def attach(self, caches: Caches) -> None:
        """Observe every change of the caches from now on."""
        for kind, informer in caches.observed():
            self._attach(kind, informer)

    def _attach(self, kind: Kind, informer: Informer[Any]) -> None:
        if kind is Kind.WORKLOAD:
            informer.add_handlers(
                Handlers(
                    added=lambda _, cached: self.observe_record(cached.record),
                    updated=lambda _, __, cached: self.observe_record(cached.record),
                    deleted=lambda key, _: self.observe_gone(kind, key),
                )
            )
            return
        informer.add_handlers(
            Handlers(
                added=lambda _, record: self.observe_record(record),
                updated=lambda _, __, record: self.observe_record(record),
                deleted=lambda key, _: self.observe_gone(kind, key),
            )
        )

    def observe_record(self, record: Record) -> None:
        """Tell the engine that an object looks like this."""
        self._observe(Observed(at_ms=self.now_ms(), record=record))

    def applied(self, command: Command, resource_version: str) -> None:
        """Tell the engine that a command was written."""
        at_ms = self.now_ms()
        self._observe(
            CommandApplied(at_ms=at_ms, command=command, resource_version=resource_version)
        )

    def failed(self, command: Command, message: str) -> None:
        """Tell the engine that a command was not written and won't be."""
        self._observe(CommandFailed(at_ms=self.now_ms(), command=command, message=message))

    def observe_gone(self, kind: Kind, key: str) -> None:
        """Tell the engine that an object is no more."""
        self._observe(Gone(at_ms=self.now_ms(), kind=kind, key=key))

    def _observe(self, event: Event) -> None:
        self.engine.observe(event)
        self._wake.set()
        self.changed.set()

    def now_ms(self) -> int:
        """Return the wall clock, never going back: the engine's time only moves on."""
        self._last_ms = max(self._last_ms, self._clock.now_ms())
        return self._last_ms

    async def run(self, sink: CommandSink) -> None:
        """Run cycles until cancelled; only while leading."""
        while True:
            await sink.room()
            await self._until_due()
            started_s = self._clock.monotonic_s()
            commands = self.engine.cycle(self.now_ms())
            duration_s = self._clock.monotonic_s() - started_s
            self.cycles_count += 1
            if commands:
                self.changed.set()
                sink.submit(commands)
            for observer in self.cycle_observers:
                observer(duration_s, commands)
            # One turn of the event loop: I/O and other tasks go on between any two cycles.
            await asyncio.sleep(0)

    async def _until_due(self) -> None:
        """Wait until the engine asks for a cycle."""
        while True:
            self._wake.clear()
            due_ms = self.engine.next_deadline_ms()
            wait_s = IDLE_S_MAX if due_ms is None else (due_ms - self.now_ms()) / 1000
            if wait_s <= 0:
                return
            try:
                # Not wait_for: in Python 3.11 it loses a cancellation that comes with the event.
                async with asyncio.timeout(min(wait_s, IDLE_S_MAX)):
                    await self._wake.wait()
            except TimeoutError:
                if due_ms is not None and self.now_ms() >= due_ms:
                    return
