"""Which kinds a server has, by its discovery documents. Called by `garbage`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sluice.api.errors import NotFound
from sluice.kube.client import Client
from sluice.kube.resources import Resource

_NEEDED: Final = frozenset({"list", "watch", "get", "delete"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """The kinds whose objects can be listed, watched and deleted.

    Attributes:
        preferred: Each once, in the version that its group prefers.
        all_versions: Each in every version.
    """

    preferred: tuple[Resource, ...]
    all_versions: tuple[Resource, ...]


async def discover(client: Client) -> Kinds:
    """Return the kinds that a server has now.

    Raises:
        KubeError: Discovery failed.
    """
    groups: list[tuple[str, list[str]]] = [("", ["v1"])]
    for group in (await client.call("/apis")).get("groups") or ():
        preferred = group["preferredVersion"]["version"]
        others = [v["version"] for v in group["versions"] if v["version"] != preferred]
        groups.append((group["name"], [preferred, *others]))
    found: list[Resource] = []
    preferred_kinds: dict[tuple[str, str], Resource] = {}
    for name, versions in groups:
        for version in versions:
            for resource in await _resources(client, name, version):
                found.append(resource)
                preferred_kinds.setdefault((resource.group, resource.plural), resource)
    return Kinds(preferred=tuple(preferred_kinds.values()), all_versions=tuple(found))


async def _resources(client: Client, group: str, version: str) -> list[Resource]:
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        document: dict[str, Any] = await client.call(path)
    except NotFound:
        # The group went away between the two requests.
        return []
    return [
        Resource(
            group=group,
            version=version,
            plural=entry["name"],
            kind=entry["kind"],
            namespaced=entry["namespaced"],
        )
        for entry in document.get("resources") or ()
        if "/" not in entry["name"] and set(entry.get("verbs") or ()) >= _NEEDED
    ]
