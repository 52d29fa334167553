"""Objects near the limits: the rules' cost must stay within what the API server allows."""

from typing import Any

from tests.support.crd_server import schema_server
from tests.support.samples import samples

from sluice.api.topology_assignment import HOSTNAME_LEVEL, Domain, decode, encode
from sluice.local.real import RealControlPlane

NODES = 30_000


def quotas(flavor: int, resources: int) -> dict[str, Any]:
    """Return a flavor with quota for some resources."""
    return {
        "name": f"flavor-{flavor}",
        "resources": [
            {"name": f"example.com/resource-{i}", "nominalQuota": "100", "borrowingLimit": "5"}
            for i in range(resources)
        ],
    }


async def test_a_placement_on_many_nodes_is_taken(real_apiserver: RealControlPlane) -> None:
    workload = samples("Workload", "v1beta2")[0]
    workload["metadata"] = {"name": "large-placement", "namespace": "default"}
    domains = [Domain((f"pool-{i // 10_000}-node-{i:05}",), 1 + i % 2) for i in range(NODES)]
    placement = encode([HOSTNAME_LEVEL], domains)
    workload["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"] = placement
    async with schema_server(real_apiserver.access()) as server:
        stored = await server.store(workload)
    kept = stored["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"]
    assert decode(kept) == domains


async def test_a_queue_with_as_many_quotas_as_fit_is_taken(
    real_apiserver: RealControlPlane,
) -> None:
    # 16 groups of 8 flavors with 16 resources: 2048 quotas, four times what the webhook allows.
    groups = [
        {
            "coveredResources": [f"example.com/resource-{i}" for i in range(16)],
            "flavors": [quotas(flavor, 16) for flavor in range(8)],
        }
        for _ in range(16)
    ]
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "large"},
        "spec": {"cohortName": "c", "resourceGroups": groups},
    }
    async with schema_server(real_apiserver.access()) as server:
        outcome = await server.create(queue)
    assert outcome.stored is not None, outcome.causes
