"""Every CEL rule of the CRDs on the real API server: what it refuses and what it takes."""

import hashlib
import re
from typing import Any

import pytest
from tests.support import crd_rules_placement, crd_rules_queues, crd_rules_workload
from tests.support.crd_rules import RuleCase, base_object, merged
from tests.support.crd_server import Outcome, SchemaServer, schema_server

from sluice.local.real import RealControlPlane

CASES = (
    *crd_rules_queues.CASES,
    *crd_rules_workload.CASES,
    *crd_rules_placement.CASES,
)


@pytest.mark.parametrize(
    ("case", "version"),
    [pytest.param(c, v, id=f"{v} {c}") for c in CASES for v in c.versions],
)
async def test_rule(case: RuleCase, version: str, real_apiserver: RealControlPlane) -> None:
    async with schema_server(real_apiserver.access()) as server:
        base = base_object(case, version, object_name(case))
        if case.on != "create":
            base = await server.store(base)
        for patch in case.taken:
            outcome = await attempt(server, case, merged(base, patch))
            assert outcome.stored is not None, f"{patch} is refused: {outcome.causes}"
        for patch in case.refused:
            outcome = await attempt(server, case, merged(base, patch))
            assert outcome.stored is None, f"{patch} is taken"
            assert any(
                cause.message.endswith(case.rule[1]) and is_at(cause.field, case.rule[0])
                for cause in outcome.causes
            ), f"{patch} is refused for another cause: {outcome.causes}"


def object_name(case: RuleCase) -> str:
    """Return a name that no other case uses."""
    return f"rule-{hashlib.sha256(repr(case).encode()).hexdigest()[:12]}"


async def attempt(server: SchemaServer, case: RuleCase, obj: dict[str, Any]) -> Outcome:
    """Send an object the way the case says, without storing it."""
    if case.on == "create":
        return await server.create(obj)
    return await server.update(obj, subresource="status" if case.on == "status" else "")


def is_at(field: str, path: str) -> bool:
    """Say whether a field such as `spec.levels[0].x` is at a path such as `.spec.levels[].x`."""
    return f".{re.sub(r'[0-9]+(?=])', '', field)}" == path or (path == "." and not field)
