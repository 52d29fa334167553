"""Taking Sluice away with its manager gone, by the commands of docs/uninstall.md."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from tests.support.install import (
    BASE,
    Installation,
    Json,
    account_kubeconfig,
    base_configuration,
    documented_commands,
    installed,
    start,
)
from tests.support.managers import World
from tests.support.waiting import has_condition, wait_until_deleted

from sluice.kube import resources
from sluice.kube.client import Client

pytestmark = [pytest.mark.real, pytest.mark.slow]

LABEL = "kueue.x-k8s.io/queue-name"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installed(tmp_path_factory.mktemp("uninstall"), runs_pods=True) as lent:
        yield lent


@asynccontextmanager
async def abandoned(place: Installation, namespace: str) -> AsyncIterator[World]:
    """Lend a namespace with a Job that runs and one that waits, and a manager that has died."""
    async with Client(place.plane.access()) as client:
        kubeconfig = await account_kubeconfig(place, client)
        replica = start(place.folder, kubeconfig, base_configuration(), place.port)
        try:
            await replica.until(200)
            skeleton = resources.NAMESPACES.skeleton("", namespace)
            await client.create(resources.NAMESPACES, "", skeleton)
            here = World(client=client, namespace=namespace)
            await here.queues(cpu="1")
            await here.job("runs")
            await here.wait(resources.BATCH_JOBS, lambda job: job["status"].get("active"))
            await here.job("waits", run_time="0.1s")
            await here.wait_workload("waits", has_condition("QuotaReserved", "False"))
        finally:
            replica.process.kill()
            replica.process.wait()
        yield here


async def until_nothing_is_left(place: Installation, here: World) -> None:
    """Wait until no object of the manifests is there; definitions take their objects with them."""
    await wait_until_deleted(here.client, resources.NAMESPACES, "", "sluice-system")
    left = await place.kubectl("get", "-k", str(BASE), "--ignore-not-found", "-o", "name")
    assert left == ""
    crds = await here.client.list(resources.CUSTOM_RESOURCE_DEFINITIONS)
    assert crds["items"] == []


async def pods_of(here: World, job: str) -> list[str]:
    """Return the uids of a Job's Pods that run."""
    found = await here.client.list(
        resources.PODS, here.namespace, label_selector=f"batch.kubernetes.io/job-name={job}"
    )
    return [pod["metadata"]["uid"] for pod in found["items"] if pod["status"]["phase"] == "Running"]


async def job_of(here: World, name: str) -> Json:
    return await here.client.get(resources.BATCH_JOBS, here.namespace, name)


async def test_the_documented_commands_leave_nothing_stuck(place: Installation) -> None:
    uninstall, start_waiting, take_labels_off = documented_commands("docs/uninstall.md")
    async with abandoned(place, "team-a") as here:
        running = await here.wait(resources.PODS, lambda pod: pod["status"]["phase"] == "Running")

        await place.shell(uninstall)
        await until_nothing_is_left(place, here)
        assert await pods_of(here, "runs") == [running["metadata"]["uid"]]
        assert (await job_of(here, "waits"))["spec"]["suspend"] is True
        await here.job("late", suspend=False, run_time="0.1s")
        await here.wait(resources.BATCH_JOBS, has_condition("Complete"), name="late")

        await place.shell(start_waiting)
        await here.wait(resources.BATCH_JOBS, has_condition("Complete"), name="waits")
        assert await pods_of(here, "runs") == [running["metadata"]["uid"]]

        await place.shell(take_labels_off)
        labelled = await here.client.list(resources.BATCH_JOBS, label_selector=LABEL)
        assert labelled["items"] == []
        await place.shell(uninstall)  # again does no harm


async def test_a_plain_delete_waits_for_finalizers_and_the_script_frees_it(
    place: Installation,
) -> None:
    uninstall = documented_commands("docs/uninstall.md")[0]
    await place.apply()
    async with abandoned(place, "team-b") as here:
        await here.client.delete(resources.NAMESPACES, "", here.namespace)
        stuck = await place.kubectl.run("delete", "-k", str(BASE), "--timeout=2s")
        assert stuck.code == 1
        assert "timed out waiting for the condition" in stuck.err
        (workload,) = (await here.client.list(resources.WORKLOADS))["items"][:1]
        assert workload["metadata"]["deletionTimestamp"]

        await place.shell(uninstall)
        await until_nothing_is_left(place, here)
        await here.gone(resources.NAMESPACES, here.namespace)
