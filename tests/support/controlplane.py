"""Control planes for tests: a real API server, and a real cluster with simulated nodes.

- `real_apiserver`: etcd and kube-apiserver. Nothing acts on objects: Jobs get no Pods.
- `real_cluster`: the same with controllers, scheduler and kwok nodes, so that Jobs get Pods whose
  run time and outcome annotations state (`sluice.local.real.simulation`).
- `embedded_cluster`: the embedded control plane.
- `control_plane`: both, one after the other: the suite of what both must do alike.
- `real_namespace`, `cluster_namespace`, `namespace`: a fresh namespace of these.
- `kubectl_of`: makes a `Kubectl` for one of them.

The servers live as long as the test process (pytest-xdist gives each of its processes its own). A
test that uses one gets the marker ``real``. Without the programs such tests are skipped with one
line that says how to get them; with SLUICE_REQUIRE_CONTROL_PLANE=1, as in CI, they fail instead.
"""

import asyncio
import os
import shutil
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
import pytest_asyncio
from tests.support.embedded import embedded, in_thread
from tests.support.kubectl import Kubectl, find_kubectl

from sluice.kube.access import ClusterAccess
from sluice.kube.client import Client
from sluice.kube.config import load
from sluice.kube.resources import NAMESPACES
from sluice.local.apiserver.compose import Services
from sluice.local.real import (
    API_SERVER_PROGRAMS,
    CLUSTER_PROGRAMS,
    PlaneOptions,
    ProgramsMissing,
    RealControlPlane,
    SimulatedNode,
    find,
)

REQUIRE_VARIABLE = "SLUICE_REQUIRE_CONTROL_PLANE"
REAL_FIXTURES = {"real_apiserver", "real_cluster"}
PODS_FIXTURES = {"real_cluster", "control_plane"}
NODES = (
    SimulatedNode(name="node-0", cpu="64", memory="512Gi", gpus=8),
    SimulatedNode(name="node-1", cpu="64", memory="512Gi", gpus=8),
)

T = TypeVar("T")
KubectlFactory = Callable[["RealControlPlane | ControlPlane"], Kubectl]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """What the suite that runs on every control plane may use of one.

    Attributes:
        name: ``embedded`` or ``real``.
        access: How `Client` reaches it as administrator.
        kubeconfig: Administrator's credentials.
        services: Where webhook calls for a Service go; on a real control plane, where nothing
            routes to Services, webhook configurations must name a URL.
    """

    name: str
    access: ClusterAccess
    kubeconfig: Path
    services: Services | None = None


def pytest_report_header() -> str:
    """Say at the top of a run where the real control plane is."""
    try:
        return f"real control plane: {find(os.environ, CLUSTER_PROGRAMS).folder}"
    except ProgramsMissing as missing:
        return f"real control plane: {missing}"


@pytest.hookimpl(tryfirst=True)  # before -m chooses by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the real control plane, so that ``-m "not real"`` leaves it out."""
    for item in items:
        if REAL_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("real")
            item.add_marker("slow")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip here, in one place, so that pytest folds all such skips into one line."""
    if item.get_closest_marker("real") is not None:
        needs_pods = PODS_FIXTURES & set(getattr(item, "fixturenames", ()))
        require_programs(CLUSTER_PROGRAMS if needs_pods else API_SERVER_PROGRAMS)


def require_programs(names: Sequence[str]) -> None:
    """Skip the test, or fail it where CI asks for that, unless the programs are there."""
    try:
        find(os.environ, names)
    except ProgramsMissing as missing:
        reason = str(missing)
    else:
        return
    if os.environ.get(REQUIRE_VARIABLE) == "1":
        pytest.fail(f"{reason} ({REQUIRE_VARIABLE} is set)", pytrace=False)
    pytest.skip(reason)


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread with a loop of its own: the tests' loops come and go."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, work).result()


def run_plane(
    request: pytest.FixtureRequest, logs: Path, *, runs_pods: bool
) -> Iterator[RealControlPlane]:
    """Start a control plane, lend it out, throw it away; keep the logs if a test failed."""
    names = CLUSTER_PROGRAMS if runs_pods else API_SERVER_PROGRAMS
    plane = RealControlPlane(find(os.environ, names), PlaneOptions(runs_pods=runs_pods))
    run_apart(plane.start())
    try:
        if runs_pods:
            run_apart(plane.add_nodes(NODES))
        yield plane
        if request.session.testsfailed:
            for log in plane.logs().values():
                shutil.copy(log, logs)
    finally:
        run_apart(plane.stop())


@pytest.fixture(scope="session")
def real_apiserver(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealControlPlane]:
    """A real etcd and kube-apiserver, shared by the tests of this process."""
    yield from run_plane(request, tmp_path_factory.mktemp("apiserver-logs"), runs_pods=False)


@pytest.fixture(scope="session")
def real_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealControlPlane]:
    """A real control plane with controllers, scheduler and two simulated nodes."""
    yield from run_plane(request, tmp_path_factory.mktemp("cluster-logs"), runs_pods=True)


@pytest.fixture(scope="session")
def embedded_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The embedded API server with stand-ins and two nodes, shared by the tests of this process."""
    kubeconfig = tmp_path_factory.mktemp("embedded") / "admin.kubeconfig"
    services = Services()
    with in_thread(lambda: embedded(kubeconfig, services, NODES)):
        access = run_apart(load(kubeconfig=str(kubeconfig), environ={}))
        yield ControlPlane(name="embedded", access=access, kubeconfig=kubeconfig, services=services)


@pytest.fixture(
    scope="session",
    params=["embedded", pytest.param("real", marks=[pytest.mark.real, pytest.mark.slow])],
)
def control_plane(request: pytest.FixtureRequest) -> ControlPlane:
    """Each control plane that we support, with whatever runs Jobs on it."""
    if request.param == "embedded":
        small: ControlPlane = request.getfixturevalue("embedded_cluster")
        return small
    plane: RealControlPlane = request.getfixturevalue("real_cluster")
    return ControlPlane(name="real", access=plane.access(), kubeconfig=plane.kubeconfig)


@pytest.fixture(scope="session")
def kubectl_of(tmp_path_factory: pytest.TempPathFactory) -> KubectlFactory:
    """Makes a kubectl for a control plane."""
    program = find_kubectl()

    def make(plane: RealControlPlane | ControlPlane) -> Kubectl:
        home = tmp_path_factory.mktemp("kubectl")
        return Kubectl(program=program, kubeconfig=plane.kubeconfig, home=home)

    return make


@pytest_asyncio.fixture
async def real_namespace(real_apiserver: RealControlPlane) -> AsyncIterator[str]:
    """A fresh namespace on `real_apiserver`; without controllers what is in it stays."""
    async for name in fresh_namespace(real_apiserver.access()):
        yield name


@pytest_asyncio.fixture
async def cluster_namespace(real_cluster: RealControlPlane) -> AsyncIterator[str]:
    """A fresh namespace on `real_cluster`."""
    async for name in fresh_namespace(real_cluster.access()):
        yield name


@pytest_asyncio.fixture
async def namespace(control_plane: ControlPlane) -> AsyncIterator[str]:
    """A fresh namespace on `control_plane`."""
    async for name in fresh_namespace(control_plane.access):
        yield name


async def fresh_namespace(access: ClusterAccess) -> AsyncIterator[str]:
    """Create a namespace with a name of its own, and delete it without waiting."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    async with Client(access) as client:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await client.create(NAMESPACES, "", body)
        yield name
        await client.delete(NAMESPACES, "", name)
