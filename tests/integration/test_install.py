"""The manifests applied as the README says, on both control planes: first, again, and in use."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.controlplane import run_apart
from tests.support.embedded import embedded, in_thread
from tests.support.install import (
    BASE,
    ROOT,
    Installation,
    Json,
    control_plane,
    started,
    write_overlay,
)
from tests.support.kubectl import Kubectl, find_kubectl
from tests.support.managers import job_body
from tests.support.waiting import wait_for

from sluice.kube import resources
from sluice.kube.client import Client
from sluice.local.apiserver.compose import Services

EXAMPLES = ROOT / "manifests" / "examples"
SERVER_SIDE = ("apply", "--server-side", "-k", str(BASE))
CLIENT_SIDE = ("apply", "-k", str(BASE))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An API server; nothing runs Jobs."""
    with control_plane(tmp_path_factory.mktemp("install"), runs_pods=False) as lent:
        yield lent


@pytest.fixture(scope="module")
def place(bare: Installation) -> Installation:
    """The same with the manifests applied, and webhook calls led here."""
    write_overlay(bare.folder, bare.port)
    run_apart(bare.apply("--force-conflicts"))  # with what the first test has applied
    return bare


async def versions(kubectl: Kubectl) -> dict[str, str]:
    """Return what every object of the manifests counts its changes by.

    The generation where there is one: definitions get their status a moment after they are made.
    """
    listed = await kubectl("get", "-k", str(BASE), "-o", "json", "--ignore-not-found")
    items = json.loads(listed)["items"] if listed else []
    found = {}
    for item in items:
        metadata = item["metadata"]
        found[f"{item['kind']}/{metadata['name']}"] = str(
            metadata.get("generation", metadata["resourceVersion"])
        )
    return found


@pytest.mark.real
@pytest.mark.slow
async def test_applying_again_changes_nothing_from_either_side(bare: Installation) -> None:
    kubectl = bare.kubectl
    await kubectl(*SERVER_SIDE)
    first = await versions(kubectl)
    await kubectl(*SERVER_SIDE)
    assert await versions(kubectl) == first
    await kubectl(*CLIENT_SIDE)  # Workload's CRD fits into the annotation that this keeps
    other = await kubectl.run(*SERVER_SIDE, "--field-manager=gitops")
    assert other.code == 0, other.err


@pytest.mark.slow
async def test_the_embedded_api_server_takes_them_too(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with in_thread(lambda: embedded(kubeconfig, Services(), ())):
        kubectl = Kubectl(program=find_kubectl(), kubeconfig=kubeconfig, home=tmp_path)
        await kubectl(*SERVER_SIDE)
        first = await versions(kubectl)
        await kubectl(*SERVER_SIDE)
        assert await versions(kubectl) == first
        await kubectl("delete", "-k", str(BASE), "--ignore-not-found")
        assert await versions(kubectl) == {}


@pytest.mark.real
@pytest.mark.slow
async def test_without_a_manager_nothing_queued_is_created_and_the_rest_is(
    place: Installation,
) -> None:
    create = ("create", "--dry-run=server", "-f", "-")
    await place.kubectl(*create, stdin=json.dumps(job_body("free", queue="", suspend=False)))
    refused = await place.kubectl.run(*create, stdin=json.dumps(job_body("queued")))
    assert refused.code == 1
    assert 'failed calling webhook "mjob.kb.io"' in refused.err


@pytest.mark.real
@pytest.mark.slow
async def test_applying_again_in_use_disturbs_nothing(place: Installation) -> None:
    async with Client(place.plane.access()) as client, started(place) as replica:
        await place.kubectl("apply", "-k", str(EXAMPLES))
        await place.kubectl("create", "-f", str(EXAMPLES / "jobs.yaml"))
        # Of team language: the other team's may wait for GPUs that were borrowed before it came.
        jobs = (await client.list(resources.BATCH_JOBS, "team-language"))["items"]
        assert len(jobs) == 2
        for job in jobs:
            await has_started(client, job)
        before = await webhooks(client)
        assert all(w["rules"] and w["clientConfig"]["caBundle"] for w in before)
        await place.apply()
        assert await webhooks(client) == before
        await place.kubectl("apply", "-k", str(place.overlay))
        assert await webhooks(client) == before
        assert (await replica.probe())[0] == 200


async def has_started(client: Client, job: Json) -> None:
    started = await wait_for(
        client,
        resources.BATCH_JOBS,
        job["metadata"]["namespace"],
        lambda found: found["spec"]["suspend"] is False,
        name=job["metadata"]["name"],
    )
    selector = started["spec"]["template"]["spec"]["nodeSelector"]
    assert selector["sluicegate.io/pool"] in ("on-demand", "spot")


async def webhooks(client: Client) -> list[Json]:
    """Return the entries of the webhook configurations once both are complete."""
    kinds = (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS)

    async def entries(kind: resources.Resource) -> list[Json]:
        found = await wait_for(
            client,
            kind,
            "",
            lambda body: all(
                "rules" in w and "team-language" in str(body["webhooks"][-1]["namespaceSelector"])
                for w in body["webhooks"]
            ),
        )
        listed: list[Json] = found["webhooks"]
        return listed

    return [entry for some in await asyncio.gather(*map(entries, kinds)) for entry in some]


def test_the_image_is_named_once() -> None:
    """An overlay changes the image by its name, so the base must use that name."""
    deployment = yaml.safe_load((BASE / "deployment.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    kustomization = yaml.safe_load((BASE / "kustomization.yaml").read_text())
    assert [image["name"] for image in kustomization["images"]] == [container["image"]]
