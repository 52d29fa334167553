"""Patches and field ownership for the embedded API server: its `Merger`.

Translates the outcomes of this package into the Status errors that an API server answers with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from sluice.local.apiserver.seams import FieldWriter, Json, JsonView, PatchType, TypeSchema
from sluice.local.apiserver.status import ApiError, Reason, bad_request
from sluice.local.merge import ownership
from sluice.local.merge.documents import (
    PatchMalformed,
    PatchRefused,
    apply_json_patch,
    apply_merge_patch,
)
from sluice.local.merge.ownership import Subject
from sluice.local.merge.strategic import apply_strategic_patch
from sluice.local.schema.objectmeta import object_meta
from sluice.local.schema.structural import Node, compile_nodes

_UNPROCESSABLE = "the server rejected our request due to an error in our request"


class Merger:
    """Merges patches and records ownership (`seams.Merger`)."""

    def __init__(self) -> None:
        self._roots: dict[tuple[str, str, str], tuple[TypeSchema, Node]] = {}

    def patch(self, kind: PatchType, live: JsonView, body: Any, schema: TypeSchema) -> Json:
        """Return the patched object; see `seams.Merger`."""
        try:
            patched = self._patched(kind, live, body, schema)
        except PatchMalformed as error:
            raise bad_request(f"error decoding patch: {error}") from error
        except PatchRefused as error:
            if kind is PatchType.STRATEGIC:
                raise ApiError("", str(error), code=500) from error
            cause = {"reason": "UnexpectedServerResponse", "message": str(error)}
            raise ApiError(Reason.INVALID, _UNPROCESSABLE, details={"causes": [cause]}) from error
        if not isinstance(patched, dict):
            raise bad_request("the patched document is not an object")
        return patched

    def _patched(self, kind: PatchType, live: JsonView, body: Any, schema: TypeSchema) -> Any:
        match kind:
            case PatchType.JSON:
                return apply_json_patch(dict(live), body)
            case PatchType.MERGE:
                if not isinstance(body, Mapping):
                    raise PatchMalformed("a merge patch is an object")
                return apply_merge_patch(live, body)
            case PatchType.STRATEGIC:
                if not schema.is_builtin:
                    raise _unsupported()
                return apply_strategic_patch(live, body, self._root(schema))
            case _:
                assert_never(kind)

    def apply(
        self,
        live: JsonView | None,
        config: Json,
        schema: TypeSchema,
        writer: FieldWriter,
        *,
        force: bool,
    ) -> Json:
        """Merge an applied configuration by ownership; see `seams.Merger`."""
        if (config.get("metadata") or {}).get("managedFields") is not None:
            raise bad_request("metadata.managedFields must be nil")
        return ownership.apply(live, config, self._subject(schema), writer, force=force)

    def record_update(
        self, live: JsonView | None, new: Json, schema: TypeSchema, writer: FieldWriter
    ) -> None:
        """Record ownership after a create, update or patch; see `seams.Merger`."""
        ownership.record_update(live, new, self._subject(schema), writer)

    def _subject(self, schema: TypeSchema) -> Subject:
        return Subject(
            root=self._root(schema), api_version=schema.api_version, is_builtin=schema.is_builtin
        )

    def _root(self, schema: TypeSchema) -> Node:
        key = (schema.group, schema.version, schema.kind)
        known = self._roots.get(key)
        if known is not None and known[0] is schema:
            return known[1]
        root = compile_nodes(schema.root, schema.definitions, is_builtin=schema.is_builtin)
        if not schema.is_builtin:
            text = Node(type="string")
            root.properties = {**root.properties, "apiVersion": text, "kind": text}
            root.properties["metadata"] = object_meta()
        self._roots[key] = (schema, root)
        return root


def _unsupported() -> ApiError:
    return ApiError(
        Reason.UNSUPPORTED_MEDIA_TYPE,
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, "
        "application/apply-patch+yaml",
    )
