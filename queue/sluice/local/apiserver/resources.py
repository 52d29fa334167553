"""What the server serves: resources, their versions, and the hooks of built-in kinds.

A resource is one entry of the registry: a built-in kind or one made from a CRD. Handlers know
only this description; whatever is special about a kind stands in its `Behaviour`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluice.local.apiserver.seams import Gvk, Gvr, Json, JsonView, ObjectSchema
from sluice.local.apiserver.status import Cause

Extract = Callable[[JsonView], Any]
"""Takes a cell's or a selectable field's value out of an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a Table.

    Attributes:
        type: `string`, `integer`, `number`, `boolean` or `date`.
        is_age: The value is a time and its cell says how long ago that was.
        timed: Takes the value in place of `extract` where it depends on the time, which it is given
            in seconds since 1970.
        absent: The cell of an object that lacks the value.
        priority: Above 0 only `-o wide` shows it.
    """

    name: str
    extract: Extract
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    is_age: bool = False
    timed: Callable[[JsonView, float], Any] | None = None
    absent: str | None = ""


class Behaviour:
    """Hooks that a built-in kind overrides; the default is an object without special rules.

    All get objects they may change in place, after schema defaulting.
    """

    has_generation = True
    """Whether `metadata.generation` counts changes of what isn't metadata or status."""

    orphans_by_default = False
    """Whether a delete without propagationPolicy leaves dependents (batch/v1 Job does)."""

    orphan_warning = ""
    """What a client is told then."""

    def default(self, obj: Json) -> None:
        """Fill in defaults that depend on other fields."""

    def prepare_create(self, obj: Json) -> None:
        """Set what the server sets on create (status, generated selectors)."""

    def prepare_update(self, new: Json, old: JsonView) -> None:
        """Carry over what a client can't change."""

    def validate(self, new: JsonView, old: JsonView | None) -> Sequence[Cause]:
        """Return what the schema can't say: rules across fields and immutability."""
        return ()

    def mark_deleted(self, obj: Json) -> None:
        """Set what an object shows while it waits to go; called once, when a delete marks it."""

    def grace_period_s(self, obj: JsonView, asked_s: int | None) -> int:
        """Return how long a delete waits for somebody to confirm it; 0 deletes at once."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One served or stored version of a resource."""

    name: str
    schema: ObjectSchema
    columns: tuple[Column, ...]
    served: bool = True
    has_status: bool = False
    deprecation_warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """How a resource is kept in the collection of another one."""

    collection: tuple[str, str]
    encode: Callable[[Json], Json]
    decode: Callable[[Json], Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of the registry.

    Attributes:
        versions: By name, in order of preference.
        storage_version: The version that the store keeps.
        subresources: Beyond `status`, by name, with the kind of their bodies.
        selectable: Field selectors beyond metadata.name and metadata.namespace.
        conversion: `spec.conversion` of a CRD.
        crd_name: Name of its CRD; "" for a built-in kind.
        is_terminating: Its CRD is being deleted: nothing may be created any more.
        is_virtual: Only create, nothing is stored (reviews).
        codec: For a resource that shows the objects of another one (events.k8s.io).
    """

    group: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    versions: Mapping[str, Version]
    storage_version: str
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Gvk] = field(default_factory=dict)
    selectable: Mapping[str, Extract] = field(default_factory=dict)
    behaviour: Behaviour = field(default_factory=Behaviour)
    conversion: JsonView = field(default_factory=dict)
    crd_name: str = ""
    is_terminating: bool = False
    is_virtual: bool = False
    codec: Codec | None = None

    @property
    def collection(self) -> tuple[str, str]:
        """Return group and plural of the store's collection."""
        return self.codec.collection if self.codec else (self.group, self.plural)

    def gvk(self, version: str) -> Gvk:
        """Return group, version and kind."""
        return Gvk(group=self.group, version=version, kind=self.kind)

    def gvr(self, version: str) -> Gvr:
        """Return group, version and plural name."""
        return Gvr(group=self.group, version=version, resource=self.plural)

    def api_version(self, version: str) -> str:
        """Return `group/version`, or the version alone in the core group."""
        return f"{self.group}/{version}" if self.group else version

    def fields(self, obj: JsonView) -> dict[str, str]:
        """Return the values of the selectable fields of an object in the storage version."""
        metadata = obj["metadata"]
        values = {"metadata.name": metadata["name"]}
        if self.namespaced:
            values["metadata.namespace"] = metadata.get("namespace", "")
        for name, extract in self.selectable.items():
            value = extract(obj)
            if value is None:
                values[name] = ""
            elif isinstance(value, bool):
                values[name] = "true" if value else "false"
            else:
                values[name] = str(value)
        return values


def dig(*path: str) -> Extract:
    """Return an extractor that follows object keys and gives None where one is missing."""

    def extract(obj: JsonView) -> Any:
        value: Any = obj
        for part in path:
            if not isinstance(value, Mapping):
                return None
            value = value.get(part)
        return value

    return extract
