"""The stand-ins on a real API server: what they write passes its rules.

They act on everything there is, so they get a server of their own.
"""

import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.support.waiting import has_condition, wait_until_deleted
from tests.unit.local.standins.conftest import NAMESPACE, Cluster, standing_in, template

from sluice.kube.client import Client, ClientOptions, PatchType
from sluice.kube.resources import BATCH_JOBS, NODES
from sluice.local.real import PlaneOptions, RealControlPlane, SimulatedNode
from sluice.local.real.programs import find
from sluice.local.real.versions import API_SERVER_PROGRAMS
from sluice.local.standins import CONNECTIONS_MAX

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[Cluster]:

    # Without controllers namespaces get no ServiceAccount, which that plugin asks of every Pod.
    options = PlaneOptions(api_server_flags={"disable-admission-plugins": "ServiceAccount"})
    async with RealControlPlane(find(os.environ, API_SERVER_PROGRAMS), options) as plane:
        access = plane.access()
        async with Client(access, options=ClientOptions(connections_max=CONNECTIONS_MAX)) as client:
            for number in range(2):
                name = f"node-{number}"
                node = SimulatedNode(name=name, cpu="4", memory="8Gi", gpus=2, pods=10)
                await client.create(NODES, "", node.to_object())
                # A real server taints new nodes; its node controller would take that off.
                untaint = {"spec": {"taints": None}}
                await client.patch(NODES, "", name, untaint, patch_type=PatchType.MERGE)
            async with standing_in(client):
                yield Cluster(client)


ENDS: list[tuple[str, dict[str, Any], str]] = [
    ("plain", {}, "Complete"),
    ("indexed", {"parallelism": 2, "completions": 4, "completionMode": "Indexed"}, "Complete"),
    ("work-queue", {"parallelism": 2, "completions": None}, "Complete"),
    ("failing", {"backoffLimit": 1, "template": template(outcome="Failed")}, "Failed"),
    ("late", {"activeDeadlineSeconds": 1, "template": template(run=None)}, "Failed"),
    ("waiting", {"suspend": True}, "Suspended"),
]


async def test_jobs(cluster: Cluster) -> None:
    for name, spec, _ in ENDS:
        await cluster.create_job(name, **spec)
    for name, _, condition in ENDS:
        await cluster.job(has_condition(condition), name)
    selector = {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": "node-1"}}}}
    steered = {"spec": {"suspend": False, **selector}}
    await cluster.client.patch(
        BATCH_JOBS, NAMESPACE, "waiting", steered, patch_type=PatchType.MERGE
    )
    await cluster.job(has_condition("Complete"), "waiting")
    for name, _, _ in ENDS:
        await cluster.client.delete(BATCH_JOBS, NAMESPACE, name, propagation="Foreground")
    for name, _, _ in ENDS:
        await wait_until_deleted(cluster.client, BATCH_JOBS, NAMESPACE, name, deadline_s=15)
    await cluster.no_pods()
