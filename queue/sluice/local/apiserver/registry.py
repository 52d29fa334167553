"""Which resources are served: the built-in kinds and those of the CRDs that exist now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sluice.local.apiserver.kinds.builtin import builtin_resources
from sluice.local.apiserver.resources import Behaviour, Resource, Version
from sluice.local.apiserver.seams import Gvk, Gvr, SchemaCompiler


class Registry:
    """All served resources by group and plural name.

    Args:
        compiler: Compiles the schemas of built-in kinds at their first use.
    """

    def __init__(self, compiler: SchemaCompiler) -> None:
        self.compiler = compiler
        self._resources: dict[tuple[str, str], Resource] = {}
        self.generation = 0
        """Grows with each change, so that discovery and OpenAPI documents can be kept."""
        for resource in builtin_resources(compiler):
            self.install(resource)

    def install(self, resource: Resource) -> None:
        """Serve a resource, in place of an earlier form of it."""
        self._resources[resource.group, resource.plural] = resource
        self.generation += 1

    def set_behaviour(self, group: str, plural: str, behaviour: Behaviour) -> None:
        """Give a built-in kind hooks that need the server's state."""
        resource = self._resources[group, plural]
        self._resources[group, plural] = replace(resource, behaviour=behaviour)

    def uninstall(self, group: str, plural: str) -> None:
        """Stop serving a resource."""
        if self._resources.pop((group, plural), None) is not None:
            self.generation += 1

    def resource(self, group: str, plural: str) -> Resource | None:
        """Return a resource, or None."""
        return self._resources.get((group, plural))

    def find(self, group: str, version: str, plural: str) -> tuple[Resource, Version] | None:
        """Return a resource and its served version, or None when no path leads there."""
        resource = self._resources.get((group, plural))
        if resource is None:
            return None
        found = resource.versions.get(version)
        return (resource, found) if found is not None and found.served else None

    def by_kind(self, group: str, kind: str) -> Resource | None:
        """Return the resource of a kind, or None."""
        return next((r for r in self if r.group == group and r.kind == kind), None)

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._resources.values()))

    def group_versions(self) -> dict[str, list[str]]:
        """Return the served versions of each group, the preferred one first."""
        found: dict[str, list[str]] = {}
        for resource in self:
            versions = found.setdefault(resource.group, [])
            for version in resource.versions.values():
                if version.served and version.name not in versions:
                    versions.append(version.name)
        return {group: sorted(versions, key=priority) for group, versions in found.items()}

    def equivalents(self, resource: Resource, version: str) -> tuple[tuple[Gvr, Gvk], ...]:
        """Return the other served versions of a resource."""
        return tuple(
            (resource.gvr(other.name), resource.gvk(other.name))
            for other in resource.versions.values()
            if other.served and other.name != version
        )


def priority(version: str) -> tuple[int, int, int, str]:
    """Return the sort key of a version name: v2, v1, v1beta2, v1beta1, v1alpha1, others."""
    text = version.removeprefix("v")
    stages = (("beta", 1), ("alpha", 2))
    for word, rank in stages:
        major, found, minor = text.partition(word)
        if found and major.isdecimal() and minor.isdecimal():
            return (rank, -int(major), -int(minor), version)
    if text.isdecimal() and version.startswith("v"):
        return (0, -int(text), 0, version)
    return (3, 0, 0, version)
