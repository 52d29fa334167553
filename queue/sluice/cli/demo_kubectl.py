"""Real kubectl for the demo: the program that comes with the ``local`` extra, else the PATH's."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import orjson

from sluice.api.errors import ConfigError, SluiceError

Json = dict[str, Any]

CALL_S_MAX: Final = 20.0


class KubectlFailed(SluiceError):
    """kubectl ended with an error; the message is its own."""


class Kubectl:
    """Runs kubectl against one cluster."""

    def __init__(self, kubeconfig: Path) -> None:
        self._program = _find()
        self._environ = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        # Not in ~/.kube: what was discovered here is of no use to anybody else.
        self._cache = kubeconfig.parent / "cache"

    async def apply_file(self, path: Path) -> None:
        """Apply a manifest.

        Raises:
            KubectlFailed: It was refused.
        """
        error = await self._run(["apply", "--server-side", "-f", str(path)], b"")
        if error:
            raise KubectlFailed(f"kubectl apply -f {path.name}: {error}")

    async def create(self, obj: Json) -> str:
        """Create an object; return why it was refused, empty when it was not."""
        return await self._run(["create", "-f", "-"], orjson.dumps(obj))

    async def _run(self, arguments: list[str], stdin: bytes) -> str:
        process = await asyncio.create_subprocess_exec(
            self._program,
            f"--cache-dir={self._cache}",
            *arguments,
            env=self._environ,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(CALL_S_MAX):
                _, errors = await process.communicate(stdin)
        except BaseException:
            if process.returncode is None:
                process.kill()
                await process.wait()
            raise
        return errors.decode(errors="replace").strip() if process.returncode else ""


def _find() -> str:
    beside = Path(sys.executable).parent / "kubectl"
    if beside.is_file() and os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which("kubectl")
    if found is None:
        raise ConfigError("kubectl is missing: pip install 'sluicegate[local]' brings it")
    return found
