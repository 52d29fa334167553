"""`metadata.managedFields`: decoding, encoding, and the limit on entries. Called by `ownership`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice.local.merge import paths
from sluice.local.merge.paths import FieldSet

APPLY: Final = "Apply"
UPDATE: Final = "Update"
UPDATE_ENTRIES_MAX: Final = 10
"""Kubernetes keeps so many Update entries and folds the oldest ones into one."""
_ANCIENT: Final = "ancient-changes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """Who owns fields: the identity of an entry. An applier is the same in every version."""

    name: str
    operation: str
    subresource: str
    api_version: str = ""

    @staticmethod
    def of(name: str, operation: str, subresource: str, api_version: str) -> Manager:
        """Return the identity for an entry of an API version."""
        return Manager(
            name=name or "unknown",
            operation=operation,
            subresource=subresource,
            api_version="" if operation == APPLY else api_version,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """The fields of one manager, and when it last changed them (RFC 3339)."""

    fields: FieldSet
    api_version: str
    time: str


Managed = dict[Manager, Owned]


def decode(entries: Any) -> Managed:
    """Return the managers of an object.

    Raises:
        ValueError: An entry is malformed.
    """
    managed: Managed = {}
    for entry in entries or ():
        if not isinstance(entry, Mapping) or entry.get("operation") not in (APPLY, UPDATE):
            raise ValueError("managedFields entries need operation Apply or Update")
        if entry.get("fieldsType") != "FieldsV1":
            raise ValueError("managedFields entries need fieldsType FieldsV1")
        version = str(entry.get("apiVersion") or "")
        manager = Manager.of(
            str(entry.get("manager") or ""),
            entry["operation"],
            str(entry.get("subresource") or ""),
            version,
        )
        managed[manager] = Owned(
            fields=paths.decode(entry.get("fieldsV1") or {}),
            api_version=version,
            time=str(entry.get("time") or ""),
        )
    return managed


def encode(managed: Managed) -> list[dict[str, Any]]:
    """Return the entries in the order in which Kubernetes lists them."""
    entries = []
    for manager, owned in managed.items():
        entry: dict[str, Any] = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": owned.api_version,
        }
        if owned.time:
            entry["time"] = owned.time
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = paths.encode(owned.fields)
        if manager.subresource:
            entry["subresource"] = manager.subresource
        entries.append(entry)
    return sorted(
        entries,
        key=lambda entry: (
            entry["operation"],
            entry.get("time", ""),
            entry["manager"],
            entry["apiVersion"],
            entry.get("subresource", ""),
        ),
    )


def fold_oldest(managed: Managed) -> Managed:
    """Return the managers with at most `UPDATE_ENTRIES_MAX` updaters, the oldest ones folded."""
    updaters = sorted(
        (manager for manager in managed if manager.operation == UPDATE),
        key=lambda manager: (managed[manager].time, manager.name, manager.subresource),
    )
    count = len(updaters)
    first: dict[str, Manager] = {}
    out = dict(managed)
    for manager in updaters:
        if count <= UPDATE_ENTRIES_MAX:
            break
        owned = managed[manager]
        version = owned.api_version
        if version not in first:
            first[version] = manager
            continue
        bucket = Manager.of(_ANCIENT, UPDATE, "", version)
        older = out.pop(bucket, None) or out.pop(first[version])
        out.pop(manager, None)
        out[bucket] = replace(owned, fields=owned.fields | older.fields)
        count -= 1
    return out
