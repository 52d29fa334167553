"""No JSON, however odd, gets more out of the parts than a result or an `ApiError`."""

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.local.merge.worlds import NOW, THING

from sluice.local.apiserver.kinds.builtin import type_schema
from sluice.local.apiserver.seams import FieldWriter, PatchType, TypeSchema
from sluice.local.apiserver.status import ApiError
from sluice.local.merge import Merger
from sluice.local.schema import CompiledSchema, Compiler

JOB = type_schema("batch", "v1", "Job")
COMPILED = {schema.kind: Compiler().compile(schema) for schema in (THING, JOB)}
NAMES = st.sampled_from(
    ["spec", "status", "metadata", "labels", "managedFields", "ownerReferences", "finalizers",
     "template", "containers", "name", "ports", "env", "map", "set", "struct", "free", "atomic",
     "$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers",
     "conditions", "selector", "matchLabels", "tolerations", "resources", "requests", "operation",
     "fieldsType", "fieldsV1", "f:spec", "k:{}", "v:1", "volumes", "suspend", "completions"]
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 2**40), st.floats(-5, 5),
    st.sampled_from(["", "x", "delete", "replace", "Apply", "Update", "FieldsV1", "1Gi"]),
)  # fmt: skip
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=14,
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=4).map(
    lambda body: {
        **body,
        "metadata": {**(body["metadata"] if isinstance(body.get("metadata"), dict) else {}),
                     "name": "x"},
    }
)  # fmt: skip
WRITER = FieldWriter(manager="m", subresource="", now=NOW, ignored=(("status",),))


def settled(compiled: CompiledSchema, obj: Any) -> dict[str, Any] | None:
    """Return an object as a server would hold it, None when it would not take it."""
    obj = copy.deepcopy(obj)
    try:
        compiled.prune(obj)
        compiled.default(obj)
        found = compiled.validate(obj, None)
    except ApiError:
        return None
    return None if found else obj


@pytest.mark.slow
@pytest.mark.parametrize("schema", [THING, JOB], ids=["custom", "built-in"])
@given(first=OBJECTS, second=OBJECTS, body=JSON, force=st.booleans())
@settings(max_examples=100, deadline=None)
def test_any_input(schema: TypeSchema, first: Any, second: Any, body: Any, force: bool) -> None:
    compiled, merger = COMPILED[schema.kind], Merger()
    live = settled(compiled, first)
    if live is None:
        live = {"apiVersion": schema.api_version, "kind": schema.kind, "metadata": {"name": "x"}}
    before = copy.deepcopy(live)
    for kind in PatchType:
        try:
            patched = merger.patch(kind, live, copy.deepcopy(body), schema)
        except ApiError:
            continue
        assert isinstance(patched, dict)
    assert live == before
    new = settled(compiled, second)
    if new is not None:
        merger.record_update(live, new, schema, WRITER)
    with contextlib.suppress(ApiError):
        merger.apply(live, copy.deepcopy(second), schema, WRITER, force=force)
    assert live == before
