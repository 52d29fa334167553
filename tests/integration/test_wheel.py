"""The wheel installed as the Containerfile does: into a virtual environment of its own, and run."""

import asyncio
import os
import queue as standard_queue
import shutil
import signal
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from tests.support.controlplane import run_apart
from tests.support.kubectl import find_kubectl

from sluice import __version__

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A virtual environment with the wheel, and the packages it needs from ours.

    Attributes:
        folder: The environment.
        wheel: What was installed.
    """

    folder: Path
    wheel: Path

    async def run(self, program: str, *arguments: str) -> tuple[int, str]:
        """Run one of its programs away from the sources."""
        return await call(str(self.folder / "bin" / program), *arguments, folder=self.folder)


async def call(*command: str, folder: Path, path: str = "") -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={"PATH": f"{path}:{os.environ['PATH']}", "HOME": str(folder)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
    assert process.returncode is not None
    return process.returncode, out.decode()


def copied() -> list[str]:
    """Return what the Containerfile's first stage copies, each to its own name."""
    found: list[str] = []
    for line in (ROOT / "Containerfile").read_text().splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            *names, target = line.split()[1:]
            assert target == "./" or names == [target]
            found += names
    return found


async def build(folder: Path) -> Installed:
    """Build from what the Containerfile copies, and install without asking a package index."""
    source = folder / "source"
    source.mkdir()
    for name in copied():
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source / name)
    wheels = folder / "wheels"
    python = sys.executable
    command = [python, "-m", "build", "--wheel", "--outdir", str(wheels), str(source)]
    if find_spec("hatchling") is not None:
        command.append("--no-isolation")  # nothing to download
    code, out = await call(*command, folder=folder)
    assert code == 0, out
    (wheel,) = wheels.glob("*.whl")
    code, out = await call(python, "-m", "venv", str(folder / "venv"), folder=folder)
    assert code == 0, out
    installed = Installed(folder=folder / "venv", wheel=wheel)
    code, out = await installed.run("pip", "install", "--no-index", "--no-deps", str(wheel))
    assert code == 0, out
    (site,) = (installed.folder / "lib").glob("python*/site-packages")
    ours = sysconfig.get_path("purelib")
    # What it depends on is installed already; its own files must come from the wheel alone.
    (site / "dependencies.pth").write_text(f"{ours}\n")
    return installed


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return run_apart(build(tmp_path_factory.mktemp("wheel")))


@pytest.mark.parametrize("program", ["sluice", "kubectl-sluice"])
async def test_its_programs_run(installed: Installed, program: str) -> None:
    assert await installed.run(program, "version", "--client") == (0, f"sluice {__version__}\n")


async def test_kubectl_finds_its_plugin(installed: Installed) -> None:
    programs = str(installed.folder / "bin")
    code, out = await call(
        str(find_kubectl()), "sluice", "version", "--client", folder=installed.folder, path=programs
    )
    assert (code, out) == (0, f"sluice {__version__}\n")


async def test_it_is_the_wheel_that_runs_and_brings_the_manifests(installed: Installed) -> None:
    code = (
        "import sluice, sluice_webhook, pathlib; root = pathlib.Path(sluice.__file__).parent;"
        "print(root); print((root / '_manifests/base/deployment.yaml').exists())"
    )
    _, out = await installed.run("python", "-c", code)
    root, has_manifests = out.split()
    assert Path(root).is_relative_to(installed.folder)
    assert has_manifests == "True"


async def test_what_the_image_runs_needs_no_optional_package(installed: Installed) -> None:
    """The Containerfile leaves out the extra `local`."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['cel_expr_python', 'jsonpatch']));"
        "from importlib import import_module as load;"
        "[load(f'sluice.cli.{name}') for name in 'replica serving get stop resume version'.split()]"
    )
    assert await installed.run("python", "-c", code) == (0, "")


def test_the_licence_is_inside(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as wheel:
        (licence,) = (name for name in wheel.namelist() if name.endswith("licenses/LICENSE"))
        assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()
        tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert tops == {"sluice", "sluice_webhook", f"sluicegate-{__version__}.dist-info"}


async def test_the_queue_of_the_standard_library_stays_what_it_is(installed: Installed) -> None:
    """The folder queue/ of the sources must never shadow the module of that name."""
    code = "import sluice.cli.main, queue; print(queue.__file__, queue.Queue.__module__)"
    _, out = await installed.run("python", "-c", code)
    assert out.split() == [standard_queue.__file__, "queue"]


async def test_the_demo_runs_from_it(installed: Installed, tmp_path: Path) -> None:
    """Its manifests are in the wheel. It is ended half-way: other tests see it through."""
    process = await asyncio.create_subprocess_exec(
        str(installed.folder / "bin" / "sluice"),
        "demo",
        "--plain",
        cwd=tmp_path,
        env={
            "PATH": f"{find_kubectl().parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "TMPDIR": str(tmp_path),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    seen = ""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while "running" not in seen and (line := await process.stdout.readline()):
                seen += line.decode()
            process.send_signal(signal.SIGINT)
            rest, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    seen += rest.decode()
    assert process.returncode == 130, seen
    assert "Traceback" not in seen


async def test_the_command_of_the_container_fails_with_one_clear_line(
    installed: Installed,
) -> None:
    deployment = yaml.safe_load((ROOT / "manifests/base/deployment.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    command = [argument.partition("=")[0] for argument in container["args"]]
    assert command == ["run", "--config"]
    assert 'ENTRYPOINT ["sluice"]' in (ROOT / "Containerfile").read_text()
    result = await installed.run("sluice", "run", "--kubeconfig", "/nowhere")
    assert result == (2, "error: kubeconfig /nowhere does not exist; pass --kubeconfig FILE\n")
