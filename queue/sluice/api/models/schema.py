"""Annotations that carry Kubernetes schema extensions on a field's type.

Pydantic's own constraints cover bounds, patterns and enums; list types, CEL rules and formats exist
only in a CustomResourceDefinition. These annotations add them to the generated JSON schema and have
no effect on validation in Python. Used by the models of this package and read by `sluice.api.crds`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

REQUIRED_MARK: Final = "x-sluice-required"
"""Set on a field that the CRD requires although it has a default (defaulting runs first)."""

POD_TEMPLATE_MARK: Final = "x-sluice-pod-template"
"""Set on the node that the CRD generator replaces by the schema of core's PodTemplateSpec."""

VALIDATIONS: Final = "x-kubernetes-validations"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_MAP_KEYS: Final = "x-kubernetes-list-map-keys"
MAP_TYPE: Final = "x-kubernetes-map-type"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"


@dataclass(frozen=True, slots=True, eq=False)
class Extension:
    """Entries added to the JSON schema of the annotated type."""

    entries: Mapping[str, Any]

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the type's schema with the entries beside it (also beside a `$ref`)."""
        return {**handler(core_schema), **self.entries}


def cel(rule: str, message: str, *, reason: str | None = None) -> dict[str, Any]:
    """Return one CEL rule of `x-kubernetes-validations`.

    Args:
        rule: The CEL expression; false refuses the object.
        message: What the user reads.
        reason: A machine-readable cause; Kubernetes takes FieldValueInvalid when absent.
    """
    entry: dict[str, Any] = {"rule": rule, "message": message}
    if reason is not None:
        entry["reason"] = reason
    return entry


def rules(*entries: dict[str, Any]) -> Extension:
    """Attach CEL rules to a field (a list or a scalar)."""
    return Extension({VALIDATIONS: list(entries)})


def object_rules(*entries: dict[str, Any]) -> ConfigDict:
    """Attach CEL rules to a model: `model_config = object_rules(cel(...), ...)`."""
    return ConfigDict(json_schema_extra={VALIDATIONS: list(entries)})


def map_list(*keys: str) -> Extension:
    """Mark a list whose items are merged and kept unique by the given keys."""
    return Extension({LIST_TYPE: "map", LIST_MAP_KEYS: list(keys)})


def default_of(value: Mapping[str, Any] | Sequence[Any]) -> Extension:
    """Set the CRD default of a field whose Python default is a factory."""
    return Extension({"default": value})


ATOMIC_LIST: Final = Extension({LIST_TYPE: "atomic"})
SET_LIST: Final = Extension({LIST_TYPE: "set"})
ATOMIC_MAP: Final = Extension({MAP_TYPE: "atomic"})
REQUIRED: Final = Extension({REQUIRED_MARK: True})
POD_TEMPLATE: Final = Extension({POD_TEMPLATE_MARK: True})
