"""One stand-in's loop: take keys from a work queue, look at them, back off on failure.

Level-based like the controllers they stand in for: a key says "look at this object", so a lost or
repeated event, a conflict or a restart costs another look and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from sluice.api.errors import KubeError
from sluice.kube.workqueue import WorkQueue
from sluice.log import get_logger

Json = dict[str, Any]
Reconcile = Callable[[str], Awaitable[float | None]]
"""Looks at one key; returns the seconds until it must be looked at again, or None."""

_CONCURRENCY: Final = 8
"""Keys looked at together; stand-ins share a process with the API server, so more gains nothing."""

log = get_logger(__name__)


class Worker:
    """Looks at keys until cancelled.

    Args:
        name: For logs and task names.
        reconcile: What to do with a key.
        concurrency: Keys looked at together.
    """

    def __init__(self, name: str, reconcile: Reconcile, *, concurrency: int = _CONCURRENCY) -> None:
        self.name = name
        self.queue: WorkQueue[str] = WorkQueue()
        self._reconcile = reconcile
        self._concurrency = concurrency

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(self._concurrency):
                    group.create_task(self._loop(), name=f"standin-{self.name}-{number}")
        finally:
            self.queue.close()

    async def _loop(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                after_s = await self._reconcile(key)
            except KubeError as error:
                wait_s = self.queue.add_failed(key)
                log.debug(
                    "stand-in tries again",
                    fields={
                        "standin": self.name, "key": key, "error": str(error), "wait_s": wait_s
                    },
                )  # fmt: skip
            except Exception:
                # One object that a stand-in can't cope with must not end the others.
                self.queue.add_failed(key)
                log.exception("stand-in failed", fields={"standin": self.name, "key": key})
            else:
                self.queue.forget(key)
                if after_s is not None:
                    self.queue.add_after(key, after_s)
            finally:
                self.queue.done(key)
