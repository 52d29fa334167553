"""Sluice installed from its manifests on a control plane of its own, and run as in a cluster.

``installed`` applies an overlay of manifests/base: nothing routes to Services here, so it makes the
webhook's Service a name for this machine, and calls of it use another port. ``started`` runs
``sluice run`` in a process of its own with the token of the manager's ServiceAccount.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from tests.support.controlplane import NODES, require_programs, run_apart
from tests.support.kubectl import Kubectl, find_kubectl

from sluice.api import names
from sluice.cli.manifests import crds, webhook_configurations
from sluice.kube.access import ClusterAccess
from sluice.kube.client import Client
from sluice.kube.config import load
from sluice.kube.resources import SERVICE_ACCOUNTS
from sluice.local.real import (
    API_SERVER_PROGRAMS,
    CLUSTER_PROGRAMS,
    PlaneOptions,
    RealControlPlane,
    find,
)

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
BASE = ROOT / "manifests" / "base"
NAMESPACE = names.SYSTEM_NAMESPACE
ACCOUNT = "sluice-manager"
SERVICE = "sluice-webhook"
AUDIT_LOG = "audit.log"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
READY_S = 30.0
STOP_S = 20.0
SHELL_S = 120.0
_POLL_S = 0.05


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port: int = unused.getsockname()[1]
        return port


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """A control plane of its own.

    Attributes:
        plane: It.
        kubectl: The administrator's.
        folder: For files of the tests.
        port: Port of this machine that the overlay leads webhook calls to.
    """

    plane: RealControlPlane
    kubectl: Kubectl
    folder: Path
    port: int = field(default_factory=free_port)

    @property
    def overlay(self) -> Path:
        """Return the folder to apply with ``-k``."""
        return self.folder / "overlay"

    async def apply(self, *flags: str) -> str:
        """Apply the manifests as the README says."""
        return await self.kubectl("apply", "--server-side", *flags, "-k", str(self.overlay))

    async def shell(self, script: str) -> str:
        """Run a script as a user would in the checkout, and return what it prints.

        Raises:
            AssertionError: It failed.
        """
        path = f"{self.kubectl.program.parent}:{os.environ['PATH']}"
        process = await asyncio.create_subprocess_exec(
            "bash",
            "-euo",
            "pipefail",
            "-c",
            script,
            cwd=ROOT,
            env={"PATH": path, "HOME": str(self.folder), "KUBECONFIG": str(self.plane.kubeconfig)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await asyncio.wait_for(process.communicate(), SHELL_S)
        assert process.returncode == 0, f"{script}\n{out.decode()}"
        return out.decode()

    def requests(self) -> list[Json]:
        """Return what the API server noted of the ServiceAccount's requests (audit events)."""
        lines = (self.folder / AUDIT_LOG).read_text().splitlines()
        return [json.loads(line) for line in lines]


@contextmanager
def control_plane(folder: Path, *, runs_pods: bool) -> Iterator[Installation]:
    """Start a control plane, lend it out, throw it away."""
    programs = CLUSTER_PROGRAMS if runs_pods else API_SERVER_PROGRAMS
    require_programs(programs)
    policy = folder / "audit-policy.yaml"
    policy.write_text(yaml.safe_dump(_audit_policy()))
    flags = {
        "audit-policy-file": str(policy),
        "audit-log-path": str(folder / AUDIT_LOG),
        # Stricter than most clusters: owner references that block deletion need a right.
        "enable-admission-plugins": "OwnerReferencesPermissionEnforcement",
    }
    plane = RealControlPlane(
        find(os.environ, programs), PlaneOptions(runs_pods=runs_pods, api_server_flags=flags)
    )
    run_apart(plane.start())
    try:
        if runs_pods:
            run_apart(plane.add_nodes(NODES))
        kubectl = Kubectl(program=find_kubectl(), kubeconfig=plane.kubeconfig, home=folder)
        yield Installation(plane=plane, kubectl=kubectl, folder=folder)
    finally:
        run_apart(plane.stop())


def _audit_policy() -> Json:
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": [USER]}, {"level": "None"}],
    }


@contextmanager
def installed(folder: Path, *, runs_pods: bool) -> Iterator[Installation]:
    """Lend a control plane with the manifests applied."""
    with control_plane(folder, runs_pods=runs_pods) as place:
        write_overlay(folder, place.port)
        run_apart(place.apply())
        yield place


def write_overlay(folder: Path, port: int) -> Path:
    """Write an overlay of the base whose webhook calls come to a port of this machine.

    It changes the Service and the port in calls of it, and nothing else.
    """
    service = {"type": "ExternalName", "externalName": "localhost"}
    patches = [
        _patch({"kind": "Service", "name": SERVICE}, "/spec", service),
        *(
            _patch({"kind": body["kind"], "name": body["metadata"]["name"]}, f"{path}/port", port)
            for body in [*webhook_configurations(), *crds()]
            for path, _ in _services(body, "")
        ),
    ]
    overlay = folder / "overlay"
    overlay.mkdir()
    content = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(BASE, overlay.resolve())],
        "patches": patches,
    }
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(content))
    return overlay


def _patch(target: Json, path: str, value: object) -> Json:
    return {"target": target, "patch": json.dumps([{"op": "add", "path": path, "value": value}])}


def _services(value: object, path: str) -> Iterator[tuple[str, Json]]:
    """Yield every Service reference of a webhook configuration or CRD, with its JSON pointer."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _services(item, f"{path}/{index}")
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "clientConfig" and "service" in item:
                yield f"{path}/clientConfig/service", item["service"]
            elif key in ("spec", "conversion", "webhook", "webhooks"):
                yield from _services(item, f"{path}/{key}")


async def account_kubeconfig(place: Installation, client: Client) -> Path:
    """Write a kubeconfig with nothing but the token of the manager's ServiceAccount."""
    review = await client.create(
        SERVICE_ACCOUNTS,
        NAMESPACE,
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        name=ACCOUNT,
        subresource="token",
    )
    content = yaml.safe_load(place.plane.kubeconfig.read_text())
    content["users"][0]["user"] = {"token": review["status"]["token"]}
    path = place.folder / "account.kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


async def account_access(place: Installation) -> ClusterAccess:
    """Return how to reach the API server as the manager's ServiceAccount."""
    async with Client(place.plane.access()) as client:
        path = await account_kubeconfig(place, client)
    return await load(kubeconfig=str(path), environ={})


def documented_commands(document: str) -> list[str]:
    """Return the shell blocks of a document, such as docs/uninstall.md, in order."""
    text = (ROOT / document).read_text()
    return [block.partition("```")[0].strip() for block in text.split("```sh\n")[1:]]


def base_configuration() -> Json:
    """Return the content of the manifests' own configuration file."""
    document = yaml.safe_load((BASE / "configuration.yaml").read_text())
    content: Json = yaml.safe_load(document["data"]["configuration.yaml"])
    return content


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """``sluice run`` in a process of its own.

    Attributes:
        process: It.
        webhook: Port of the webhook.
        health: URL of the probes.
        metrics: URL of the metrics.
        log: What it logs.
    """

    process: "subprocess.Popen[bytes]"
    webhook: int
    health: str
    metrics: str
    log: Path

    async def probe(self) -> tuple[int, str]:
        """Return what the readiness probe answers; 0 and why when nobody answers."""
        async with aiohttp.ClientSession() as session:
            try:
                async with session.get(f"{self.health}/readyz") as answer:
                    return answer.status, await answer.text()
            except aiohttp.ClientError as error:
                return 0, str(error)

    async def until(
        self, status: int, text: str = "", *, without: str = "\0", deadline_s: float = READY_S
    ) -> str:
        """Poll the readiness probe, as a kubelet does, until it answers so; returns its text.

        Args:
            status: HTTP status.
            text: What the answer contains.
            without: What it does not contain.
            deadline_s: Seconds until it must.
        """
        last = (0, "")
        try:
            async with asyncio.timeout(deadline_s):
                while self.process.poll() is None:
                    last = await self.probe()
                    if last[0] == status and text in last[1] and without not in last[1]:
                        return last[1]
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            pass
        pytest.fail(f"no {status} {text!r}; last {last}\n{self.log.read_text()[-4000:]}")

    def stop(self) -> None:
        """End it in order, and fail when it doesn't."""
        self.process.terminate()
        try:
            code = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            pytest.fail(f"did not stop\n{self.log.read_text()[-4000:]}")
        assert code == 0, self.log.read_text()[-4000:]


def start(
    folder: Path, kubeconfig: Path, configuration: Mapping[str, Any], webhook: int
) -> Replica:
    """Start a replica with a configuration in which only its own addresses are changed."""
    health, metrics = free_port(), free_port()
    content = {
        **configuration,
        "webhook": {**configuration.get("webhook", {}), "host": "127.0.0.1", "port": webhook},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": f"127.0.0.1:{metrics}"},
    }
    config = folder / f"configuration-{health}.yaml"
    config.write_text(yaml.safe_dump(content))
    log = folder / f"replica-{health}.log"
    arguments = ("run", f"--kubeconfig={kubeconfig}", f"--config={config}")
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "sluice.cli.main", *arguments],
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'queue'}:{ROOT / 'webhook'}"},
            stderr=sink,
        )
    return Replica(
        process=process,
        webhook=webhook,
        health=f"http://127.0.0.1:{health}",
        metrics=f"https://127.0.0.1:{metrics}/metrics",
        log=log,
    )


@asynccontextmanager
async def started(place: Installation, **changes: Any) -> AsyncIterator[Replica]:
    """Run a replica with the manifests' ServiceAccount and configuration until the block ends.

    Args:
        place: Where the manifests are applied.
        changes: Top-level fields of the configuration to replace.
    """
    async with Client(place.plane.access()) as client:
        kubeconfig = await account_kubeconfig(place, client)
        configuration = {**base_configuration(), **changes}
        replica = start(place.folder, kubeconfig, configuration, place.port)
        try:
            await replica.until(200)
            yield replica
        except BaseException:
            replica.process.kill()
            replica.process.wait()
            raise
    await asyncio.to_thread(replica.stop)
