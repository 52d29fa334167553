"""Discovery: which groups, versions and resources there are.

kubectl asks for aggregated discovery first and takes the plain documents when the reply's content
type says so; clients that only know the plain ones find everything there too. Both are served.
"""

from __future__ import annotations

from collections.abc import Iterable

from sluice.local.apiserver.kinds.builtin import kubernetes_version
from sluice.local.apiserver.registry import Registry
from sluice.local.apiserver.resources import Resource, Version
from sluice.local.apiserver.seams import Gvk, Json
from sluice.local.apiserver.status import no_such_resource

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_STATUS_VERBS = ("get", "patch", "update")


def version_info() -> Json:
    """Return the body of /version."""
    text = kubernetes_version()
    major, minor, _ = text.removeprefix("v").split(".", 2)
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{text}+sluice",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "python",
        "platform": "embedded",
    }


def core_versions(address: str) -> Json:
    """Return the body of /api."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def _group(name: str, versions: Iterable[str]) -> Json:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def groups(registry: Registry) -> Json:
    """Return the body of /apis."""
    found = [_group(name, versions) for name, versions in registry.group_versions().items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}


def group(registry: Registry, name: str) -> Json:
    """Return the body of /apis/GROUP.

    Raises:
        ApiError: 404.
    """
    versions = registry.group_versions().get(name)
    if not versions or not name:
        raise no_such_resource()
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def _subresources(resource: Resource, version: Version) -> list[tuple[str, Gvk, tuple[str, ...]]]:
    """Return name, kind and verbs of each subresource."""
    own = resource.gvk(version.name)
    found: list[tuple[str, Gvk, tuple[str, ...]]] = []
    if version.has_status:
        found.append(("status", own, _STATUS_VERBS))
    for name, kind in resource.subresources.items():
        found.append((name, kind, ("update",) if name == "finalize" else ("create",)))
    return found


def resources(registry: Registry, group_name: str, version_name: str) -> Json:
    """Return the body of /api/v1 or /apis/GROUP/VERSION.

    Raises:
        ApiError: 404.
    """
    listed: list[Json] = []
    for resource in registry:
        version = resource.versions.get(version_name)
        if resource.group != group_name or version is None or not version.served:
            continue
        entry: Json = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": ["create"] if resource.is_virtual else list(VERBS),
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        listed.append(entry)
        for name, kind, verbs in _subresources(resource, version):
            sub: Json = {
                "name": f"{resource.plural}/{name}",
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": kind.kind,
                "verbs": list(verbs),
            }
            if (kind.group, kind.version) != (resource.group, version.name):
                sub |= {"group": kind.group, "version": kind.version}
            listed.append(sub)
    if not listed:
        raise no_such_resource()
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group_name}/{version_name}" if group_name else version_name,
        "resources": listed,
    }


def _aggregated_resource(resource: Resource, version: Version) -> Json:
    own = resource.gvk(version.name)
    entry: Json = {
        "resource": resource.plural,
        "responseKind": {"group": own.group, "version": own.version, "kind": own.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": ["create"] if resource.is_virtual else list(VERBS),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    subresources = [
        {
            "subresource": name,
            "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
            "verbs": list(verbs),
        }
        for name, kind, verbs in _subresources(resource, version)
    ]
    if subresources:
        entry["subresources"] = subresources
    return entry


def aggregated(registry: Registry, *, is_core: bool) -> Json:
    """Return /api or /apis in the aggregated form."""
    items: list[Json] = []
    for name, versions in registry.group_versions().items():
        if bool(name) is is_core:
            continue
        listed = []
        for version_name in versions:
            found = [
                _aggregated_resource(resource, resource.versions[version_name])
                for resource in registry
                if resource.group == name
                and version_name in resource.versions
                and resource.versions[version_name].served
            ]
            listed.append({"version": version_name, "resources": found, "freshness": "Current"})
        items.append({"metadata": {"name": name} if name else {}, "versions": listed})
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }
