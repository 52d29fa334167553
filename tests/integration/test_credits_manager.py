"""The manager keeps credits in their policy's status, and the next manager goes on from it."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.support.controlplane import ControlPlane
from tests.support.credit_installs import install_credits
from tests.support.managers import World, manager_options, running, world
from tests.support.waiting import has_condition

from sluice.controllers.credits import THRESHOLD_ANNOTATION
from sluice.kube.resources import COHORTS, CREDIT_POLICIES

pytestmark = pytest.mark.slow

Json = dict[str, Any]


@pytest_asyncio.fixture
async def here(control_plane: ControlPlane, namespace: str) -> AsyncIterator[World]:
    async with world(control_plane.access, namespace) as made:
        await install_credits(made.client)
        yield made


def settled(after: str = "") -> Any:
    """Tell whether a policy was settled after a time."""
    return lambda raw: raw.get("status", {}).get("settledAt", "") > after


def balances(raw: Json) -> dict[str, int]:
    return {a["name"]: int(a["balance"]) for a in raw["status"].get("accounts", ())}


async def test_a_ledger_outlives_its_manager(here: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    root = f"root-{here.suffix}"
    spec = {"cohortName": root, "settlementPeriod": "10s", "horizon": "10s"}
    options = manager_options(here.namespace)
    async with running(here.client, options):
        name = await here.cluster_wide(CREDIT_POLICIES, "credits", {"spec": spec})
        await here.patch(
            CREDIT_POLICIES, name, {"metadata": {"annotations": {THRESHOLD_ANNOTATION: "0"}}}
        )
        waiting = await here.wait(CREDIT_POLICIES, has_condition("Active", "False"), name)
        active = next(c for c in waiting["status"]["conditions"] if c["type"] == "Active")
        assert active["reason"] == "CohortNotFound"
        assert root in active["message"]
        queue = await here.queues(cpu="2", cohortName=root)
        flavor = next(made for kind, made in here.made if kind.plural == "resourceflavors")
        own = {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": "2"}]}
        groups = [{"coveredResources": ["cpu"], "flavors": [own]}]
        body = {**COHORTS.skeleton("", root), "spec": {"resourceGroups": groups}}
        await here.client.create(COHORTS, "", body)
        here.made.append((COHORTS, root))
        await here.wait(CREDIT_POLICIES, has_condition("Active"), name)
        first = await here.wait(CREDIT_POLICIES, settled(), name)
    assert balances(first)[queue] > 0
    assert has_condition("Settled")(first)
    assert "credits settled" in caplog.messages
    async with running(here.client, manager_options(here.namespace)):
        later = await here.wait(CREDIT_POLICIES, settled(first["status"]["settledAt"]), name)
    assert "credits resumed from a checkpoint" in caplog.messages
    conditions = {c["type"]: c["reason"] for c in later["status"]["conditions"]}
    assert conditions["Settled"] == "Resumed"
    # The pool of two cores brings two core-seconds a second: 2,000,000 in the ledger's units.
    passed = later["status"]["settledAt"] > first["status"]["settledAt"]
    assert passed
    assert balances(later)[queue] > balances(first)[queue]
