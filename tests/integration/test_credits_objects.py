"""CreditPolicies on every control plane: what the definition refuses, what it fills in."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.support.controlplane import ControlPlane
from tests.support.credit_installs import install_credits

from sluice.api.errors import KubeError
from sluice.kube.client import Client
from sluice.kube.resources import CREDIT_POLICIES

pytestmark = pytest.mark.slow

Json = dict[str, Any]


@pytest_asyncio.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client(control_plane.access) as made:
        await install_credits(made)
        yield made


def policy(name: str, **spec: Any) -> Json:
    return {**CREDIT_POLICIES.skeleton("", name), "spec": {"cohortName": "all", **spec}}


REFUSED = [
    pytest.param({"cohortName": ""}, "cohortName", id="no cohort"),
    pytest.param({"settlementPeriod": "9s"}, "settlementPeriod must be at least 10s", id="short"),
    pytest.param({"settlementPeriod": "61m"}, "settlementPeriod must be at most 1h", id="long"),
    pytest.param({"settlementPeriod": "soon"}, "settlementPeriod", id="no duration"),
    pytest.param({"horizon": "30s"}, "horizon must be at least settlementPeriod", id="horizon"),
    pytest.param({"horizon": "721h"}, "horizon must be at most 720h", id="far horizon"),
    pytest.param({"minBalance": 1}, "must be at most 0", id="min above 0"),
    pytest.param({"minBalance": "100m"}, "must be at most 0", id="min text above 0"),
    pytest.param({"maxBalance": "-1"}, "must not be negative", id="max below 0"),
    pytest.param({"halfLife": "100ms"}, "halfLife must be at least 1s", id="half life"),
    pytest.param(
        {"billingWeights": [{"resource": "cpu", "weight": -1}]},
        "must not be negative",
        id="negative weight",
    ),
    pytest.param(
        {"billingWeights": [{"resource": "cpu", "weight": 1}, {"resource": "cpu", "weight": "2"}]},
        "a resource may have one weight",
        id="two weights",
    ),
    pytest.param({"billingWeights": [{"resource": "cpu"}]}, "weight", id="no weight"),
]


@pytest.mark.parametrize(("spec", "message"), REFUSED)
async def test_what_is_impossible_is_refused_with_its_field(
    client: Client, namespace: str, spec: Json, message: str
) -> None:
    with pytest.raises(KubeError) as refused:
        await client.create(CREDIT_POLICIES, "", policy(f"bad-{namespace}", **spec))
    assert message in str(refused.value)


async def test_defaults_and_status(client: Client, namespace: str) -> None:
    name = f"good-{namespace}"
    weights = [
        {"resource": "cpu", "weight": 0},
        {"resource": "cpu", "flavor": "spot", "weight": "250m"},
        {"resource": "nvidia.com/gpu", "weight": "1.5"},
    ]
    body = policy(name, billingWeights=weights, minBalance="-0.5", maxBalance=10, halfLife="24h")
    made = await client.create(CREDIT_POLICIES, "", body)
    try:
        assert made["spec"]["settlementPeriod"] == "60s"
        assert made["spec"]["horizon"] == "1h"
        account = {
            "parent": "all", "kind": "ClusterQueue", "name": "a", "balance": "-123456789012345678",
            "frozenSince": "2026-01-01T00:00:00Z",
            "resources": [{"flavor": "spot", "resource": "cpu", "usage": "500"}],
        }  # fmt: skip
        status = {"settledAt": "2026-01-01T00:00:00Z", "accounts": [account]}
        patch = {"status": {**status, "more": 1}}
        seen = await client.patch(CREDIT_POLICIES, "", name, patch, subresource="status")
        assert seen["status"] == status
        change = {"spec": {"cohortName": "other"}}
        with pytest.raises(KubeError) as refused:
            await client.patch(CREDIT_POLICIES, "", name, change)
        assert "cohortName is immutable" in str(refused.value)
    finally:
        await client.delete(CREDIT_POLICIES, "", name)
