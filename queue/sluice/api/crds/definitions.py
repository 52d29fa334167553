"""CustomResourceDefinitions of Kueue's eleven kinds and of ours, built from the models.

Pure: the caller passes the schema of core's pod template and writes the result where it wants.
`sluice.cli.generate` writes them to manifests/crds; the tests read them from there.
"""

from typing import Any, Final

from sluice.api.crds.pod_template import pod_template
from sluice.api.crds.structural import Schema, structural
from sluice.api.models.kinds import KINDS, OWN_KINDS, STORED_VERSION, Column, Kind, Version

WEBHOOK_SERVICE: Final = "sluice-webhook"
WEBHOOK_NAMESPACE: Final = "sluice-system"
CONVERSION_PATH: Final = "/convert"
CONVERSION_PORT: Final = 443
DEPRECATION_WARNING: Final = f"This version is deprecated. Use {STORED_VERSION} instead."

_API_VERSION: Final[Schema] = {
    "type": "string",
    "description": "The version of the schema that this object is written in.",
}
_KIND: Final[Schema] = {"type": "string", "description": "The kind of this object."}
_METADATA: Final[Schema] = {"type": "object"}


def definitions(core_pod_template: Schema) -> tuple[Schema, ...]:
    """Return all CustomResourceDefinitions, by kind.

    Args:
        core_pod_template: The JSON schema of the Kubernetes client's `V1PodTemplateSpec`.

    Raises:
        NotStructural: A model uses something that a CRD can't express.
    """
    template = pod_template(core_pod_template)
    return tuple(definition(kind, template) for kind in (*KINDS, *OWN_KINDS))


def definition(kind: Kind, template: Schema) -> Schema:
    """Return the CustomResourceDefinition of one kind, given the structural pod template."""
    spec: Schema = {
        "group": kind.group,
        "names": {
            "kind": kind.kind,
            "listKind": f"{kind.kind}List",
            "plural": kind.plural,
            "shortNames": list(kind.short_names),
            "singular": kind.kind.lower(),
        },
        "scope": kind.scope,
        "versions": [_version(kind, version, template) for version in kind.versions],
    }
    if kind.converts:
        spec["conversion"] = _conversion()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": spec,
    }


def _conversion() -> Schema:
    # The CA bundle is not here: the manager writes it when it makes the certificates.
    service = {
        "name": WEBHOOK_SERVICE,
        "namespace": WEBHOOK_NAMESPACE,
        "path": CONVERSION_PATH,
        "port": CONVERSION_PORT,
    }
    return {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": service},
            "conversionReviewVersions": ["v1"],
        },
    }


def _version(kind: Kind, version: Version, template: Schema) -> Schema:
    out: dict[str, Any] = {"name": version.name, "served": True, "storage": version.stored}
    if version.deprecated:
        out["deprecated"] = True
        out["deprecationWarning"] = DEPRECATION_WARNING
    if version.columns:
        out["additionalPrinterColumns"] = [_column(column) for column in version.columns]
    if version.selectable_fields:
        out["selectableFields"] = [{"jsonPath": path} for path in version.selectable_fields]
    if kind.has_status:
        out["subresources"] = {"status": {}}
    out["schema"] = {"openAPIV3Schema": _root(version, template)}
    return out


def _column(column: Column) -> Schema:
    out: Schema = {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.json_path,
        "description": column.description,
    }
    if column.priority:
        out["priority"] = column.priority
    return out


def _root(version: Version, template: Schema) -> Schema:
    """Return the schema of a whole object; the API server itself owns type and metadata."""
    schema = structural(version.model.model_json_schema(by_alias=True), template)
    schema["properties"] |= {"apiVersion": _API_VERSION, "kind": _KIND, "metadata": _METADATA}
    schema["properties"] = dict(sorted(schema["properties"].items()))
    required = [name for name in schema.pop("required", ()) if name not in ("apiVersion", "kind")]
    if required:
        schema["required"] = required
    return dict(sorted(schema.items()))
