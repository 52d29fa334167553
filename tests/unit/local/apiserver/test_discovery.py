"""Discovery, OpenAPI and the paths that are about no resource."""

import pytest
from tests.support.apiserver import CRDS, Http, widget_crd


async def test_groups_and_resources_are_listed(http: Http) -> None:
    assert (await http.ok("GET", "/api"))["versions"] == ["v1"]
    groups = {g["name"] for g in (await http.ok("GET", "/apis"))["groups"]}
    assert {"batch", "apps", "coordination.k8s.io", "apiextensions.k8s.io"} <= groups
    listed = await http.ok("GET", "/apis/batch/v1")
    jobs = next(r for r in listed["resources"] if r["name"] == "jobs")
    assert (jobs["kind"], jobs["namespaced"]) == ("Job", True)
    assert {"get", "list", "watch", "create", "update", "patch", "delete"} <= set(jobs["verbs"])
    assert "jobs/status" in {r["name"] for r in listed["resources"]}
    pods = {r["name"]: r for r in (await http.ok("GET", "/api/v1"))["resources"]}
    assert pods["pods/binding"]["verbs"] == ["create"]
    assert pods["pods"]["shortNames"] == ["po"]


async def test_aggregated_discovery_says_the_same(http: Http) -> None:
    accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    for root in ("/api", "/apis"):
        reply = await http("GET", root, headers=accept)
        assert "as=APIGroupDiscoveryList" in reply.headers["Content-Type"]
        for item in reply.body["items"]:
            name = item["metadata"].get("name", "")
            for version in item["versions"]:
                base = f"/apis/{name}" if name else "/api"
                plain = await http.ok("GET", f"{base}/{version['version']}")
                names = {r["name"] for r in plain["resources"] if "/" not in r["name"]}
                assert names == {r["resource"] for r in version["resources"]}


@pytest.mark.slow
async def test_an_openapi_document_for_each_version(http: Http) -> None:
    await http.ok("POST", CRDS, widget_crd())
    index = (await http.ok("GET", "/openapi/v3"))["paths"]
    for root, entry in index.items():
        document = await http.ok("GET", entry["serverRelativeURL"])
        assert document["paths"], root
        schemas = document["components"]["schemas"]
        for reference in references(document):
            assert reference in schemas
    batch = await http.ok("GET", "/openapi/v3/apis/batch/v1")
    job = batch["components"]["schemas"]["io.k8s.api.batch.v1.JobSpec"]
    assert job["properties"]["suspend"]["type"] == "boolean"
    assert job["properties"]["suspend"]["description"]
    patch = batch["paths"]["/apis/batch/v1/namespaces/{namespace}/jobs/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
    assert "fieldValidation" in {p["name"] for p in patch["parameters"]}
    custom = (await http.ok("GET", "/openapi/v3/apis/example.com/v1"))["components"]["schemas"]
    assert custom["com.example.v1.Widget"]["x-kubernetes-group-version-kind"] == [
        {"group": "example.com", "version": "v1", "kind": "Widget"}
    ]
    assert (await http("GET", "/openapi/v3/apis/none/v1")).code == 404
    assert (await http.ok("GET", "/openapi/v2"))["swagger"] == "2.0"
    assert (await http("GET", "/openapi/v4")).code == 404


async def test_the_openapi_index_changes_with_a_crd(http: Http) -> None:
    before = (await http.ok("GET", "/openapi/v3"))["paths"]["apis/batch/v1"]
    await http.ok("POST", CRDS, widget_crd())
    assert (await http.ok("GET", "/openapi/v3"))["paths"]["apis/batch/v1"] != before


def references(node: object) -> set[str]:
    if isinstance(node, dict):
        own = node.get("$ref")
        found = {own.rsplit("/", 1)[-1]} if isinstance(own, str) else set()
        return found.union(*(references(child) for child in node.values()))
    if isinstance(node, list):
        return set().union(*(references(child) for child in node))
    return set()


async def test_version_and_health(http: Http) -> None:
    version = await http.ok("GET", "/version")
    assert (version["major"], version["minor"]) == ("1", "36")
    for path in ("/healthz", "/readyz", "/livez", "/readyz/ping"):
        reply = await http("GET", path)
        assert (reply.code, reply.text) == (200, "ok")
