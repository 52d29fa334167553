"""Build hook: ``SLUICE_MYPYC=1 python -m build --wheel`` makes a wheel with a compiled engine.

Without the variable the wheel is pure Python, which is the default. With it, mypyc translates the
engine to C and the system's C compiler builds one library of it; the sources stay in the wheel
beside it, for tracebacks. Nothing is written into the source tree, so that a checkout never runs
compiled code by accident; editable installs are always plain. Called by hatchling only.
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "SLUICE_MYPYC"
COMPILER = ["mypy[mypyc]>=2.4,<3"]
PACKAGES = ("sluice/engine",)
MODULES = ("sluice/api/amount.py",)
LIBRARY = "sluice_engine"
LEVEL = "3"

SETUP = """
import sys
from mypyc.build import mypycify
from setuptools import setup

library, level, *paths = sys.argv[1:]
extensions = mypycify(
    ["--strict", "--explicit-package-bases", *paths],
    group_name=library,
    opt_level=level,
    debug_level="0",
)
setup(name=library, ext_modules=extensions, script_args=["-q", "build_ext", "--inplace"])
"""
"""Runs in a process of its own: mypyc and setuptools both expect to be the whole program."""


class CompiledEngine(BuildHookInterface[Any]):
    """Adds the compiled engine to the wheel when the environment asks for it."""

    def dependencies(self) -> list[str]:
        """Return what building needs beyond hatchling."""
        return COMPILER if is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and have the libraries put into the wheel where their sources are."""
        if self.target_name != "wheel" or version == "editable" or not is_wanted():
            return
        require_compiler()
        self._scratch = TemporaryDirectory(prefix="sluice-mypyc-")
        folder = Path(self._scratch.name)
        compile_into(folder, Path(self.root) / "queue")
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for library in libraries(folder):
            build_data["force_include"][str(library)] = str(library.relative_to(folder))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Drop the scratch folder."""
        if hasattr(self, "_scratch"):
            self._scratch.cleanup()


def is_wanted() -> bool:
    """Read the environment variable; anything but 0 and 1 is a mistake."""
    value = os.environ.get(VARIABLE, "")
    if value not in ("", "0", "1"):
        raise SystemExit(f"{VARIABLE}={value}: set it to 1 for a compiled engine, to 0 for a plain")
    return value == "1"


def require_compiler() -> None:
    """Fail with what is missing and how to get it, before minutes of translating."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(command) is None:
        raise SystemExit(
            f"{VARIABLE}=1 needs a C compiler and {command} is not there; "
            "install one (Debian: apt-get install gcc) or set CC"
        )
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.exists():
        raise SystemExit(
            f"{VARIABLE}=1 needs Python's headers and {header} is not there; "
            "install them (Debian: apt-get install python3-dev)"
        )


def compile_into(folder: Path, sources: Path) -> None:
    """Copy the package to a scratch folder and compile the engine in place there."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(sources / "sluice", folder / "sluice", ignore=ignored)
    paths = [str(path.relative_to(folder)) for path in compiled_sources(folder)]
    subprocess.run(
        [sys.executable, "-c", SETUP, LIBRARY, LEVEL, *paths],
        cwd=folder,
        env={
            **os.environ,
            "MYPYPATH": str(folder),
            "MYPY_CACHE_DIR": str(folder / "mypy-cache"),
        },
        check=True,
    )
    shutil.rmtree(folder / "build")


def compiled_sources(root: Path) -> Iterator[Path]:
    """Yield the modules to compile under a source root; packages' own files hold no code."""
    for package in PACKAGES:
        yield from (p for p in sorted((root / package).rglob("*.py")) if p.name != "__init__.py")
    for module in MODULES:
        yield root / module


def libraries(folder: Path) -> Iterator[Path]:
    """Yield what was built: one library with the code, and a stub of each module."""
    yield from sorted(folder.glob("*.so"))
    yield from sorted((folder / "sluice").rglob("*.so"))
