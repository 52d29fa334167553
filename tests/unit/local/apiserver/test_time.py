"""What the server does as time goes by: ages, tokens, events."""

import time
from typing import Any

from tests.support.apiserver import JOBS, MERGE, TABLE, Http, job, serving

from sluice.clock import ManualClock

EVENTS = "/api/v1/namespaces/default/events"
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
HOUR_MS = 3_600_000


def clock() -> ManualClock:
    """Return a clock that starts now, since certificates are checked against the real time."""
    return ManualClock(int(time.time() * 1000))


async def cells(http: Http, path: str) -> list[Any]:
    table = (await http("GET", path, headers=TABLE)).body
    return list(table["rows"][0]["cells"])


async def test_ages_and_durations_grow() -> None:
    time_source = clock()
    async with serving(clock=time_source) as http:
        made = await http.ok("POST", JOBS, job("a"))
        started = {"status": {"startTime": made["metadata"]["creationTimestamp"]}}
        await http.ok("PATCH", f"{JOBS}/a/status", started, kind=MERGE)
        time_source.advance(125_000)
        assert (await cells(http, JOBS))[3:5] == ["2m5s", "2m5s"]


async def test_tokens_end() -> None:
    time_source = clock()
    async with serving(clock=time_source) as http:
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 600},
        }
        issued = await http.ok("POST", f"{ACCOUNT}/token", request)
        bearer = {"Authorization": f"Bearer {issued['status']['token']}"}
        assert (await http("GET", JOBS, headers=bearer)).code == 200
        time_source.advance(601_000)
        assert (await http("GET", JOBS, headers=bearer)).code == 401


async def test_events_are_forgotten_after_an_hour() -> None:
    time_source = clock()
    async with serving(clock=time_source) as http:
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "old"},
            "involvedObject": {"kind": "Job", "namespace": "default", "name": "a"},
        }
        await http.ok("POST", EVENTS, event)
        time_source.advance(2 * HOUR_MS)
        await http.ok("POST", EVENTS, {**event, "metadata": {"name": "new"}})
        # Any write to a namespace wakes the server's own work.
        label = {"metadata": {"labels": {"a": "b"}}}
        await http.ok("PATCH", "/api/v1/namespaces/default", label, kind=MERGE)
        await http.until_gone(EVENTS, "old")
        assert (await http("GET", EVENTS)).names == ["new"]
