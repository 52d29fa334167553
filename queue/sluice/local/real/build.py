"""Builds the programs of the real control plane from their pinned Go modules, once, into the cache.

Run by ``make control-plane`` through ``python -m sluice.local.real``. The Go modules live in
``tests/controlplane/`` of a source checkout. Everything is built in a temporary folder inside the
cache and moved into place by one rename, so that a build that is interrupted leaves nothing that
looks usable; a lock keeps two builds from doing the same work.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice.local.real import versions
from sluice.local.real.errors import BuildFailed
from sluice.local.real.programs import Programs, cache_folder, cache_root
from sluice.local.real.progress import Progress
from sluice.local.real.toolchain import Toolchain, find_or_install

_LIST_TIMEOUT_S = 900.0
_ASK_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 10.0
_ERROR_LINES_MAX = 15
_TEMPORARY_PREFIX = ".building-"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoModule:
    """A pinned Go module and the programs that are built from it.

    Attributes:
        folder: Name of the folder below ``tests/controlplane``.
        programs: Program name to Go package.
    """

    folder: str
    programs: Mapping[str, str]


MODULES: Final = (
    GoModule(folder="etcd", programs={"etcd": "go.etcd.io/etcd/server/v3"}),
    GoModule(
        folder="kubernetes",
        programs={
            **{
                name: f"k8s.io/kubernetes/cmd/{name}"
                for name in (
                    "kube-apiserver",
                    "kube-controller-manager",
                    "kube-scheduler",
                    "kubectl",
                )
            },
            "kwok": "sigs.k8s.io/kwok/cmd/kwok",
        },
    ),
)


def build(environ: Mapping[str, str], modules: Path, progress: Progress) -> Programs:
    """Build all programs into the cache folder, unless another build has just done so.

    Args:
        environ: Process environment: where the cache and Go are, and Go's proxy settings.
        modules: The folder ``tests/controlplane`` of a source checkout.
        progress: Told what happens.

    Returns:
        The programs in the cache folder.

    Raises:
        BuildFailed: The modules are not there, Go cannot be had, or the compiler refused.
    """
    for module in MODULES:
        if not (modules / module.folder / "go.mod").is_file():
            raise BuildFailed(
                f"{modules / module.folder}/go.mod does not exist: build from a source checkout, "
                "or set KUBEBUILDER_ASSETS to a folder with the programs"
            )
    target = cache_folder(environ)
    root = cache_root(environ)
    root.mkdir(parents=True, exist_ok=True)
    with _lock(root, progress):
        done = Programs(folder=target)
        if not done.missing(versions.PROGRAMS):
            return done
        for stale in root.glob(f"{_TEMPORARY_PREFIX}*"):
            shutil.rmtree(stale, ignore_errors=True)
        temporary = Path(tempfile.mkdtemp(prefix=_TEMPORARY_PREFIX, dir=root))
        try:
            toolchain = find_or_install(environ, temporary, progress.line)
            built = temporary / "bin"
            built.mkdir()
            for module in MODULES:
                _build_module(toolchain, modules / module.folder, module, built, progress)
            _check(built)
            if target.exists():  # incomplete, or it would have been found
                target.rename(temporary / "replaced")
            built.rename(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return done


def linker_flags() -> str:
    """Return the linker flags: no symbol tables, and the release where Kubernetes looks for it."""
    major, minor, _ = versions.KUBERNETES[1:].split(".")
    flags = ["-s", "-w", f"-X sigs.k8s.io/kwok/pkg/consts.Version={versions.KWOK}"]
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        flags.append(f"-X {package}.gitVersion={versions.KUBERNETES}")
        flags.append(f"-X {package}.gitMajor={major}")
        flags.append(f"-X {package}.gitMinor={minor}")
        flags.append(f"-X {package}.gitTreeState=archive")
    return " ".join(flags)


def _build_module(
    toolchain: Toolchain, folder: Path, module: GoModule, built: Path, progress: Progress
) -> None:
    packages = list(module.programs.values())
    names = ", ".join(module.programs)
    progress.line(f"downloading the modules of {names}")
    package_count = _count_packages(toolchain, folder, packages)
    progress.line(f"compiling {names} ({package_count} packages)")
    # `go build` names a program after its import path; etcd's would be called "v3".
    output = str(built / names) if len(packages) == 1 else f"{built}/"
    command = ["go", "build", "-v", "-ldflags", linker_flags(), "-o", output, *packages]
    compiled = 0
    last_lines: deque[str] = deque(maxlen=_ERROR_LINES_MAX)
    with subprocess.Popen(
        command,
        executable=toolchain.program,
        cwd=folder,
        env=dict(toolchain.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            for line in process.stderr or ():
                last_lines.append(line.rstrip())
                compiled += 1
                progress.count(compiled, package_count, line.strip())
        except BaseException:
            _stop(process)
            raise
    progress.end_count()
    if process.returncode != 0:
        raise BuildFailed(f"`go build` of {names} failed:\n" + "\n".join(last_lines))


def _count_packages(toolchain: Toolchain, folder: Path, packages: Sequence[str]) -> int:
    try:
        answer = subprocess.run(
            ["go", "list", "-deps", *packages],
            executable=toolchain.program,
            cwd=folder,
            env=dict(toolchain.environ),
            capture_output=True,
            text=True,
            timeout=_LIST_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BuildFailed(
            f"the Go modules could not be downloaded within {_LIST_TIMEOUT_S:.0f} s; "
            "is the Go module proxy (GOPROXY) reachable?"
        ) from error
    if answer.returncode != 0:
        tail = "\n".join(answer.stderr.splitlines()[-_ERROR_LINES_MAX:])
        raise BuildFailed(f"the Go modules in {folder} could not be loaded:\n{tail}")
    return len(answer.stdout.splitlines())


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _check(built: Path) -> None:
    """Raise BuildFailed unless every program starts and tells the release that was asked for."""
    for name in versions.PROGRAMS:
        arguments = ["version", "--client"] if name == "kubectl" else ["--version"]
        answer = subprocess.run(
            [built / name, *arguments],
            capture_output=True,
            text=True,
            timeout=_ASK_TIMEOUT_S,
            check=False,
        )
        release = {"etcd": versions.ETCD, "kwok": versions.KWOK}.get(name, versions.KUBERNETES)
        if answer.returncode != 0 or release.removeprefix("v") not in answer.stdout:
            raise BuildFailed(
                f"the new {name} does not say that it is {release}: "
                f"{(answer.stdout + answer.stderr).strip()[:200]}"
            )


@contextlib.contextmanager
def _lock(root: Path, progress: Progress) -> Iterator[None]:
    with (root / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.line("another build is running; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
