"""Installs the CreditPolicy definition on a control plane. Used by integration tests."""

import asyncio
from typing import Any

import yaml
from tests.support.crd_schemas import CRD_DIRECTORY
from tests.support.managers import DEADLINE_S, install_crds

from sluice.api.errors import AlreadyExists, NotFound
from sluice.kube import resources
from sluice.kube.client import Client

DEFINITION = CRD_DIRECTORY / "sluicegate.io_creditpolicies.yaml"


async def install_credits(client: Client) -> None:
    """Install Kueue's definitions and ours, and wait until they are served."""
    await install_crds(client)
    body: dict[str, Any] = yaml.load(DEFINITION.read_text(), yaml.CSafeLoader)
    try:
        await client.create(resources.CUSTOM_RESOURCE_DEFINITIONS, "", body)
    except AlreadyExists:
        return
    async with asyncio.timeout(DEADLINE_S):
        # Discovery can't be watched; the server answers 404 until the handler is there.
        while True:
            try:
                await client.list(resources.CREDIT_POLICIES, limit=1)
            except NotFound:
                await asyncio.sleep(0.05)
            else:
                return
