"""The manifests on a real API server: applied, run as a process with their rights, removed.

The API server reaches the webhook through its Service, as in a cluster: an EndpointSlice made here
leads to the process under test.
"""

import asyncio
import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import yaml
from tests.support.controlplane import require_programs, run_apart
from tests.support.kubectl import Kubectl, find_kubectl
from tests.support.waiting import wait_for, wait_until_deleted

from sluice.kube.client import Client
from sluice.kube.resources import (
    BATCH_JOBS,
    CLUSTER_QUEUES,
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    SERVICE_ACCOUNTS,
    VALIDATING_WEBHOOKS,
    WORKLOADS,
    Resource,
)
from sluice.local.real import CLUSTER_PROGRAMS, PlaneOptions, RealControlPlane, find

pytestmark = [pytest.mark.real, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
NAMESPACE = "sluice-system"
READY_S = 30.0
SLICES = Resource(
    group="discovery.k8s.io", version="v1", plural="endpointslices", kind="EndpointSlice"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A control plane with the manifests applied."""

    plane: RealControlPlane
    kubectl: Kubectl
    folder: Path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    require_programs(CLUSTER_PROGRAMS)
    flags = {"enable-aggregator-routing": "true"}  # Services resolve to their endpoints
    plane = RealControlPlane(
        find(os.environ, CLUSTER_PROGRAMS), PlaneOptions(runs_pods=True, api_server_flags=flags)
    )
    run_apart(plane.start())
    try:
        folder = tmp_path_factory.mktemp("manifests")
        kubectl = Kubectl(program=find_kubectl(), kubeconfig=plane.kubeconfig, home=folder)
        for _ in range(2):  # the second time changes nothing and must not fail either
            run_apart(kubectl("apply", "--server-side", "-k", str(ROOT / "manifests" / "base")))
        yield Installed(plane=plane, kubectl=kubectl, folder=folder)
    finally:
        run_apart(plane.stop())


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port: int = unused.getsockname()[1]
        return port


def own_address() -> str:
    """Return an address of this machine that may be an endpoint: no loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing
        address: str = probe.getsockname()[0]
        return address


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A replica in a process of its own."""

    process: asyncio.subprocess.Process
    health: str
    metrics: str
    log: Path


async def service_account_kubeconfig(installed: Installed, client: Client) -> Path:
    """Write a kubeconfig with nothing but the token of the manager's ServiceAccount."""
    review = await client.create(
        SERVICE_ACCOUNTS,
        NAMESPACE,
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        name="sluice-manager",
        subresource="token",
    )
    content = yaml.safe_load(installed.plane.kubeconfig.read_text())
    content["users"][0]["user"] = {"token": review["status"]["token"]}
    path = installed.folder / "manager.kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


def configuration(path: Path, *, webhook: int, health: int, metrics: int) -> Path:
    """Write the manifests' own configuration with other ports."""
    documents = yaml.safe_load((ROOT / "manifests/base/configuration.yaml").read_text())
    content = yaml.safe_load(documents["data"]["configuration.yaml"])
    content["webhook"] = {"host": "0.0.0.0", "port": webhook}
    content["health"]["healthProbeBindAddress"] = f"127.0.0.1:{health}"
    content["metrics"]["bindAddress"] = f"127.0.0.1:{metrics}"
    path.write_text(yaml.safe_dump(content))
    return path


@asynccontextmanager
async def running(installed: Installed, client: Client) -> AsyncIterator[Running]:
    """Run ``sluice run`` with the ServiceAccount's token until the block ends."""
    webhook, health, metrics = free_port(), free_port(), free_port()
    config = configuration(
        installed.folder / "configuration.yaml", webhook=webhook, health=health, metrics=metrics
    )
    kubeconfig = await service_account_kubeconfig(installed, client)
    log = installed.folder / "manager.log"
    command = ("-m", "sluice.cli.main", "run", f"--kubeconfig={kubeconfig}", f"--config={config}")
    with log.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'queue'}:{ROOT / 'webhook'}"},
            stderr=sink,
        )
    urls = (f"http://127.0.0.1:{health}", f"https://127.0.0.1:{metrics}/metrics")
    replica = Running(process=process, health=urls[0], metrics=urls[1], log=log)
    try:
        await lead_service_to(client, webhook)
        await until_ready(replica)
        yield replica
    finally:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 20)
        except TimeoutError:
            process.kill()
            await process.wait()
            pytest.fail(f"did not stop\n{log.read_text()[-4000:]}")


async def lead_service_to(client: Client, port: int) -> None:
    body = {
        **SLICES.skeleton(NAMESPACE, "sluice-webhook-test"),
        "addressType": "IPv4",
        "endpoints": [{"addresses": [own_address()], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
    body["metadata"]["labels"] = {"kubernetes.io/service-name": "sluice-webhook"}
    await client.create(SLICES, NAMESPACE, body)


async def until_ready(replica: Running) -> None:
    """Poll the readiness probe, as a kubelet does."""
    last = "no answer"
    async with aiohttp.ClientSession() as session:
        try:
            async with asyncio.timeout(READY_S):
                while True:
                    if replica.process.returncode is not None:
                        break
                    try:
                        async with session.get(f"{replica.health}/readyz") as answer:
                            last = await answer.text()
                            if answer.status == 200:
                                return
                    except aiohttp.ClientError as error:
                        last = str(error)
                    await asyncio.sleep(0.1)
        except TimeoutError:
            pass
    pytest.fail(f"not ready: {last}\n{replica.log.read_text()[-4000:]}")


async def test_a_job_is_queued_and_admitted_with_the_rights_of_the_manifests(
    installed: Installed,
) -> None:
    async with Client(installed.plane.access()) as client, running(installed, client) as replica:
        await installed.kubectl("apply", "-k", str(ROOT / "manifests" / "examples"))
        await installed.kubectl("create", "-f", str(ROOT / "manifests" / "examples" / "jobs.yaml"))
        # Of team language: the other team's may wait for GPUs that were borrowed before it came.
        jobs = await client.list(BATCH_JOBS, "team-language")
        assert len(jobs["items"]) == 2
        for job in jobs["items"]:
            metadata = job["metadata"]
            started = await wait_for(
                client,
                BATCH_JOBS,
                metadata["namespace"],
                lambda found: found["spec"]["suspend"] is False,
                name=metadata["name"],
            )
            selector = started["spec"]["template"]["spec"]["nodeSelector"]
            assert selector["sluicegate.io/pool"] in ("on-demand", "spot")
        await wait_for(
            client,
            CLUSTER_QUEUES,
            "",
            lambda found: (found.get("status") or {}).get("admittedWorkloads") == 2,
            name="language",
        )
        configurations = await client.get(
            MUTATING_WEBHOOKS, "", "sluice-mutating-webhook-configuration"
        )
        assert all(w["clientConfig"].get("caBundle") for w in configurations["webhooks"])
        await check_metrics(installed, client, replica)
        text = replica.log.read_text()
        assert "orbidden" not in text, "a right is missing"
    assert replica.process.returncode == 0


async def check_metrics(installed: Installed, client: Client, replica: Running) -> None:
    """Metrics are for those who may get /metrics, and for nobody else."""
    admin = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
    await installed.kubectl.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "scraper"}},
        {
            **admin,
            "metadata": {"name": "scraper"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "kueue-metrics-reader",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "scraper", "namespace": "default"}],
        },
    )
    answers = {}
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    token = (await installed.kubectl("create", "token", "scraper")).strip()
    other = (await installed.kubectl("create", "token", "sluice-manager", "-n", NAMESPACE)).strip()
    async with aiohttp.ClientSession() as session:
        for who, header in (("nobody", ""), ("other", other), ("reader", token)):
            headers = {"Authorization": f"Bearer {header}"} if header else {}
            async with session.get(replica.metrics, headers=headers, ssl=context) as answer:
                answers[who] = (answer.status, await answer.text())
    assert answers["nobody"][0] == 401
    assert answers["other"][0] == 403
    status, text = answers["reader"]
    assert status == 200
    assert (
        'kueue_admitted_active_workloads{cluster_queue="language",replica_role="leader"} 2.0'
        in text
    )
    assert "kueue_admitted_workloads_total{" in text
    assert 'webhook="/mutate-batch-v1-job"' in text


async def test_workloads_are_listed_in_both_versions_once_the_webhook_is_back(
    installed: Installed,
) -> None:
    async with Client(installed.plane.access()) as client:
        await installed.kubectl(
            "delete", "endpointslice", "sluice-webhook-test", "-n", NAMESPACE, "--ignore-not-found"
        )
        async with running(installed, client):
            out = await installed.kubectl("get", "workloads.v1beta1.kueue.x-k8s.io", "-A")
            assert "job-" in out
            assert (await client.list(WORKLOADS))["items"]


async def test_uninstalling_with_the_manager_gone_leaves_nothing(installed: Installed) -> None:
    """Runs last: queues, Jobs and admitted Workloads of the tests above are still there."""
    async with Client(installed.plane.access()) as client:
        assert (await client.list(WORKLOADS))["items"], "nothing would be proved"
        program = installed.folder / "bin" / "kubectl"
        program.parent.mkdir()
        program.symlink_to(installed.kubectl.program)
        process = await asyncio.create_subprocess_exec(
            str(ROOT / "manifests" / "uninstall.sh"),
            f"--kubeconfig={installed.plane.kubeconfig}",
            env={"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(installed.folder)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await asyncio.wait_for(process.communicate(), 120)
        assert process.returncode == 0, out.decode()
        for crd in (await client.list(CUSTOM_RESOURCE_DEFINITIONS))["items"]:
            name = crd["metadata"]["name"]
            await wait_until_deleted(client, CUSTOM_RESOURCE_DEFINITIONS, "", name)
        for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
            assert (await client.list(kind))["items"] == []
        await wait_until_deleted(client, NAMESPACES, "", NAMESPACE)
        jobs = (await client.list(BATCH_JOBS, "team-language"))["items"]
        assert [job["spec"]["suspend"] for job in jobs] == [False, False]
