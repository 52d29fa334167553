"""Descriptions of built-in fields for `kubectl explain`, from the installed Kubernetes client.

The server ships no texts of Kubernetes. Its Python client, which Sluice depends on, carries them
in its models, so they are read from there when somebody asks; without them explain shows fields
and types only.
"""

from __future__ import annotations

import importlib
import inspect
import re
from functools import cache

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PACKAGE = "kubernetes.aio.client.models"
_LEGEND = "\n\nAttributes:"
_PREFIXES = ("", "Core", "Apiextensions", "Rbac", "Events", "Discovery", "Storage",
             "Admissionregistration", "Resource", "Batch")  # fmt: skip


@cache
def describe(definition: str) -> dict[str, str]:
    """Return the texts of one definition: its own under "", each field's under its JSON name.

    Args:
        definition: e.g. `io.k8s.api.batch.v1.JobSpec`.
    """
    *path, version, kind = definition.split(".")
    model = _model(path[-1] if path else "", version, kind)
    if model is None:
        return {}
    texts: dict[str, str] = {}
    own = inspect.cleandoc(getattr(model, "__doc__", "") or "").split(_LEGEND)[0].strip()
    if own:
        texts[""] = own
    for name, field in getattr(model, "model_fields", {}).items():
        if field.description:
            texts[field.serialization_alias or field.alias or name] = field.description
    return texts


def _model(group: str, version: str, kind: str) -> object | None:
    capital = version.capitalize()
    for prefix in ("", group.capitalize(), *_PREFIXES[1:]):
        name = f"{prefix}{capital}{kind}"
        module = _WORD.sub("_", name).lower()
        try:
            found: object = getattr(importlib.import_module(f"{_PACKAGE}.{module}"), name, None)
        except ImportError:
            continue
        if found is not None:
            return found
    return None
