"""The wheel installed as the Containerfile does: into a virtual environment of its own, and run."""

import asyncio
import os
import shutil
import sys
import sysconfig
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
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "queue", "webhook", "manifests")
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


async def build(folder: Path) -> Installed:
    """Build from what the Containerfile copies, and install without asking a package index."""
    copied = {
        line.split()[1]
        for line in (ROOT / "Containerfile").read_text().splitlines()
        if line.startswith("COPY") and "--from" not in line
    }
    assert copied <= set(SOURCES)
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
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
