"""Core's PodTemplateSpec as a structural schema.

The caller passes what `V1PodTemplateSpec.model_json_schema()` of the Kubernetes client gives, so
that this package needs no Kubernetes client. Metadata keeps only what docs/spec/api.md 1.4 says.
Descriptions are left out: they are the Kubernetes documentation's (`kubectl explain pod.spec` shows
them) and would triple the size of the CRD.
"""

from typing import Any, Final

from sluice.api.crds.structural import Schema, structural
from sluice.api.models.base import QUANTITY_PATTERN
from sluice.api.models.schema import INT_OR_STRING

_TEXT: Final[Schema] = {"type": "string"}
_TEXT_MAP: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
EMBEDDED_METADATA: Final[Schema] = {
    "type": "object",
    "properties": {
        "annotations": _TEXT_MAP,
        "finalizers": {"type": "array", "items": _TEXT},
        "labels": _TEXT_MAP,
        "name": _TEXT,
        "namespace": _TEXT,
    },
}
"""Metadata inside a template; the API server prunes the rest."""

_QUANTITY: Final[Schema] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": QUANTITY_PATTERN,
    INT_OR_STRING: True,
}
_PORT: Final[Schema] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    INT_OR_STRING: True,
}
_QUANTITY_MAP: Final[Schema] = {"type": "object", "additionalProperties": _QUANTITY}

_OVERRIDES: Final[dict[tuple[str, str], Schema]] = {
    # The client has quantities as plain strings.
    ("V1ResourceRequirements", "limits"): _QUANTITY_MAP,
    ("V1ResourceRequirements", "requests"): _QUANTITY_MAP,
    ("V1VolumeResourceRequirements", "limits"): _QUANTITY_MAP,
    ("V1VolumeResourceRequirements", "requests"): _QUANTITY_MAP,
    ("V1PodSpec", "overhead"): _QUANTITY_MAP,
    ("V1EmptyDirVolumeSource", "sizeLimit"): _QUANTITY,
    ("V1ResourceFieldSelector", "divisor"): _QUANTITY,
    # The client takes any value for a port that may be a number or a name.
    ("V1HTTPGetAction", "port"): _PORT,
    ("V1TCPSocketAction", "port"): _PORT,
}
"""(definition, property) -> its schema, where the client's types say too little."""

_INT64_PROPERTIES: Final = frozenset(
    {
        "activeDeadlineSeconds",
        "expirationSeconds",
        "fsGroup",
        "runAsGroup",
        "runAsUser",
        "seconds",
        "supplementalGroups",
        "terminationGracePeriodSeconds",
        "tolerationSeconds",
    }
)
"""Integers of a pod spec that have 64 bits; all others have 32. The client doesn't say."""


def pod_template(core: Schema) -> Schema:
    """Return the structural schema of a pod template.

    Args:
        core: The JSON schema of the client's `V1PodTemplateSpec`, by alias.

    Raises:
        NotStructural: The client's types changed in a way that a CRD can't express.
    """
    definitions = {name: _adjusted(name, d) for name, d in core["$defs"].items()}
    definitions["V1ObjectMeta"] = EMBEDDED_METADATA
    bare = _without_descriptions({**core, "$defs": definitions})
    return structural(bare, pod_template={})


def _adjusted(name: str, definition: Schema) -> Schema:
    properties = {
        prop: _OVERRIDES.get((name, prop)) or _with_width(prop, schema)
        for prop, schema in definition.get("properties", {}).items()
    }
    return {**definition, "properties": properties}


def _with_width(name: str, schema: Any) -> Any:
    """Add the integer width to every integer below a property."""
    if isinstance(schema, dict):
        widened = {key: _with_width(name, value) for key, value in schema.items()}
        if schema.get("type") == "integer":
            widened["format"] = "int64" if name in _INT64_PROPERTIES else "int32"
        return widened
    if isinstance(schema, list):
        return [_with_width(name, item) for item in schema]
    return schema


def _without_descriptions(node: Any, *, names: bool = False) -> Any:
    """Drop descriptions; `names` says that the keys here are property names, not keywords."""
    if isinstance(node, dict):
        return {
            key: _without_descriptions(value, names=key in ("properties", "$defs") and not names)
            for key, value in node.items()
            if names or key != "description"
        }
    if isinstance(node, list):
        return [_without_descriptions(item) for item in node]
    return node
