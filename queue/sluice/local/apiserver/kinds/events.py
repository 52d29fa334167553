"""Events: core/v1 and events.k8s.io/v1 show the same stored objects in two shapes.

Objects are stored in core/v1's shape, as etcd holds them in a real cluster.
"""

from __future__ import annotations

from collections.abc import Mapping

from sluice.local.apiserver.resources import Codec, Extract, dig
from sluice.local.apiserver.seams import Json, JsonView

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

_RENAMED = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""Fields of events.k8s.io/v1 that core/v1 calls otherwise."""


def _source(obj: JsonView) -> object:
    return dig("source", "component")(obj) or obj.get("reportingComponent")


def involved_fields() -> dict[str, Extract]:
    """Return the selectable fields of core/v1 events."""
    fields = {f"involvedObject.{name}": dig("involvedObject", name) for name in _INVOLVED}
    fields |= {name: dig(name) for name in ("reason", "reportingComponent", "type")}
    fields["source"] = _source
    return fields


REGARDING: Mapping[str, Extract] = {
    **{f"regarding.{name}": dig("involvedObject", name) for name in _INVOLVED},
    "reason": dig("reason"),
    "reportingController": dig("reportingComponent"),
    "type": dig("type"),
}
"""Selectable fields of events.k8s.io/v1, taken from the stored shape."""

STORED_FIELDS: Mapping[str, Extract] = {**involved_fields(), **REGARDING}
"""What the store keeps for an event, whichever API wrote it."""


def _rename(obj: Json, names: Mapping[str, str], api_version: str) -> Json:
    renamed = {names.get(key, key): value for key, value in obj.items()}
    renamed["apiVersion"] = api_version
    return renamed


def to_core(obj: Json) -> Json:
    """Return an events.k8s.io/v1 Event in core/v1's shape."""
    # Kubernetes writes these in any case, and `kubectl get events --sort-by=.lastTimestamp` shows
    # nothing at all where they are missing.
    return {"firstTimestamp": None, "lastTimestamp": None, "source": {}} | _rename(
        obj, _RENAMED, "v1"
    )


def from_core(obj: Json) -> Json:
    """Return a core/v1 Event in events.k8s.io/v1's shape."""
    return _rename(obj, {core: new for new, core in _RENAMED.items()}, "events.k8s.io/v1")


EVENTS_CODEC = Codec(collection=("", "events"), encode=to_core, decode=from_core)
