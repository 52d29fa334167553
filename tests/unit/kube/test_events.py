"""Events: written beside the work, aggregated, bounded."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kube.wire_server import Fault, WireServer

from sluice.clock import ManualClock
from sluice.kube.client import Client
from sluice.kube.events import EventDraft, EventRecorder, cut_note, reference

PATH = "/apis/events.k8s.io/v1/namespaces/ns/events"
ABOUT = {"apiVersion": "batch/v1", "kind": "Job", "namespace": "ns", "name": "j", "uid": "u"}


def draft(note: str = "Quota reserved") -> EventDraft:
    return EventDraft(regarding=ABOUT, reason="QuotaReserved", note=note, controller="kueue-x")


@pytest_asyncio.fixture
async def clock() -> ManualClock:
    return ManualClock(1_700_000_000_123)


@pytest_asyncio.fixture
async def recorder(client: Client, clock: ManualClock) -> AsyncIterator[EventRecorder]:
    recorder = EventRecorder(client, instance="pod-1", clock=clock, queue_max=8)
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_an_event_has_what_the_api_asks_for(
    recorder: EventRecorder, server: WireServer
) -> None:
    recorder.record(draft())
    await recorder.flush(2)
    (body,) = server.bodies
    assert body["eventTime"] == "2023-11-14T22:13:20.123000Z"
    assert body["type"] == "Normal"
    assert body["reason"] == body["action"] == "QuotaReserved"
    assert body["reportingController"] == "kueue-x"
    assert body["reportingInstance"] == "pod-1"
    assert body["regarding"] == ABOUT
    assert body["metadata"]["name"].startswith("j.")


async def test_repeats_become_a_series(
    recorder: EventRecorder, server: WireServer, clock: ManualClock
) -> None:
    for _ in range(3):
        recorder.record(draft())
    await recorder.flush(2)
    recorder.file_repeats()
    await recorder.flush(2)
    assert server.count("POST") == 1
    assert server.bodies[-1]["series"]["count"] == 3
    recorder.file_repeats()
    await recorder.flush(2)
    assert server.count("PATCH") == 1, "nothing new to write"
    clock.advance(400_000)
    recorder.record(draft())
    await recorder.flush(2)
    assert server.count("POST") == 2, "much later it is another event"


async def test_different_notes_are_different_events(
    recorder: EventRecorder, server: WireServer
) -> None:
    recorder.record(draft("one"))
    recorder.record(draft("two"))
    await recorder.flush(2)
    assert server.count("POST") == 2


async def test_a_full_queue_drops_and_counts(client: Client) -> None:
    recorder = EventRecorder(client, instance="i", queue_max=2)
    for number in range(5):
        recorder.record(draft(str(number)))
    assert recorder.dropped_count == 3


async def test_an_event_nobody_may_write_is_dropped_and_the_next_is_written(
    recorder: EventRecorder, server: WireServer
) -> None:
    server.faults.append(Fault("POST", "", status=403))
    recorder.record(draft("refused"))
    await recorder.flush(2)
    recorder.record(draft("taken"))
    await recorder.flush(2)
    assert (recorder.dropped_count, recorder.written_count) == (1, 1)


@given(st.text(max_size=3000))
def test_notes_fit_the_api(note: str) -> None:
    cut = cut_note(note)
    assert len(cut.encode()) <= 1024
    assert cut == note or note.startswith(cut.removesuffix("..."))


def test_a_reference_leaves_out_what_is_not_there() -> None:
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    assert reference(body) == {"apiVersion": "v1", "kind": "Node", "name": "n"}
