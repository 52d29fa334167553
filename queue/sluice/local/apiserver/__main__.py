"""Run a bare embedded API server for development: `python -m sluice.local.apiserver KUBECONFIG`.

People use `sluice up`, which adds the webhook, the manager and the stand-ins.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from sluice.local.apiserver.compose import parts_without_webhooks
from sluice.local.apiserver.server import Server, ServerOptions


async def main(kubeconfig: Path, port: int) -> None:
    """Serve until interrupted."""
    options = ServerOptions(kubeconfig=kubeconfig, port=port)
    async with Server(parts_without_webhooks(), options) as server:
        print(f"serving at {server.url}; export KUBECONFIG={kubeconfig}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
