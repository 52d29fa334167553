"""The loop around a reconciler: keys in, `Done` or `After` out, back-off on failure.

A reconciler gets a key, reads the caches and acts idempotently; it never sees the event. While the
loop does not run (this process does not lead), keys are not even queued: starting looks at every
object anew. Used by every controller; nobody else catches ``Exception``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

from sluice.api.errors import Conflict, InvariantViolation, KubeError, SluiceError
from sluice.controllers.write import NotLeading
from sluice.kube.workqueue import WorkQueue
from sluice.log import get_logger

log = get_logger(__name__)

RECONCILE_TIMEOUT_S: Final = 60.0
_QUIET_FAILURES: Final = 3
"""Failures of a key in a row that are logged at debug only: most pass by themselves."""


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing more to do until something changes."""


@dataclass(frozen=True, slots=True)
class After:
    """Look again after some seconds."""

    seconds: float


Result = Done | After
DONE: Final = Done()


class Reconciler:
    """Workers that hand keys to a reconcile function, one at a time for each key.

    Attributes:
        name: For logs, metrics and task names.
        failures_count: Reconciles that failed since the start.
    """

    def __init__(
        self,
        name: str,
        reconcile: Callable[[str], Awaitable[Result]],
        *,
        workers: int,
        all_keys: Callable[[], Iterable[str]],
    ) -> None:
        """Make a loop; nothing runs before ``run``.

        Args:
            name: Name of the controller.
            reconcile: Looks at one key.
            workers: Keys worked on at once.
            all_keys: Keys to look at when the loop starts.
        """
        self.name = name
        self.failures_count = 0
        self._reconcile = reconcile
        self._workers = workers
        self._all_keys = all_keys
        self._queue: WorkQueue[str] | None = None

    def add(self, key: str) -> None:
        """Look at a key soon; ignored while the loop does not run."""
        if self._queue is not None:
            self._queue.add(key)

    def add_after(self, key: str, wait_s: float) -> None:
        """Look at a key after some seconds; ignored while the loop does not run."""
        if self._queue is not None:
            self._queue.add_after(key, wait_s)

    @property
    def waiting_count(self) -> int:
        """Return how many keys are ready for a worker."""
        return 0 if self._queue is None else len(self._queue)

    async def run(self) -> None:
        """Look at every key, then at those that are added, until cancelled."""
        queue = self._queue = WorkQueue[str]()
        try:
            for key in self._all_keys():
                queue.add(key)
            async with asyncio.TaskGroup() as group:
                for number in range(self._workers):
                    group.create_task(self._work(queue), name=f"{self.name}-{number}")
        finally:
            self._queue = None
            queue.close()

    async def _work(self, queue: WorkQueue[str]) -> None:
        while True:
            key = await queue.get()
            try:
                await self._look(queue, key)
            finally:
                queue.done(key)

    async def _look(self, queue: WorkQueue[str], key: str) -> None:
        try:
            async with asyncio.timeout(RECONCILE_TIMEOUT_S):
                result = await self._reconcile(key)
        except InvariantViolation:
            raise
        except NotLeading:
            return
        except Exception as error:  # the one place: a key that fails must not stop the others
            self._failed(queue, key, error)
            return
        queue.forget(key)
        if isinstance(result, After):
            queue.add_after(key, result.seconds)

    def _failed(self, queue: WorkQueue[str], key: str, error: Exception) -> None:
        self.failures_count += 1
        wait_s = queue.add_failed(key)
        fields = {
            "controller": self.name,
            "key": key,
            "error": f"{type(error).__name__}: {error}",
            "retry_s": round(wait_s, 2),
        }
        if not isinstance(error, SluiceError | TimeoutError):
            log.exception("reconcile failed with an unexpected error", fields=fields)
        elif isinstance(error, Conflict) or (
            isinstance(error, KubeError) and queue.failure_count(key) <= _QUIET_FAILURES
        ):
            log.debug("reconcile failed; trying again", fields=fields)
        else:
            log.warning("reconcile failed; trying again", fields=fields)
