"""Custom resources: from the CRD to its objects, in several versions, and away again."""

import asyncio

import pytest
from tests.support.apiserver import (
    CRDS,
    MERGE,
    TABLE,
    WIDGETS,
    Http,
    widget,
    widget_crd,
    widget_version,
)

CRD = f"{CRDS}/widgets.example.com"
OLD_WIDGETS = WIDGETS.replace("v1", "v1beta1")


async def test_a_crd_is_established_by_its_creation(http: Http) -> None:
    assert (await http("GET", WIDGETS)).code == 404
    made = await http.ok("POST", CRDS, widget_crd())
    states = {c["type"]: c["status"] for c in made["status"]["conditions"]}
    assert states == {"NamesAccepted": "True", "Established": "True"}
    assert made["status"]["storedVersions"] == ["v1"]
    assert made["spec"]["names"]["listKind"] == "WidgetList"
    group = await http.ok("GET", "/apis/example.com")
    assert [v["version"] for v in group["versions"]] == ["v1", "v1beta1"]
    created = await http.ok("POST", WIDGETS, widget("a"))
    assert created["spec"] == {"size": 3, "color": "red"}
    assert (await http.ok("GET", WIDGETS))["kind"] == "WidgetList"


async def test_a_name_that_does_not_fit_is_refused(http: Http) -> None:
    body = widget_crd()
    body["metadata"]["name"] = "gadgets.example.com"
    reply = await http("POST", CRDS, body)
    assert (reply.code, reply.body["details"]["causes"][0]["field"]) == (422, "metadata.name")


@pytest.mark.parametrize(
    "versions",
    [
        [],
        [widget_version("v1", is_stored=False)],
        [widget_version("v1", is_stored=True), widget_version("v2", is_stored=True)],
        [{"name": "v1", "served": True, "storage": True}],
        [widget_version("v1", is_stored=True, schema={"openAPIV3Schema": {"type": "nope"}})],
        [
            widget_version(
                "v1",
                is_stored=True,
                additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": "nope"}],
            )
        ],
    ],
)
async def test_versions_that_make_no_sense_are_refused(http: Http, versions: list[object]) -> None:
    reply = await http("POST", CRDS, widget_crd(versions=versions))
    assert (reply.code, reply.reason) == (422, "Invalid")
    assert (await http("GET", WIDGETS)).code == 404


async def test_schema_and_rules_hold(http: Http) -> None:
    await http.ok("POST", CRDS, widget_crd())
    for bad in ({"size": 0}, {"size": 11}, {"size": "x"}, {"color": "green"}):
        assert (await http("POST", WIDGETS, widget("a", **bad))).code == 422
    missing = {**widget("a"), "kind": ""}
    assert (await http("POST", WIDGETS, missing)).code == 400


async def test_versions_show_the_same_objects(http: Http) -> None:
    await http.ok("POST", CRDS, widget_crd())
    made = await http("POST", OLD_WIDGETS, widget("a", version="v1beta1"))
    assert made.body["apiVersion"] == "example.com/v1beta1"
    assert made.warnings == (
        '299 - "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget"',
    )
    assert (await http.ok("GET", f"{WIDGETS}/a"))["apiVersion"] == "example.com/v1"
    (item,) = (await http.ok("GET", OLD_WIDGETS))["items"]
    assert item["apiVersion"] == "example.com/v1beta1"
    patch = {"spec": {"color": "blue"}}
    await http.ok("PATCH", f"{OLD_WIDGETS}/a", patch, kind=MERGE)
    assert (await http.ok("GET", f"{WIDGETS}/a"))["spec"]["color"] == "blue"


async def test_another_storage_version_keeps_old_objects_readable(http: Http) -> None:
    await http.ok("POST", CRDS, widget_crd())
    await http.ok("POST", WIDGETS, widget("a"))
    crd = await http.ok("GET", CRD)
    for version in crd["spec"]["versions"]:
        version["storage"] = version["name"] == "v1beta1"
    after = await http.ok("PUT", CRD, crd)
    assert after["status"]["storedVersions"] == ["v1", "v1beta1"]
    assert (await http.ok("GET", f"{OLD_WIDGETS}/a"))["apiVersion"] == "example.com/v1beta1"
    assert (await http.ok("GET", f"{WIDGETS}/a"))["apiVersion"] == "example.com/v1"


async def test_a_version_that_is_not_served_is_not_found(http: Http) -> None:
    versions = [
        widget_version("v1", is_stored=True),
        widget_version("v1beta1", is_stored=False, served=False),
    ]
    await http.ok("POST", CRDS, widget_crd(versions=versions))
    assert (await http("GET", OLD_WIDGETS)).code == 404


async def test_columns_and_selectable_fields(http: Http) -> None:
    await http.ok("POST", CRDS, widget_crd())
    for name, color in (("a", "red"), ("b", "blue")):
        await http.ok("POST", WIDGETS, widget(name, color=color))
    table = (await http("GET", WIDGETS, headers=TABLE)).body
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Size", "Phase"]
    assert [row["cells"] for row in table["rows"]] == [["a", 3, None], ["b", 3, None]]
    assert (await http("GET", f"{WIDGETS}?fieldSelector=spec.color%3Dblue")).names == ["b"]
    assert (await http("GET", f"{WIDGETS}?fieldSelector=spec.size%3D3")).code == 400


async def test_a_changed_schema_holds_for_the_next_write(http: Http) -> None:
    await http.ok("POST", CRDS, widget_crd())
    await http.ok("POST", WIDGETS, widget("a"))
    crd = await http.ok("GET", CRD)
    for version in crd["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["note"] = {"type": "string", "maxLength": 3}
    await http.ok("PUT", CRD, crd)
    assert (await http("POST", WIDGETS, widget("b", note="long"))).code == 422
    made = await http.ok("POST", WIDGETS, widget("b", note="abc"))
    assert made["spec"]["note"] == "abc"


async def test_a_taken_kind_is_not_accepted(http: Http) -> None:
    await http.ok("POST", CRDS, widget_crd())
    other = widget_crd(names={"plural": "gadgets", "kind": "Widget"})
    other["metadata"]["name"] = "gadgets.example.com"
    made = await http.ok("POST", CRDS, other)
    states = {c["type"]: c["status"] for c in made["status"]["conditions"]}
    assert states == {"NamesAccepted": "False", "Established": "False"}
    assert (await http("GET", WIDGETS.replace("widgets", "gadgets"))).code == 404


async def test_deleting_a_crd_deletes_its_objects(http: Http) -> None:
    await http.ok("POST", CRDS, widget_crd())
    await http.ok("POST", WIDGETS, widget("a"))
    marked = await http.ok("DELETE", CRD)
    assert "Terminating" in {c["type"] for c in marked["status"]["conditions"]}
    await http.until_gone(CRDS, "widgets.example.com")
    assert (await http("GET", WIDGETS)).code == 404
    await http.ok("POST", CRDS, widget_crd())
    assert (await http("GET", WIDGETS)).names == []


async def test_an_ending_crd_waits_for_finalizers_and_takes_nothing_new(http: Http) -> None:
    await http.ok("POST", CRDS, widget_crd())
    held = widget("a")
    held["metadata"]["finalizers"] = ["x.y/z"]
    await http.ok("POST", WIDGETS, held)
    await http.ok("DELETE", CRD)
    reply = await http("POST", WIDGETS, widget("b"))
    assert (reply.code, reply.reason) == (403, "Forbidden")
    await http.ok("PATCH", f"{WIDGETS}/a", {"metadata": {"finalizers": None}}, kind=MERGE)
    await http.until_gone(CRDS, "widgets.example.com")


async def test_crds_can_come_and_go_while_objects_are_written(http: Http) -> None:
    await http.ok("POST", CRDS, widget_crd())

    async def write(i: int) -> int:
        return (await http("POST", WIDGETS, widget(f"w{i}"))).code

    codes = await asyncio.gather(*(write(i) for i in range(20)), http("DELETE", CRD))
    assert set(codes[:-1]) <= {201, 403, 404}
    await http.until_gone(CRDS, "widgets.example.com")
    assert (await http("GET", WIDGETS)).code == 404
