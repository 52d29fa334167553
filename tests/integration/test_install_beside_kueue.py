"""``sluice run`` against definitions and webhook configurations that somebody else installed.

They are as Kueue's own install makes them: other names, wide rules, no match conditions, and a
certificate in a directory.
"""

import base64
import copy
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.install import Installation, Json, Replica, control_plane, start
from tests.support.managers import World
from tests.support.waiting import has_condition
from tests.support.webhook import now_ms

from sluice.api.times import micro_from_ms
from sluice.cli.manifests import at_port, crds
from sluice.kube import resources
from sluice.kube.client import Client
from sluice.kube.pki import make_ca, make_serving

pytestmark = [pytest.mark.real, pytest.mark.slow]

KUEUE = "kueue-system"
SERVICE = "kueue-webhook-service"
LEASE = "c1f6bfd2.kueue.x-k8s.io"
OWN_LEASE = "manager.sluicegate.io"
RUNS_HERE = "Kueue runs in this cluster: kueue-0 holds Lease kueue-system/c1f6bfd2.kueue.x-k8s.io"
CREATE, BOTH = ["CREATE"], ["CREATE", "UPDATE"]
# Group, version, plural, kind; what the mutating and the validating webhook are asked about.
WEBHOOKS: list[tuple[str, str, str, str, list[str], list[str]]] = [
    ("kueue.x-k8s.io", "v1beta2", "clusterqueues", "clusterqueue", CREATE, BOTH),
    ("kueue.x-k8s.io", "v1beta2", "cohorts", "cohort", [], BOTH),
    ("kueue.x-k8s.io", "v1beta2", "resourceflavors", "resourceflavor", CREATE, BOTH),
    ("kueue.x-k8s.io", "v1beta2", "workloads", "workload", CREATE, BOTH),
    ("batch", "v1", "jobs", "job", CREATE, BOTH),
    ("", "v1", "pods", "pod", CREATE, BOTH),
    ("apps", "v1", "deployments", "deployment", BOTH, BOTH),
    ("apps", "v1", "statefulsets", "statefulset", BOTH, BOTH),
]
CONFIGURATION: Json = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "leaderElection": {"leaderElect": True, "resourceName": LEASE},
    "internalCertManagement": {"enable": False},
    "clientConnection": {"qps": 50, "burst": 100},
    "integrations": {"frameworks": ["batch/job"]},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """What somebody else's install has: a CA, and a directory with the webhook's certificate."""

    bundle: str
    certificates: Path
    port: int

    def definitions(self) -> list[Json]:
        """Return Kueue's definitions, converted by Kueue's Service."""
        found = []
        for crd in crds():
            if crd["spec"]["group"] != "kueue.x-k8s.io":
                continue
            conversion = crd["spec"].get("conversion", {}).get("webhook")
            if conversion:
                conversion["clientConfig"] = self._client("/convert")
            found.append(at_port(crd, self.port))
        return found

    def configuration(self, direction: str) -> Json:
        """Return Kueue's ``mutating`` or ``validating`` webhook configuration."""
        kind = f"{direction.title()}WebhookConfiguration"
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": f"kueue-{direction}-webhook-configuration"},
            "webhooks": [
                self._entry(direction, *row) for row in WEBHOOKS if row[4 + (direction[0] == "v")]
            ],
        }

    def _entry(
        self,
        direction: str,
        group: str,
        version: str,
        plural: str,
        kind: str,
        mutates: list[str],
        validates: list[str],
    ) -> Json:
        verb = {"mutating": "mutate", "validating": "validate"}[direction]
        status = [f"{plural}/status"] if kind == "workload" and verb == "validate" else []
        rule = {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": mutates if verb == "mutate" else validates,
            "resources": [plural, *status],
        }
        outside = {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": ["kube-system", KUEUE],
        }
        is_builtin = group != "kueue.x-k8s.io"
        return {
            "name": f"{verb[0]}{kind}.kb.io",
            "admissionReviewVersions": ["v1"],
            "clientConfig": self._client(f"/{verb}-{group.replace('.', '-')}-{version}-{kind}"),
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "rules": [rule],
            **({"namespaceSelector": {"matchExpressions": [outside]}} if is_builtin else {}),
        }

    def _client(self, path: str) -> Json:
        service = {"namespace": KUEUE, "name": SERVICE, "path": path, "port": self.port}
        return {"service": service, "caBundle": self.bundle}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with control_plane(tmp_path_factory.mktemp("beside"), runs_pods=True) as lent:
        yield lent


@pytest.fixture
def elsewhere(place: Installation, tmp_path: Path) -> Elsewhere:
    ca = make_ca("kueue-ca", now_ms())
    pair = make_serving(ca, [f"{SERVICE}.{KUEUE}.svc"], now_ms())
    (tmp_path / "tls.crt").write_bytes(pair.certificate_pem)
    (tmp_path / "tls.key").write_bytes(pair.key_pem)
    bundle = base64.b64encode(ca.certificate_pem).decode()
    return Elsewhere(bundle=bundle, certificates=tmp_path, port=place.port)


async def install(client: Client, elsewhere: Elsewhere) -> list[Json]:
    """Create what Kueue's install does; returns its webhook configurations as stored."""
    for crd in elsewhere.definitions():
        await client.create(resources.CUSTOM_RESOURCE_DEFINITIONS, "", crd)
    service = resources.SERVICES.skeleton(KUEUE, SERVICE)
    service["spec"] = {"type": "ExternalName", "externalName": "localhost"}
    await client.create(resources.SERVICES, KUEUE, service)
    kinds = {
        "mutating": resources.MUTATING_WEBHOOKS,
        "validating": resources.VALIDATING_WEBHOOKS,
    }
    return [
        await client.create(resource, "", elsewhere.configuration(direction))
        for direction, resource in kinds.items()
    ]


async def lease(client: Client, duration_s: int) -> None:
    """Renew Kueue's Lease, or make it."""
    body = resources.LEASES.skeleton(KUEUE, LEASE)
    body["spec"] = {
        "holderIdentity": "kueue-0",
        "leaseDurationSeconds": duration_s,
        "renewTime": micro_from_ms(now_ms()),
    }
    await client.create(resources.LEASES, KUEUE, body)


async def test_it_serves_what_somebody_else_installed(
    place: Installation, elsewhere: Elsewhere
) -> None:
    configuration = copy.deepcopy(CONFIGURATION)
    configuration["webhook"] = {"certDir": str(elsewhere.certificates)}
    async with Client(place.plane.access()) as client:
        for namespace in (KUEUE, "team", "free"):
            skeleton = resources.NAMESPACES.skeleton("", namespace)
            await client.create(resources.NAMESPACES, "", skeleton)
        await lease(client, 3600)
        replica = start(place.folder, place.plane.kubeconfig, configuration, place.port)
        with closing(Ending(replica)):
            await replica.until(503, "waiting for the first list of")  # no definitions yet
            installed = await install(client, elsewhere)
            here = World(client=client, namespace="team")
            await waits_while_kueue_runs(here, replica)
            await takes_over(here, replica)
            await leaves_the_rest_alone(client, installed)
            await steps_back(here, replica)
        assert "part failed" not in replica.log.read_text()


@dataclass(frozen=True, slots=True)
class Ending:
    """Ends a replica that a failing test leaves behind."""

    replica: Replica

    def close(self) -> None:
        self.replica.process.kill()
        self.replica.process.wait()


async def waits_while_kueue_runs(here: World, replica: Replica) -> None:
    """The webhook serves, nothing is decided, and the probe says why."""
    reasons = await replica.until(503, RUNS_HERE, without="waiting")
    assert reasons.splitlines() == [
        f"{RUNS_HERE}; scale its deployment to zero first, so that no Workload is admitted twice"
    ]
    await here.queues(cpu="1")
    job = await here.job("first", run_time="0.5s", suspend=False)
    assert job["spec"]["suspend"] is True  # the mutating webhook's doing
    workloads = await here.client.list(resources.WORKLOADS)
    assert workloads["items"] == []


async def takes_over(here: World, replica: Replica) -> None:
    """With Kueue's Lease stale it leads, by a Lease of its own, and everything works."""
    stale = {"spec": {"leaseDurationSeconds": 1}}
    await here.client.patch(resources.LEASES, KUEUE, LEASE, stale)
    await replica.until(200)
    own = await here.client.get(resources.LEASES, KUEUE, OWN_LEASE)
    assert own["spec"]["holderIdentity"]
    await here.wait(resources.BATCH_JOBS, has_condition("Complete"), name="first")
    finished = await here.wait_workload("first", has_condition("Finished"))
    old = "/apis/kueue.x-k8s.io/v1beta1/namespaces/team/workloads"
    listed = await here.client.call(old)
    assert [item["metadata"]["name"] for item in listed["items"]] == [finished["metadata"]["name"]]


async def leaves_the_rest_alone(client: Client, installed: list[Json]) -> None:
    """Unqueued objects pass unchanged, and nothing that others installed is written."""
    free = World(client=client, namespace="free")
    job = await free.job("free", queue="", suspend=False, run_time="0.1s")
    assert "kueue.x-k8s.io/" not in str(job["metadata"].get("labels"))
    assert job["spec"]["suspend"] is False
    await free.wait(resources.BATCH_JOBS, has_condition("Complete"), name="free")
    for configuration in installed:
        kind = {
            "MutatingWebhookConfiguration": resources.MUTATING_WEBHOOKS,
            "ValidatingWebhookConfiguration": resources.VALIDATING_WEBHOOKS,
        }[configuration["kind"]]
        assert await client.get(kind, "", configuration["metadata"]["name"]) == configuration
    for crd in (await client.list(resources.CUSTOM_RESOURCE_DEFINITIONS))["items"]:
        assert crd["metadata"]["generation"] == 1
    secrets = await client.list(resources.SECRETS, KUEUE)
    assert secrets["items"] == []


async def steps_back(here: World, replica: Replica) -> None:
    """When Kueue comes back it stops deciding; when its Lease is deleted it goes on."""
    await here.client.delete(resources.LEASES, KUEUE, LEASE)
    await lease(here.client, 3600)
    await replica.until(503, RUNS_HERE)
    await here.job("second", run_time="0.1s")
    await here.client.delete(resources.LEASES, KUEUE, LEASE)
    await replica.until(200)
    await here.wait(resources.BATCH_JOBS, has_condition("Complete"), name="second")
