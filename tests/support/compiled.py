"""The compiled build of the engine (`make compiled`), for tests that hold it to the plain one.

Where it was not built, or from other sources than those of the checkout, its tests are skipped with
one line that says how to get it; with SLUICE_REQUIRE_COMPILED=1, as in CI, they fail instead.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "compiled"
PYTHON = FOLDER / "venv" / "bin" / "python"
REQUIRE_VARIABLE = "SLUICE_REQUIRE_COMPILED"
TIMEOUT_S = 280


def compiled_python() -> str:
    """Return the interpreter that has the compiled engine; skip or fail without one."""
    problem = None
    if not PYTHON.exists():
        problem = "no compiled engine: run `make compiled` (about two minutes)"
    elif is_stale():
        problem = "the compiled engine is of other sources: run `make compiled` again"
    if problem is None:
        return str(PYTHON)
    if os.environ.get(REQUIRE_VARIABLE) == "1":
        pytest.fail(problem)
    pytest.skip(problem)


def is_stale() -> bool:
    """Tell whether sources differ from those that were built; the wheel carries its own."""
    (site,) = (FOLDER / "venv" / "lib").glob("python*/site-packages")
    return any(
        not built.exists() or built.read_bytes() != source.read_bytes()
        for source in pure_sources()
        for built in (site / source.relative_to(ROOT / "queue"),)
    )


def pure_sources() -> Iterator[Path]:
    """Yield the modules that decide: what is compiled, and what it is built upon."""
    for package in ("api", "engine"):
        yield from sorted((ROOT / "queue" / "sluice" / package).rglob("*.py"))


def run(python: str, *arguments: str, hash_seed: str = "0") -> str:
    """Run Python from the root of the checkout and return what it prints.

    The plain interpreter is given the sources, the compiled one has only its wheel.
    """
    path = [str(ROOT)] if python == str(PYTHON) else [str(ROOT / "queue"), str(ROOT)]
    environment = {
        **os.environ,
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": os.pathsep.join(path),
    }
    done = subprocess.run(
        [python, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def plain_python() -> str:
    """Return an interpreter that runs the sources: this one, told to (see `run`)."""
    return sys.executable
