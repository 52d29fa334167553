"""Certificates and webhook configurations in a cluster: made once, exchanged unnoticed, only ours.

On a control plane of its own, embedded and real.
"""

import asyncio
import base64
import copy
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.support.controlplane import require_programs
from tests.support.objects import Json
from tests.support.waiting import wait_for
from tests.support.webhook_world import (
    DEADLINE_S,
    NAMESPACE,
    OPTIONS,
    RULES,
    SERVICE,
    WebhookWorld,
    refusal,
    stop,
    webhook_configurations,
    webhook_world,
)

from sluice.clock import SystemClock
from sluice.controllers.certificates import CONVERTED_CRDS, CertificateKeeper
from sluice.controllers.rotation import from_data
from sluice.controllers.webhookconfigs import (
    MUTATING_NAME,
    VALIDATING_NAME,
    SelectorKeeper,
    informers,
)
from sluice.kube import pki
from sluice.kube.client import Client
from sluice.kube.pki import KeyPair
from sluice.kube.resources import (
    CLUSTER_QUEUES,
    CUSTOM_RESOURCE_DEFINITIONS,
    LOCAL_QUEUES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    SECRETS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from sluice.local.real import API_SERVER_PROGRAMS

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
UNLABELLED = "mjob.unlabelled.sluicegate.io"


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=["embedded", pytest.param("real", marks=pytest.mark.real)],
)
async def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[WebhookWorld]:
    if request.param == "real":
        require_programs(API_SERVER_PROGRAMS)
    folder: Path = tmp_path_factory.mktemp("webhook")
    async with webhook_world(request.param, folder) as made:
        yield made


async def secret_data(client: Client) -> dict[str, str]:
    found = await client.get(SECRETS, NAMESPACE, OPTIONS.secret)
    data: dict[str, str] = found["data"]
    return data


async def bundles(client: Client) -> set[str]:
    """Return every CA bundle of our configurations and CRDs."""
    found: set[str] = set()
    for resource, name in (
        (MUTATING_WEBHOOKS, MUTATING_NAME),
        (VALIDATING_WEBHOOKS, VALIDATING_NAME),
    ):
        body = await client.get(resource, "", name)
        found |= {webhook["clientConfig"]["caBundle"] for webhook in body["webhooks"]}
    for crd in CONVERTED_CRDS:
        body = await client.get(CUSTOM_RESOURCE_DEFINITIONS, "", crd)
        found.add(body["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"])
    return found


async def call(client: Client) -> str:
    """Have the API server call our webhook; returns what went wrong, empty when it was taken."""
    body = {
        **CLUSTER_QUEUES.skeleton("", f"x-{uuid.uuid4().hex[:8]}"),
        "spec": {"namespaceSelector": {}},
    }
    return await refusal(client, CLUSTER_QUEUES, "", body)


async def test_the_secret_and_every_bundle_are_written(world: WebhookWorld) -> None:
    material = from_data(await secret_data(world.client))
    facts = pki.facts(material.serving.certificate_pem)
    assert f"{SERVICE}.{NAMESPACE}.svc" in facts.dns_names
    assert await bundles(world.client) == {base64.b64encode(material.bundle_pem).decode()}
    assert await call(world.client) == ""


async def test_a_bundle_that_is_lost_is_written_again(world: WebhookWorld) -> None:
    body = await world.client.get(MUTATING_WEBHOOKS, "", MUTATING_NAME)
    for webhook in body["webhooks"]:
        del webhook["clientConfig"]["caBundle"]
    await world.client.replace(MUTATING_WEBHOOKS, "", MUTATING_NAME, body)
    await wait_for(
        world.client,
        MUTATING_WEBHOOKS,
        "",
        lambda o: all("caBundle" in w["clientConfig"] for w in o["webhooks"]),
        name=MUTATING_NAME,
    )


async def test_no_call_is_refused_while_everything_is_exchanged(world: WebhookWorld) -> None:
    before = from_data(await secret_data(world.client))
    problems: list[str] = []
    is_over = asyncio.Event()

    async def keep_calling() -> int:
        calls = 0
        while not is_over.is_set():
            problems.append(await call(world.client))
            calls += 1
        return calls

    async with asyncio.TaskGroup() as tasks, asyncio.timeout(DEADLINE_S):
        callers = [tasks.create_task(keep_calling(), name=f"caller {i}") for i in range(3)]
        # Deleting the Secret asks for an exchange; RULES make each of its steps short.
        await world.client.delete(SECRETS, NAMESPACE, OPTIONS.secret)
        while True:
            # The keeper looks at the clock once a minute unless woken; the test cannot wait.
            await world.keeper.step()
            now = from_data(await secret_data(world.client))
            is_new = now.ca.certificate_pem != before.ca.certificate_pem
            if is_new and now.next_ca is None and not now.old_cas_pem:
                break
        await world.keeper.step()
        is_over.set()
    assert set(problems) == {""}
    assert all(task.result() > 1 for task in callers)
    assert world.served[-1] == now.serving
    assert await bundles(world.client) == {base64.b64encode(now.ca.certificate_pem).decode()}
    assert await call(world.client) == ""


async def test_replicas_share_one_certificate(world: WebhookWorld) -> None:
    options = type(OPTIONS)(secret=f"{OPTIONS.secret}-shared")
    keepers = [
        CertificateKeeper(
            world.client,
            SystemClock(),
            (),
            options=options,
            serve=lambda pair: None,
            rules=RULES,
        )
        for _ in range(4)
    ]
    pairs: list[KeyPair] = await asyncio.gather(*(keeper.load() for keeper in keepers))
    assert len({pair.certificate_pem for pair in pairs}) == 1


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({}, id="empty"),
        pytest.param({"tls.crt": "eA==", "tls.key": "eA==", "ca.crt": "eA=="}, id="not ours"),
    ],
)
async def test_an_unusable_secret_is_filled(world: WebhookWorld, data: dict[str, str]) -> None:
    name = f"cert-{uuid.uuid4().hex[:8]}"
    body = SECRETS.skeleton(NAMESPACE, name) | {"data": data}
    body["metadata"]["labels"] = {"kept": "yes"}
    await world.client.create(SECRETS, NAMESPACE, body)
    keeper = CertificateKeeper(
        world.client,
        SystemClock(),
        (),
        options=type(OPTIONS)(secret=name),
        serve=lambda pair: None,
    )
    pair = await keeper.load()
    stored = await world.client.get(SECRETS, NAMESPACE, name)
    assert from_data(stored["data"]).serving == pair
    assert stored["metadata"]["labels"] == {"kept": "yes"}


def foreign(body: Json, name: str) -> Json:
    """Return a configuration like ours of another name, which asks nothing."""
    other = copy.deepcopy(body)
    other["metadata"] = {"name": name}
    for webhook in other["webhooks"]:
        webhook["objectSelector"] = {"matchLabels": {"never": "there"}}
    return other


async def test_what_is_not_ours_is_not_touched(world: WebhookWorld) -> None:
    mutating, _ = webhook_configurations(443)
    await world.client.create(MUTATING_WEBHOOKS, "", foreign(mutating, "kueue-lookalike"))
    ours = await world.client.get(MUTATING_WEBHOOKS, "", MUTATING_NAME)
    elsewhere = copy.deepcopy(ours["webhooks"][0])
    elsewhere["name"] = "elsewhere.example.com"
    elsewhere["objectSelector"] = {"matchLabels": {"never": "there"}}
    elsewhere["clientConfig"]["service"]["name"] = "another"
    del elsewhere["clientConfig"]["caBundle"]
    ours["webhooks"][0]["clientConfig"]["caBundle"] = ""
    ours["webhooks"].insert(1, elsewhere)
    await world.client.replace(MUTATING_WEBHOOKS, "", MUTATING_NAME, ours)
    repaired = await wait_for(
        world.client,
        MUTATING_WEBHOOKS,
        "",
        lambda o: bool(o["webhooks"][0]["clientConfig"].get("caBundle")),
        name=MUTATING_NAME,
    )
    assert "caBundle" not in repaired["webhooks"][1]["clientConfig"]
    del repaired["webhooks"][1]
    await world.client.replace(MUTATING_WEBHOOKS, "", MUTATING_NAME, repaired)
    untouched = await world.client.get(MUTATING_WEBHOOKS, "", "kueue-lookalike")
    assert untouched["metadata"]["generation"] == 1
    assert all("caBundle" not in w["clientConfig"] for w in untouched["webhooks"])
    await world.client.delete(MUTATING_WEBHOOKS, "", "kueue-lookalike")


def selector_of(body: Json) -> Json:
    (entry,) = (w for w in body["webhooks"] if w["name"] == UNLABELLED)
    selector: Json = entry["namespaceSelector"]
    return selector


async def until_selector(client: Client, resource: Resource, name: str, wanted: Json) -> None:
    await wait_for(client, resource, "", lambda o: selector_of(o) == wanted, name=name)


async def test_the_second_entry_follows_default_queues(world: WebhookWorld) -> None:
    nobody = {
        "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "DoesNotExist"}]
    }
    await until_selector(world.client, MUTATING_WEBHOOKS, MUTATING_NAME, nobody)
    namespaces = sorted(f"test-{uuid.uuid4().hex[:8]}" for _ in range(2))
    for name in namespaces:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await world.client.create(NAMESPACES, "", body)
        for queue in ("default", "other"):
            local = LOCAL_QUEUES.skeleton(name, queue) | {"spec": {"clusterQueue": "cq"}}
            await world.client.create(LOCAL_QUEUES, name, local)
    both = {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces}
        ]
    }
    await until_selector(world.client, MUTATING_WEBHOOKS, MUTATING_NAME, both)
    for name in namespaces:
        await world.client.delete(LOCAL_QUEUES, name, "default")
    await until_selector(world.client, MUTATING_WEBHOOKS, MUTATING_NAME, nobody)


async def test_without_certificate_management_only_selectors_are_kept(
    world: WebhookWorld,
) -> None:
    """``internalCertManagement.enable: false``, on configurations of names of this test."""
    mutating, _ = webhook_configurations(443)
    name = f"own-{uuid.uuid4().hex[:8]}"
    body = foreign(mutating, name)
    body["webhooks"][0]["clientConfig"]["caBundle"] = base64.b64encode(
        from_data(await secret_data(world.client)).ca.certificate_pem
    ).decode()
    await world.client.create(MUTATING_WEBHOOKS, "", body)
    caches = informers(world.client, mutating=name, validating="absent")
    managed = {"matchLabels": {"team": "yes"}, "matchExpressions": []}
    keeper = SelectorKeeper(world.client, caches, managed=managed, manages_unqueued=True)
    tasks = [
        asyncio.create_task(run, name="selectors")
        for run in (*(cache.run() for cache in caches), keeper.run())
    ]
    try:
        wanted = {"matchLabels": {"team": "yes"}}
        await until_selector(world.client, MUTATING_WEBHOOKS, name, wanted)
        stored = await world.client.get(MUTATING_WEBHOOKS, "", name)
        assert [w["clientConfig"] for w in stored["webhooks"]] == [
            w["clientConfig"] for w in body["webhooks"]
        ]
    finally:
        for task in tasks:
            await stop(task)
        await world.client.delete(MUTATING_WEBHOOKS, "", name)
