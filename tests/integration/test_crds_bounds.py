"""Every bound, enum, default and required field of the CRDs, tried on the real API server.

The cases are derived from the CRDs (`tests.support.crd_cases`); nothing is listed by hand.
"""

import asyncio
from typing import Any

import pytest
from tests.support.crd_cases import Case, at, cases
from tests.support.crd_server import Outcome, SchemaServer, schema_server
from tests.support.samples import VERSIONS, samples, version_id

from sluice.api.models.kinds import Kind, Version
from sluice.local.real import RealControlPlane

CONCURRENCY = 16


@pytest.mark.parametrize("case", VERSIONS, ids=version_id)
async def test_every_bound_is_enforced(
    case: tuple[Kind, Version], real_apiserver: RealControlPlane
) -> None:
    kind, version = case
    tried = list(cases(kind.kind, version.name))
    assert tried
    async with schema_server(real_apiserver.access()) as server:
        stored = {
            sample["metadata"]["name"]: await server.store(named(sample, "bounds"))
            for sample in samples(kind.kind, version.name)
        }
        limit = asyncio.Semaphore(CONCURRENCY)

        async def attempt(case: Case) -> str | None:
            async with limit:
                return complaint(case, await send(server, case, stored))

        complaints = [c for c in await asyncio.gather(*map(attempt, tried)) if c]
        assert not complaints, "\n".join(complaints)


DEFAULTS = [
    pytest.param(
        "ClusterQueue",
        {"flavorFungibility": {}, "preemption": {}},
        {
            "queueingStrategy": "BestEffortFIFO",
            "flavorFungibility": {
                "whenCanBorrow": "MayStopSearch",
                "whenCanPreempt": "TryNextFlavor",
            },
            "preemption": {
                "reclaimWithinCohort": "Never",
                "borrowWithinCohort": {"policy": "Never"},
                "withinClusterQueue": "Never",
            },
            "stopPolicy": "None",
        },
        id="ClusterQueue",
    ),
    pytest.param(
        "Workload",
        {"podSets": [{"template": {"spec": {"containers": [{"name": "c"}]}}}]},
        {
            "active": True,
            "podSets": [
                {
                    "name": "main",
                    "count": 1,
                    "template": {"spec": {"containers": [{"name": "c"}]}},
                }
            ],
        },
        id="Workload",
    ),
]


@pytest.mark.parametrize(("kind", "spec", "stored"), DEFAULTS)
async def test_defaults_of_fields_that_rules_tie_to_others(
    kind: str, spec: dict[str, Any], stored: dict[str, Any], real_apiserver: RealControlPlane
) -> None:
    obj = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": "defaults"},
        "spec": spec,
    }
    async with schema_server(real_apiserver.access()) as server:
        outcome = await server.create(obj)
    assert outcome.stored is not None, outcome.causes
    assert outcome.stored["spec"] == stored


async def test_what_no_schema_names_is_pruned(real_apiserver: RealControlPlane) -> None:
    workload = named(samples("Workload", "v1beta2")[0], "pruned")
    template = workload["spec"]["podSets"][0]["template"]
    template["metadata"]["creationTimestamp"] = None
    template["spec"]["containers"][0]["nonsense"] = 1
    workload["spec"]["nonsense"] = {"a": 1}
    async with schema_server(real_apiserver.access()) as server:
        stored = (await server.create(workload)).stored
    assert stored is not None
    assert "nonsense" not in stored["spec"]
    kept = stored["spec"]["podSets"][0]["template"]
    assert "nonsense" not in kept["spec"]["containers"][0]
    assert set(kept["metadata"]) == {"annotations", "labels"}


def named(sample: dict[str, Any], suffix: str) -> dict[str, Any]:
    """Return a sample under a name of its own and without metadata that others must have made."""
    name = sample["metadata"]["name"]
    metadata = {k: v for k, v in sample["metadata"].items() if k == "namespace"}
    return {**sample, "metadata": {**metadata, "name": f"{name}-{suffix}"}}


async def send(server: SchemaServer, case: Case, stored: dict[str, Any]) -> Outcome:
    """Send a case: a status to the object stored from its sample, the rest as a new object."""
    if not case.in_status:
        return await server.create(named(case.obj, "new"))
    target = stored[case.obj["metadata"]["name"]]
    return await server.update({**target, "status": case.obj["status"]}, subresource="status")


def complaint(case: Case, outcome: Outcome) -> str | None:
    """Return what is wrong with the server's answer, if anything is."""
    if not case.reason:
        if outcome.stored is None:
            return f"{case.title}: refused: {outcome.causes}"
        if case.default is not None and at(outcome.stored, case.place) != case.default:
            return f"{case.title}: got the default {at(outcome.stored, case.place)!r}"
        return None
    if outcome.stored is not None:
        return f"{case.title}: taken"
    for cause in outcome.causes:
        if cause.field.startswith(case.field) and cause.reason == case.reason:
            return None
    return f"{case.title}: refused for another cause: {outcome.causes}"
