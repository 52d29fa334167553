"""Informers: current through drops, 410, paging, bad objects and our own writes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from tests.unit.kube.wire_server import Fault, WireServer

from sluice.kube.client import Client
from sluice.kube.informer import Handlers, Informer
from sluice.kube.resources import CONFIG_MAPS

PATH = "/api/v1/namespaces/ns/configmaps"
DEADLINE_S = 5.0


def put(server: WireServer, name: str, value: str) -> dict[str, Any]:
    path = f"/api/v1/configmaps/{name}"
    metadata = {"name": name, "namespace": "ns", "managedFields": [{"manager": "x"}]}
    return server.put(path, {"metadata": metadata, "data": {"v": value}})


def transform(body: dict[str, Any]) -> str | None:
    value = str(body["data"]["v"])
    if value == "bad":
        raise ValueError("not a value")
    return None if value == "ignored" else value


class Story:
    """What handlers were told, and a way to wait for it."""

    def __init__(self) -> None:
        self.events: list[tuple[str, ...]] = []
        self._changed = asyncio.Event()

    def _tell(self, *event: str) -> None:
        self.events.append(event)
        self._changed.set()

    def handlers(self) -> Handlers[str]:
        return Handlers(
            added=lambda key, new: self._tell("added", key, new),
            updated=lambda key, old, new: self._tell("updated", key, old, new),
            deleted=lambda key, old: self._tell("deleted", key, old),
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def until_count(self, count: int) -> None:
        await self.until(lambda: len(self.events) >= count)


@pytest_asyncio.fixture
async def story() -> Story:
    return Story()


@pytest_asyncio.fixture
async def informer(client: Client, story: Story) -> AsyncIterator[Informer[str]]:
    informer = Informer(
        client,
        CONFIG_MAPS,
        transform,
        keep_raw=True,
        page_size=2,
        indexes={"value": lambda value: (value,)},
    )
    informer.add_handlers(story.handlers())
    task = asyncio.create_task(informer.run())
    try:
        yield informer
    finally:
        task.cancel()
        await asyncio.wait([task])


async def watching(server: WireServer) -> None:
    await server.until(lambda: bool(server.watchers))


async def test_lists_in_pages_and_follows_changes(
    server: WireServer, informer: Informer[str], story: Story
) -> None:
    for number in range(5):
        put(server, f"c{number}", "old")
    await informer.wait_synced(DEADLINE_S)
    assert len(story.events) == 5
    assert server.count("GET", "continue=") == 2
    await watching(server)
    put(server, "c0", "new")
    server.remove("/api/v1/configmaps/c1")
    await story.until_count(7)
    assert story.events[5:] == [("updated", "ns/c0", "old", "new"), ("deleted", "ns/c1", "old")]
    assert informer.store.keys_by("value", "old") == ("ns/c2", "ns/c3", "ns/c4")
    assert informer.store.records_by("value", "new") == ("new",)


async def test_raw_objects_are_kept_without_managed_fields(
    server: WireServer, informer: Informer[str]
) -> None:
    put(server, "a", "x")
    await informer.wait_synced(DEADLINE_S)
    raw = informer.store.raw("ns/a")
    assert raw is not None
    assert raw["data"] == {"v": "x"}
    assert raw["kind"] == "ConfigMap"
    assert "managedFields" not in raw["metadata"]


async def test_a_dropped_watch_goes_on_where_it_was(
    server: WireServer, informer: Informer[str], story: Story
) -> None:
    put(server, "a", "1")
    await informer.wait_synced(DEADLINE_S)
    await watching(server)
    put(server, "a", "2")
    await story.until_count(2)
    server.drop_watches()
    put(server, "a", "3")
    await story.until_count(3)
    assert story.events[-1] == ("updated", "ns/a", "2", "3")
    assert server.count("GET", "limit=2") == 1, "listed again without need"


async def test_a_bookmark_moves_the_version_on(
    server: WireServer, informer: Informer[str], story: Story
) -> None:
    await informer.wait_synced(DEADLINE_S)
    await watching(server)
    server.version = 40
    server.compact()
    server.bookmark()
    put(server, "a", "1")
    await story.until_count(1)
    server.drop_watches()
    put(server, "a", "2")
    await story.until_count(2)
    assert server.count("GET", "limit=2") == 1


@pytest.mark.parametrize("way", ["status", "event"])
async def test_a_version_too_old_means_listing_again(
    server: WireServer, informer: Informer[str], story: Story, way: str
) -> None:
    for name in ("changed", "gone", "same"):
        put(server, name, "1")
    await informer.wait_synced(DEADLINE_S)
    await watching(server)
    watchers, server.watchers = server.watchers, set()  # changes that the watch never brings
    put(server, "changed", "2")
    server.remove("/api/v1/configmaps/gone")
    put(server, "new", "1")
    server.compact()
    server.watchers = watchers
    if way == "event":
        server.send_error(410)
    else:
        server.drop_watches()
    await story.until_count(6)
    assert sorted(story.events[3:]) == [
        ("added", "ns/new", "1"),
        ("deleted", "ns/gone", "1"),
        ("updated", "ns/changed", "1", "2"),
    ]


async def test_an_expired_page_means_one_list_without_pages(
    server: WireServer, informer: Informer[str], story: Story
) -> None:
    for number in range(3):
        put(server, f"c{number}", "x")
    server.faults.append(Fault("GET", "continue=", status=410))
    await informer.wait_synced(DEADLINE_S)
    assert len(story.events) == 3


async def test_failures_are_waited_out(
    server: WireServer, informer: Informer[str], story: Story
) -> None:
    server.faults += [
        Fault("GET", "limit=", status=403),
        Fault("GET", "watch=", status=500),
    ]
    put(server, "a", "1")
    await informer.wait_synced(DEADLINE_S)
    put(server, "a", "2")
    await story.until_count(2)


@pytest.mark.parametrize("status", [403, 404])
async def test_a_kind_that_need_not_be_there_is_not_waited_for(
    server: WireServer, client: Client, story: Story, status: int
) -> None:
    server.faults.append(Fault("GET", "configmaps", status=status))
    put(server, "a", "1")
    informer = Informer(client, CONFIG_MAPS, transform, is_optional=True)
    informer.add_handlers(story.handlers())
    task = asyncio.create_task(informer.run())
    await informer.wait_synced(DEADLINE_S)
    assert story.events == []
    await story.until_count(1)  # and looked for again
    task.cancel()
    await asyncio.wait([task])


async def test_a_server_that_ends_every_watch_at_once_is_not_hammered(
    server: WireServer, informer: Informer[str]
) -> None:
    server.faults.append(Fault("GET", "watch=", status=200, times=1000, text=""))
    await informer.wait_synced(DEADLINE_S)
    with pytest.raises(TimeoutError):
        await server.until(lambda: server.count("GET", "watch=") > 4, timeout_s=0.5)


async def test_objects_that_cannot_be_read_are_left_out(
    server: WireServer, informer: Informer[str], story: Story
) -> None:
    put(server, "a", "good")
    put(server, "b", "bad")
    put(server, "c", "ignored")
    await informer.wait_synced(DEADLINE_S)
    assert informer.store.all_keys() == ("ns/a",)
    await watching(server)
    put(server, "a", "bad")
    put(server, "b", "good")
    await story.until_count(3)
    assert story.events[1:] == [("deleted", "ns/a", "good"), ("added", "ns/b", "good")]


async def test_our_own_write_is_seen_at_once_and_only_once(
    server: WireServer, informer: Informer[str], story: Story
) -> None:
    put(server, "a", "1")
    await informer.wait_synced(DEADLINE_S)
    await watching(server)
    watchers, server.watchers = server.watchers, set()
    written = put(server, "a", "2")
    informer.observe_write(written)
    assert informer.store.get("ns/a") == "2"
    server.watchers = watchers
    server._send("MODIFIED", written)
    put(server, "a", "3")
    await story.until_count(3)
    assert [event[0] for event in story.events] == ["added", "updated", "updated"]


async def test_a_late_answer_does_not_bring_back_the_dead(
    server: WireServer, informer: Informer[str], story: Story
) -> None:
    written = put(server, "a", "1")
    await informer.wait_synced(DEADLINE_S)
    await watching(server)
    server.remove("/api/v1/configmaps/a")
    await story.until_count(2)
    informer.observe_write(written)
    assert "ns/a" not in informer.store


async def test_events_larger_than_a_chunk_arrive_whole(
    server: WireServer, informer: Informer[str], story: Story
) -> None:
    await informer.wait_synced(DEADLINE_S)
    await watching(server)
    put(server, "big", "x" * 1_500_000)
    await story.until_count(1)
    assert len(informer.store.get("ns/big") or "") == 1_500_000


async def test_late_handlers_hear_of_what_is_there(
    server: WireServer, informer: Informer[str]
) -> None:
    put(server, "a", "1")
    await informer.wait_synced(DEADLINE_S)
    late = Story()
    informer.add_handlers(late.handlers())
    assert late.events == [("added", "ns/a", "1")]


async def test_waiting_for_a_list_that_does_not_come_names_the_kind(client: Client) -> None:
    informer = Informer(client, CONFIG_MAPS, transform)
    with pytest.raises(TimeoutError, match="no list of configmaps within"):
        await informer.wait_synced(0.01)
