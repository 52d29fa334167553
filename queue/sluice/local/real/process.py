"""One program of a control plane: started, watched while it gets ready, stopped.

It belongs to no event loop (a session's fixture starts it in one and stops it in another), so it is
a plain subprocess whose waits run in threads. Used only by `sluice.local.real.plane`.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sluice.local.real.errors import StartFailed
from sluice.local.real.reaper import Reaper

_LOG_LINES_MAX = 12
_LOG_BYTES_MAX = 16_384
_KILL_TIMEOUT_S = 10.0


class Process:
    """A program with its log file.

    Args:
        name: Short name, also that of the log file.
        command: The program and its arguments.
        log: File that its output is appended to.
        reaper: Told while the program runs.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path, reaper: Reaper) -> None:
        self.name = name
        self.log = log
        self._command = list(command)
        self._reaper = reaper
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs, else None."""
        return self._process.pid if self._process is not None and self.is_running else None

    @property
    def is_running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the program; its log goes on where it ended.

        Raises:
            StartFailed: It cannot be executed.
        """
        with self.log.open("ab") as log:
            try:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self.log.parent,
                    start_new_session=True,
                )
            except OSError as error:
                raise StartFailed(f"{self._command[0]} cannot be run: {error}") from error
        self._reaper.watch(self._process.pid)

    def check(self) -> None:
        """Raise StartFailed when the program has ended by itself."""
        if not self.is_running:
            raise StartFailed(f"{self.name} ended unexpectedly; {self.log}:\n{self.log_tail()}")

    async def stop(self, timeout_s: float) -> None:
        """Ask the program to end, and kill it when it has not after ``timeout_s``."""
        await self._end(signal.SIGTERM, timeout_s)

    async def kill(self) -> None:
        """End the program at once, as a crash would."""
        await self._end(signal.SIGKILL, _KILL_TIMEOUT_S)

    def log_tail(self) -> str:
        """Return the last lines of its log, each cut to a readable length."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - _LOG_BYTES_MAX))
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(line[:400] for line in lines[-_LOG_LINES_MAX:])

    async def _end(self, how: signal.Signals, timeout_s: float) -> None:
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
            try:
                await asyncio.to_thread(process.wait, timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                await asyncio.to_thread(process.wait, _KILL_TIMEOUT_S)
        self._reaper.forget(process.pid)
        self._process = None
