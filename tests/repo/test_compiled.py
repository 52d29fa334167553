"""The compiled engine is all there, and decides and says what the plain one does."""

import json
import os

import pytest
from tests.support.compiled import PYTHON, ROOT, compiled_python, plain_python, run

TESTED_VARIABLE = "SLUICE_TESTED_BUILD"

LIST_MODULES = """
import importlib, json, pkgutil, sluice.engine
names = [m.name for m in pkgutil.walk_packages(sluice.engine.__path__, "sluice.engine.")
         if not m.ispkg]
print(json.dumps({name: importlib.import_module(name).__file__ for name in names}))
"""


@pytest.fixture
def compiled() -> str:
    return compiled_python()


def test_this_run_tests_the_build_that_it_says() -> None:
    from sluice.engine import cycle

    is_compiled = cycle.__file__.endswith(".so")
    assert is_compiled == (os.environ.get(TESTED_VARIABLE) == "compiled")


@pytest.mark.slow
def test_every_module_of_the_engine_is_compiled(compiled: str) -> None:
    files = json.loads(run(compiled, "-c", LIST_MODULES))
    sources = {
        str(path.relative_to(ROOT / "queue").with_suffix("")).replace("/", ".")
        for path in (ROOT / "queue/sluice/engine").rglob("*.py")
        if path.name != "__init__.py"
    }
    assert files.keys() == sources
    assert not {name for name, file in files.items() if not file.endswith(".so")}


@pytest.mark.slow
def test_the_plain_build_has_nothing_compiled() -> None:
    files = json.loads(run(plain_python(), "-c", LIST_MODULES))
    assert not {name for name, file in files.items() if file.endswith(".so")}
    assert not list((ROOT / "queue").rglob("*.so"))


@pytest.mark.slow
def test_recorded_scenarios_get_the_same_answers_word_by_word(compiled: str) -> None:
    arguments = ("-m", "tests.support.golden_digest", "2")
    plain = run(plain_python(), *arguments, hash_seed="1").splitlines()
    assert len(plain) == 260
    assert run(compiled, *arguments, hash_seed="4242").splitlines() == plain


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 5, 6])
def test_a_history_gets_the_same_commands_under_any_hash_seed(compiled: str, seed: int) -> None:
    arguments = ("-m", "tests.support.history", str(seed))
    plain = run(plain_python(), *arguments)
    assert [run(compiled, *arguments, hash_seed=h) for h in ("1", "4242")] == [plain, plain]


@pytest.mark.slow
def test_the_benchmark_says_which_build_it_measures(compiled: str) -> None:
    arguments = (str(ROOT / "benchmarks/engine.py"), "--json", "--workloads", "300")
    said = {python: json.loads(run(python, *arguments)) for python in (compiled, plain_python())}
    assert said[str(PYTHON)]["build"] == "compiled"
    assert said[plain_python()]["build"] == "plain"
    figures = ("heads", "cycles", "admissions", "preemptions")
    assert [said[compiled][f] for f in figures] == [said[plain_python()][f] for f in figures]
