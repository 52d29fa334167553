"""The seams of the embedded API server: what it asks of schemas, merges, admission and conversion.

The server owns HTTP, storage and the order of steps; the pure parts behind these protocols know
no HTTP. `sluice.local.schema` implements `SchemaCompiler`, `sluice.local.merge` implements
`Merger`, and `sluice.local.admission` implements `Admission` and `Converter`. All of them raise
`sluice.local.apiserver.status.ApiError`. The server calls them in this order for a write:

1. patch: `Merger.patch` or `Merger.apply` on the live object, converted to the request's version;
2. `ObjectSchema.prune` (unknown fields), `ObjectSchema.default`;
3. `Merger.record_update` (not after an apply, which has recorded its own entry);
4. `Admission.mutate`; when it changed the object, step 2 again;
5. system fields of metadata (uid, generation, ...), then `ObjectSchema.validate`;
6. `Admission.validate`, conversion to the storage version, commit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from sluice.local.apiserver.status import Cause

Json = dict[str, Any]
"""A JSON object that the receiver may change: it is a copy of its own."""

JsonView = Mapping[str, Any]
"""A JSON object that the receiver only reads, at any depth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSchema:
    """The OpenAPI v3 schema of one kind in one version.

    For a CRD, `root` is `spec.versions[].schema.openAPIV3Schema` and `definitions` is empty. For
    a built-in kind a node may be `{"$ref": NAME, ...}`, where NAME is a key of `definitions`
    (plain name, no `#/components` prefix); other keys beside `$ref` (default, x-kubernetes-*) add
    to the target's. Built-in nodes carry `x-kubernetes-list-type`, `x-kubernetes-list-map-keys`,
    `x-kubernetes-map-type`, `x-kubernetes-patch-merge-key` and `x-kubernetes-patch-strategy`.
    `metadata` of a CRD's root is always ObjectMeta, whatever its node says.
    """

    group: str
    version: str
    kind: str
    root: JsonView
    definitions: Mapping[str, JsonView]
    is_builtin: bool

    @property
    def api_version(self) -> str:
        """Return `group/version`, or the version alone in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


class ObjectSchema(Protocol):
    """A compiled schema of one kind in one version."""

    @property
    def source(self) -> TypeSchema:
        """What it was compiled from."""
        ...

    def prune(self, obj: Json) -> Sequence[str]:
        """Drop unspecified fields in place (also of embedded objects) and return their paths.

        Paths are Kubernetes' (`spec.podSets[0].foo`); the server makes `unknown field "PATH"` of
        them. `apiVersion`, `kind` and `metadata` of the root are kept; unknown fields of
        ObjectMeta are dropped and reported too.
        """
        ...

    def default(self, obj: Json) -> None:
        """Fill in the schema's defaults in place (and drop nulls that a default replaces)."""
        ...

    def validate(self, new: JsonView, old: JsonView | None) -> Sequence[Cause]:
        """Return what is wrong with an object: types, bounds, enums, required fields, CEL.

        Args:
            new: The object to be stored, in this version.
            old: The stored object in this version; None on create. Transition rules
                (`oldSelf`) and ratcheting need it.
        """
        ...


class SchemaCompiler(Protocol):
    """Compiles schemas; kept for the life of a CRD version or built-in kind."""

    def compile(self, schema: TypeSchema) -> ObjectSchema:
        """Return the compiled schema.

        Raises:
            ApiError: 422 with causes when the schema is not structural or a CEL rule does not
                compile; the CRD is then refused.
        """
        ...


class PatchType(StrEnum):
    """Content types of PATCH bodies that are merged without ownership."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldWriter:
    """Who writes which part of an object, for managedFields.

    Attributes:
        manager: `fieldManager`, or what stands before the first `/` of the user agent.
        subresource: "" or "status", ... ; part of the identity of a managedFields entry.
        now: RFC 3339 time with seconds, for the entry's `time`.
        ignored: Field paths whose values this endpoint does not take from the writer, so it
            never owns them: `(("status",),)` on the main resource, `(("spec",), ...)` on status.
    """

    manager: str
    subresource: str
    now: str
    ignored: tuple[tuple[str, ...], ...] = ()


class Merger(Protocol):
    """Patches of all content types, and ownership of fields."""

    def patch(self, kind: PatchType, live: JsonView, body: Any, schema: TypeSchema) -> Json:
        """Return the patched object; `live` stays as it is.

        Raises:
            ApiError: 400 for a body that is no patch, 415 for a strategic merge patch of a
                custom resource, 422 for a JSON patch that does not apply.
        """
        ...

    def apply(
        self,
        live: JsonView | None,
        config: Json,
        schema: TypeSchema,
        writer: FieldWriter,
        *,
        force: bool,
    ) -> Json:
        """Server-side apply: merge a configuration by ownership, and record it in managedFields.

        Args:
            live: The object in the configuration's version, with its managedFields; None when
                the apply creates it.
            config: The applied configuration, pruned, not defaulted.
            force: Take over fields of other managers instead of failing.

        Raises:
            ApiError: 409 `Conflict` with a cause for each field of another manager
                (`status.apply_conflict`), 400 for a configuration with managedFields.
        """
        ...

    def record_update(
        self, live: JsonView | None, new: Json, schema: TypeSchema, writer: FieldWriter
    ) -> None:
        """Set `new.metadata.managedFields` after a create, update or patch.

        Fields whose values differ from `live` become the writer's; removed fields leave every
        entry. Entries of `live` are taken when `new` carries none; `managedFields: [{}]` in
        `new` clears them, as in Kubernetes.
        """
        ...


class Operation(StrEnum):
    """Wire values of an AdmissionReview's operation."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gvk:
    """Group, version and kind."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """Return `group/version`, or the version alone in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass(frozen=True, slots=True, kw_only=True)
class Gvr:
    """Group, version and plural resource name."""

    group: str
    version: str
    resource: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserInfo:
    """Who sent a request, as the AdmissionReview names it."""

    username: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    def to_json(self) -> Json:
        """Return `request.userInfo` of an AdmissionReview."""
        info: Json = {"username": self.username, "groups": list(self.groups)}
        if self.uid:
            info["uid"] = self.uid
        return info


Convert = Callable[[Json, str], Awaitable[Json]]
"""Convert an object of the request's resource to another apiVersion of the same group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """One write, as admission sees it.

    `obj` is None on DELETE; `old_obj` is None on CREATE. `equivalents` are the other served
    versions of the same resource with their kinds, for `matchPolicy: Equivalent`; `convert` gives
    an object in one of them. Whoever handles the request appends to `warnings`; the server sends
    each as a `Warning` header.
    """

    operation: Operation
    kind: Gvk
    resource: Gvr
    subresource: str
    namespace: str
    name: str
    obj: Json | None
    old_obj: JsonView | None
    options: JsonView
    dry_run: bool
    user: UserInfo
    equivalents: tuple[tuple[Gvr, Gvk], ...] = ()
    convert: Convert | None = None
    warnings: list[str] = field(default_factory=list)


class Cluster(Protocol):
    """What admission and conversion read from the server's storage; never a copy to change."""

    def webhook_configurations(self, plural: str) -> tuple[int, Sequence[JsonView]]:
        """Return (resourceVersion of the newest change, objects sorted by name).

        Args:
            plural: `mutatingwebhookconfigurations` or `validatingwebhookconfigurations`.
        """
        ...

    def namespace(self, name: str) -> JsonView | None:
        """Return a Namespace, or None when there is none of that name."""
        ...


class Admission(Protocol):
    """Calls of admission webhooks."""

    async def mutate(self, request: AdmissionRequest) -> Json | None:
        """Return the object after all mutating webhooks (the same object when none changed it).

        Raises:
            ApiError: A webhook denied the request, or failed under `failurePolicy: Fail`.
        """
        ...

    async def validate(self, request: AdmissionRequest) -> None:
        """Call all validating webhooks.

        Raises:
            ApiError: As in `mutate`.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class Converter(Protocol):
    """Conversion of custom resources by webhook (strategy None is done by the server)."""

    async def convert(
        self, conversion: JsonView, objects: Sequence[Json], desired_api_version: str
    ) -> list[Json]:
        """Return the objects in another version, in the same order.

        Args:
            conversion: `spec.conversion` of the CRD, of strategy Webhook.
            objects: Objects of one or more other versions of the CRD.
            desired_api_version: `group/version`.

        Raises:
            ApiError: 500 with Kubernetes' text when the webhook fails or answers nonsense.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The implementations a server is built with; `admission` and `converter` get its storage."""

    schemas: SchemaCompiler
    merger: Merger
    admission: Callable[[Cluster], Admission]
    converter: Callable[[Cluster], Converter]
