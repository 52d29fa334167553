"""A fresh embedded API server for each test."""

from collections.abc import AsyncIterator

import pytest_asyncio
from tests.support.apiserver import Http, serving


@pytest_asyncio.fixture
async def http() -> AsyncIterator[Http]:
    """A client of a fresh server."""
    async with serving() as client:
        yield client
