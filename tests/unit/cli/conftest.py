"""Fixtures: a wire server and a kubeconfig that leads to it."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.unit.kube.wire_server import WireServer, serving


@pytest_asyncio.fixture
async def server() -> AsyncIterator[WireServer]:
    async with serving() as running:
        yield running


@pytest.fixture
def kubeconfig(tmp_path: Path, server: WireServer) -> str:
    path = tmp_path / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
    }
    path.write_text(json.dumps(content))
    return str(path)
