"""A kind with every list and map type, and the steps of a write that surround merging."""

from typing import Any

from sluice.local.apiserver.seams import FieldWriter, TypeSchema
from sluice.local.merge import Merger
from sluice.local.schema import Compiler

TEXT = {"type": "string"}
ITEM = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": TEXT, "size": {"type": "integer"}, "note": TEXT},
}
SPEC = {
    "type": "object",
    "properties": {
        "text": TEXT,
        "other": TEXT,
        "count": {"type": "integer", "default": 1},
        "atomic": {"type": "array", "items": TEXT},
        "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "map": {
            "type": "array", "items": ITEM, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "labels": {"type": "object", "additionalProperties": TEXT},
        "whole": {
            "type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"
        },
        "struct": {"type": "object", "properties": {"a": TEXT, "b": TEXT}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}  # fmt: skip
ROOT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "apiVersion": TEXT, "kind": TEXT, "metadata": {"type": "object"}, "spec": SPEC,
        "status": SPEC,
    },
}  # fmt: skip
GROUP, VERSION, KIND, PLURAL = "merge.example.com", "v1", "Thing", "things"
API_VERSION = f"{GROUP}/{VERSION}"
THING = TypeSchema(
    group=GROUP, version=VERSION, kind=KIND, root=ROOT, definitions={}, is_builtin=False
)
NOW = "2026-01-01T00:00:00Z"


def thing(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """Return an object of the kind."""
    obj: dict[str, Any] = {
        "apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "x", **metadata}
    }  # fmt: skip
    if spec is not None:
        obj["spec"] = spec
    return obj


class Writes:
    """One object and the writes to it, in the order in which a server runs its steps."""

    def __init__(self) -> None:
        self.merger = Merger()
        self.schema = Compiler().compile(THING)
        self.live: dict[str, Any] | None = None

    def _writer(self, manager: str, subresource: str) -> FieldWriter:
        ignored = (("spec",), ("metadata",)) if subresource else (("status",),)
        return FieldWriter(manager=manager, subresource=subresource, now=NOW, ignored=ignored)

    def _store(self, new: dict[str, Any], subresource: str) -> dict[str, Any]:
        if self.live is not None:
            kept = "spec" if subresource else "status"
            new.pop(kept, None)
            if kept in self.live:
                new[kept] = self.live[kept]
            if subresource:
                fields = new["metadata"].get("managedFields")
                new["metadata"] = {**self.live["metadata"], "managedFields": fields}
                if fields is None:
                    del new["metadata"]["managedFields"]
        elif not subresource:
            new.pop("status", None)
        self.live = new
        return new

    def update(self, manager: str, new: dict[str, Any], subresource: str = "") -> dict[str, Any]:
        """Create or replace the object."""
        self.schema.prune(new)
        self.schema.default(new)
        self.merger.record_update(self.live, new, THING, self._writer(manager, subresource))
        return self._store(new, subresource)

    def apply(
        self, manager: str, config: dict[str, Any], subresource: str = "", *, force: bool = False
    ) -> dict[str, Any]:
        """Apply a configuration."""
        self.schema.prune(config)
        writer = self._writer(manager, subresource)
        new = self.merger.apply(self.live, config, THING, writer, force=force)
        self.schema.default(new)
        return self._store(new, subresource)

    def owned(self, manager: str, operation: str, subresource: str = "") -> Any:
        """Return the fields of one entry, None when there is none."""
        assert self.live is not None
        for entry in self.live["metadata"].get("managedFields") or ():
            key = (entry["manager"], entry["operation"], entry.get("subresource", ""))
            if key == (manager, operation, subresource):
                return entry["fieldsV1"]
        return None
