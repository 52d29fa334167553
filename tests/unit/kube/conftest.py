"""Fixtures: a wire server and a client of it."""

from collections.abc import AsyncIterator

import pytest_asyncio
from tests.unit.kube.wire_server import WireServer, serving

from sluice.kube.client import Client


@pytest_asyncio.fixture
async def server() -> AsyncIterator[WireServer]:
    async with serving() as running:
        yield running


@pytest_asyncio.fixture
async def client(server: WireServer) -> AsyncIterator[Client]:
    async with Client(server.access) as running:
        yield running
