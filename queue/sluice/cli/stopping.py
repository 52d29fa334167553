"""Stops and resumes queues and Workloads (docs/spec/api.md 8.3) for ``stop`` and ``resume``."""

from __future__ import annotations

import asyncio

from sluice.api.errors import ConfigError, NotFound
from sluice.cli import target
from sluice.kube.resources import WORKLOADS, Resource

HOLD = "Hold"
HOLD_AND_DRAIN = "HoldAndDrain"
NONE = "None"


def stop_patch(resource: Resource, *, keeps_running: bool) -> dict[str, object]:
    """Return the merge patch that stops an object.

    Raises:
        ConfigError: A Workload cannot keep running while it is stopped.
    """
    if resource is WORKLOADS:
        if keeps_running:
            raise ConfigError("--keep-already-running is for queues: a Workload is what runs")
        return {"spec": {"active": False}}
    return {"spec": {"stopPolicy": HOLD if keeps_running else HOLD_AND_DRAIN}}


def resume_patch(resource: Resource) -> dict[str, object]:
    """Return the merge patch that resumes an object."""
    if resource is WORKLOADS:
        return {"spec": {"active": True}}
    return {"spec": {"stopPolicy": NONE}}


def apply(
    resource: Resource,
    name: str,
    patch: dict[str, object],
    *,
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
) -> None:
    """Write a patch to one object.

    Raises:
        ConfigError: The object does not exist, or the cluster cannot be used.
    """
    asyncio.run(_apply(resource, name, patch, kubeconfig, context, namespace))


async def _apply(
    resource: Resource,
    name: str,
    patch: dict[str, object],
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
) -> None:
    async with target.connected(kubeconfig, context) as (client, default):
        place = (namespace or default) if resource.namespaced else ""
        try:
            await client.patch(resource, place, name, patch, field_manager="sluice-cli")
        except NotFound as error:
            if "could not find the requested resource" in str(error):
                raise
            where = f" in namespace {place}" if place else ""
            raise ConfigError(
                f"{resource.kind} {name!r} not found{where}; `sluice get {resource.plural}"
                f"{' -A' if resource.namespaced else ''}` lists them"
            ) from error
