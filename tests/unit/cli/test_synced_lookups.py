"""Reviews that come while the caches fill wait for them, and not for ever."""

import asyncio

import pytest
from tests.support.lookups import StaticLookups

from sluice.cli import webhook_server
from sluice.cli.webhook_server import SyncedLookups
from sluice.jobs.admission.context import LookupFailed
from sluice.kube.access import ClusterAccess
from sluice.kube.client import Client
from sluice.kube.informer import Informer
from sluice.kube.resources import LOCAL_QUEUES


def empty_cache() -> Informer[str]:
    client = Client(ClusterAccess(host="http://unused"))
    return Informer(client, LOCAL_QUEUES, lambda body: str(body))


async def test_an_answer_comes_once_the_caches_are_filled() -> None:
    cache = empty_cache()
    lookups = SyncedLookups(StaticLookups(), [cache])
    asked = asyncio.create_task(lookups.priority_class_exists("high"))
    await asyncio.sleep(0)
    assert not asked.done()
    cache.synced.set()
    assert await asyncio.wait_for(asked, 2) is False


async def test_caches_that_stay_empty_are_a_failure_to_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhook_server, "_SYNC_WAIT_S", 0.01)
    lookups = SyncedLookups(StaticLookups(), [empty_cache()])
    with pytest.raises(LookupFailed, match="still starting; try again"):
        await lookups.local_queue_exists("ns", "lq")
