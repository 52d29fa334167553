"""Ctrl-C for the commands that start programs and folders: whatever they do, they clean up first.

The first signal cancels the work, so that everything is ended in order; a second one says so; the
third leaves at once, for a person who will not wait. Used by ``demo`` and ``up``.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

EXIT_INTERRUPTED: Final = 130
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Interrupts:
    """Counts signals and does what each is for."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task
        self._count = 0

    def __call__(self) -> None:
        self._count += 1
        if self._count == 1:
            self._task.cancel()
        elif self._count == 2:
            say("cleaning up, a moment; once more leaves things behind")
        else:
            os._exit(EXIT_INTERRUPTED)


def say(text: str) -> None:
    """Print a line; whoever read them may have gone."""
    with suppress(OSError):
        print(text, flush=True)


@contextmanager
def ending_quietly() -> Iterator[None]:
    """Run a whole command; when it has ended, only the interpreter is left to end.

    A late Ctrl-C must not break into that. Nor must it take long: the interpreter would look
    through all that is left for cycles, several times, a second or more, and nothing in it needs
    to be found.
    """
    try:
        yield
    finally:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        gc.freeze()


def run_interruptible(work: Coroutine[Any, Any, None]) -> None:
    """Run the work in an event loop of its own; a signal cancels it.

    Raises:
        KeyboardInterrupt: A signal came, and the work has cleaned up after itself.
    """
    asyncio.run(_watched(work))


async def _watched(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work, name="command")
    interrupts = _Interrupts(task)
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, interrupts)
    try:
        await task
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        # From here on there is nothing to clean up, only a program to end.
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)
