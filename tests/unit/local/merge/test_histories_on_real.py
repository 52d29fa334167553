"""Random histories of writes, held against a real API server: objects, owners and conflicts.

A seed that once differed stays in `SEEDS`. Ownership that our parts only approximate (other API
versions) is not in these histories.
"""

import asyncio
import copy
import json
import random
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.support.waiting import wait_for
from tests.unit.local.merge.worlds import GROUP, KIND, PLURAL, ROOT, THING, VERSION, Writes, thing

from sluice.api.errors import KubeError
from sluice.kube.client import Client
from sluice.kube.requests import PatchType as Body
from sluice.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from sluice.local.apiserver.seams import PatchType
from sluice.local.apiserver.status import ApiError
from sluice.local.real import RealControlPlane

THINGS = Resource(group=GROUP, version=VERSION, plural=PLURAL, kind=KIND)
SEEDS = [0, 1, 2, 3, 4, 11, 13, 18, 87, 299, 306, *range(1000, 1030)]
STEPS = 12
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write of a history."""

    kind: str
    manager: str
    subresource: str
    force: bool
    body: Json


def some(chance: random.Random, share: float) -> bool:
    return chance.random() < share


def random_spec(chance: random.Random) -> Json:
    spec: Json = {}
    if some(chance, 0.5):
        spec["text"] = chance.choice("ab")
    if some(chance, 0.3):
        spec["other"] = chance.choice("ab")
    if some(chance, 0.2):
        spec["count"] = chance.randint(1, 2)
    if some(chance, 0.3):
        spec["atomic"] = [chance.choice("ab") for _ in range(chance.randint(0, 2))]
    if some(chance, 0.4):
        spec["set"] = chance.sample("abcd", chance.randint(0, 3))
    if some(chance, 0.6):
        spec["map"] = [random_item(chance, n) for n in chance.sample("abcd", chance.randint(0, 3))]
    for name in ("labels", "whole"):
        if some(chance, 0.4):
            keys = chance.sample("xyz", chance.randint(0, 2))
            spec[name] = {key: chance.choice("ab") for key in keys}
    if some(chance, 0.3):
        keys = chance.sample("ab", chance.randint(0, 2))
        spec["struct"] = {key: chance.choice("cd") for key in keys}
    if some(chance, 0.3):
        spec["free"] = chance.choice([{}, {"p": 1}, {"p": {"q": [1, 2]}}, {"p": {"q": [1]}}])
    return spec


def random_item(chance: random.Random, name: str) -> Json:
    item: Json = {"name": name}
    if some(chance, 0.5):
        item["size"] = chance.randint(1, 2)
    if some(chance, 0.3):
        item["note"] = chance.choice("ab")
    return item


def random_write(chance: random.Random, name: str, *, is_first: bool) -> Write:
    kinds = ["apply", "update"] if is_first else ["apply", "apply", "update", "merge"]
    kind = chance.choice(kinds)
    subresource = "" if is_first else chance.choice(["", "", "status"])
    part = "status" if subresource else "spec"
    if kind == "merge":
        spec = {k: None if some(chance, 0.3) else v for k, v in random_spec(chance).items()}
        body: Json = {part: spec}
    else:
        body = {**thing(), part: random_spec(chance)}
        body["metadata"] = {"name": name}
        if some(chance, 0.3) and not subresource:
            keys = chance.sample("xyz", chance.randint(0, 2))
            body["metadata"]["labels"] = {key: chance.choice("ab") for key in keys}
    return Write(
        kind=kind, manager=chance.choice("mno"), subresource=subresource,
        force=some(chance, 0.5), body=body,
    )  # fmt: skip


async def on_real(client: Client, name: str, write: Write, *, is_first: bool) -> Json:
    body = copy.deepcopy(write.body)
    if write.kind in ("apply", "merge"):
        kind = Body.APPLY if write.kind == "apply" else Body.MERGE
        return await client.patch(
            THINGS, "default", name, body, patch_type=kind, subresource=write.subresource,
            field_manager=write.manager, force=write.force,
        )  # fmt: skip
    if is_first:
        return await client.create(THINGS, "default", body, field_manager=write.manager)
    current = await client.get(THINGS, "default", name)
    body["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
    return await client.replace(
        THINGS, "default", name, body, subresource=write.subresource, field_manager=write.manager
    )


def on_ours(writes: Writes, write: Write) -> Json:
    body = copy.deepcopy(write.body)
    if write.kind == "apply":
        return writes.apply(write.manager, body, write.subresource, force=write.force)
    if write.kind == "merge":
        assert writes.live is not None
        body = writes.merger.patch(PatchType.MERGE, writes.live, body, THING)
        body = json.loads(json.dumps(body))
    return writes.update(write.manager, body, write.subresource)


def comparable(obj: Json) -> Json:
    """Return an object without what the server alone makes."""
    obj = copy.deepcopy(obj)
    metadata = obj["metadata"]
    for name in ("uid", "resourceVersion", "generation", "creationTimestamp", "namespace"):
        metadata.pop(name, None)
    for entry in metadata.get("managedFields") or ():
        entry.pop("time", None)
    entries = metadata.pop("managedFields", None) or []
    metadata["managedFields"] = sorted(entries, key=lambda entry: json.dumps(entry, sort_keys=True))
    return obj


def conflicts(details: Any) -> list[tuple[str, str]]:
    causes = (details or {}).get("causes") or ()
    return sorted((cause["message"].split(" using")[0], cause["field"]) for cause in causes)


async def refusal(call: Awaitable[Json]) -> Json | KubeError:
    """Return the answer to a call, or the error that it was refused with."""
    try:
        return await call
    except KubeError as error:
        return error


async def compare(client: Client, seed: int) -> None:
    """Run one history on both and compare after each write."""
    chance, writes, name = random.Random(seed), Writes(), f"x{seed}"
    is_first, log = True, []
    for _ in range(STEPS):
        write = random_write(chance, name, is_first=is_first)
        log.append(write)
        before = copy.deepcopy(writes.live)
        refused = await refusal(on_real(client, name, write, is_first=is_first))
        failed: ApiError | None = None
        try:
            ours = on_ours(writes, write)
        except ApiError as error:
            failed = error
            writes.live = before
        if isinstance(refused, KubeError) or failed is not None:
            assert isinstance(refused, KubeError), f"only ours refuses: {failed}, {log}"
            assert failed is not None, f"only the real one refuses: {refused}, {log}"
            body: Any = refused.body or {}
            assert refused.status == failed.code, log
            assert conflicts(body.get("details")) == conflicts(failed.details), log
            continue
        real = refused
        is_first = False
        assert comparable(ours) == comparable(real), log


def is_established(definition: Json) -> bool:
    conditions = definition["status"].get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


@pytest.mark.real
async def test_histories(real_apiserver: RealControlPlane) -> None:
    name = f"{PLURAL}.{GROUP}"
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": PLURAL, "kind": KIND},
            "versions": [{"name": VERSION, "served": True, "storage": True,
                          "subresources": {"status": {}}, "schema": {"openAPIV3Schema": ROOT}}],
        },
    }  # fmt: skip
    async with Client(real_apiserver.access()) as client:
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, "", definition)
        await wait_for(client, CUSTOM_RESOURCE_DEFINITIONS, "", is_established, name=name)
        async with asyncio.timeout(60):
            for seed in SEEDS:
                await compare(client, seed)
        await client.delete(CUSTOM_RESOURCE_DEFINITIONS, "", name)
