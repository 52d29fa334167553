"""Watch: what is sent from where, bookmarks, selectors, and the ends of a stream."""

import asyncio

import pytest
from tests.support.apiserver import (
    CONFIG_MAPS,
    CRDS,
    MERGE,
    TABLE,
    WIDGETS,
    Http,
    config_map,
    serving,
    widget,
    widget_crd,
)

from sluice.local.apiserver.server import ServerOptions


async def revision(http: Http) -> str:
    return str((await http.ok("GET", CONFIG_MAPS))["metadata"]["resourceVersion"])


async def test_changes_after_a_list_come_in_order(http: Http) -> None:
    await http.ok("POST", CONFIG_MAPS, config_map("before"))
    since = await revision(http)
    await http.ok("POST", CONFIG_MAPS, config_map("a"))
    async with http.watch(CONFIG_MAPS, resourceVersion=since) as events:
        assert await events.take(1) == [("ADDED", "a")]
        await http.ok("PATCH", f"{CONFIG_MAPS}/a", {"data": {"x": "y"}}, kind=MERGE)
        gone = await http.ok("DELETE", f"{CONFIG_MAPS}/a")
        assert gone["status"] == "Success"
        assert await events.take(1) == [("MODIFIED", "a")]
        last = await events.next()
        assert last["type"] == "DELETED"
        assert last["object"]["metadata"]["resourceVersion"] == await revision(http)


@pytest.mark.parametrize("since", ["", "0"])
async def test_without_a_revision_the_present_state_comes_first(http: Http, since: str) -> None:
    for name in ("a", "b"):
        await http.ok("POST", CONFIG_MAPS, config_map(name))
    async with http.watch(CONFIG_MAPS, resourceVersion=since) as events:
        assert await events.take(2) == [("ADDED", "a"), ("ADDED", "b")]


async def test_initial_events_end_with_a_marked_bookmark(http: Http) -> None:
    await http.ok("POST", CONFIG_MAPS, config_map("a"))
    async with http.watch(
        CONFIG_MAPS,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    ) as events:
        assert await events.take(1) == [("ADDED", "a")]
        mark = await events.next()
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert mark["object"]["metadata"]["resourceVersion"] == await revision(http)
        await http.ok("POST", CONFIG_MAPS, config_map("b"))
        assert await events.take(1) == [("ADDED", "b")]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"sendInitialEvents": "true"}, 422),
        ({"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}, 422),
        ({"resourceVersionMatch": "NotOlderThan"}, 422),
        ({"resourceVersion": "x"}, 400),
        ({"labelSelector": "a b"}, 400),
        ({"continue": "x"}, 400),
    ],
)
async def test_options_that_do_not_fit_together(
    http: Http, query: dict[str, str], code: int
) -> None:
    async with http.watch(CONFIG_MAPS, **query) as events:
        assert events.code == code


async def test_a_revision_that_history_lost_is_answered_gone(http: Http) -> None:
    since = await revision(http)
    await http.ok("POST", CONFIG_MAPS, config_map("a"))
    http.server.backend.store.compact()
    async with http.watch(CONFIG_MAPS, resourceVersion=since) as events:
        error = await events.next()
        assert error["type"] == "ERROR"
        assert error["object"]["code"] == 410
        assert error["object"]["reason"] == "Expired"
        assert await events.next() is None


async def test_a_watch_that_falls_behind_is_told_so() -> None:
    async with serving(ServerOptions(changes_max=8)) as http:
        since = await revision(http)
        for i in range(20):
            await http.ok("POST", CONFIG_MAPS, config_map(f"c{i}"))
        async with http.watch(CONFIG_MAPS, resourceVersion=since) as events:
            assert (await events.next())["object"]["code"] == 410


async def test_a_future_revision_is_refused(http: Http) -> None:
    async with http.watch(CONFIG_MAPS, resourceVersion="999999") as events:
        assert (await events.next())["object"]["code"] == 504


async def test_an_object_leaves_and_enters_a_selector(http: Http) -> None:
    since = await revision(http)
    async with http.watch(
        CONFIG_MAPS, resourceVersion=since, labelSelector="on=yes", allowWatchBookmarks="true"
    ) as events:
        await http.ok("POST", CONFIG_MAPS, config_map("other", on="no"))
        await http.ok("POST", CONFIG_MAPS, config_map("a", on="yes"))
        for value in ("no", "yes"):
            label = {"metadata": {"labels": {"on": value}}}
            await http.ok("PATCH", f"{CONFIG_MAPS}/a", label, kind=MERGE)
        assert await events.take(3) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]


async def test_a_single_object_is_watched_by_its_name(http: Http) -> None:
    since = await revision(http)
    async with http.watch(
        CONFIG_MAPS, resourceVersion=since, fieldSelector="metadata.name=b"
    ) as events:
        for name in ("a", "b"):
            await http.ok("POST", CONFIG_MAPS, config_map(name))
        assert await events.take(1) == [("ADDED", "b")]


@pytest.mark.slow
async def test_the_stream_ends_when_its_time_is_over(http: Http) -> None:
    async with http.watch(
        CONFIG_MAPS, timeoutSeconds="1", resourceVersion=await revision(http)
    ) as events:
        assert await events.next() is None


async def test_bookmarks_come_while_nothing_happens() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "elsewhere"}}
    async with serving(ServerOptions(bookmark_s=0.01)) as http:
        since = await revision(http)
        await http.ok("POST", "/api/v1/namespaces/default/secrets", secret)
        async with http.watch(
            CONFIG_MAPS, resourceVersion=since, allowWatchBookmarks="true"
        ) as events:
            mark = await events.next()
    assert mark["type"] == "BOOKMARK"
    assert int(mark["object"]["metadata"]["resourceVersion"]) > int(since)


async def test_a_table_is_watched_row_by_row(http: Http) -> None:
    since = await revision(http)
    query = f"{CONFIG_MAPS}?watch=true&resourceVersion={since}"
    async with http.session.get(query, headers=TABLE) as response:
        await http.ok("POST", CONFIG_MAPS, config_map("a"))
        async with asyncio.timeout(10):
            line = await response.content.readline()
    assert b'"kind":"Table"' in line
    assert b'"cells":["a",1,' in line


async def test_many_watches_see_the_same(http: Http) -> None:
    since = await revision(http)

    async def names() -> list[tuple[str, str]]:
        async with http.watch(CONFIG_MAPS, resourceVersion=since) as events:
            return await events.take(20)

    async def write() -> None:
        for i in range(20):
            await http.ok("POST", CONFIG_MAPS, config_map(f"c{i:02}"))

    seen, *others, _ = await asyncio.gather(*(names() for _ in range(10)), write())
    assert seen == [("ADDED", f"c{i:02}") for i in range(20)]
    assert all(other == seen for other in others)


async def test_a_watch_ends_when_its_crd_goes(http: Http) -> None:
    await http.ok("POST", CRDS, widget_crd())
    await http.ok("POST", WIDGETS, widget("a"))
    async with http.watch(WIDGETS) as events:
        assert await events.take(1) == [("ADDED", "a")]
        await http.ok("DELETE", f"{CRDS}/widgets.example.com")
        assert await events.take(1) == [("DELETED", "a")]
        assert await events.next() is None


async def test_an_old_version_is_watched_in_its_shape(http: Http) -> None:
    await http.ok("POST", CRDS, widget_crd())
    path = WIDGETS.replace("v1", "v1beta1")
    async with http.watch(path) as events:
        await http.ok("POST", WIDGETS, widget("a"))
        event = await events.next()
    assert event["object"]["apiVersion"] == "example.com/v1beta1"
