"""Patches that need no schema: RFC 6902 JSON Patch and RFC 7386 JSON Merge Patch.

Called by `merger`, and by admission for the patches that webhooks answer with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonpatch
import jsonpointer

from sluice.local.schema.defaulting import copy_json


class PatchMalformed(Exception):
    """The patch is none: not a list of operations, an unknown operation, a missing member."""


class PatchRefused(Exception):
    """The patch does not apply: a path that isn't there, a test that fails."""


def apply_json_patch(document: Any, operations: Any) -> Any:
    """Return the document with a list of RFC 6902 operations applied; inputs stay as they are.

    Raises:
        PatchMalformed: The operations can't be understood.
        PatchRefused: One of them does not apply.
    """
    if not isinstance(operations, list):
        raise PatchMalformed("a JSON patch is a list of operations")
    try:
        patch = jsonpatch.JsonPatch(operations)
        return patch.apply(copy_json(document))
    except jsonpatch.InvalidJsonPatch as error:
        raise PatchMalformed(str(error)) from error
    except (jsonpatch.JsonPatchConflict, jsonpatch.JsonPatchTestFailed) as error:
        raise PatchRefused(str(error)) from error
    except (jsonpointer.JsonPointerException, TypeError, KeyError, IndexError) as error:
        raise PatchRefused(f"a path does not exist in the document: {error}") from error


def apply_merge_patch(document: Any, patch: Any) -> Any:
    """Return the document with an RFC 7386 merge patch applied; inputs stay as they are."""
    if not isinstance(patch, Mapping):
        return copy_json(patch)
    result = dict(document) if isinstance(document, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = apply_merge_patch(result.get(name), value)
    return result
