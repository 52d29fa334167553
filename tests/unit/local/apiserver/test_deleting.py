"""Delete: finalizers, propagation, grace periods, preconditions, whole collections."""

from typing import Any

import pytest
from tests.support.apiserver import (
    CONFIG_MAPS,
    JOBS,
    MERGE,
    PODS,
    Http,
    binding,
    config_map,
    job,
    pod,
)


async def test_an_object_without_finalizers_goes_at_once(http: Http) -> None:
    made = await http.ok("POST", CONFIG_MAPS, config_map("a"))
    status = await http.ok("DELETE", f"{CONFIG_MAPS}/a")
    assert status["status"] == "Success"
    assert status["details"]["uid"] == made["metadata"]["uid"]
    reply = await http("DELETE", f"{CONFIG_MAPS}/a")
    assert (reply.code, reply.reason) == (404, "NotFound")


async def test_finalizers_keep_an_object_until_they_are_taken_off(http: Http) -> None:
    body = config_map("a")
    body["metadata"]["finalizers"] = ["x.y/one", "x.y/two"]
    await http.ok("POST", CONFIG_MAPS, body)
    marked = await http.ok("DELETE", f"{CONFIG_MAPS}/a")
    assert marked["metadata"]["deletionTimestamp"]
    again = await http.ok("DELETE", f"{CONFIG_MAPS}/a")
    assert again["metadata"] == marked["metadata"]

    async def keep(*finalizers: str) -> int:
        patch = {"metadata": {"finalizers": list(finalizers)}}
        return (await http("PATCH", f"{CONFIG_MAPS}/a", patch, kind=MERGE)).code

    assert await keep("x.y/one", "x.y/two", "x.y/new") == 422
    assert await keep("x.y/one") == 200
    assert (await http("GET", f"{CONFIG_MAPS}/a")).code == 200
    assert await keep() == 200
    assert (await http("GET", f"{CONFIG_MAPS}/a")).code == 404


@pytest.mark.parametrize(
    ("policy", "finalizer"),
    [("Foreground", "foregroundDeletion"), ("Orphan", "orphan"), ("Background", "")],
)
async def test_the_propagation_policy_becomes_a_finalizer(
    http: Http, policy: str, finalizer: str
) -> None:
    await http.ok("POST", CONFIG_MAPS, config_map("a"))
    after = await http.ok("DELETE", f"{CONFIG_MAPS}/a", {"propagationPolicy": policy})
    if finalizer:
        assert after["metadata"]["finalizers"] == [finalizer]
        query = "propagationPolicy=Background"
        await http.ok("DELETE", f"{CONFIG_MAPS}/a?{query}")
    assert (await http("GET", f"{CONFIG_MAPS}/a")).code == 404


async def test_a_job_leaves_its_pods_unless_told_otherwise(http: Http) -> None:
    await http.ok("POST", JOBS, job("a"))
    reply = await http("DELETE", f"{JOBS}/a")
    assert reply.body["metadata"]["finalizers"] == ["orphan"]
    assert "child pods are preserved by default" in reply.warnings[0]
    await http.ok("POST", JOBS, job("b"))
    reply = await http("DELETE", f"{JOBS}/b?propagationPolicy=Background")
    assert (reply.body["status"], reply.warnings) == ("Success", ())


async def test_marking_counts_as_a_new_generation(http: Http) -> None:
    body = job("a")
    body["metadata"]["finalizers"] = ["x.y/z"]
    await http.ok("POST", JOBS, body)
    after = await http.ok("DELETE", f"{JOBS}/a?propagationPolicy=Background")
    assert after["metadata"]["generation"] == 2


async def test_a_running_pod_has_time_to_end(http: Http) -> None:
    await http.ok("POST", PODS, pod("a", terminationGracePeriodSeconds=40))
    await http.ok("POST", f"{PODS}/a/binding", binding("a", "n1"))
    after = await http.ok("DELETE", f"{PODS}/a")
    assert after["metadata"]["deletionGracePeriodSeconds"] == 40
    after = await http.ok("DELETE", f"{PODS}/a?gracePeriodSeconds=60")
    assert after["metadata"]["deletionGracePeriodSeconds"] == 40
    after = await http.ok("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 5})
    assert after["metadata"]["deletionGracePeriodSeconds"] == 5
    await http.ok("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert (await http("GET", f"{PODS}/a")).code == 404


@pytest.mark.parametrize("phase", ["", "Succeeded", "Failed"])
async def test_a_pod_that_does_not_run_goes_at_once(http: Http, phase: str) -> None:
    await http.ok("POST", PODS, pod("a"))
    if phase:
        await http.ok("POST", f"{PODS}/a/binding", binding("a", "n1"))
        await http.ok("PATCH", f"{PODS}/a/status", {"status": {"phase": phase}}, kind=MERGE)
    await http.ok("DELETE", f"{PODS}/a")
    assert (await http("GET", f"{PODS}/a")).code == 404


async def test_finalizers_outlive_the_grace_period(http: Http) -> None:
    body = pod("a")
    body["metadata"]["finalizers"] = ["x.y/z"]
    await http.ok("POST", PODS, body)
    await http.ok("POST", f"{PODS}/a/binding", binding("a", "n1"))
    await http.ok("DELETE", f"{PODS}/a")
    patch = {"metadata": {"finalizers": None}}
    await http.ok("PATCH", f"{PODS}/a", patch, kind=MERGE)
    assert (await http("GET", f"{PODS}/a")).code == 200
    await http.ok("DELETE", f"{PODS}/a?gracePeriodSeconds=0")
    assert (await http("GET", f"{PODS}/a")).code == 404


async def test_preconditions_guard_a_delete(http: Http) -> None:
    made = (await http.ok("POST", CONFIG_MAPS, config_map("a")))["metadata"]

    async def delete(**preconditions: str) -> int:
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions}
        return (await http("DELETE", f"{CONFIG_MAPS}/a", body)).code

    assert await delete(uid="other") == 409
    assert await delete(resourceVersion="1") == 409
    assert await delete(uid=made["uid"], resourceVersion=made["resourceVersion"]) == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"propagationPolicy": "Foo"}, 422),
        ({"gracePeriodSeconds": -1}, 400),
        ({"gracePeriodSeconds": "x"}, 400),
        ({"kind": "Pod"}, 400),
        ([], 400),
    ],
)
async def test_bad_delete_options(http: Http, body: Any, code: int) -> None:
    await http.ok("POST", CONFIG_MAPS, config_map("a"))
    assert (await http("DELETE", f"{CONFIG_MAPS}/a", body)).code == code


async def test_a_collection_is_deleted_as_its_selectors_say(http: Http) -> None:
    for name, on in (("a", "yes"), ("b", "no"), ("c", "yes")):
        await http.ok("POST", CONFIG_MAPS, config_map(name, on=on))
    gone = await http("DELETE", f"{CONFIG_MAPS}?labelSelector=on%3Dyes")
    assert gone.names == ["a", "c"]
    assert (await http("GET", CONFIG_MAPS)).names == ["b"]
