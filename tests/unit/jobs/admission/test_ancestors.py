"""docs/spec/api.md 2.3.2: a job below one that is queued does not wait by itself."""

from typing import Any

import pytest
from tests.support.lookups import StaticLookups
from tests.support.objects import Json

from sluice.api.validate.node import Node
from sluice.jobs.admission.ancestors import managed_ancestor
from sluice.jobs.admission.context import Context, LookupFailed, Options, Refused

QUEUED = {"kueue.x-k8s.io/queue-name": "main"}


def reference(kind: str, name: str, api_version: str = "batch/v1", **extra: Any) -> Json:
    base = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{name}"}
    return {**base, "controller": True, **extra}


def obj(name: str, *owners: Json, labels: dict[str, str] | None = None) -> Json:
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": labels or {},
            "ownerReferences": list(owners),
        }
    }


async def ancestor_of(
    job: Json, owners: dict[str, Json], options: Options | None = None
) -> str | None:
    lookups = StaticLookups(owners={key.replace("/", "/team-a/"): o for key, o in owners.items()})
    context = Context(namespace="team-a", options=options or Options(), lookups=lookups)
    found = await managed_ancestor(Node(job), context)
    return None if found is None else found["metadata"]["name"]


async def test_no_owner() -> None:
    assert await ancestor_of(obj("j"), {}) is None


async def test_an_owner_with_a_queue() -> None:
    job = obj("j", reference("JobSet", "set", "jobset.x-k8s.io/v1alpha2"))
    assert await ancestor_of(job, {"JobSet/set": obj("set", labels=QUEUED)}) == "set"


async def test_an_owner_without_a_queue_counts_where_all_jobs_are_managed() -> None:
    job = obj("j", reference("JobSet", "set", "jobset.x-k8s.io/v1alpha2"))
    owners = {"JobSet/set": obj("set")}
    assert await ancestor_of(job, owners) is None
    assert await ancestor_of(job, owners, Options(manages_unqueued=True)) == "set"


async def test_the_topmost_one_is_found_through_replica_sets() -> None:
    pod = obj("p", reference("ReplicaSet", "rs", "apps/v1"))
    owners = {
        "ReplicaSet/rs": obj("rs", reference("Deployment", "d", "apps/v1"), labels=QUEUED),
        "Deployment/d": obj("d", reference("AppWrapper", "w", "workload.codeflare.dev/v1beta2")),
        "AppWrapper/w": obj("w", labels=QUEUED),
    }
    assert await ancestor_of(pod, owners) == "w"
    owners["AppWrapper/w"] = obj("w")
    assert await ancestor_of(pod, owners) is None, "a ReplicaSet is passed through only"


async def test_external_frameworks_are_followed() -> None:
    job = obj("j", reference("Flow", "f", "example.com/v1"))
    owners = {"Flow/f": obj("f", labels=QUEUED)}
    assert await ancestor_of(job, owners) is None
    options = Options(external=frozenset({("example.com", "Flow")}))
    assert await ancestor_of(job, owners, options) == "f"


async def test_only_controllers_count() -> None:
    job = obj("j", reference("Job", "up", controller=False))
    assert await ancestor_of(job, {"Job/up": obj("up", labels=QUEUED)}) is None


async def test_a_stale_reference_says_nothing() -> None:
    job = obj("j", reference("Job", "up", uid="uid-of-another"))
    assert await ancestor_of(job, {"Job/up": obj("up", labels=QUEUED)}) is None


async def test_a_missing_owner_is_refused() -> None:
    with pytest.raises(Refused, match="the owner Job team-a/up does not exist"):
        await ancestor_of(obj("j", reference("Job", "up")), {})


async def test_a_cycle_is_refused() -> None:
    owners = {"Job/a": obj("a", reference("Job", "b")), "Job/b": obj("b", reference("Job", "a"))}
    with pytest.raises(Refused, match="the owner references form a cycle through Job team-a/a"):
        await ancestor_of(obj("j", reference("Job", "a")), owners)


@pytest.mark.parametrize(("depth", "is_refused"), [(10, False), (11, True)])
async def test_more_than_ten_owners_are_refused(depth: int, is_refused: bool) -> None:
    owners = {
        f"Job/o{i}": obj(f"o{i}", *([reference("Job", f"o{i + 1}")] if i < depth else []))
        for i in range(1, depth + 1)
    }
    job = obj("j", reference("Job", "o1"))
    if not is_refused:
        assert await ancestor_of(job, owners) is None
        return
    with pytest.raises(Refused, match="more than 10 owners above the object"):
        await ancestor_of(job, owners)


async def test_an_unreadable_owner_is_told() -> None:
    context = Context(
        namespace="team-a", options=Options(), lookups=StaticLookups(broken={"owner"})
    )
    with pytest.raises(LookupFailed):
        await managed_ancestor(Node(obj("j", reference("Job", "up"))), context)
