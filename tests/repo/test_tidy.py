"""Sizes, layout and banned calls: the rules of CONTRIBUTING.md that no linter has."""

import ast
import queue
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
SOURCE_ROOTS = ("queue", "webhook", "tests", "benchmarks")
PURE = ("queue/sluice/api", "queue/sluice/engine", "queue/sluice/jobs")


def python_files(*roots: str) -> list[Path]:
    files = [f for root in roots for f in sorted((ROOT / root).rglob("*.py"))]
    assert files, f"no Python files under {roots}"
    return files


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_files_are_short() -> None:
    long = {
        shown(f): lines
        for f in python_files(*SOURCE_ROOTS)
        if (lines := len(f.read_text().splitlines())) > FILE_LINES_MAX
    }
    assert not long, f"split by idea: more than {FILE_LINES_MAX} lines"


def test_functions_are_short() -> None:
    long = {
        f"{shown(f)}:{node.lineno} {node.name}": length
        for f in python_files(*SOURCE_ROOTS)
        for node in ast.walk(ast.parse(f.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES_MAX
    }
    assert not long, f"split: more than {FUNCTION_LINES_MAX} lines"


def test_the_standard_library_keeps_its_queue() -> None:
    assert Path(queue.__file__).parent == Path(sysconfig.get_path("stdlib"))
    assert not (ROOT / "queue" / "__init__.py").exists()
    assert not (ROOT / "webhook" / "__init__.py").exists()
    shadows = [
        shown(package)
        for root in SOURCE_ROOTS
        for init in (ROOT / root).rglob("__init__.py")
        if (package := init.parent).name in sys.stdlib_module_names
        and package.parent == ROOT / root
    ]
    assert not shadows


@pytest.mark.parametrize("root", SOURCE_ROOTS)
def test_tests_have_no_packages(root: str) -> None:
    if root in ("tests", "benchmarks"):
        assert not list((ROOT / root).rglob("__init__.py"))


def called_names(tree: ast.AST) -> set[str]:
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def test_tests_do_not_sleep() -> None:
    banned = {"time.sleep"}
    sleepers = {
        shown(f): found
        for f in python_files("tests")
        if (found := called_names(ast.parse(f.read_text())) & banned)
    }
    assert not sleepers, "wait on a watch or a condition with a deadline instead"


def test_only_the_clock_reads_the_clock() -> None:
    banned = {
        "time.time",
        "time.time_ns",
        "datetime.now",
        "datetime.utcnow",
        "datetime.datetime.now",
    }
    readers = {
        shown(f): found
        for f in python_files("queue", "webhook")
        if f.name != "clock.py" and (found := called_names(ast.parse(f.read_text())) & banned)
    }
    assert not readers, "take a sluice.clock.Clock"


def test_only_the_composition_root_reads_the_environment() -> None:
    readers = [
        shown(f)
        for f in python_files("queue", "webhook")
        if "/cli/" not in str(f)
        and "/local/real/" not in str(f)
        and any(
            ast.unparse(node) in ("os.environ", "os.getenv")
            for node in ast.walk(ast.parse(f.read_text()))
            if isinstance(node, ast.Attribute)
        )
    ]
    assert not readers, "pass the value in from sluice.cli"


def test_nothing_shares_the_global_randomness() -> None:
    users = {
        shown(f): found
        for f in python_files("queue", "webhook")
        if (
            found := {
                name
                for name in called_names(ast.parse(f.read_text()))
                if name.startswith("random.") and name != "random.Random"
            }
        )
    }
    assert not users, "take a random.Random that is passed in, or sluice.kube.backoff.DICE"


def test_cancellation_is_not_lost() -> None:
    waiters = [
        shown(f)
        for f in python_files("queue", "webhook")
        if "asyncio.wait_for" in called_names(ast.parse(f.read_text()))
    ]
    assert not waiters, "on Python 3.11 wait_for can swallow a cancellation: use asyncio.timeout"


def test_pure_packages_print_nothing() -> None:
    printers = [
        shown(f)
        for f in python_files(*PURE)
        if called_names(ast.parse(f.read_text())) & {"print", "open", "input"}
    ]
    assert not printers


def test_no_path_of_a_machine_is_committed() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    files = [ROOT / name for name in listed.stdout.split("\0") if name] or python_files(
        *SOURCE_ROOTS
    )
    needle = "/".join(("", "work", ""))
    found = [
        shown(f)
        for f in files
        if f.suffix in (".py", ".md", ".yaml", ".toml", ".sh", ".mod") or f.name == "Makefile"
        if f.is_file() and needle in f.read_text(errors="ignore")
    ]
    assert not found
