"""The life of a namespace: from active to emptied and gone."""

from typing import Any

from tests.support.apiserver import CONFIG_MAPS, MERGE, NAMESPACES, Http, config_map, namespace

TEAM = "/api/v1/namespaces/team/configmaps"


def conditions(obj: dict[str, Any]) -> dict[str, str]:
    listed = obj["status"].get("conditions") or []
    return {c["type"]: c["message"] for c in listed if c["status"] == "True"}


async def test_a_namespace_starts_active_and_labelled(http: Http) -> None:
    made = await http.ok("POST", NAMESPACES, namespace("team"))
    assert made["status"] == {"phase": "Active"}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    account = await http("GET", f"{NAMESPACES}/team/serviceaccounts/default")
    assert account.code == 200


async def test_a_missing_namespace_takes_nothing(http: Http) -> None:
    reply = await http("POST", TEAM, config_map("a"))
    assert (reply.code, reply.message) == (404, 'namespaces "team" not found')


async def test_deleting_a_namespace_deletes_what_is_in_it(http: Http) -> None:
    await http.ok("POST", NAMESPACES, namespace("team"))
    await http.ok("POST", TEAM, config_map("a"))
    await http.ok("POST", CONFIG_MAPS, config_map("elsewhere"))
    ending = await http.ok("DELETE", f"{NAMESPACES}/team")
    assert ending["status"]["phase"] == "Terminating"
    await http.until_gone(NAMESPACES, "team")
    assert (await http("GET", f"{TEAM}/a")).code == 404
    assert (await http("GET", f"{CONFIG_MAPS}/elsewhere")).code == 200
    assert (await http("GET", f"{NAMESPACES}/team/serviceaccounts")).names == []


async def test_an_ending_namespace_waits_for_finalizers_and_takes_nothing_new(http: Http) -> None:
    await http.ok("POST", NAMESPACES, namespace("team"))
    held = config_map("held")
    held["metadata"]["finalizers"] = ["x.y/z"]
    await http.ok("POST", TEAM, held)
    await http.ok("DELETE", f"{NAMESPACES}/team")
    reply = await http("POST", TEAM, config_map("b"))
    assert (reply.code, reply.reason) == (403, "Forbidden")
    assert reply.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    async with http.watch(NAMESPACES, fieldSelector="metadata.name=team") as events:
        while not (told := conditions((await events.next())["object"])):
            pass
    assert told["NamespaceFinalizersRemaining"].endswith("x.y/z in 1 resource instances")
    assert "configmaps. has 1 resource instances" in told["NamespaceContentRemaining"]
    await http.ok("PATCH", f"{TEAM}/held", {"metadata": {"finalizers": None}}, kind=MERGE)
    await http.until_gone(NAMESPACES, "team")


async def test_a_namespace_waits_for_finalizers_of_its_own(http: Http) -> None:
    body = namespace("team")
    body["metadata"]["finalizers"] = ["x.y/z"]
    await http.ok("POST", NAMESPACES, body)
    await http.ok("POST", TEAM, config_map("a"))
    async with http.watch(TEAM) as events:
        assert await events.take(1) == [("ADDED", "a")]
        await http.ok("DELETE", f"{NAMESPACES}/team")
        assert await events.take(1) == [("DELETED", "a")]
    assert (await http("GET", f"{NAMESPACES}/team")).code == 200
    patch = {"metadata": {"finalizers": None}}
    await http.ok("PATCH", f"{NAMESPACES}/team", patch, kind=MERGE)
    await http.until_gone(NAMESPACES, "team")


async def test_finalizers_of_the_specification_change_by_finalize_only(http: Http) -> None:
    await http.ok("POST", NAMESPACES, namespace("team"))
    patch = {"spec": {"finalizers": ["x.y/z"]}}
    kept = await http.ok("PATCH", f"{NAMESPACES}/team", patch, kind=MERGE)
    assert kept["spec"] == {"finalizers": ["kubernetes"]}
    body = {**namespace("team"), "spec": {"finalizers": ["kubernetes", "x.y/z"]}}
    await http.ok("PUT", f"{NAMESPACES}/team/finalize", body)
    await http.ok("DELETE", f"{NAMESPACES}/team")
    body["spec"] = {"finalizers": []}
    await http.ok("PUT", f"{NAMESPACES}/team/finalize", body)
    await http.until_gone(NAMESPACES, "team")
