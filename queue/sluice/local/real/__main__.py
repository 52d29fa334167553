"""``python -m sluice.local.real``: find the real control plane, or build it once.

This is what ``make control-plane`` runs. It prints the folder with the programs on standard output,
and what it does meanwhile on standard error. Exit codes: 0 found or built, 1 not, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from sluice.clock import SystemClock
from sluice.local.real import versions
from sluice.local.real.build import build
from sluice.local.real.errors import ControlPlaneError, ProgramsMissing
from sluice.local.real.programs import find
from sluice.local.real.progress import Progress


def main() -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m sluice.local.real", description=__doc__)
    parser.add_argument(
        "--find", action="store_true", help="only look; exit with 1 if the programs are missing"
    )
    parser.add_argument(
        "--modules",
        type=Path,
        default=Path(__file__).resolve().parents[4] / "tests" / "controlplane",
        help="folder with the pinned Go modules (default: that of this source checkout)",
    )
    options = parser.parse_args()
    progress = Progress(sys.stderr, SystemClock())
    try:
        programs = find(os.environ, versions.PROGRAMS)
    except ProgramsMissing as missing:
        if options.find:
            print(missing, file=sys.stderr)
            return 1
        progress.line(f"building Kubernetes {versions.KUBERNETES}, etcd {versions.ETCD}, kwok")
        try:
            programs = build(os.environ, options.modules, progress)
        except ControlPlaneError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted; nothing was left behind", file=sys.stderr)
            return 130
        progress.line("done")
    print(programs.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
