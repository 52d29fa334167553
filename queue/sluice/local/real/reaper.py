"""Makes sure that no program outlives us, however we end.

A control plane's programs run in sessions of their own, so that Ctrl-C reaches only us and we can
stop them in order. The price is that they would stay when we are killed outright. So one small
shell waits on a pipe that only we hold: when it closes, for whatever reason, it kills the programs
that were registered and deletes the control plane's folder. Used only by `sluice.local.real.plane`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

_STOP_TIMEOUT_S = 5.0

# Reads "+ PID" and "- PID" lines; "done" means that everything was cleaned up properly.
_SCRIPT: Final = """
pids=" "
while read -r verb pid; do
  case "$verb" in
    +) pids="$pids$pid " ;;
    -) pids="${pids%% $pid *} ${pids#* $pid }" ;;
    done) exit 0 ;;
  esac
done
for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
[ -n "$1" ] && rm -rf -- "$1"
"""


class Reaper:
    """Watches over the programs of one control plane.

    Args:
        folder: Deleted if we die; None keeps everything.
    """

    def __init__(self, folder: Path | None) -> None:
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "sluice-reaper", str(folder or "")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def watch(self, pid: int) -> None:
        """Kill this process if we die."""
        self._say(f"+ {pid}")

    def forget(self, pid: int) -> None:
        """The process has ended; its number may soon belong to another."""
        self._say(f"- {pid}")

    def dismiss(self) -> None:
        """End the watch; whoever calls has stopped the programs."""
        self._say("done")
        self.abandon()

    def abandon(self) -> None:
        """Close the pipe, as our death would, and wait until the reaper has done its work."""
        if self._shell.stdin is not None:
            self._shell.stdin.close()
        self._shell.wait(_STOP_TIMEOUT_S)

    def _say(self, line: str) -> None:
        if self._shell.stdin is not None:
            self._shell.stdin.write(line + "\n")
            self._shell.stdin.flush()
