"""The build, driven with a stand-in for Go: what it leaves behind when it works and when not."""

import fcntl
import io
import threading
from pathlib import Path

import pytest

from sluice.clock import ManualClock
from sluice.local.real import versions
from sluice.local.real.build import build, linker_flags
from sluice.local.real.errors import BuildFailed
from sluice.local.real.programs import cache_folder, cache_root
from sluice.local.real.progress import Progress
from sluice.local.real.toolchain import go_series

MODULES = Path(__file__).parents[3] / "controlplane"

ALL_RELEASES = f"{versions.KUBERNETES} {versions.ETCD} {versions.KWOK}"

# Answers like Go as far as the build asks; its "programs" print TELLS, or every release there is.
GO = f"""#!/bin/sh
case "$1" in
  version) echo "go version go1.26.8 linux/amd64"; exit 0 ;;
  list) echo a; echo b; exit 0 ;;
esac
[ -n "$FAIL" ] && {{ echo "compiler says no" >&2; exit 1; }}
while [ "$1" != -o ]; do shift; done
out="$2"; shift 2
for package in "$@"; do
  file="$out"
  [ -d "$out" ] && file="$out/${{package##*/}}"
  echo "$package" >&2
  printf '#!/bin/sh\\necho "%s"\\n' "${{TELLS:-{ALL_RELEASES}}}" > "$file"
  chmod +x "$file"
done
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "go").write_text(GO)
    (tools / "go").chmod(0o755)
    return {"PATH": f"{tools}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")}


def progress(stream: io.StringIO | None = None) -> Progress:
    return Progress(stream or io.StringIO(), ManualClock())


def left_over(environ: dict[str, str]) -> list[str]:
    return sorted(path.name for path in cache_root(environ).iterdir() if path.name != ".lock")


def test_every_program_is_built_once(environ: dict[str, str]) -> None:
    stream = io.StringIO()
    programs = build(environ, MODULES, progress(stream))
    assert not programs.missing(versions.PROGRAMS)
    assert left_over(environ) == [versions.cache_key()]
    assert "compiling etcd (2 packages)" in stream.getvalue()
    silent = io.StringIO()
    assert build(environ, MODULES, progress(silent)) == programs
    assert silent.getvalue() == ""


def test_a_failed_build_leaves_nothing_and_shows_what_the_compiler_said(
    environ: dict[str, str],
) -> None:
    with pytest.raises(BuildFailed, match="compiler says no"):
        build({**environ, "FAIL": "1"}, MODULES, progress())
    assert left_over(environ) == []


def test_a_program_of_another_release_is_refused(environ: dict[str, str]) -> None:
    with pytest.raises(BuildFailed, match=f"etcd does not say that it is {versions.ETCD}"):
        build({**environ, "TELLS": f"{versions.KUBERNETES} v9.9.9"}, MODULES, progress())
    assert left_over(environ) == []


def test_an_incomplete_folder_and_an_interrupted_build_are_replaced(
    environ: dict[str, str],
) -> None:
    cache_folder(environ).mkdir(parents=True)
    (cache_folder(environ) / "etcd").write_text("half")
    (cache_root(environ) / ".building-old").mkdir()
    assert not build(environ, MODULES, progress()).missing(versions.PROGRAMS)
    assert left_over(environ) == [versions.cache_key()]


def test_a_second_build_waits_for_the_first(environ: dict[str, str]) -> None:
    cache_root(environ).mkdir(parents=True)
    stream = io.StringIO()
    with (cache_root(environ) / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiter = threading.Thread(target=build, args=(environ, MODULES, progress(stream)))
        waiter.start()
        waiter.join(0.2)
        assert waiter.is_alive()
        assert left_over(environ) == []
    waiter.join(30)
    assert left_over(environ) == [versions.cache_key()]
    assert "another build is running" in stream.getvalue()


def test_without_a_source_checkout_the_way_out_is_named(
    environ: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(BuildFailed, match=r"source checkout.*KUBEBUILDER_ASSETS"):
        build(environ, tmp_path, progress())


def test_the_release_is_set_where_kubernetes_looks_for_it() -> None:
    flags = linker_flags()
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        assert f"-X {package}.gitVersion={versions.KUBERNETES}" in flags


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param("go version go1.26.8 linux/amd64", "1.26", id="release"),
        pytest.param("go version go1.27 linux/amd64", "1.27", id="without patch number"),
        pytest.param("no idea", None, id="something else"),
    ],
)
def test_go_series(tmp_path: Path, answer: str, expected: str | None) -> None:
    (tmp_path / "go").write_text(f"#!/bin/sh\necho '{answer}'\n")
    (tmp_path / "go").chmod(0o755)
    assert go_series(tmp_path / "go", {}) == expected


def test_a_file_that_is_no_program_has_no_series(tmp_path: Path) -> None:
    assert go_series(tmp_path / "go", {}) is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_one_line_that_is_rewritten() -> None:
    clock, stream = ManualClock(), Terminal()
    shown = Progress(stream, clock)
    for done in range(1, 4):
        clock.advance(200)
        shown.count(done, 3, "package")
    shown.line("ready")
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert text.count("\r") == 4
    assert text.endswith("ready\n")


def test_a_log_gets_a_plain_line_now_and_then() -> None:
    clock, stream = ManualClock(), io.StringIO()
    shown = Progress(stream, clock)
    for done in range(1, 41):
        clock.advance(1000)
        shown.count(done, 40, "package")
    assert stream.getvalue() == "[  15 s] 15/40 package\n[  30 s] 30/40 package\n"
