"""Installs on a control plane of its own what manifests/base installs on a cluster.

Namespace, CRDs, webhook configurations and their Service; not the Deployment and its rights, since
Sluice runs in this process. Called by ``local_cluster``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

from sluice.api import names
from sluice.api.errors import AlreadyExists, ConfigError, NotFound
from sluice.cli import manifests
from sluice.cli.local_settings import SERVICE
from sluice.kube.client import Client
from sluice.kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    SERVICES,
    VALIDATING_WEBHOOKS,
    Resource,
)

_SERVED_S_MAX: Final = 60.0
_POLL_S: Final = 0.05
_STEP: Final = "installing CRDs and webhooks"
_RESOURCES: Final = {
    "CustomResourceDefinition": CUSTOM_RESOURCE_DEFINITIONS,
    "MutatingWebhookConfiguration": MUTATING_WEBHOOKS,
    "ValidatingWebhookConfiguration": VALIDATING_WEBHOOKS,
}

Json = dict[str, Any]


class Report(Protocol):
    """Told what is being waited for."""

    def __call__(self, step: str, detail: str = "") -> None:
        """Show a step, and how far it is."""
        ...


def silent(step: str, detail: str = "") -> None:
    """Be a `Report` that nobody reads."""
    del step, detail


async def install(client: Client, report: Report, *, host_port: int | None) -> None:
    """Install everything and wait until the kinds are served.

    Args:
        client: The administrator's.
        report: Told how far it is.
        host_port: Where the webhook will listen on this machine, for an API server that resolves
            Services by name; None when it is told elsewhere where they lead.

    Raises:
        KubeError: The API server refuses something.
        ConfigError: It does not serve the kinds in time.
    """
    report(_STEP)
    namespace = {"metadata": {"name": names.SYSTEM_NAMESPACE}}
    await client.create(NAMESPACES, "", {"apiVersion": "v1", "kind": "Namespace"} | namespace)
    if host_port is not None:
        await client.create(SERVICES, names.SYSTEM_NAMESPACE, _service())
    found = await asyncio.to_thread(
        lambda: [*manifests.crds(), *manifests.webhook_configurations()]
    )
    for i, obj in enumerate(found, start=1):
        report(_STEP, f"{i} of {len(found)}")
        # Where the port may stay, whoever applies manifests/base later meets what it says.
        chosen = obj if host_port is None else manifests.at_port(obj, host_port)
        try:
            await client.create(_RESOURCES[obj["kind"]], "", chosen)
        except AlreadyExists:
            continue
    try:
        async with asyncio.timeout(_SERVED_S_MAX):
            await _until_served(client, served_resources(found))
    except TimeoutError:
        raise ConfigError(
            f"the API server does not serve the kinds of the CRDs after {_SERVED_S_MAX:.0f} s"
        ) from None


def _service() -> Json:
    """Return a Service that is a name for this machine."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": names.SYSTEM_NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }


def served_resources(objects: Iterable[Json]) -> Iterator[Resource]:
    """Yield every version of every kind that CRDs among the objects define."""
    for obj in objects:
        if obj["kind"] != "CustomResourceDefinition":
            continue
        spec = obj["spec"]
        for version in spec["versions"]:
            if version["served"]:
                yield Resource(
                    group=spec["group"],
                    version=version["name"],
                    plural=spec["names"]["plural"],
                    kind=spec["names"]["kind"],
                    namespaced=spec["scope"] == "Namespaced",
                )


async def _until_served(client: Client, resources: Iterable[Resource]) -> None:
    for resource in resources:
        while True:
            try:
                await client.list(resource, limit=1)
                break
            except NotFound:
                await asyncio.sleep(_POLL_S)
