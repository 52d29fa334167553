"""Create, update, patch and apply: conflicts, generations, unknown fields, dry runs."""

import asyncio
from typing import Any

import pytest
from tests.support.apiserver import (
    APPLY,
    CONFIG_MAPS,
    CRDS,
    JOBS,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    WIDGETS,
    Http,
    config_map,
    job,
    widget,
    widget_crd,
)


async def test_a_new_object_gets_its_system_fields(http: Http) -> None:
    made = await http.ok("POST", JOBS, {**job("a"), "status": {"active": 7}})
    metadata = made["metadata"]
    assert metadata["generation"] == 1
    assert metadata["namespace"] == "default"
    assert metadata["uid"]
    assert metadata["creationTimestamp"].endswith("Z")
    assert made["status"] == {}
    assert metadata["managedFields"][0]["manager"] == "tester"
    assert await http.ok("GET", f"{JOBS}/a") == made


async def test_a_taken_name_is_refused(http: Http) -> None:
    await http.ok("POST", CONFIG_MAPS, config_map("a"))
    reply = await http("POST", CONFIG_MAPS, config_map("a"))
    assert (reply.code, reply.reason) == (409, "AlreadyExists")
    assert reply.message == 'configmaps "a" already exists'


async def test_names_are_generated(http: Http) -> None:
    body = config_map("")
    body["metadata"] = {"generateName": "a-"}
    first = await http.ok("POST", CONFIG_MAPS, body)
    second = await http.ok("POST", CONFIG_MAPS, body)
    names = {first["metadata"]["name"], second["metadata"]["name"]}
    assert len(names) == 2
    assert all(name.startswith("a-") and len(name) == 7 for name in names)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"metadata": {}}, 422),
        ({"metadata": {"name": "Bad_Name"}}, 422),
        ({"metadata": {"name": "a", "labels": {"x y": "1"}}}, 422),
        ({"metadata": {"name": "a", "labels": {"x": "not valid"}}}, 422),
        ({"metadata": {"name": "a", "labels": {"x": 1}}}, 400),
        ({"metadata": {"name": "a", "labels": []}}, 400),
        ({"metadata": {"name": "a", "annotations": {"k": "v" * 300_000}}}, 422),
        ({"metadata": {"name": "a", "finalizers": "x"}}, 400),
        ({"metadata": {"name": "a", "finalizers": ["no slash"]}}, 422),
        ({"metadata": {"name": "a", "ownerReferences": [{"name": "x"}]}}, 422),
        ({"metadata": {"name": "a", "namespace": "other"}}, 400),
        ({"metadata": "a"}, 400),
        ({"kind": "Secret"}, 400),
        ({"apiVersion": "v2"}, 400),
        ({"data": {"k": 1}}, 400),
        ({"data": "text"}, 400),
        ({"data": {"k": "v" * 1_100_000}}, 422),
    ],
)
async def test_objects_that_are_refused(http: Http, change: dict[str, Any], code: int) -> None:
    reply = await http("POST", CONFIG_MAPS, {**config_map("a"), **change})
    assert reply.code == code, reply.text
    assert reply.body["kind"] == "Status"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"1", b"\xff"])
async def test_bodies_that_are_no_object(http: Http, body: bytes) -> None:
    reply = await http("POST", CONFIG_MAPS, body)
    assert (reply.code, reply.reason) == (400, "BadRequest")


async def test_a_body_above_three_mebibytes_is_refused(http: Http) -> None:
    reply = await http("POST", CONFIG_MAPS, config_map("a") | {"data": {"k": "v" * 3_200_000}})
    assert (reply.code, reply.reason) == (413, "RequestEntityTooLarge")


async def test_yaml_is_read_where_the_content_type_says_so(http: Http) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {day: 2026-01-01}\n"
    made = await http("POST", CONFIG_MAPS, text, kind="application/yaml")
    assert made.body["data"] == {"day": "2026-01-01"}
    assert (await http("POST", CONFIG_MAPS, b"a: [", kind="application/yaml")).code == 400


async def test_a_built_in_kind_takes_null_for_absent(http: Http) -> None:
    body = job("a", backoffLimit=None)
    body["spec"]["template"]["metadata"] = {"creationTimestamp": None}
    assert (await http.ok("POST", JOBS, body))["spec"]["backoffLimit"] == 6


async def test_a_stale_update_conflicts(http: Http) -> None:
    first = await http.ok("POST", CONFIG_MAPS, config_map("a"))
    second = await http.ok("PUT", f"{CONFIG_MAPS}/a", {**first, "data": {"k": "2"}})
    reply = await http("PUT", f"{CONFIG_MAPS}/a", {**first, "data": {"k": "3"}})
    assert (reply.code, reply.reason) == (409, "Conflict")
    assert "the object has been modified" in reply.message
    stale = {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}}
    assert (await http("PATCH", f"{CONFIG_MAPS}/a", stale, kind=MERGE)).code == 409
    fresh = {"metadata": {"resourceVersion": second["metadata"]["resourceVersion"]}}
    assert (await http("PATCH", f"{CONFIG_MAPS}/a", fresh, kind=MERGE)).code == 200


async def test_another_uid_conflicts(http: Http) -> None:
    first = await http.ok("POST", CONFIG_MAPS, config_map("a"))
    first["metadata"] |= {"uid": "x"}
    del first["metadata"]["resourceVersion"]
    assert (await http("PUT", f"{CONFIG_MAPS}/a", first)).code == 409


async def test_updates_without_a_revision(http: Http) -> None:
    await http.ok("POST", CRDS, widget_crd())
    await http.ok("POST", CONFIG_MAPS, config_map("a"))
    await http.ok("POST", WIDGETS, widget("a"))
    assert (await http("PUT", f"{CONFIG_MAPS}/a", config_map("a", x="y"))).code == 200
    reply = await http("PUT", f"{WIDGETS}/a", widget("a", size=4))
    assert reply.code == 422
    assert "must be specified for an update" in reply.message
    assert (await http("PUT", f"{CONFIG_MAPS}/none", config_map("none"))).code == 404


async def test_a_write_that_changes_nothing_is_no_write(http: Http) -> None:
    made = await http.ok("POST", CONFIG_MAPS, config_map("a"))
    again = await http.ok("PATCH", f"{CONFIG_MAPS}/a", {"data": {"k": "v"}}, kind=MERGE)
    assert again == made
    assert await http.ok("PUT", f"{CONFIG_MAPS}/a", made) == made


async def test_generation_counts_changes_of_the_specification(http: Http) -> None:
    await http.ok("POST", JOBS, job("a"))

    async def after(path: str, patch: dict[str, Any]) -> int:
        changed = await http.ok("PATCH", f"{JOBS}/{path}", patch, kind=MERGE)
        return int(changed["metadata"]["generation"])

    assert await after("a", {"metadata": {"labels": {"x": "y"}}}) == 1
    assert await after("a/status", {"status": {"active": 1}}) == 1
    assert await after("a", {"spec": {"parallelism": 2}}) == 2


async def test_status_and_specification_are_written_apart(http: Http) -> None:
    await http.ok("POST", CRDS, widget_crd())
    await http.ok("POST", WIDGETS, {**widget("a"), "status": {"phase": "Lost"}})
    patch = {"metadata": {"labels": {"x": "y"}}, "spec": {"size": 9}, "status": {"phase": "Up"}}
    after = await http.ok("PATCH", f"{WIDGETS}/a/status", patch, kind=MERGE)
    assert (after["spec"]["size"], after["status"]) == (3, {"phase": "Up"})
    assert "labels" not in after["metadata"]
    patch["status"] = {"phase": "Down"}
    after = await http.ok("PATCH", f"{WIDGETS}/a", patch, kind=MERGE)
    assert (after["spec"]["size"], after["status"]) == (9, {"phase": "Up"})
    assert after["metadata"]["labels"] == {"x": "y"}


async def test_system_fields_cannot_be_changed(http: Http) -> None:
    made = await http.ok("POST", CONFIG_MAPS, config_map("a"))
    for field in ("creationTimestamp", "deletionTimestamp"):
        patch = {"metadata": {field: "2026-01-01T00:00:00Z"}}
        assert (await http("PATCH", f"{CONFIG_MAPS}/a", patch, kind=MERGE)).code == 422
    patch = {"metadata": {"name": "b"}}
    assert (await http("PATCH", f"{CONFIG_MAPS}/a", patch, kind=MERGE)).code == 400
    patch = {"metadata": {"generation": 7, "creationTimestamp": None}}
    after = await http.ok("PATCH", f"{CONFIG_MAPS}/a", patch, kind=MERGE)
    assert after["metadata"] == made["metadata"]


async def test_unknown_fields_are_refused_warned_of_or_dropped(http: Http) -> None:
    body = job("a", foo=1)
    reply = await http("POST", f"{JOBS}?fieldValidation=Strict", body)
    assert reply.code == 400
    assert 'unknown field "spec.foo"' in reply.message
    reply = await http("POST", f"{JOBS}?dryRun=All", body)
    assert reply.warnings == ('299 - "unknown field \\"spec.foo\\""',)
    assert "foo" not in reply.body["spec"]
    reply = await http("POST", f"{JOBS}?dryRun=All&fieldValidation=Ignore", body)
    assert (reply.code, reply.warnings) == (201, ())
    assert (await http("POST", f"{JOBS}?fieldValidation=Foo", body)).code == 422
    await http.ok("POST", JOBS, job("a"))
    path = f"{JOBS}/a?fieldValidation=Strict"
    assert (await http("PATCH", path, {"spec": {"foo": 1}}, kind=MERGE)).code == 422


async def test_a_dry_run_stores_nothing(http: Http) -> None:
    reply = await http("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("a"))
    assert (reply.code, reply.body["data"]) == (201, {"k": "v"})
    assert (await http("GET", f"{CONFIG_MAPS}/a")).code == 404
    made = await http.ok("POST", CONFIG_MAPS, config_map("a"))
    patch = {"data": {"k": "w"}}
    after = await http.ok("PATCH", f"{CONFIG_MAPS}/a?dryRun=All", patch, kind=MERGE)
    assert after["data"] == {"k": "w"}
    await http.ok("DELETE", f"{CONFIG_MAPS}/a?dryRun=All")
    assert await http.ok("GET", f"{CONFIG_MAPS}/a") == made
    assert (await http("POST", f"{CONFIG_MAPS}?dryRun=Some", config_map("b"))).code == 422


async def test_patches_of_each_content_type(http: Http) -> None:
    await http.ok("POST", JOBS, job("a"))

    async def patched(body: object, kind: str) -> Any:
        return (await http.ok("PATCH", f"{JOBS}/a", body, kind=kind))["spec"]

    assert (await patched({"spec": {"parallelism": 2}}, MERGE))["parallelism"] == 2
    operation = {"op": "replace", "path": "/spec/parallelism", "value": 3}
    assert (await patched([operation], JSON_PATCH))["parallelism"] == 3
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    change = {"spec": {"template": {"spec": {"containers": [container]}}}}
    (merged,) = (await patched(change, STRATEGIC))["template"]["spec"]["containers"]
    assert (merged["image"], merged["resources"]) == ("busybox", {"requests": {"cpu": "1"}})
    reply = await http("PATCH", f"{JOBS}/a", {}, kind="application/json")
    assert reply.code == 415
    assert (await http("PATCH", f"{JOBS}/none", {}, kind=MERGE)).code == 404
    assert (await http("PATCH", f"{JOBS}/a?force=true", {}, kind=MERGE)).code == 422


async def test_apply_creates_owns_and_meets_conflicts(http: Http) -> None:
    first = await http("PATCH", f"{JOBS}/a?fieldManager=one", job("a", parallelism=1), kind=APPLY)
    assert first.code == 201
    other = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}}
    other["spec"] = {"parallelism": 2}
    reply = await http("PATCH", f"{JOBS}/a?fieldManager=two", other, kind=APPLY)
    assert (reply.code, reply.reason) == (409, "Conflict")
    (cause,) = reply.body["details"]["causes"]
    assert cause["field"] == ".spec.parallelism"
    forced = await http("PATCH", f"{JOBS}/a?fieldManager=two&force=true", other, kind=APPLY)
    assert forced.body["spec"]["parallelism"] == 2
    assert (await http("PATCH", f"{JOBS}/a", other, kind=APPLY)).code == 422
    missing = {**other, "metadata": {"name": "b"}}
    assert (await http("PATCH", f"{JOBS}/b/status?fieldManager=x", missing, kind=APPLY)).code == 404


async def test_an_apply_of_what_no_schema_knows_names_all_of_it(http: Http) -> None:
    unknown = job("a", foo=1, bar=2, parallelism="many")
    reply = await http("PATCH", f"{JOBS}/a?fieldManager=two", unknown, kind=APPLY)
    assert reply.code == 500
    assert ".spec.bar: field not declared in schema" in reply.message
    assert ".spec.foo: field not declared in schema" in reply.message
    assert ".spec.parallelism: expected numeric" in reply.message


async def test_writers_that_race_lose_nothing(http: Http) -> None:
    await http.ok("POST", CONFIG_MAPS, config_map("a"))

    async def add(i: int) -> None:
        await http.ok("PATCH", f"{CONFIG_MAPS}/a", {"data": {f"k{i}": "v"}}, kind=MERGE)

    await asyncio.gather(*(add(i) for i in range(30)))
    after = await http.ok("GET", f"{CONFIG_MAPS}/a")
    assert after["data"].keys() == {"k", *(f"k{i}" for i in range(30))}


async def test_of_many_creates_of_one_name_one_wins(http: Http) -> None:
    replies = await asyncio.gather(*(http("POST", CONFIG_MAPS, config_map("a")) for _ in range(10)))
    assert sorted(reply.code for reply in replies) == [201] + [409] * 9
