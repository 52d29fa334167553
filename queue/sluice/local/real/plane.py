"""Starts, restarts and throws away one real control plane.

``sluice up --real``, the fixtures in ``tests/support/controlplane.py`` and the benchmarks use it::

    programs = find(environ, versions.CLUSTER_PROGRAMS)
    async with RealControlPlane(programs, PlaneOptions(runs_pods=True)) as plane:
        await plane.add_nodes([SimulatedNode(name="gpu-0", gpus=8)])
        ...                                  # plane.kubeconfig is the administrator's

Several run at once. A plane belongs to no event loop: it may be started in one and
stopped in another.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from sluice.api.errors import NotFound
from sluice.clock import Clock, SystemClock
from sluice.kube.access import ClusterAccess
from sluice.kube.client import Client
from sluice.kube.pki import make_ca, make_client, make_serving
from sluice.kube.resources import NODES, SERVICE_ACCOUNTS
from sluice.local.real import commands, versions
from sluice.local.real.credentials import is_ready, kubeconfig, signing_key
from sluice.local.real.errors import ProgramsMissing, StartFailed
from sluice.local.real.ports import LOOPBACK, ReservedPort
from sluice.local.real.process import Process
from sluice.local.real.programs import Programs
from sluice.local.real.reaper import Reaper
from sluice.local.real.simulation import SimulatedNode, stages
from sluice.log import get_logger

_ADMIN_USER = "admin"
_POLL_INTERVAL_S = 0.05
_STOP_TIMEOUT_S = 5.0
_SOCKET_PATH_BYTES_MAX = 107
"""What the kernel takes as the path of a Unix socket."""
_NOT_READY_TAINT = "node.kubernetes.io/not-ready"

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneOptions:
    """What kind of control plane is wanted.

    Attributes:
        runs_pods: Also start kube-controller-manager, kube-scheduler and kwok. Without them nothing
            acts on objects: Jobs get no Pods, deleted namespaces stay, namespaces get no default
            ServiceAccount (and so take no Pods).
        api_server_flags: Flags to add to kube-apiserver or to replace, without leading dashes.
        parent: Folder in which the plane makes its own; the system's temporary one by default.
        run_s: Seconds that a Pod that is not to be restarted runs when it has no annotation for it;
            None lets it run for ever.
        keeps_folder: Leave the folder (data, logs, credentials) at the end.
        ready_timeout_s: Seconds until everything must be ready.
    """

    runs_pods: bool = False
    api_server_flags: Mapping[str, str] = field(default_factory=dict)
    parent: Path | None = None
    run_s: float | None = None
    keeps_folder: bool = False
    ready_timeout_s: float = 90.0


class RealControlPlane:
    """One control plane on this machine.

    Args:
        programs: From `sluice.local.real.programs.find`.
        options: What to start.
        clock: For the lifetime of the certificates.
    """

    def __init__(
        self, programs: Programs, options: PlaneOptions | None = None, clock: Clock | None = None
    ) -> None:
        self._programs = programs
        self._options = options or PlaneOptions()
        needed = (
            versions.CLUSTER_PROGRAMS if self._options.runs_pods else versions.API_SERVER_PROGRAMS
        )
        if missing := programs.missing(needed):
            raise ProgramsMissing(f"{programs.folder} has no {', '.join(missing)}")
        self._clock = clock or SystemClock()
        now_ms = self._clock.now_ms()
        self._ca = make_ca("sluice-control-plane", now_ms)
        self._admin = make_client(self._ca, _ADMIN_USER, now_ms, groups=["system:masters"])
        self._issued_count = 0
        self._processes: dict[str, Process] = {}
        self._layout: commands.Layout | None = None
        self._port: ReservedPort | None = None
        self._reaper: Reaper | None = None

    async def __aenter__(self) -> Self:
        """Start everything; nothing stays behind when that fails."""
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop everything and throw it away."""
        await self.stop()

    @property
    def folder(self) -> Path:
        """Folder with data, logs and credentials, while the plane lives."""
        return self._files().folder

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator (group system:masters), while the plane lives."""
        return self._files().kubeconfig

    @property
    def server(self) -> str:
        """Base URL of the API server."""
        if self._port is None:
            raise StartFailed("the control plane is not running")
        return f"https://{LOOPBACK}:{self._port.number}"

    @property
    def authority(self) -> bytes:
        """Certificate of the authority that signed the API server's certificate, PEM."""
        return self._ca.certificate_pem

    def pids(self) -> dict[str, int]:
        """Return program name to process id of what runs; for measurements."""
        return {name: p.pid for name, p in self._processes.items() if p.pid is not None}

    def logs(self) -> dict[str, Path]:
        """Return program name to log file."""
        return {name: process.log for name, process in self._processes.items()}

    def access(self) -> ClusterAccess:
        """Return how `sluice.kube.client.Client` reaches the API server as the administrator."""
        files = self._files()
        context = ssl.create_default_context(cadata=self.authority.decode())
        context.load_cert_chain(files.file("admin.pem"), files.file("admin.key"))
        return ClusterAccess(host=self.server, tls=context, source=str(files.kubeconfig))

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Return a new kubeconfig of another user, whom RBAC grants nothing by itself.

        Args:
            user: User name, for example ``alice``.
            groups: Groups besides system:authenticated.
        """
        credentials = make_client(self._ca, user, self._clock.now_ms(), groups=groups)
        self._issued_count += 1
        path = self._files().file(f"user-{self._issued_count}.kubeconfig")
        _write_private(path, kubeconfig(self.server, self.authority, user, credentials).encode())
        return path

    async def start(self) -> None:
        """Start everything and wait until it is ready.

        Raises:
            StartFailed: A program ended, or was not ready in time; its log is part of the message.
        """
        folder = make_folder(self._options.parent)
        self._layout = commands.Layout(folder=folder)
        self._port = ReservedPort()
        self._reaper = Reaper(None if self._options.keeps_folder else folder)
        try:
            async with asyncio.timeout(self._options.ready_timeout_s):
                await self._start_all()
        except TimeoutError as error:
            message = self._not_ready()
            await self.stop()
            raise StartFailed(message) from error
        except BaseException:
            await self.stop()
            raise
        log.info("control plane started", fields={"server": self.server, "folder": str(folder)})

    async def stop(self) -> None:
        """End every program and delete the folder; may be called again."""
        try:
            # In reverse: etcd last. Nothing is asked to shut down in order, as its data goes too.
            for process in reversed(self._processes.values()):
                await process.kill()
        finally:
            self._processes.clear()
            if self._port is not None:
                self._port.release()
                self._port = None
            if self._reaper is not None:
                self._reaper.dismiss()
                self._reaper = None
            if self._layout is not None and not self._options.keeps_folder:
                await asyncio.to_thread(shutil.rmtree, self._layout.folder, ignore_errors=True)
            self._layout = None

    def check(self) -> None:
        """Raise StartFailed when a program has ended by itself; the message shows its log."""
        for process in self._processes.values():
            process.check()

    async def stop_api_server(self, *, is_crash: bool = False) -> None:
        """Stop kube-apiserver only, in order or as a crash would."""
        process = self._process("kube-apiserver")
        if is_crash:
            await process.kill()
        else:
            await process.stop(_STOP_TIMEOUT_S)

    async def start_api_server(self) -> None:
        """Start kube-apiserver again, on its port and data, and wait until it is ready.

        Raises:
            StartFailed: It ended, or was not ready in time.
        """
        self._process("kube-apiserver").start()
        try:
            async with asyncio.timeout(self._options.ready_timeout_s):
                await self._wait(self._is_ready)
        except TimeoutError as error:
            raise StartFailed(self._not_ready()) from error

    async def restart_api_server(self, *, is_crash: bool = False) -> None:
        """Stop kube-apiserver and start it again; watches break, data stays."""
        await self.stop_api_server(is_crash=is_crash)
        await self.start_api_server()

    async def add_nodes(self, nodes: Sequence[SimulatedNode]) -> None:
        """Create simulated nodes and wait until they are Ready (needs ``runs_pods``).

        Raises:
            ControlPlaneError: The API server refused a node, or one did not get Ready.
        """
        if not self._options.runs_pods:
            raise StartFailed("simulated nodes need PlaneOptions(runs_pods=True)")
        async with Client(self.access()) as client:
            for node in nodes:
                await client.create(NODES, "", node.to_object())

            async def are_ready() -> bool:
                return all([await _is_node_ready(client, node.name) for node in nodes])

            try:
                async with asyncio.timeout(self._options.ready_timeout_s):
                    await self._wait(are_ready)
            except TimeoutError as error:
                raise StartFailed(f"nodes did not get Ready; {self._not_ready()}") from error

    async def remove_nodes(self, names: Sequence[str]) -> None:
        """Delete nodes; Kubernetes then deletes the Pods that were on them."""
        async with Client(self.access()) as client:
            for name in names:
                await client.delete(NODES, "", name)

    async def _start_all(self) -> None:
        files, port = self._files(), self._port
        assert port is not None
        self._write_files()
        self._launch("etcd", commands.etcd(self._programs, files))
        flags = self._options.api_server_flags
        self._launch(
            "kube-apiserver", commands.api_server(self._programs, files, port.number, flags)
        )
        await self._wait(self._is_ready)
        if not self._options.runs_pods:
            return
        self._launch("kube-controller-manager", commands.controller_manager(self._programs, files))
        self._launch("kube-scheduler", commands.scheduler(self._programs, files))
        self._launch("kwok", commands.kwok(self._programs, files))
        await self._wait(self._has_default_service_account)

    def _launch(self, name: str, command: Sequence[str]) -> None:
        assert self._reaper is not None
        process = Process(name, command, self._files().log(name), self._reaper)
        self._processes[name] = process
        process.start()

    async def _wait(self, is_done: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a check holds; raise StartFailed when a program ends meanwhile."""
        while not await is_done():
            self.check()
            await asyncio.sleep(_POLL_INTERVAL_S)

    async def _has_default_service_account(self) -> bool:
        # The first sign that the controllers work, and without it no Pod is taken.
        async with Client(self.access()) as client:
            try:
                await client.get(SERVICE_ACCOUNTS, "default", "default")
            except NotFound:
                return False
            return True

    async def _is_ready(self) -> bool:
        return await is_ready(self.access())

    def _write_files(self) -> None:
        files = self._files()
        hosts = [LOOPBACK, "localhost", "kubernetes.default.svc"]
        server = make_serving(self._ca, hosts, self._clock.now_ms())
        private, public = signing_key()
        contents = {
            "ca.pem": self.authority,
            "server.pem": server.certificate_pem,
            "server.key": server.key_pem,
            "admin.pem": self._admin.certificate_pem,
            "admin.key": self._admin.key_pem,
            "service-accounts.key": private,
            "service-accounts.pub": public,
            "scheduler.json": commands.scheduler_config(files).encode(),
            "stages.yaml": stages(self._options.run_s).encode(),
            files.kubeconfig.name: kubeconfig(
                self.server, self.authority, _ADMIN_USER, self._admin
            ).encode(),
        }
        for name, content in contents.items():
            _write_private(files.file(name), content)

    def _files(self) -> commands.Layout:
        if self._layout is None:
            raise StartFailed("the control plane is not running")
        return self._layout

    def _process(self, name: str) -> Process:
        if name not in self._processes:
            raise StartFailed(f"{name} is not part of this control plane, or it is stopped")
        return self._processes[name]

    def _not_ready(self) -> str:
        logs = "\n".join(f"{p.log}:\n{p.log_tail()}" for p in self._processes.values())
        return f"the control plane is not ready after {self._options.ready_timeout_s:.0f} s\n{logs}"


async def _is_node_ready(client: Client, name: str) -> bool:
    """Return whether Pods can be placed: Ready, and the taint every new node gets is off again."""
    node = await client.get(NODES, "", name)
    conditions = node.get("status", {}).get("conditions", [])
    taints = node.get("spec", {}).get("taints", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions) and not any(
        taint["key"] == _NOT_READY_TAINT for taint in taints
    )


def make_folder(parent: Path | None) -> Path:
    """Make the folder of a plane, in the system's short one where a socket's path has no room."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-", dir=parent))
    if len(str(folder / commands.LONGEST_SOCKET).encode()) <= _SOCKET_PATH_BYTES_MAX:
        return folder
    folder.rmdir()
    return Path(tempfile.mkdtemp(prefix="sluice-", dir="/tmp"))


def _write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
