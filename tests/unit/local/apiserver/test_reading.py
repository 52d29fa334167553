"""Get and list: paging, resourceVersion, selectors, tables, encodings."""

import pytest
from tests.support.apiserver import (
    CONFIG_MAPS,
    JOBS,
    NAMESPACES,
    PODS,
    TABLE,
    Http,
    config_map,
    job,
    namespace,
    pod,
)


async def fill(http: Http, count: int) -> None:
    for i in range(count):
        await http.ok("POST", CONFIG_MAPS, config_map(f"c{i}", even=str(i % 2 == 0).lower()))


async def test_pages_show_one_state_whatever_is_written_between(http: Http) -> None:
    await fill(http, 5)
    first = await http.ok("GET", f"{CONFIG_MAPS}?limit=2")
    assert first["metadata"]["remainingItemCount"] == 3
    await http.ok("POST", CONFIG_MAPS, config_map("c2a"))
    await http.ok("DELETE", f"{CONFIG_MAPS}/c3")
    names = [item["metadata"]["name"] for item in first["items"]]
    page = first
    while token := page["metadata"].get("continue"):
        page = await http.ok("GET", f"{CONFIG_MAPS}?limit=2&continue={token}")
        names += [item["metadata"]["name"] for item in page["items"]]
        assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert names == ["c0", "c1", "c2", "c3", "c4"]


async def test_a_continue_token_from_before_compaction_is_gone(http: Http) -> None:
    await fill(http, 3)
    page = await http.ok("GET", f"{CONFIG_MAPS}?limit=1")
    await http.ok("DELETE", f"{CONFIG_MAPS}/c2")
    http.server.backend.store.compact()
    reply = await http("GET", f"{CONFIG_MAPS}?limit=1&continue={page['metadata']['continue']}")
    assert (reply.code, reply.reason) == (410, "Expired")
    assert "start a new list" in reply.message


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=1&continue=nonsense", 400),
        ("limit=x", 400),
        ("resourceVersion=x", 400),
        ("resourceVersion=999999", 504),
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersionMatch=Foo&resourceVersion=1", 422),
        ("labelSelector=a%20b", 400),
        ("fieldSelector=spec.foo%3D1", 400),
    ],
)
async def test_bad_list_options(http: Http, query: str, code: int) -> None:
    assert (await http("GET", f"{CONFIG_MAPS}?{query}")).code == code


async def test_an_earlier_state_can_be_listed(http: Http) -> None:
    await fill(http, 2)
    then = (await http.ok("GET", CONFIG_MAPS))["metadata"]["resourceVersion"]
    await http.ok("DELETE", f"{CONFIG_MAPS}/c0")
    query = f"resourceVersion={then}&resourceVersionMatch=Exact"
    assert (await http("GET", f"{CONFIG_MAPS}?{query}")).names == ["c0", "c1"]
    query = f"resourceVersion={then}&resourceVersionMatch=NotOlderThan"
    assert (await http("GET", f"{CONFIG_MAPS}?{query}")).names == ["c1"]


async def test_selectors_choose_objects(http: Http) -> None:
    await fill(http, 4)
    assert (await http("GET", f"{CONFIG_MAPS}?labelSelector=even%3Dtrue")).names == ["c0", "c2"]
    assert (await http("GET", f"{CONFIG_MAPS}?fieldSelector=metadata.name%3Dc1")).names == ["c1"]


async def test_pods_are_selected_by_node_and_phase(http: Http) -> None:
    for name, node in (("a", "n1"), ("b", "n2")):
        await http.ok("POST", PODS, pod(name, nodeName=node))
    query = "fieldSelector=spec.nodeName%3Dn1,status.phase!%3DRunning"
    assert (await http("GET", f"{PODS}?{query}")).names == ["a"]
    assert (await http("GET", f"/api/v1/pods?{query}")).names == ["a"]


async def test_a_list_across_namespaces_is_in_key_order(http: Http) -> None:
    await http.ok("POST", NAMESPACES, namespace("alpha"))
    await fill(http, 1)
    await http.ok("POST", "/api/v1/namespaces/alpha/configmaps", config_map("z"))
    reply = await http("GET", "/api/v1/configmaps")
    assert reply.names == ["z", "c0"]
    assert reply.body["kind"] == "ConfigMapList"


async def test_a_table_has_the_columns_of_its_kind(http: Http) -> None:
    await http.ok("POST", JOBS, job("a"))
    table = (await http("GET", JOBS, headers=TABLE)).body
    assert table["kind"] == "Table"
    shown = [c["name"] for c in table["columnDefinitions"] if c["priority"] == 0]
    assert shown == ["Name", "Status", "Completions", "Duration", "Age"]
    (row,) = table["rows"]
    assert row["cells"][:4] == ["a", "Running", "0/1", ""]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    whole = (await http("GET", f"{JOBS}?includeObject=Object", headers=TABLE)).body
    assert whole["rows"][0]["object"]["kind"] == "Job"
    none = (await http("GET", f"{JOBS}/a?includeObject=None", headers=TABLE)).body
    assert none["rows"][0]["object"] is None
    assert (await http("GET", f"{JOBS}?includeObject=Foo", headers=TABLE)).code == 400


@pytest.mark.parametrize("path", ["pods", "nodes", "events", "namespaces", "services", "secrets"])
async def test_every_table_can_be_rendered_for_an_empty_object(http: Http, path: str) -> None:
    for resource in http.server.backend.registry:
        for version in resource.versions.values():
            for column in version.columns:
                column.extract({"metadata": {"name": "x"}})
    middle = "" if path in ("nodes", "namespaces") else "/namespaces/default"
    assert (await http("GET", f"/api/v1{middle}/{path}", headers=TABLE)).code == 200


async def test_metadata_alone_can_be_asked_for(http: Http) -> None:
    await fill(http, 1)
    accept = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
    body = (await http("GET", CONFIG_MAPS, headers=accept)).body
    assert body["kind"] == "PartialObjectMetadataList"
    assert "data" not in body["items"][0]
    accept = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
    assert (await http("GET", f"{CONFIG_MAPS}/c0", headers=accept)).body.keys() == {
        "kind",
        "apiVersion",
        "metadata",
    }


async def test_other_encodings_than_json_are_refused_by_their_codes(http: Http) -> None:
    protobuf = "application/vnd.kubernetes.protobuf"
    reply = await http("GET", CONFIG_MAPS, headers={"Accept": protobuf})
    assert (reply.code, reply.reason) == (406, "NotAcceptable")
    reply = await http("POST", CONFIG_MAPS, b"k8s\x00", kind=protobuf)
    assert (reply.code, reply.reason) == (415, "UnsupportedMediaType")
    both = f"{protobuf},application/json"
    assert (await http("GET", CONFIG_MAPS, headers={"Accept": both})).code == 200


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/api/v1/namespaces/default/foos", 404),
        ("GET", "/apis/nope/v1", 404),
        ("GET", "/apis/batch/v2/namespaces/default/jobs", 404),
        ("GET", "/nope", 404),
        ("GET", f"{CONFIG_MAPS}/none", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", f"{CONFIG_MAPS}/none/status", 404),
        ("GET", f"{JOBS}/none/foo", 404),
        ("PUT", CONFIG_MAPS, 405),
        ("POST", f"{CONFIG_MAPS}/a", 405),
        ("POST", "/apis/batch/v1/jobs", 405),
        ("DELETE", f"{JOBS}/a/status", 405),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 405),
    ],
)
async def test_paths_and_methods_that_are_not_there(
    http: Http, method: str, path: str, code: int
) -> None:
    reply = await http(method, path)
    assert reply.code == code
    assert reply.body["kind"] == "Status"
    assert reply.body["code"] == code
