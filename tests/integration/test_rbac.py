"""The manifests' rights suffice for everything that Sluice does, and grant nothing beyond.

A replica runs with the token of its ServiceAccount on a real API server whose audit log tells what
it asked for, and what was refused.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
import yaml
from tests.support.install import (
    BASE,
    NAMESPACE,
    USER,
    Installation,
    Json,
    Replica,
    account_access,
    installed,
    started,
)
from tests.support.managers import World, job_body
from tests.support.waiting import has_condition, wait_for, wait_until_deleted

from sluice.api.errors import Forbidden, NotFound
from sluice.controllers.certificates import CONVERTED_CRDS
from sluice.controllers.webhookconfigs import UNLABELLED_SUFFIX
from sluice.jobs.admission.kinds import ALL_KINDS
from sluice.kube import resources
from sluice.kube.client import Client

pytestmark = [pytest.mark.real, pytest.mark.slow]

SECRET = "sluice-webhook-server-cert"
FORBIDDEN = 403
RETENTION = {"workloads": {"afterFinished": "1s", "afterDeactivatedByKueue": "1s"}}
FAIR = {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}
WEBHOOKS = {
    resources.MUTATING_WEBHOOKS: "sluice-mutating-webhook-configuration",
    resources.VALIDATING_WEBHOOKS: "sluice-validating-webhook-configuration",
}
UNSEEN = {
    # Asked by admission inside the API server, which notes nothing: see OwnerReferencesPermission-
    # Enforcement in tests/support/install.py.
    ("update", "batch", "jobs/finalizers"),
    # Only after a write that conflicted.
    ("get", "kueue.x-k8s.io", "workloads"),
    # Only when a node fails under a pod that waits for it.
    ("patch", "", "pods/status"),
    # Only when an event comes again after minutes.
    ("patch", "events.k8s.io", "events"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installed(tmp_path_factory.mktemp("rbac"), runs_pods=True) as lent:
        yield lent


async def test_the_rights_suffice_and_none_is_left_unused(place: Installation) -> None:
    noted = len(place.requests())
    changes = {"objectRetentionPolicies": RETENTION, "fairSharing": FAIR}
    async with Client(place.plane.access()) as client, started(place, **changes) as replica:
        here = World(client=client, namespace="team")
        await set_up(here)
        await asyncio.gather(
            runs_to_its_end(here),
            runs_in_its_place(here),
            stops_when_deactivated(here),
            is_deleted_after_its_time(here),
            is_queued_without_label(here),
            owners_are_looked_up(here),
            credits_are_kept(here),
            certificates_are_kept(client),
            metrics_are_for_some(place, replica),
        )
        await take_down(here)
        assert "orbidden" not in replica.log.read_text()
    requests = place.requests()[noted:]
    assert [event for event in requests if code(event) == FORBIDDEN] == []
    used = [right for event in requests for right in rights(event)]
    granted = grants()
    assert granted - set(used) == UNSEEN
    assert granted >= UNSEEN


POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
ROLES = resources.Resource(
    group="rbac.authorization.k8s.io",
    version="v1",
    plural="clusterroles",
    kind="ClusterRole",
    namespaced=False,
)
REFUSED: list[tuple[str, resources.Resource, str, str]] = [
    # Secrets: its own, by name, and no other.
    ("list", resources.SECRETS, NAMESPACE, ""),
    ("list", resources.SECRETS, "", ""),
    ("get", resources.SECRETS, NAMESPACE, "other"),
    ("get", resources.SECRETS, "default", SECRET),
    ("patch", resources.SECRETS, NAMESPACE, "other"),
    ("create", resources.SECRETS, "default", SECRET),
    ("delete", resources.SECRETS, NAMESPACE, SECRET),
    # Pods and nodes: whether they are there is Kubernetes' own business.
    ("create", resources.PODS, "default", "x"),
    ("delete", resources.PODS, "default", "x"),
    ("get", resources.NODES, "", "node-0"),
    ("delete", resources.NODES, "", "node-0"),
    ("patch", resources.NODES, "", "node-0"),
    # Jobs and namespaces of others.
    ("create", resources.BATCH_JOBS, "default", "x"),
    ("create", resources.NAMESPACES, "", "x"),
    ("patch", resources.NAMESPACES, "", "default"),
    # What admins and users decide.
    ("create", resources.CLUSTER_QUEUES, "", "x"),
    ("delete", resources.CLUSTER_QUEUES, "", "x"),
    ("patch", resources.LOCAL_QUEUES, "default", "x"),
    ("delete", resources.LOCAL_QUEUES, "default", "x"),
    ("patch", resources.WORKLOAD_PRIORITY_CLASSES, "", "x"),
    ("create", resources.PRIORITY_CLASSES, "", "x"),
    # Webhooks and CRDs: its own, by name, changed and never made or taken away.
    ("list", resources.MUTATING_WEBHOOKS, "", ""),
    ("get", resources.MUTATING_WEBHOOKS, "", "kueue-mutating-webhook-configuration"),
    ("patch", resources.MUTATING_WEBHOOKS, "", "kueue-mutating-webhook-configuration"),
    ("patch", resources.VALIDATING_WEBHOOKS, "", "kueue-validating-webhook-configuration"),
    ("create", resources.VALIDATING_WEBHOOKS, "", "x"),
    ("delete", resources.MUTATING_WEBHOOKS, "", WEBHOOKS[resources.MUTATING_WEBHOOKS]),
    ("patch", resources.CUSTOM_RESOURCE_DEFINITIONS, "", "resourceflavors.kueue.x-k8s.io"),
    ("delete", resources.CUSTOM_RESOURCE_DEFINITIONS, "", "workloads.kueue.x-k8s.io"),
    # Leases: its own in its own namespace; Kueue's is looked at only.
    ("list", resources.LEASES, "", ""),
    ("delete", resources.LEASES, NAMESPACE, "manager.sluicegate.io"),
    ("create", resources.LEASES, "default", "x"),
    ("patch", resources.LEASES, "default", "c1f6bfd2.kueue.x-k8s.io"),
    # Its own rights, configuration and deployment.
    ("create", ROLES, "", "x"),
    ("patch", ROLES, "", "sluice-manager"),
    ("get", resources.CONFIG_MAPS, NAMESPACE, "sluice-configuration"),
    ("patch", resources.DEPLOYMENTS, NAMESPACE, "sluice-manager"),
    ("list", resources.SERVICE_ACCOUNTS, NAMESPACE, ""),
]


async def test_what_is_not_granted_is_refused(place: Installation) -> None:
    async with Client(await account_access(place)) as account:
        for verb, resource, namespace, name in REFUSED:
            by_rbac = f'User "{USER}" cannot {verb} resource'  # and by nothing else
            with pytest.raises(Forbidden, match=by_rbac):
                await ask(account, verb, resource, namespace, name)


async def ask(
    account: Client, verb: str, resource: resources.Resource, namespace: str, name: str
) -> None:
    """Send a request that would change nothing were it let through."""
    match verb:
        case "list":
            await account.list(resource, namespace)
        case "get":
            await account.get(resource, namespace, name)
        case "create":
            body = {**resource.skeleton(namespace, name), **POD}
            await account.create(resource, namespace, body, dry_run=True)
        case "patch":
            await account.patch(resource, namespace, name, {})
        case _:
            # Objects that are not there, or a uid that is not theirs.
            await account.delete(resource, namespace, name, uid="none")


async def set_up(here: World) -> None:
    """Make a namespace and one of each kind."""
    client = here.client
    await client.create(resources.NAMESPACES, "", resources.NAMESPACES.skeleton("", "team"))
    topology = await here.cluster_wide(
        resources.TOPOLOGIES,
        "topology",
        {"spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}},
    )
    spec = {"nodeLabels": {"kubernetes.io/os": "linux"}, "topologyName": topology}
    placed = await here.cluster_wide(resources.RESOURCE_FLAVORS, "placed", {"spec": spec})
    quota = {"name": placed, "resources": [{"name": "cpu", "nominalQuota": "4"}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
    body = {"spec": {"namespaceSelector": {}, "resourceGroups": groups}}
    await here.local_queue(
        "placed", await here.cluster_wide(resources.CLUSTER_QUEUES, "placed", body)
    )
    await here.cluster_wide(
        resources.ADMISSION_CHECKS, "check", {"spec": {"controllerName": "example.com/nobody"}}
    )
    cohort = await here.cluster_wide(resources.COHORTS, "cohort", {"spec": {}})
    await here.cluster_wide(resources.CREDIT_POLICIES, "credits", {"spec": {"cohortName": cohort}})
    await here.queues(cpu="8", cohortName=cohort)
    await here.cluster_wide(resources.CREDIT_POLICIES, "policy", {"spec": {"cohortName": cohort}})
    await here.local_queue("default", queue_of(here))
    await wait_for(client, resources.LOCAL_QUEUES, "team", has_condition("Active"), name="default")


def queue_of(here: World) -> str:
    return dict(here.made)[resources.CLUSTER_QUEUES]


async def credits_are_kept(here: World) -> None:
    """The ledger's checkpoint is in the policy's status."""
    name = dict(here.made)[resources.CREDIT_POLICIES]
    await here.wait(resources.CREDIT_POLICIES, lambda policy: "status" in policy, name=name)


async def runs_to_its_end(here: World) -> None:
    """A queued Job gets its quota, its Pod and its end; then its Workload goes."""
    await here.job("short", run_time="1s")
    await here.wait(resources.PODS, lambda pod: pod["metadata"]["name"].startswith("short-"))
    finished = await here.wait_workload("short", has_condition("Finished"))  # kept for a second
    await here.wait(resources.BATCH_JOBS, has_condition("Complete"), name="short")
    await here.gone(resources.WORKLOADS, finished["metadata"]["name"])
    events = await here.client.list(resources.EVENTS, here.namespace)
    reasons = {event["reason"] for event in events["items"]}
    assert {"QuotaReserved", "Admitted", "Started", "FinishedWorkload"} <= reasons


async def runs_in_its_place(here: World) -> None:
    """A Job of a queue with a topology runs: its Pod is taken out of its gate."""
    await here.job("placed", queue="placed", run_time="1s")
    await here.wait(resources.BATCH_JOBS, has_condition("Complete"), name="placed")


async def stops_when_deactivated(here: World) -> None:
    """A running Job whose Workload is deactivated loses its Pods, and may come back."""
    await here.job("long")
    await here.wait(resources.BATCH_JOBS, lambda job: job["status"].get("active"), name="long")
    workload = await here.wait_workload("long", has_condition("Admitted"))
    name = workload["metadata"]["name"]
    await here.wait(
        resources.CLUSTER_QUEUES,
        lambda queue: queue.get("status", {}).get("admittedWorkloads", 0) > 0,
        name=queue_of(here),
    )
    await here.patch(resources.WORKLOADS, name, {"spec": {"active": False}})
    await here.wait(
        resources.BATCH_JOBS,
        lambda job: (
            job["spec"]["suspend"]
            and not job["status"].get("active")
            and "startTime" not in job["status"]
        ),
        name="long",
    )
    await here.wait_workload("long", has_condition("QuotaReserved", "False"))
    await here.patch(resources.WORKLOADS, name, {"spec": {"active": True}})
    await here.wait(resources.BATCH_JOBS, lambda job: job["status"].get("active"), name="long")
    await here.delete(resources.BATCH_JOBS, "long")
    await here.gone(resources.WORKLOADS, name)


async def is_deleted_after_its_time(here: World) -> None:
    """A Job that runs too long is deactivated, and deleted with its Workload a second later."""
    await here.job("late", labels={"kueue.x-k8s.io/max-exec-time-seconds": "1"})
    await here.gone(resources.BATCH_JOBS, "late")


async def is_queued_without_label(here: World) -> None:
    """A Job without a label is queued where a LocalQueue `default` is."""
    for resource, name in WEBHOOKS.items():
        await wait_for(here.client, resource, "", takes_namespace("team"), name=name)
    body = job_body("unlabelled", queue="", suspend=False, run_time="0.1s")
    await here.client.create(resources.BATCH_JOBS, "team", body)
    await here.wait(resources.BATCH_JOBS, has_condition("Complete"), name="unlabelled")
    job = await here.client.get(resources.BATCH_JOBS, "team", "unlabelled")
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"


def takes_namespace(namespace: str) -> Any:
    def check(configuration: Json) -> bool:
        (entry,) = (w for w in configuration["webhooks"] if w["name"].endswith(UNLABELLED_SUFFIX))
        return bool(entry.get("rules")) and namespace in str(entry["namespaceSelector"])

    return check


async def owners_are_looked_up(here: World) -> None:
    """The owner of a Job may be of any kind known; whether it is there is asked."""
    owners = {(kind.group, kind.version, kind.kind) for kind in ALL_KINDS}
    for group, version, kind in sorted(owners | {("apps", "v1", "ReplicaSet")}):
        body = job_body("child")
        body["metadata"]["ownerReferences"] = [
            {
                "apiVersion": f"{group}/{version}" if group else version,
                "kind": kind,
                "name": "parent",
                "uid": "u-1",
                "controller": True,
            }
        ]
        with pytest.raises(Forbidden, match="parent does not exist"):  # and not: cannot be read
            await here.client.create(resources.BATCH_JOBS, here.namespace, body, dry_run=True)


async def certificates_are_kept(client: Client) -> None:
    """The Secret has a CA that all who call the webhook trust; a deleted one is made again."""
    secret = await client.get(resources.SECRETS, NAMESPACE, SECRET)
    assert {"ca.crt", "ca.key", "tls.crt", "tls.key"} <= secret["data"].keys()
    for resource, name in WEBHOOKS.items():
        configuration = await client.get(resource, "", name)
        assert all(w["clientConfig"]["caBundle"] for w in configuration["webhooks"])
    for name in CONVERTED_CRDS:
        definition = await client.get(resources.CUSTOM_RESOURCE_DEFINITIONS, "", name)
        assert definition["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"]
    old = await client.call("/apis/kueue.x-k8s.io/v1beta1/clusterqueues")
    assert "cohort" in old["items"][0]["spec"]  # cohortName since v1beta2
    await client.delete(resources.SECRETS, NAMESPACE, SECRET)
    await wait_for(
        client,
        resources.SECRETS,
        NAMESPACE,
        lambda found: found["metadata"]["uid"] != secret["metadata"]["uid"],
        name=SECRET,
    )


async def metrics_are_for_some(place: Installation, replica: Replica) -> None:
    """Metrics are for those who may get /metrics, and for nobody else."""
    kubectl = place.kubectl
    await kubectl("create", "serviceaccount", "scraper", "--namespace=default")
    await kubectl(
        "create",
        "clusterrolebinding",
        "scraper",
        "--clusterrole=kueue-metrics-reader",
        "--serviceaccount=default:scraper",
    )
    reader = await kubectl("create", "token", "scraper", "--namespace=default")
    other = await kubectl("create", "token", "sluice-manager", f"--namespace={NAMESPACE}")
    answers = {}
    async with aiohttp.ClientSession() as session:
        for who, token in (("nobody", ""), ("other", other), ("reader", reader)):
            headers = {"Authorization": f"Bearer {token.strip()}"} if token else {}
            async with session.get(replica.metrics, headers=headers, ssl=False) as answer:
                answers[who] = (answer.status, await answer.text())
    assert (answers["nobody"][0], answers["other"][0], answers["reader"][0]) == (401, 403, 200)
    text = answers["reader"][1]
    assert 'webhook="/mutate-batch-v1-job"' in text
    assert "kueue_pending_workloads{" in text
    assert 'replica_role="leader"' in text


async def take_down(here: World) -> None:
    """What was in use goes once nothing uses it: finalizers are taken off."""
    queue = queue_of(here)
    for resource, name in reversed(here.made):
        await here.client.delete(resource, "", name)
    await wait_until_deleted(here.client, resources.CLUSTER_QUEUES, "", queue)
    for resource, name in here.made:
        await wait_until_deleted(here.client, resource, "", name)
    with pytest.raises(NotFound):
        await here.client.get(resources.CLUSTER_QUEUES, "", queue)


def code(event: Json) -> int:
    return int(event["responseStatus"]["code"])


def rights(event: Json) -> Iterator[tuple[str, str, str]]:
    """Yield verb, group and resource of a request that was let through."""
    found = event.get("objectRef") or {}
    if "resource" in found and code(event) != FORBIDDEN:
        plural = "/".join(filter(None, (found["resource"], found.get("subresource"))))
        yield event["verb"], found.get("apiGroup", ""), plural


def grants() -> set[tuple[str, str, str]]:
    """Return verb, group and resource of every rule of the manager."""
    return {
        (verb, group, resource)
        for document in yaml.safe_load_all((BASE / "rbac-manager.yaml").read_text())
        for rule in document.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
