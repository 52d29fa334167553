"""Who owns which field: updates and server-side applies recorded in managedFields.

The algorithm is Kubernetes' (structured merge and diff), with one approximation: entries written
in another version of the API are compared by path without converting them (docs/embedded.md).
Called by `merger`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from sluice.local.apiserver.seams import FieldWriter, Json, JsonView
from sluice.local.apiserver.status import ApiError, Cause, apply_conflict, invalid
from sluice.local.merge import managed, paths, typed
from sluice.local.merge.managed import Managed, Manager, Owned
from sluice.local.merge.paths import EMPTY, FieldSet, Tree
from sluice.local.merge.shapes import misshapen
from sluice.local.schema.causes import type_invalid
from sluice.local.schema.structural import MISSING, Node

_STRIPPED: Final[FieldSet] = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName",
                "generation", "managedFields", "resourceVersion",
            )
        ),
    }
)  # fmt: skip
"""Fields that nobody owns."""
_BEFORE_FIRST_APPLY: Final = "before-first-apply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a write is about: the kind's schema and version."""

    root: Node
    api_version: str
    is_builtin: bool


def _ignored(writer: FieldWriter) -> FieldSet:
    return frozenset(tuple(paths.field(name) for name in path) for path in writer.ignored)


def _plain(obj: JsonView | None, subject: Subject) -> Json:
    """Return the object without its managedFields, or the empty object of its kind."""
    if obj is None:
        empty: Json = {"apiVersion": subject.api_version}
        return empty
    metadata = {k: v for k, v in (obj.get("metadata") or {}).items() if k != "managedFields"}
    return {**obj, "metadata": metadata}


def _entries(obj: JsonView | None) -> Any:
    return ((obj or {}).get("metadata") or {}).get("managedFields")


def record_update(live: JsonView | None, new: Json, subject: Subject, writer: FieldWriter) -> None:
    """Record in `new` who owns its fields after a create, update or patch; see `seams.Merger`."""
    given = _entries(new)
    if given == [{}]:
        _store(new, {})
        return
    try:
        before = managed.decode(given)
    except (ValueError, TypeError):
        before = {}
    if not before:
        before = managed.decode(_entries(live))
    if not before and live is not None:
        # Ownership was cleared: nothing is tracked until somebody applies.
        _store(new, {})
        return
    if misshapen(_plain(new, subject), subject.root, allows_duplicates=True):
        # Validation will refuse it, unless the misshapen part is not taken from this writer.
        _store(new, {})
        return
    me = Manager.of(writer.manager, managed.UPDATE, writer.subresource, subject.api_version)
    after = _updated(_plain(live, subject), _plain(new, subject), subject, before, me, writer)
    _store(new, after)


def _updated(
    live: Json, new: Json, subject: Subject, before: Managed, me: Manager, writer: FieldWriter
) -> Managed:
    difference = typed.compare(live, new, subject.root, is_builtin=subject.is_builtin)
    ignored = _ignored(writer)
    others = _released(before, difference.without(ignored), me)
    changed = frozenset(difference.added | difference.modified)
    mine = before.get(me)
    owned = (mine.fields if mine else EMPTY) - difference.removed | changed
    owned = paths.without_prefixes(owned, ignored) - _STRIPPED
    others.pop(me, None)
    if owned:
        is_same = mine is not None and mine.fields == owned
        time = mine.time if mine is not None and is_same else writer.now
        others[me] = Owned(fields=owned, api_version=subject.api_version, time=time)
    return managed.fold_oldest(others)


def _released(before: Managed, difference: typed.Difference, me: Manager) -> Managed:
    """Return the managers without what a write has taken from the others or removed."""
    taken = difference.added | difference.modified | difference.removed
    out: Managed = {}
    for manager, owned in before.items():
        if manager == me:
            out[manager] = owned
            continue
        rest = owned.fields - taken
        if rest:
            out[manager] = replace(owned, fields=rest)
    return out


def _store(obj: Json, entries: Managed) -> None:
    metadata = obj.setdefault("metadata", {})
    if entries:
        metadata["managedFields"] = managed.encode(entries)
    else:
        metadata.pop("managedFields", None)


def apply(
    live: JsonView | None, config: Json, subject: Subject, writer: FieldWriter, *, force: bool
) -> Json:
    """Return the live object with a configuration applied and recorded; see `seams.Merger`."""
    before = _managed_before(live, subject, writer)
    me = Manager.of(writer.manager, managed.APPLY, writer.subresource, subject.api_version)
    current = _plain(live, subject)
    applied = _plain(config, subject)
    _refuse_misshapen(applied, subject)
    ignored = _ignored(writer)
    mine = paths.without_prefixes(typed.field_set(applied, subject.root), ignored)
    previous = before.get(me)
    after = dict(before)
    after[me] = Owned(fields=mine, api_version=subject.api_version, time=writer.now)
    merged: Json = typed.merge(current, applied, subject.root)
    if previous is not None and previous.fields:
        merged = _pruned(merged, previous.fields, after, subject.root)
    difference = typed.compare(current, merged, subject.root, is_builtin=subject.is_builtin)
    difference = difference.without(ignored)
    if not force:
        _refuse_conflicts(after, difference, me)
    if not subject.is_builtin:
        _refuse_nulls(merged, subject, writer)
    result = _released(after, difference, me)
    owned = mine - _STRIPPED
    result.pop(me, None)
    if owned:
        is_same = previous is not None and previous.fields == owned
        is_noop = is_same and not _has_changes(difference)
        time = previous.time if previous is not None and is_noop else writer.now
        result[me] = Owned(fields=owned, api_version=subject.api_version, time=time)
    _store(merged, result)
    return merged


def _has_changes(difference: typed.Difference) -> bool:
    return bool(difference.added or difference.modified or difference.removed)


def _managed_before(live: JsonView | None, subject: Subject, writer: FieldWriter) -> Managed:
    """Return the live object's managers; fields nobody owned belong to an early updater."""
    before = managed.decode(_entries(live))
    if before or live is None:
        return before
    early = Manager.of(_BEFORE_FIRST_APPLY, managed.UPDATE, writer.subresource, subject.api_version)
    nothing = _plain(None, subject)
    return _updated(nothing, _plain(live, subject), subject, {}, early, writer)


def _pruned(merged: Json, previous: FieldSet, after: Managed, root: Node) -> Json:
    """Remove what this applier applied last time, not this time, and nobody else owns."""

    def named(found: FieldSet) -> FieldSet:
        return typed.with_named_fields(found, root)

    def without(found: FieldSet) -> Any:
        rest = typed.remove(merged, Tree.of(found), root)
        return {} if rest is MISSING else rest

    last = named(previous)
    everything = named(typed.field_set(merged, root))
    claimed = named(frozenset().union(*(owned.fields for owned in after.values())))
    left = named(typed.field_set(without(last), root))
    restored = without(everything - (left | claimed))
    kept = named(typed.field_set(restored, root))
    result: Json = without((everything - kept) & last)
    return result


def _refuse_conflicts(after: Managed, difference: typed.Difference, me: Manager) -> None:
    changed = difference.added | difference.modified
    causes = []
    for manager in sorted(after, key=lambda m: (m.name, m.operation, m.subresource)):
        if manager == me:
            continue
        owned = after[manager]
        for path in sorted(owned.fields & changed):
            causes.append(
                Cause(
                    reason="FieldManagerConflict",
                    message=f"conflict with {_named(manager, owned)}",
                    field=paths.show(path),
                )
            )
    if causes:
        raise apply_conflict(causes)


def _named(manager: Manager, owned: Owned) -> str:
    text = paths.compact(manager.name)
    if manager.subresource:
        text = f"{text} with subresource {paths.compact(manager.subresource)}"
    if manager.operation == managed.UPDATE:
        text = f"{text} using {owned.api_version}"
        if owned.time:
            text = f"{text} at {owned.time}"
    return text


def _refuse_nulls(merged: Json, subject: Subject, writer: FieldWriter) -> None:
    """Refuse nulls that an apply leaves where none are taken; other writes just drop them.

    Raises:
        ApiError: 422, as if validated.
    """
    is_status = writer.subresource == "status"
    taken = {"status": merged.get("status")} if is_status else {
        name: value for name, value in merged.items() if name not in ("metadata", "status")
    }  # fmt: skip
    causes = []
    for path, node in typed.nulls(taken, subject.root):
        if path == "status":
            continue
        shown = path.removeprefix("status.") if is_status else path
        detail = f'{shown} in body must be of type {node.type}: "null"'
        causes.append(type_invalid(path, "null", detail))
    if causes:
        group = subject.api_version.partition("/")[0]
        name = (merged.get("metadata") or {}).get("name", "")
        raise invalid(group, str(merged.get("kind", "")), name, causes)


def _refuse_misshapen(applied: Json, subject: Subject) -> None:
    """Refuse a configuration that does not fit the schema, as Kubernetes does: with a 500.

    Raises:
        ApiError: It does not fit.
    """
    problems = misshapen(applied, subject.root)
    if not problems:
        return
    metadata = applied.get("metadata") or {}
    what = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    kind = f"{subject.api_version}, Kind={applied.get('kind', '')}"
    listed = (
        problems[0]
        if len(problems) == 1
        else "errors:\n" + "\n".join(f"  {problem}" for problem in problems)
    )
    # Kubernetes gives this failure no reason; its code is that of an internal error.
    raise ApiError("", f"failed to create typed patch object ({what}; {kind}): {listed}", code=500)
